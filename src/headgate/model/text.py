"""How texts, links and XML are compared.

`fold` decides equality and order of texts: 'Rock ' = 'rock', but 'C++' is not 'C'.
`words` decides `contains` and `similar`. A word is a run of letters, marks and digits. Where a
script writes no spaces, a word is a grapheme cluster (docs/design/2026-11-17-words.md):

    Rock'n'Roll        rock, n, roll
    हिन्दी में             हिन्दी, में             marks belong to the letter before them
    東京都              東, 京, 都             one term of three words: found as a phrase
    iPhone15発売        iphone15, 発, 売       cut where the script changes: two terms

This is the definition, written to be obviously right. The kernels of match/ have their own tables
and share nothing with it.

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

import regex
from lxml import etree

TEXT_VERSION = 2
"""The version of what `fold` and `words` give. It is raised with the pin of `regex`, whose Unicode
data they follow: programs hold folded words, and those of another version are refused."""

_ASCII_WORD = re.compile(r"[a-z0-9]+")

ZERO_WIDTH_SPACE = "\u200b"
_GOES_ON = regex.compile(r"[\p{L}\p{N}\p{M}]")
_IGNORED = regex.compile(r"\p{Default_Ignorable_Code_Point}+")
"""Soft hyphens, joiners, variation selectors, marks of direction."""

# Letters of scripts without spaces; UAX #29 leaves the same ones to dictionaries.
_UNSPACED = (
    r"[[\p{L}\p{Nl}]&&"
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Ideographic}\p{WB=Katakana}\p{Line_Break=SA}]]"
)
_SPACED = rf"[[\p{{L}}\p{{N}}]--{_UNSPACED}]"
_TERM = regex.compile(
    rf"(?P<word>{_SPACED}[{_SPACED}\p{{M}}]*)|(?P<clusters>{_UNSPACED}[{_UNSPACED}\p{{M}}]*)",
    regex.VERSION1,
)
# UAX #29, table 1c: a letter or a conjunct, and what extends it.
_LINKED = r"[\p{InCB=Extend}\p{InCB=Linker}]*"
_CLUSTER = regex.compile(
    rf"(?:\p{{InCB=Consonant}}(?:{_LINKED}\p{{InCB=Linker}}{_LINKED}\p{{InCB=Consonant}})+|.)"
    r"[\p{GCB=Extend}\p{GCB=SpacingMark}]*",
)


def fold(text: str) -> str:
    """The text in the form in which texts are compared: equal texts fold to the same one.

    >>> fold("  ＲＯＣＫ  Straße ")
    'rock strasse'
    """
    if text.isascii():
        return " ".join(text.lower().split())
    text = _IGNORED.sub("", text.replace(ZERO_WIDTH_SPACE, " "))
    # Twice, as folding can denormalise and normalising can unfold (the Unicode Standard, D146).
    for _ in range(2):
        text = normalize("NFKD", text).casefold()
    return " ".join(normalize("NFKC", text).split())


def terms(text: str) -> list[tuple[str, ...]]:
    """The terms of a text, in order: a word, or the clusters of a script without spaces.

    >>> terms("Rock 東京")
    [('rock',), ('東', '京')]
    """
    return [
        tuple(_CLUSTER.findall(found[0])) if found["clusters"] else (found[0],)
        for found in _TERM.finditer(fold(text))
    ]


def words(text: str) -> tuple[str, ...]:
    """The folded words of a text, in order.

    >>> words("Rock'n'Roll, in CONCERT!")
    ('rock', 'n', 'roll', 'in', 'concert')
    """
    if text.isascii():
        return tuple(_ASCII_WORD.findall(text.lower()))
    return tuple(word for term in terms(text) for word in term)


def words_of_prefix(folded: str) -> tuple[str, ...]:
    """The words that every text has whose folded form begins so.

    The last one is left out if it may go on.

    >>> words_of_prefix("rock con"), words_of_prefix("rock-")
    (('rock',), ('rock',))
    """
    certain = words(folded)
    return certain[:-1] if _GOES_ON.match(folded[-1:]) else certain


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


def safe_parser(*, recover: bool = False, only_elements: bool = False) -> etree.XMLParser:
    """A parser that resolves no entities, loads nothing and refuses huge trees; with
    `only_elements` it leaves out comments and processing instructions."""
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=recover,
        remove_comments=only_elements,
        remove_pis=only_elements,
    )


def without_declaration(document: str) -> str:
    """The document without its XML declaration. A text is decoded already: what its declaration
    says of an encoding no longer holds."""
    return _DECLARATION.sub("", document, count=1)


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
        return etree.fromstring(without_declaration(document).encode(), safe_parser())
    except (etree.XMLSyntaxError, ValueError):
        return None
