"""Autodiscovery: the feeds that an HTML page names in its head.

    <link rel="alternate" type="application/rss+xml" href="/news.rss" title="News">

People register the address of a page and mean its feed. The first feed that the page names is
fetched instead, once and no further: a page that leads to a page is an error. The address is stored
(inbox.py), and used until it no longer leads to a feed; then the page is asked again. Who follows a
site in a browser chooses among all of them (service/discovery.py).

Only the beginning of the page is looked at, by patterns that take linear time: a page is not
trusted more than a feed, and its head comes first.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from headgate.acquire.plain_text import clean_text, web_link

HEAD_BYTES_MAX = 256_000
TITLE_LENGTH_MAX = 200
_LINK = re.compile(rb"<link\b([^<>]{1,4000})>", re.IGNORECASE)
_BASE = re.compile(rb"<base\b([^<>]{1,4000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"""([a-zA-Z-]{1,20})\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'=<>`]++))""",
)
_FORMATS = {
    "application/rss+xml": "rss",
    "application/atom+xml": "atom",
    "application/feed+json": "json",
}


@dataclass(frozen=True, slots=True)
class NamedFeed:
    """A feed that a page names: its absolute URL, and what the page says of it."""

    url: str
    title: str
    format: str


def discover_feed(page: bytes, url: str) -> str | None:
    """The absolute URL of the first feed that the page at `url` names; None if it names none.

    >>> page = b"<html><link rel=alternate type='application/rss+xml' href='/a?b&amp;c'></html>"
    >>> discover_feed(page, "https://muse.mu/news/")
    'https://muse.mu/a?b&c'
    """
    return next((each.url for each in feed_links(page, url)), None)


def feed_links(page: bytes, url: str) -> Iterator[NamedFeed]:
    """The feeds that the page at `url` names, in its order; one may be named twice."""
    head = page[:HEAD_BYTES_MAX]
    base = url
    if named := _BASE.search(head):
        base = web_link(_attributes(named[1]).get("href", ""), url) or url
    for link in _LINK.finditer(head):
        attributes = _attributes(link[1])
        kind = attributes.get("type", "").partition(";")[0].strip().lower()
        relations = attributes.get("rel", "").lower().split()
        if kind in _FORMATS and ("alternate" in relations or "feed" in relations):
            target = web_link(attributes.get("href", ""), base)
            if target and target != url:
                title = " ".join(clean_text(attributes.get("title", "")).split())
                yield NamedFeed(target, title[:TITLE_LENGTH_MAX], _FORMATS[kind])


def _attributes(text: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(text.decode("utf-8", "replace")):
        found.setdefault(name.lower(), html.unescape(double or single or bare))
    return found
