"""Similarity agrees with the oracle exactly, also at the threshold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.match.agree import answers, assert_agrees, item

from headgate.match.similar_atoms import WORDS_MAX, least_common, most_words
from headgate.model.atoms import Similar
from headgate.model.values import Type, Xml

TYPES = {"t": Type.TEXT, "u": Type.TEXT, "x": Type.XML}
LETTERS = "abcdefghij"
# All quotients of small numbers are thresholds, so that items lie just on them.
thresholds = st.tuples(st.integers(1, 9), st.integers(1, 9)).map(lambda p: min(p) / max(p))
# Unknown words differ in one letter, in case, or not at all.
some_words = st.lists(
    st.sampled_from([*LETTERS, "A", "zz", "ZZ", "zy", "É", "é", "!"]), max_size=14
)
texts = some_words.map(" ".join)
atom_texts = st.lists(st.sampled_from(LETTERS + "é"), min_size=1, max_size=9).map(" ".join)
atoms = st.builds(
    Similar, st.sampled_from(["t", "x", None]), atom_texts, thresholds | st.just(1e-9)
)
items = st.builds(lambda t, u, x: item(t=t, u=u, x=Xml(x)), texts, texts, texts)


@given(st.lists(atoms, min_size=1, max_size=12, unique=True), st.lists(items, max_size=8))
def test_the_index_agrees_with_the_oracle(given_atoms: list[Similar], given_items: list) -> None:
    assert_agrees(given_atoms, given_items, TYPES)


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=120, unique=True),
    st.lists(st.lists(st.integers(0, 400), min_size=1, max_size=90, unique=True), max_size=6),
    thresholds,
)
def test_long_texts_too(own: list[int], others: list[list[int]], threshold: float) -> None:
    """More words than a signature has bits, and than are sorted one by one."""
    some = [
        Similar("t", " ".join(f"w{each}" for each in [*wanted, *own[:cut]]), threshold)
        for cut, wanted in enumerate([*others, own])
    ]
    text = " ".join(f"w{each}" for each in own)
    assert_agrees(list(dict.fromkeys(some)), [item(t=text), item(t=text[:40])], TYPES)


@given(st.integers(1, 60), thresholds | st.floats(0, 1, exclude_min=True))
def test_the_bounds_are_the_tightest(size: int, threshold: float) -> None:
    least, most = least_common(size, threshold), most_words(size, threshold)
    assert 1 <= least <= size
    assert least / size >= threshold
    assert least == 1 or (least - 1) / size < threshold
    if most < WORDS_MAX:
        assert size / most >= threshold > size / (most + 1)


@pytest.mark.parametrize("missing", [{}, {"t": ""}, {"t": "!?"}])
def test_an_item_without_words_is_similar_to_nothing(missing: dict) -> None:
    assert answers([Similar("t", "a", 1e-9)], [item(**missing)], TYPES) == [[False]]


def test_reading_stops_when_an_item_has_too_many_words() -> None:
    """200,000 distinct words that nobody knows, against an atom that allows 20."""
    huge = " ".join(f"u{number}" for number in range(200_000))
    atom = Similar("t", " ".join(LETTERS), 0.5)
    found = [item(t=huge), item(t=" ".join(LETTERS) + " u1 U1 u2")]
    assert answers([atom], found, TYPES) == [[False, True]]
