"""Names for feeds, made from their titles: valid in the language, and each one different.

'Muse: the news!'     MuseTheNews
'24 heures'           Feed24Heures      a name begins with a letter
'from'                FromFeed          a word of the language is no name
'Muse' once more      Muse2
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from unicodedata import normalize
from urllib.parse import urlsplit

LENGTH_MAX = 60

_WORD = re.compile(r"[^\W_]+")
_LETTER = re.compile(r"[^\W\d]")

# The grammar's words, in lower case; a test compares them with the grammar.
_RESERVED_NAMES = """
    register create advertise subscribe unsubscribe renew drop show explain feed stream table
    documents operator from as apply where join last on with match cost selectivity and or not
    between in is present contains phrase similar starts matches references extends window true
    false to output every for at site timestamp link bytes xml changes keep
"""
RESERVED = frozenset(_RESERVED_NAMES.split())


class FeedNames:
    """Gives names, none of them twice. A hundred thousand feeds may have the same title."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def make(self, title: str, url: str) -> str:
        """A new name, from the title or, where it has no letters, from the URL's host.

        >>> FeedNames({"MuseTheNews"}).make("Muse: the news!", "https://muse.mu/rss")
        'MuseTheNews2'
        """
        plain = plain_name(title, url)
        name, number = plain, self._numbers.get(plain, 1)
        while name in self._taken:
            number += 1
            name = f"{plain}{number}"
        self._numbers[plain] = number
        self._taken.add(name)
        return name


def plain_name(title: str, url: str) -> str:
    """A name that is valid in the language, whoever else may have it."""
    plain = _camel_case(title) or _camel_case(_host(url)) or "Feed"
    if not _LETTER.match(plain):
        plain = f"Feed{plain}"
    plain = plain[:LENGTH_MAX]
    return f"{plain}Feed" if plain.lower() in RESERVED else plain


def _camel_case(text: str) -> str:
    found = _WORD.findall(normalize("NFC", text[:500]))
    return "".join(word[0].upper() + word[1:] for word in found)


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""
