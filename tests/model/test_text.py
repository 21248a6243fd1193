"""Texts compare folded, words are those of every script, links follow the table of text.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.scripts import any_script

from headgate.model.text import (
    contains_phrase,
    extends,
    fold,
    jaccard,
    links_in,
    normal_link,
    references,
    terms,
    words,
    words_of_prefix,
)

word_sets = st.frozensets(st.sampled_from("abcdef"))


@given(st.text() | any_script)
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text() | any_script)
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Rock'n'Roll, 3.14 a_b", "rock n roll 3 14 a b"),
        ("हिन्दी दिन", "हिन्दी दिन"),
        ("বাংলা தமிழ்", "বাংলা தமிழ்"),
        ("نمی\u200cخواهم العَرَبِيّة", "نمیخواهم العَرَبِيّة"),
        ("שָׁלוֹם", "שָׁלוֹם"),
        ("so\u00adft \ufeffa\ufe0f b\u200bc", "soft a b c"),
        ("don´t \u0301x", "don t x"),
        ("한국어 뉴스", "한국어 뉴스"),
        ("東京都", "東.京.都"),
        ("iPhone15発売 東京・大阪", "iphone15 発.売 東.京 大.阪"),
        ("コンピュータ ｶﾞ々", "コ.ン.ピ.ュ.ー.タ ガ.々"),
        ("กิน ที่", "กิ.น ที่"),
        ("ខ្មែរ မြန်မာ", "ខ្មែ.រ မြ.န်.မ.ာ"),
        ("๒๕๖๙ 2026年", "๒๕๖๙ 2026 年"),
    ],
)
def test_the_terms_of_many_scripts(text: str, expected: str) -> None:
    assert [".".join(each) for each in terms(text)] == fold(expected).split()


@given(any_script, any_script)
def test_a_prefix_has_words_that_stay(prefix: str, rest: str) -> None:
    folded, whole = fold(prefix), fold(prefix + rest)
    if whole.startswith(folded):
        certain = words_of_prefix(folded)
        assert words(whole)[: len(certain)] == certain


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
