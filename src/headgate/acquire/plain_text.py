"""Markup as plain text and as safe HTML.

Filters look at words, and a text with markup would contain the words 'div', 'href' and 'class'. So
attributes hold plain text: what a reader of the page would read. Two things of the markup are kept.

- The *targets of its links* follow the text, one per line: the atoms `references`, `extends` and
  `shares-link` ([RoSeS §3.2]) look for URLs in texts, and most URLs are in `href`. They are at the
  end, as URLs between words would break phrases.
- The *HTML itself*, sanitised by nh3, is returned with the text, for rendering.

    <p>New <a href="/album">album</a> out</p><p>Now</p>        New album out
                                                               Now
                                                               https://muse.mu/album

Cost: about 10 µs per tag, for markup that sandbox/markup_cost.py finds cheap. Other markup is
sanitised in a process of its own (sanitise.py); what exceeds the document's budget of tags or of
time is not parsed: its tags are removed by a pattern.

Rejected: removing tags with nh3 alone, which glues the words of neighbouring paragraphs together,
and lxml's HTML parser, which recovers from broken markup in other ways than browsers do.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import nh3

from headgate.sandbox.markup_cost import has_grown, is_cheap

LINKS_MAX = 1_000

_ANY_TAG = re.compile(r"<[^<>]*>")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_SPACES = re.compile(r"[ \t\r\f\xa0]+")
_LINES = re.compile(r" ?\n[ \n]*")

_BLOCK_NAMES = """
    address article aside blockquote br caption center dd details dir div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol option p pre section
    summary table tbody td tfoot th thead tr ul
"""
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_SCHEMES = {"http", "https", "mailto", "ftp"}


class TooExpensive(Exception):
    """Sanitising the markup would take more than it may."""


def clean_text(text: str) -> str:
    """A text without markup: control characters removed, whitespace stripped."""
    return _CONTROL.sub("", text).strip()


def plain_text(markup: str, *, base: str = "", with_links: bool = False) -> str:
    """The visible text of markup.

    >>> plain_text("<p>Rock &amp; <b>Ro</b>ll</p><p>now</p>")
    'Rock & Roll\\nnow'
    """
    is_parsed = is_cheap(markup)
    return plain_and_safe(markup, base=base, with_links=with_links, is_parsed=is_parsed)[0]


def plain_and_safe(
    markup: str,
    *,
    base: str,
    with_links: bool,
    is_parsed: bool = True,
    sanitise: Callable[[str, str], str] | None = None,
) -> tuple[str, str]:
    """The plain text and the sanitised HTML. Unless `is_parsed`, tags are only removed, and neither
    has links. `sanitise` may raise `TooExpensive`; by default the markup must be cheap."""
    markup = _CONTROL.sub("", markup)
    if "<" not in markup and "&" not in markup:
        text = _tidy(markup.replace("\n", " "))
        return text, html.escape(text, quote=False)
    if not is_parsed:
        text = _tidy(html.unescape(_ANY_TAG.sub(" ", markup)))
        return text, html.escape(text, quote=False)
    safe = sanitise(markup, base) if sanitise else safe_html(markup, base=base)
    if has_grown(safe, markup):
        raise TooExpensive("it opens the same elements again and again")
    reader = _Reader()
    reader.feed(safe)
    reader.close()
    text = _tidy("".join(reader.pieces))
    links = [each for each in reader.links if each not in text] if with_links else []
    return "\n".join(filter(None, [text, *links])), safe


def safe_html(markup: str, *, base: str = "") -> str:
    """Only harmless elements, attributes and schemes; relative URLs are made absolute."""

    def absolute(url: str) -> str | None:
        return web_link(url, base)

    return nh3.clean(markup, url_schemes=_SCHEMES, url_relative=absolute)


def web_link(url: str, base: str = "") -> str | None:
    """The absolute URL, if it is http or https and has a host; otherwise None.

    >>> web_link("../a b", "https://muse.mu/x/y"), web_link("javascript:alert(1)")
    ('https://muse.mu/a%20b', None)
    """
    try:
        full = urljoin(base, clean_text(url)) if base else clean_text(url)
        parts = urlsplit(full)
        if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
            return None
    except ValueError:
        return None
    return re.sub(r"\s", "%20", full)


def _tidy(text: str) -> str:
    """Collapse runs of spaces and of line breaks."""
    return _LINES.sub("\n", _SPACES.sub(" ", text)).strip()


class _Reader(HTMLParser):
    """Reads what nh3 has written: well-formed, without scripts and comments."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.links: dict[str, None] = {}
        self._preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS:
            self.pieces.append("\n")
        self._preformatted += tag == "pre"
        target = dict(attrs).get("href") if tag == "a" else None
        if target and len(self.links) < LINKS_MAX and target.startswith(("http://", "https://")):
            self.links.setdefault(target)

    def handle_endtag(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.pieces.append("\n")
        self._preformatted -= tag == "pre"

    def handle_data(self, data: str) -> None:
        # A line break within a paragraph is a space, as it is on the page.
        self.pieces.append(data if self._preformatted else data.replace("\n", " "))
