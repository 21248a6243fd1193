"""Markup that is found cheap is sanitised quickly, whatever it is made of."""

from __future__ import annotations

import html
import re
from collections import Counter
from contextlib import suppress

import nh3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cpu_time import within_cpu

from headgate.acquire.limits import IntakeLimits
from headgate.acquire.parse_feed import parse_feed
from headgate.acquire.plain_text import TooExpensive, plain_and_safe, safe_html
from headgate.acquire.sanitise import SanitiseBudget
from headgate.deliver.clean_text import html_to_text
from headgate.deliver.clean_text import safe_html as shown_html
from headgate.sandbox.markup_cost import SMALL_LENGTH, is_cheap

N = 4_000
HOSTILE = {
    "open": "".join(f"<i class=x{k}>y" for k in range(3999)),
    "open again": "".join(f"<p><i class=x{k}>" for k in range(N)),
    "closed by another name": "".join(f"<i class=x{k}></b>" for k in range(N)),
    "attributes": f"<a {' '.join(f'a{k}' for k in range(20_000))}>",
    "attributes without spaces": f"<a {'/'.join(f'a{k}' for k in range(20_000))}>",
    "attributes in quotes": "<a " + " ".join(f'a{k}=">"' for k in range(20_000)) + ">",
    "a quote that is none": f'<a b=x">{"<div>" * 20_000}">',
    "deep": "<div>" * 20_000,
    "blocks in formats": "<b><div></b>" * N,
    "links": "<a href=x><div></a>" * N,
    "many tags with many attributes": f"<a {' '.join(f'a{k}' for k in range(500))}>" * 100,
    "few open, many blocks": "".join(f"<i class=x{k}>" for k in range(60)) + "<li>y" * 20_000,
}
PAGES = {
    "paragraphs": '<p>a <b>b</b> <a href="http://x.y/z">c</a></p>\n' * 2_500,
    "lists": f"<ul>{'<li>one <em>x</em></li>' * 3_000}</ul>",
    "tables": f"<table>{'<tr><td>a<td>b</tr>' * 3_000}</table>",
    "pictures": f'<img alt="a" srcset="{"https://a.b/c/d.jpg 300w, " * 20}">' * 100,
    "nested": ("<div>" * 20 + "x" + "</div>" * 20) * 100,
}


@pytest.mark.parametrize("markup", HOSTILE.values(), ids=HOSTILE)
def test_hostile_markup_is_not_cheap(markup: str):
    assert not is_cheap(markup)


@pytest.mark.parametrize("markup", PAGES.values(), ids=PAGES)
def test_pages_are_cheap(markup: str):
    assert is_cheap(markup)


NAMES = ["i", "b", "a", "div", "p", "li", "ul", "table", "td", "svg", "br", "option", "nobr"]


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.booleans(), st.integers(0, 3)), max_size=12),
    st.lists(st.tuples(st.sampled_from(NAMES), st.booleans(), st.integers(0, 3)), max_size=6),
    st.integers(1, 1_500),
)
def test_what_is_cheap_is_quick(
    first: list[tuple[str, bool, int]], again: list[tuple[str, bool, int]], times: int
):
    """Made of a beginning and a part that is repeated, with attributes that differ."""
    parts = first + again * times
    markup = "".join(
        f"</{name}>" if closing else f"<{name}{f' class=x{at}' * attributes}>y"
        for at, (name, closing, attributes) in enumerate(parts)
    )
    if is_cheap(markup):
        within_cpu(0.5, lambda: nh3.clean(markup))


@given(st.lists(st.sampled_from(["<i>", "</i>", "<b>", "</b>", "<p>", "x"]), max_size=60))
def test_open_elements_are_counted_as_by_hand(parts: list[str]):
    """One more element than the limit allows, after any beginning, makes it expensive."""
    opened: Counter[str] = Counter()
    cost = 0
    markup = "".join(parts) + " " * SMALL_LENGTH
    for closing, name in re.findall(r"<(/?)(\w+)>", markup):
        cost += 1 + sum(opened.values())
        if name != "p":
            opened[name] = max(opened[name] + (-1 if closing else 1), 0)
    allowed = 5_000
    rest = (allowed - cost) // (1 + sum(opened.values()))
    assert is_cheap(markup + "<p>" * rest, allowed)
    assert not is_cheap(markup + "<p>" * (rest + 1), allowed)


# --- at intake ------------------------------------------------------------------------------------


def feed_of(*contents: str) -> bytes:
    items = "".join(
        f"<item><title>T{n}</title><guid>{n}</guid>"
        f"<description>{html.escape(each)}</description></item>"
        for n, each in enumerate(contents)
    )
    return f"<rss version='2.0'><channel><title>C</title>{items}</channel></rss>".encode()


def test_expensive_markup_of_a_feed_becomes_text_and_is_a_problem():
    limits = IntakeLimits(sanitise_s=0.2)
    worst = HOSTILE["open again"]
    body = feed_of("<b>good</b>", worst, worst, "<i>good</i>")
    feed = within_cpu(2, lambda: parse_feed(body, limits=limits))
    texts = [each.attributes.get("description", "") for each in feed.entries]
    assert (texts[0], texts[3]) == ("good", "good")
    assert feed.entries[1].html.get("description", "") == ""
    reasons = [str(each) for each in feed.problems]
    assert len(reasons) == 2
    assert reasons[0].startswith("entry 2: the tags of its description are removed: it takes")
    assert "used up" in reasons[1]


def test_the_sandboxed_process_gives_the_same():
    deep = "<div>" * 100 + "<a href='/x'>l</a>" * 2_000 + "</div>" * 100
    assert not is_cheap(deep)
    found = SanitiseBudget(20.0).safe_html(deep, "https://a.b/")
    assert found == safe_html(deep, base="https://a.b/")
    assert 'href="https://a.b/x"' in found


def test_nothing_of_one_document_is_in_another():
    """The process is shared, and goes on after good markup; after bad markup there is another."""
    secret = "of-user-A"
    good = "<div>" * 100 + f"<b>{secret}</b>" * 2_000
    bad = "".join(f"<p><i class={secret}{k}>" for k in range(N))
    other = "<div>" * 100 + "<a href='/x'>l</a>" * 2_000
    expected = safe_html(other, base="https://a.b/")
    for budget_s, markup in ((20.0, good), (0.05, bad), (20.0, good)):
        with suppress(TooExpensive):
            SanitiseBudget(budget_s).safe_html(markup, "https://a.b/")
        assert SanitiseBudget(20.0).safe_html(other, "https://a.b/") == expected


def test_markup_that_multiplies_is_too_expensive():
    with pytest.raises(TooExpensive):
        plain_and_safe(
            "<b>x", base="", with_links=False, sanitise=lambda _markup, _base: "<b>" * 1_000
        )


# --- when shown -----------------------------------------------------------------------------------


@pytest.mark.parametrize("markup", HOSTILE.values(), ids=HOSTILE)
def test_expensive_markup_is_shown_as_text(markup: str):
    """Items from JSON and posts were not sanitised before."""
    assert "<" not in within_cpu(0.25, lambda: shown_html(markup))
    within_cpu(0.25, lambda: html_to_text(markup))
