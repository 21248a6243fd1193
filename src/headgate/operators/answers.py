"""The answers of operators for several items, as columns, and Arrow arrays made without pandas.

    rows         7      2      9      4
    answered     yes    yes    no     yes         row 9 failed: it raised, timed out, …
    true         yes    no     –      yes
    starts       0      2      2      2     5     binding calls only: the values of row n are
    values       ?a     51 60              3 4 5  starts[n] … starts[n + 1], an array per variable

A binding call is true of a row if it has a solution. A failed row is neither true nor false: no
filter that contains the call is satisfied, not even one that negates it.

`pa.array` imports pandas on its first call, to check whether its argument is a Series. In the child
process, which does not use pandas otherwise, that takes 0.3 s, nearly as long as everything else
before the first answer. `arrow_of…` build the same arrays from buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.model.values import Value

Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
States = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

FALSE, TRUE, FAILED = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class TypedTexts:
    """A column of links or XML, which Arrow stores as texts, but which are of another kind."""

    array: pa.Array
    mark: type[str]

    def to_pylist(self) -> list[Value | None]:
        return [self.mark(each) for each in self.array.to_pylist()]


@dataclass(frozen=True, slots=True, eq=False)
class BoundValues:
    """The solutions of a binding call: those of row n are starts[n] … starts[n + 1] - 1."""

    starts: Longs
    values: tuple[pa.Array | TypedTexts, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CallAnswers:
    """The answers of one call, one entry for each row."""

    answered: Bools
    true: Bools
    starts: Longs | None = None
    values: tuple[pa.Array | TypedTexts, ...] = ()

    def __len__(self) -> int:
        return len(self.answered)


@dataclass(frozen=True, slots=True, eq=False)
class RoundAnswers:
    """The answers of several calls, one after the other: an entry for each row of each.

    `seconds` has an entry for each call; `bound` is by the number of the call.
    """

    answered: Bools
    true: Bools
    seconds: Floats
    bound: dict[int, BoundValues] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class PartialAnswers:
    """CallAnswers for some of the rows of a call. `lists` has one list array for each
    variable."""

    states: States
    lists: tuple[pa.ListArray, ...] = ()

    def __len__(self) -> int:
        return len(self.states)


def failed_part(count: int, types: Sequence[pa.DataType]) -> PartialAnswers:
    lists = tuple(arrow_of_lists([[]] * count, each) for each in types)
    return PartialAnswers(np.full(count, FAILED, np.uint8), lists)


def bound_of(
    parts: Sequence[tuple[Rows, PartialAnswers]], types: Sequence[pa.DataType]
) -> BoundValues:
    """The solutions of all parts in the order of rows; with each part are its rows."""
    if not parts:
        parts = [(np.zeros(0, np.int32), failed_part(0, types))]
    columns = [list(column) for column in zip(*(part.lists for _, part in parts), strict=True)]
    lists = [column[0] if len(column) == 1 else pa.concat_arrays(column) for column in columns]
    if len(parts) > 1:
        order = np.argsort(np.concatenate([positions for positions, _ in parts]), kind="stable")
        lists = [each.take(arrow_of(order)) for each in lists]
    starts = np.zeros(len(lists[0]) + 1, np.int64)
    np.cumsum(np.asarray(lists[0].value_lengths()), out=starts[1:])
    return BoundValues(starts, tuple(each.flatten() for each in lists))


def answers_of(part: PartialAnswers, types: Sequence[pa.DataType]) -> CallAnswers:
    answered, true = part.states != FAILED, part.states == TRUE
    if not types:
        return CallAnswers(answered, true)
    bound = bound_of([(np.arange(len(part), dtype=np.int32), part)], types)
    return CallAnswers(answered, true, bound.starts, bound.values)


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
        instants = [
            (each - _EPOCH) // _MICROSECOND for each in values if isinstance(each, datetime)
        ]
        return arrow_of(np.array(instants, np.int64)).cast(type_)
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
