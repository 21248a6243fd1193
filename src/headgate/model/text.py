"""How texts, links and XML are compared.

`fold` decides equality and order of texts: 'Rock ' = 'rock', but 'C++' is not 'C'.
`words` decides `contains` and `similar`: a word is a run of letters and digits.
`references` and `extends` decide the link atoms of the same names ([RoSeS §3.2]). A target is a URL
('https://muse.mu/news') or, without a scheme, a host with or without a path ('muse.mu',
'muse.mu/news'), which then stands for any scheme:

    link                           target                  references   extends
    https://muse.mu/news           https://muse.mu/news    yes          yes
    https://muse.mu/news/2026      https://muse.mu/news    no           yes
    https://muse.mu/newsroom       https://muse.mu/news    no           no
    https://muse.mu/news           muse.mu                 yes          yes
    https://shop.muse.mu/          muse.mu                 no           yes

`xml_text` is the text of a document without its tags.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from unicodedata import normalize
from urllib.parse import urlsplit

from lxml import etree

_WORD = re.compile(r"[^\W_]+")


def fold(text: str) -> str:
    """The text in the form in which texts are compared: equal texts fold to the same one.

    >>> fold("  ＲＯＣＫ  Straße ")
    'rock strasse'
    """
    if text.isascii():
        return " ".join(text.lower().split())
    # Folding can denormalise and normalising can unfold (U+037A does both), so it is done twice.
    for _ in range(2):
        text = normalize("NFKC", normalize("NFKC", text).casefold())
    return " ".join(text.split())


def words(text: str) -> tuple[str, ...]:
    """The folded words of a text, in order.

    >>> words("Rock'n'Roll, in CONCERT!")
    ('rock', 'n', 'roll', 'in', 'concert')
    """
    return tuple(_WORD.findall(fold(text)))


def contains_phrase(text_words: tuple[str, ...], phrase: tuple[str, ...]) -> bool:
    """Whether the phrase's words are adjacent, and in this order, in the text."""
    n = len(phrase)
    return any(text_words[at : at + n] == phrase for at in range(len(text_words) - n + 1))


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """Size of the intersection over size of the union; 0 where there is no word at all.

    >>> jaccard(frozenset("ab"), frozenset("bc"))
    0.3333333333333333
    """
    union = len(left | right)
    return len(left & right) / union if union else 0.0


# --- links ---------------------------------------------------------------------------------------

_URL_IN_TEXT = re.compile(r"""\b(?:https?|ftp)://[^\s<>"'`{}|\\^]+""", re.IGNORECASE)
_DEFAULT_PORT = {"http": 80, "https": 443, "ftp": 21}


class NormalLink(NamedTuple):
    """The parts of a link that are compared; the scheme is empty if none was given."""

    scheme: str
    host: str
    path: str


def normal_link(text: str) -> NormalLink:
    """Scheme and host in lower case, no default port, no user, no fragment, at least '/' as path.

    >>> normal_link("HTTPS://Muse.mu:443/News#top")
    NormalLink(scheme='https', host='muse.mu', path='/News')
    """
    text = text.strip()
    has_scheme = "://" in text
    try:
        parts = urlsplit(text if has_scheme else "//" + text)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        # Not a URL after all, such as 'http://[x': it is equal only to itself.
        return NormalLink("", text, "")
    if port is not None and port != _DEFAULT_PORT.get(parts.scheme):
        host = f"{host}:{port}"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return NormalLink(parts.scheme if has_scheme else "", host, path)


def links_in(text: str) -> list[str]:
    """The URLs that stand in a text, without the punctuation of the sentence around them.

    >>> links_in("See https://muse.mu/news, or (http://a.org).")
    ['https://muse.mu/news', 'http://a.org']
    """
    return [url.rstrip(".,;:!?)]") for url in _URL_IN_TEXT.findall(text)]


def references(link: str, target: str) -> bool:
    """Whether the link leads to the target: the same URL, or, for a bare host, that host."""
    actual, expected = normal_link(link), normal_link(target)
    if expected.scheme:
        return actual == expected
    return actual.host == expected.host and expected.path in ("/", actual.path)


def extends(link: str, target: str) -> bool:
    """Whether the link lies at or below the target; below a bare host lie its subdomains too."""
    actual, expected = normal_link(link), normal_link(target)
    if expected.scheme and actual.scheme != expected.scheme:
        return False
    same_host = actual.host == expected.host
    if not expected.scheme and expected.path == "/":
        return same_host or actual.host.endswith("." + expected.host)
    return same_host and is_below(actual.path, expected.path)


def is_below(path: str, ancestor: str) -> bool:
    """Whether a path is the other one, or lies below it."""
    return path == ancestor or path.startswith((ancestor.rstrip("/") + "/", ancestor + "?"))


# --- XML -----------------------------------------------------------------------------------------

_DECLARATION = re.compile(r"^\s*<\?xml\s[^>]*\?>")


def safe_parser() -> etree.XMLParser:
    """A parser that resolves no entities, loads nothing and refuses huge trees."""
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=False
    )


def xml_text(document: str) -> str:
    """The text between the tags; a text that is no XML is taken as it is.

    >>> xml_text("<p>Rock <b>concert</b></p>")
    'Rock concert'
    """
    root = parse_xml(document)
    return document if root is None else etree.tostring(root, method="text", encoding="unicode")


def parse_xml(document: str) -> etree._Element | None:
    """The root element, or nothing where the text is no well-formed XML."""
    try:
        # A text is decoded already: what its declaration says of an encoding no longer holds.
        return etree.fromstring(_DECLARATION.sub("", document, count=1).encode(), safe_parser())
    except (etree.XMLSyntaxError, ValueError):
        return None
