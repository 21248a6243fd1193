"""How text is compared: NFKC case-folded, and as words where words are asked for.

`fold` decides equality and order of texts: 'Rock ' = 'rock', but 'C++' is not 'C'.
`words` decides `contains` and `similar`: a word is a run of letters, marks and digits.
"""

from __future__ import annotations

import re
from unicodedata import normalize

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
