"""Makes texts from outside safe for XML, HTML, mail headers and links.

    xml_characters   no control characters and surrogates: what XML 1.0 allows (§2.2)
    one_line         … and on one line, of bounded length: titles, headers
    safe_html        … and only harmless markup (nh3): no scripts, styles, forms or frames
    html_to_text     … and no markup at all
    safe_link        http, https, ftp and mailto only, percent-encoded; otherwise nothing

nh3 takes time quadratic in the number of open elements: 100,000 open `<div>` took 25 s. Markup that
is not cheap (sandbox/markup_cost.py) is therefore treated as plain text, tags included. Texts of
web feeds were sanitised when they were fetched and have no tags; what has none is not parsed here.
"""

from __future__ import annotations

import html
import re

import httpx
import nh3

from headgate.model.errors import printable
from headgate.sandbox.markup_cost import has_grown, is_cheap

LENGTH_MAX = 1_000_000
LINK_LENGTH_MAX = 2_000
LINK_SCHEMES = {"http", "https", "ftp", "mailto"}
_PLAIN_LINK = re.compile(r"https?://[a-z][a-z0-9]*(?:[.-][a-z0-9]+)+(?:/[A-Za-z0-9_~-]+)+")
"""Links that parsing would not change; parsing one takes 17 µs."""

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BLOCKS = {"p", "br", "div", "li", "ul", "ol", "dt", "dd", "tr", "h1", "h2", "h3", "h4", "pre"}
_BLOCK = re.compile(f"</?(?:{'|'.join(sorted(_BLOCKS))})>")
_SPACES = re.compile(r"[ \t]*\n\s*")
_TAG = re.compile(r"<[A-Za-z/!?]")
_TAG_WITH_MORE = re.compile(r"<(?!/?[A-Za-z0-9]+>)")
"""Anything but `<b>` or `</b>`. A text without it has no attributes, so no links either."""
_REL = "nofollow noopener noreferrer"
# Made once: that takes longer than cleaning a short text.
_CLEANER = nh3.Cleaner(url_schemes=LINK_SCHEMES, url_relative="deny", link_rel=_REL)
_TEXT_CLEANER = nh3.Cleaner(tags=_BLOCKS, attributes={})


def xml_characters(text: str) -> str:
    """The text without the characters that no XML document may have.

    >>> xml_characters("a\\x00b\\ud800c")
    'abc'
    """
    return _FORBIDDEN.sub("", text[:LENGTH_MAX])


def one_line(text: str, length_max: int = 500) -> str:
    """
    >>> one_line(" Rock \\r\\n Bcc: all@example.org ")
    'Rock Bcc: all@example.org'
    """
    if not text:
        return ""
    shown = " ".join(printable(xml_characters(text[: 4 * length_max])).split())
    return shown if len(shown) <= length_max else shown[: length_max - 1] + "…"


def safe_html(text: str, base: str | None = None) -> str:
    """Harmless markup. Links that are relative lead on from the base, or nowhere.

    >>> safe_html("<p onclick='x'>a & b<script>x</script>")
    '<p>a &amp; b</p>'
    """
    text = xml_characters(text)
    if not _TAG.search(text) or not is_cheap(text):
        # References are resolved first, as they would be in HTML, and then all is escaped.
        return html.escape(xml_characters(html.unescape(text)), quote=False)
    try:
        cleaned = _clean(text, base)
    except ValueError:  # what the base is no base for
        cleaned = _clean(text, None)
    if has_grown(cleaned, text):
        return html.escape(text, quote=False)
    # A reference such as &#1; has become the character by now.
    return xml_characters(cleaned)


def _clean(text: str, base: str | None) -> str:
    if not base or not _TAG_WITH_MORE.search(text):
        return _CLEANER.clean(text)
    return nh3.clean(
        text,
        url_schemes=LINK_SCHEMES,
        url_relative=("rewrite_with_base", base),
        link_rel=_REL,
    )


def html_to_text(text: str) -> str:
    """
    >>> html_to_text("<p>Rock &amp; <b>Roll</b></p><p>x</p>")
    'Rock & Roll\\nx'
    """
    text = xml_characters(text)
    if "<" not in text and "&" not in text:
        return _SPACES.sub("\n", text).strip()
    if not _TAG.search(text):
        text = html.unescape(text)
    elif is_cheap(text):
        text = html.unescape(_BLOCK.sub("\n", _TEXT_CLEANER.clean(text)))
    return _SPACES.sub("\n", xml_characters(text)).strip()


def safe_link(text: str) -> str | None:
    """The link in ASCII, if it is one that may be offered for clicking.

    >>> safe_link("https://muse.mu/é"), safe_link("javascript:alert(1)")
    ('https://muse.mu/%C3%A9', None)
    """
    if not text:
        return None
    if len(text) <= LINK_LENGTH_MAX and _PLAIN_LINK.fullmatch(text):
        return str(text)
    try:
        url = httpx.URL(text.strip())
        found = str(url)
        complete = url.scheme == "mailto" or (bool(url.host) and b"%" not in url.raw_host)
    except (httpx.InvalidURL, ValueError, UnicodeError):
        return None
    if url.scheme not in LINK_SCHEMES or not complete or len(found) > LINK_LENGTH_MAX:
        return None
    return found if found.isascii() and not re.search(r"[\s<>\"]", found) else None
