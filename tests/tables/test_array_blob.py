"""Arrays as one byte string: round trips, and damaged bytes are refused."""

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
def test_pack_and_unpack_round_trip(arrays: dict[str, np.ndarray], number: int) -> None:
    head, actual = unpack(pack({"number": number, "text": "é"}, arrays))
    assert head == {"number": number, "text": "é"}
    assert actual.keys() == arrays.keys()
    for name, array in arrays.items():
        assert actual[name].dtype == array.dtype
        assert actual[name].shape == array.shape
        assert actual[name].tobytes() == array.tobytes()
        assert not actual[name].flags.writeable


@given(place=st.integers(0, 200), byte=st.integers(1, 255))
def test_a_changed_byte_is_refused(place: int, byte: int) -> None:
    blob = bytearray(pack({"a": 1}, {"numbers": np.arange(20)}))
    blob[place % len(blob)] ^= byte
    with pytest.raises(StateError, match="cannot be read"):
        unpack(bytes(blob))


@pytest.mark.parametrize("length", [0, 3, 12, 40, -8])
def test_a_truncated_blob_is_refused(length: int) -> None:
    with pytest.raises(StateError, match="cannot be read"):
        unpack(pack({}, {"numbers": np.arange(20)})[:length])
