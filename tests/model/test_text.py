"""Texts compare folded, words are runs of letters and digits, links follow the table of text.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.text import (
    contains_phrase,
    extends,
    fold,
    jaccard,
    links_in,
    normal_link,
    references,
    words,
)

word_sets = st.frozensets(st.sampled_from("abcdef"))


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text())
def test_words_ignore_case(text: str) -> None:
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


# --- links --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("link", "target", "is_reference", "is_extension"),
    [
        ("https://muse.mu/news", "https://muse.mu/news", True, True),
        ("https://muse.mu/news/2026", "https://muse.mu/news", False, True),
        ("https://muse.mu/newsroom", "https://muse.mu/news", False, False),
        ("https://muse.mu/news?page=2", "https://muse.mu/news", False, True),
        ("https://muse.mu/news", "muse.mu", True, True),
        ("https://shop.muse.mu/", "muse.mu", False, True),
        ("https://amuse.mu/", "muse.mu", False, False),
        ("http://muse.mu/news", "https://muse.mu/news", False, False),
        ("HTTPS://MUSE.mu:443/news#top", "https://muse.mu/news", True, True),
        ("https://muse.mu:8080/news", "muse.mu", False, False),
        ("https://user:secret@muse.mu/", "muse.mu", True, True),
        ("https://muse.mu.evil.org/", "muse.mu", False, False),
        ("https://muse.mu/news/2026", "muse.mu/news", False, True),
        ("https://shop.muse.mu/news", "muse.mu/news", False, False),
        ("http://[broken", "http://[broken", True, True),
    ],
)
def test_links(link: str, target: str, is_reference: bool, is_extension: bool) -> None:
    assert references(link, target) == is_reference
    assert extends(link, target) == is_extension


@given(st.text())
def test_any_text_has_a_normal_form(text: str) -> None:
    assert normal_link(text) == normal_link(text.strip())


@given(st.text(), st.text())
def test_a_referenced_link_is_also_extended(link: str, target: str) -> None:
    assert not references(link, target) or extends(link, target)


def test_links_are_found_in_html() -> None:
    html = """<a href="https://a.org/x?y=1">x</a> and http://b.org/(z)."""
    assert links_in(html) == ["https://a.org/x?y=1", "http://b.org/(z"]
