"""Markup as words and as safe HTML, for any markup."""

from __future__ import annotations

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cpu_time import within_cpu

from headgate.acquire.plain_text import plain_and_safe, plain_text, web_link
from headgate.model.text import words

BASE = "https://muse.mu/a/b"

markup = st.lists(
    st.sampled_from(
        ["<p>", "</p>", "<b>", "<a href='/x'>", "</a>", "<script>", "&amp;", "&", "<", ">"]
    )
    | st.text(max_size=5),
    max_size=15,
).map("".join)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("plain", "plain"),
        ("<p>a</p><p>b</p>", "a\nb"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("<b>bo</b>ld", "bold"),
        ("a\n  b", "a b"),
        ("<pre>a\nb</pre>", "a\nb"),
        ("1 < 2 &lt; 3 &amp;amp; &eacute;&#33;", "1 < 2 < 3 &amp; é!"),
        ("<td>a<td>b", "ab"),
        ("<table><tr><td>a<td>b</table>", "a\nb"),
        ("a<script>b</script><style>c</style><!-- d -->e", "ae"),
        ("<img alt='x' src='y'>", ""),
    ],
)
def test_plain_text_of_markup(source: str, text: str) -> None:
    assert plain_text(source, base=BASE) == text


def test_link_targets_are_appended_once() -> None:
    source = "<a href='/x'>a</a> <a href='/x'>b</a> <a href='mailto:a@b.c'>c</a> <a href='http://['>d</a>"
    assert plain_text(source, base=BASE, with_links=True) == "a b c d\nhttps://muse.mu/x"
    shown = "<a href='https://muse.mu/x'>https://muse.mu/x</a>"
    assert plain_text(shown, with_links=True) == "https://muse.mu/x"


@given(markup)
def test_any_markup_becomes_clean_text_and_safe_html(source: str) -> None:
    text, safe = plain_and_safe(source, base=BASE, with_links=True)
    assert not any(ord(each) < 32 and each != "\n" for each in text)
    assert "<script" not in safe
    # What is shown says the same again.
    assert words(plain_text(safe, base=BASE, with_links=True)) == words(text)


@given(st.text(st.characters(categories=("L", "N", "P", "S")), max_size=30))
def test_escaped_text_comes_back(text: str) -> None:
    assert plain_text(html.escape(text)) == text.strip()


@pytest.mark.parametrize(
    "unit", ["<div>", "<b>", "<b><i><a>", "<a><b></a></b>", "<p><b>", "<table>"]
)
def test_deep_markup_takes_linear_time(unit: str) -> None:
    source = "word " + unit * (200_000 // len(unit))
    assert within_cpu(2, lambda: plain_text(source)) == "word"


@given(st.text(max_size=30))
def test_any_text_is_a_link_of_the_web_or_none(text: str) -> None:
    actual = web_link(text, BASE)
    assert actual is None or actual.lower().startswith(("http://", "https://"))
