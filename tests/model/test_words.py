"""Texts are compared folded, words are runs of letters and digits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.words import contains_phrase, fold, jaccard, words

word_sets = st.frozensets(st.sampled_from("abcdef"))


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text())
def test_words_do_not_see_the_case(text: str) -> None:
    assert words(text) == words(fold(text))


@pytest.mark.parametrize(
    ("left", "right"),
    [("ﬁne", "FINE"), ("Straße", "STRASSE"), ("Ｒｏｃｋ\u00a0", " rock"), ("Å", "Å")],
)
def test_one_text_in_two_spellings(left: str, right: str) -> None:
    assert fold(left) == fold(right)


def test_a_sign_is_part_of_a_text_but_not_of_a_word() -> None:
    assert fold("C++") != fold("C#")
    assert words("C++") == words("C#") == ("c",)


@given(st.lists(st.sampled_from("ab"), max_size=6), st.lists(st.sampled_from("ab"), min_size=1))
def test_a_phrase_is_a_run_of_words(text: list[str], phrase: list[str]) -> None:
    expected = f" {' '.join(phrase)} " in f" {' '.join(text)} "
    assert contains_phrase(tuple(text), tuple(phrase)) == expected


@given(word_sets, word_sets)
def test_similarity_is_symmetric_and_bounded(left: frozenset[str], right: frozenset[str]) -> None:
    assert jaccard(left, right) == jaccard(right, left)
    assert 0 <= jaccard(left, right) <= 1
    assert (jaccard(left, right) == 1) == (left == right and bool(left))
