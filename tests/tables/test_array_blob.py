"""Arrays in one piece of bytes, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as some_arrays

from headgate.model.errors import StateError
from headgate.tables.array_blob import pack, unpack

ARRAYS = st.sampled_from([np.int64, np.float64, np.uint8, np.bool_]).flatmap(
    lambda dtype: some_arrays.arrays(
        dtype, some_arrays.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=5)
    )
)


@given(arrays=st.dictionaries(st.text(max_size=5), ARRAYS, max_size=4), number=st.integers())
def test_what_is_packed_is_what_is_unpacked(arrays: dict[str, np.ndarray], number: int) -> None:
    head, found = unpack(pack({"number": number, "text": "é"}, arrays))
    assert head == {"number": number, "text": "é"}
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()
        assert not found[name].flags.writeable


@given(place=st.integers(0, 200), byte=st.integers(1, 255))
def test_a_byte_that_differs_is_noticed(place: int, byte: int) -> None:
    blob = bytearray(pack({"a": 1}, {"numbers": np.arange(20)}))
    blob[place % len(blob)] ^= byte
    with pytest.raises(StateError, match="cannot be read"):
        unpack(bytes(blob))


@pytest.mark.parametrize("length", [0, 3, 12, 40, -8])
def test_what_is_cut_off_is_refused(length: int) -> None:
    with pytest.raises(StateError, match="cannot be read"):
        unpack(pack({}, {"numbers": np.arange(20)})[:length])
