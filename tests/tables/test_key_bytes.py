"""Keys as bytes: equal if and only if the values are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.errors import StateError
from headgate.tables.key_bytes import key_bytes, key_of

NUMBERS = (
    st.integers(-(2**63), 2**63 - 1)
    | st.sampled_from([2**53, 2**53 + 1, 5, 0])
    | st.floats(allow_nan=False)
    | st.sampled_from([5.0, -0.0, 2.0**53])
)
PARTS = NUMBERS | st.text(max_size=4) | st.booleans()
KEYS = st.lists(PARTS, max_size=3).map(tuple)


def _told_apart(key: tuple[object, ...]) -> tuple[object, ...]:
    """Python takes True for 1."""
    return tuple((isinstance(part, bool), isinstance(part, str), part) for part in key)


@given(one=KEYS, other=KEYS)
def test_bytes_are_equal_if_and_only_if_keys_are(
    one: tuple[str | int | float | bool, ...], other: tuple[str | int | float | bool, ...]
) -> None:
    assert (key_bytes(one) == key_bytes(other)) == (_told_apart(one) == _told_apart(other))
    assert _told_apart(key_of(key_bytes(one))) == _told_apart(one)


@pytest.mark.parametrize("content", [b"n123", b"t\x05\0\0\0abc", b"x", b"i", b"b"])
def test_invalid_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(StateError, match="cannot be read"):
        key_of(content)
