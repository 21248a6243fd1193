"""Sealed values: they open in their own row by their own key, and nowhere else."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from headgate.catalog.sealed import OVERHEAD_BYTES, Sealer
from headgate.model.errors import CatalogError, SealBroken

KEY = b"the key of an installation"
sealer = Sealer(KEY, "test")
parts = st.text(max_size=20)
places = st.lists(parts, min_size=3, max_size=5).map(tuple)
values = st.binary(max_size=500)


@given(values, places)
def test_what_was_sealed_opens_in_its_place(value: bytes, place: tuple[str, ...]) -> None:
    first, second = sealer.seal(value, *place), sealer.seal(value, *place)
    assert Sealer(KEY, "test").open(first, *place) == sealer.open(second, *place) == value
    assert first != second, "the same value looks different each time"
    assert len(first) == len(value) + OVERHEAD_BYTES
    if len(value) >= 8:
        assert value not in first


@given(values, places, places)
def test_it_opens_in_no_other_place(
    value: bytes, place: tuple[str, ...], other: tuple[str, ...]
) -> None:
    sealed = sealer.seal(value, *place)
    if place != other:
        with pytest.raises(SealBroken):
            sealer.open(sealed, *other)
    # Parts do not run together.
    moved = (place[0] + place[1], *place[2:], "")
    if moved != place:
        with pytest.raises(SealBroken):
            sealer.open(sealed, *moved)


@given(values, places, st.data())
def test_no_bit_can_be_flipped(value: bytes, place: tuple[str, ...], data: st.DataObject) -> None:
    sealed = bytearray(sealer.seal(value, *place))
    bit = data.draw(st.integers(0, 8 * len(sealed) - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(SealBroken):
        sealer.open(bytes(sealed), *place)


@given(values, places, st.data())
def test_nothing_can_be_cut_off_or_added(
    value: bytes, place: tuple[str, ...], data: st.DataObject
) -> None:
    sealed = sealer.seal(value, *place)
    cut = data.draw(st.integers(0, len(sealed) - 1))
    for wrong in (sealed[:cut], sealed[cut + 1 :], sealed + b"\0", value):
        with pytest.raises(SealBroken):
            sealer.open(wrong, *place)


def test_another_key_or_purpose_does_not_open_it_and_the_error_says_what_to_do() -> None:
    sealed = sealer.seal(b"secret", "t", "c", "1")
    for other in (Sealer(b"another key", "test"), Sealer(KEY, "another purpose")):
        with pytest.raises(SealBroken, match="HEADGATE_WEBHOOK_KEY") as refused:
            other.open(sealed, "t", "c", "1")
        assert isinstance(refused.value, CatalogError)
        assert "secret" not in str(refused.value)


def test_a_later_version_is_named_as_such() -> None:
    sealed = sealer.seal(b"secret", "t", "c", "1")
    with pytest.raises(SealBroken, match="upgrade Headgate"):
        sealer.open(b"\x02" + sealed[1:], "t", "c", "1")


def test_the_key_itself_encrypts_nothing() -> None:
    """Two values of one purpose have different keys: what opens one does not open the other."""
    seen: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "headgate.catalog.sealed.AESGCM",
            lambda key: (seen.append(key), AESGCM(key))[1],
        )
        for _ in range(50):
            sealer.seal(b"x", "t", "c", "1")
    assert len(set(seen)) == 50
    assert KEY not in seen
