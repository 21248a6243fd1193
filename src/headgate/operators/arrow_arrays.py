"""Arrow arrays made of NumPy's arrays and of values, without `pa.array`.

Whatever `pa.array` is given, it loads pandas first, to see whether it is a Series. In a process
that has no other use for pandas that takes 0.3 s, nearly as long as all else that a new child does
before its first answer. These make the same arrays of their buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.model.values import Value

_NUMBERS = {pa.int64(): np.int64, pa.float64(): np.float64, pa.bool_(): np.bool_}
_AS_THEY_ARE = (np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.float64))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def arrow_of(array: npt.NDArray[np.generic]) -> pa.Array:
    if array.ndim == 1 and array.dtype == np.bool_:
        bits = np.packbits(array.astype(np.bool_), bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(array), [None, pa.py_buffer(bits)])
    if array.ndim == 1 and array.dtype in _AS_THEY_ARE:
        content = pa.py_buffer(np.ascontiguousarray(array))
        return pa.Array.from_buffers(pa.from_numpy_dtype(array.dtype), len(array), [None, content])
    return pa.array(array)


def arrow_of_values(values: Sequence[Value], type_: pa.DataType) -> pa.Array:
    """A column of these values, none of which is missing."""
    if type_ in _NUMBERS:
        return arrow_of(np.array(values, _NUMBERS[type_]))
    if pa.types.is_timestamp(type_):
        moments = [(each - _EPOCH) // _MICROSECOND for each in values if isinstance(each, datetime)]
        return arrow_of(np.array(moments, np.int64)).cast(type_)
    contents = [each.encode() if isinstance(each, str) else each for each in values]
    joined = b"".join(each for each in contents if isinstance(each, bytes))
    lengths = [len(each) for each in contents if isinstance(each, bytes)]
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(joined)]
    return pa.Array.from_buffers(type_, len(values), buffers)


def arrow_of_lists(lists: Sequence[Sequence[Value]], type_: pa.DataType) -> pa.ListArray:
    offsets = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(each) for each in lists], out=offsets[1:])
    values = arrow_of_values([value for each in lists for value in each], type_)
    return pa.ListArray.from_arrays(arrow_of(offsets), values)
