"""Texts of strangers, made harmless."""

from __future__ import annotations

import time

import httpx
import nh3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from tests.deliver.things import any_text

from headgate.deliver.clean_text import (
    _PLAIN_LINK,
    LINK_SCHEMES,
    html_to_text,
    one_line,
    safe_html,
    safe_link,
    xml_characters,
)


@given(any_text)
def test_what_is_clean_can_stand_in_xml(text: str):
    element = etree.Element("a")
    for cleaned in (xml_characters(text), one_line(text), safe_html(text), html_to_text(text)):
        element.text = cleaned
        assert etree.fromstring(etree.tostring(element, encoding="utf-8")).text == (cleaned or None)


@given(any_text)
def test_cleaning_twice_changes_nothing(text: str):
    assert xml_characters(xml_characters(text)) == xml_characters(text)
    assert one_line(one_line(text)) == one_line(text)


@given(any_text)
def test_one_line_is_one_line(text: str):
    assert one_line(text).isprintable()
    assert len(one_line(text, 5)) <= 5


HARMFUL = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "<a href='java\tscript:alert(1)'>x</a>",
    "<iframe src='https://a.b'></iframe>",
    "<svg onload=alert(1)>",
    "<form action='https://a.b'><input></form>",
    "<style>@import 'https://a.b'</style>",
    "<math><mi//xlink:href='data:x,<script>alert(1)</script>'>",
    "<meta http-equiv=refresh content='0;url=https://a.b'>",
    "&#1;<p>&lt;script&gt;",
]


@pytest.mark.parametrize("text", HARMFUL)
def test_html_is_harmless(text: str):
    found = safe_html(text)
    for bad in (
        "<script",
        "onerror",
        "onload",
        "javascript:",
        "<iframe",
        "<form",
        "<style",
        "<meta",
    ):
        assert bad not in found.lower()
    assert "\x01" not in found


def test_relative_links_lead_on_from_the_base():
    text = '<a href="/b">x</a><img src="c.png">'
    assert 'href="https://a.org/b"' in safe_html(text, "https://a.org/d/e")
    assert 'src="https://a.org/d/c.png"' in safe_html(text, "https://a.org/d/e")
    assert "/b" not in safe_html(text)
    assert "/b" not in safe_html(text, "mailto:me@mail.org")


@given(
    st.lists(
        st.sampled_from(["<a>", "<a href>", "<a/href>", "<a\nhref=b>", "<img src=c>", "</a>", "<b>",
                         "<", ">", "x", "<a href='/d'", "'>", "<q cite=e>", "<!--", "-->"])
    ).map("".join)
)  # fmt: skip
def test_one_cleaner_for_texts_without_links_changes_nothing(text: str):
    base = "https://a.org/d/e"
    whole = nh3.clean(
        text,
        url_schemes=LINK_SCHEMES,
        url_relative=("rewrite_with_base", base),
        link_rel="nofollow noopener noreferrer",
    )
    if "<" in text:
        assert safe_html(text, base) == whole


@given(st.from_regex(_PLAIN_LINK, fullmatch=True))
def test_plain_links_are_what_parsing_makes_of_them(text: str):
    assert safe_link(text) == str(httpx.URL(text))


@pytest.mark.parametrize("tag", ["<div>", "<b>", "<a href=x>", "<table><td>", "<b><p>", "< "])
def test_deep_html_does_not_take_long(tag: str):
    began = time.monotonic()
    safe_html(tag * (4_000 // tag.count("<")))
    safe_html(tag * 100_000)
    html_to_text(tag * 100_000)
    assert time.monotonic() - began < 2


def test_blocks_become_lines():
    found = html_to_text("<h1>A</h1><ul><li>b &lt; c<li>d</ul><p>e<br>f <i>g</i></p>")
    assert found == "A\nb < c\nd\ne\nf g"


@pytest.mark.parametrize(
    "text",
    ["javascript:x", "data:x", "file:///etc/passwd", "x", "", "//a.b", "http://", "http://[x"],
)
def test_what_is_no_link_is_none(text: str):
    assert safe_link(text) is None


@given(any_text)
def test_links_are_ascii(text: str):
    found = safe_link("https://a.org/" + text)
    assert found is None or (found.isascii() and found.isprintable() and '"' not in found)
