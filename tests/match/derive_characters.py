"""The tables of match/characters.py, derived from Unicode's data by `unicodedata` and `regex`.

test_characters.py compares them with the file, and writes the file with REWRITE=1.
"""

from __future__ import annotations

import sys
from unicodedata import category, combining, decomposition, normalize, unidata_version

import numpy as np
import regex

from headgate.match.characters import (
    BLOCK_BITS,
    CLUSTERED,
    CODE_POINTS,
    CONJUNCT_SHIFT,
    CONSONANT,
    CONTINUES,
    EXTEND,
    FORM_SHIFT,
    IOTA_BELOW,
    JOINS,
    LETTER,
    LINKER,
    MARK,
    WORD_SHIFT,
    YOUNG,
    CharacterTables,
)

OLDEST_UNICODE = "14.0.0"
"""That of Python 3.11, the oldest that is supported."""
EVERYTHING = "".join(map(chr, range(CODE_POINTS)))
HANGUL_SECONDS = {*map(chr, range(0x1161, 0x1176)), *map(chr, range(0x11A8, 0x11C3))}


def derive() -> CharacterTables:
    assert unidata_version == OLDEST_UNICODE, f"Python {sys.version} knows {unidata_version}"
    flags = np.zeros(CODE_POINTS, np.int32)
    _add_words(flags)
    pairs = _pairs()
    seconds = {second for _, second in pairs} | HANGUL_SECONDS
    ignored = set(regex.findall(r"\p{Default_Ignorable_Code_Point}", EVERYTHING)) - {"\u200b"}
    pictures = set(regex.findall(r"\p{Extended_Pictographic}", EVERYTHING))
    forms: dict[tuple[bytes, str], int] = {(b"", "\0"): 0}
    for code, character in enumerate(EVERYTHING):
        if character in ignored:
            flags[code] |= JOINS | forms.setdefault((b"", ""), len(forms)) << FORM_SHIFT
        elif category(character) == "Cn":
            flags[code] |= 0 if character in pictures else YOUNG
        elif 0xAC00 <= code < 0xD7A4 or category(character) in ("Cs", "Co"):
            continue  # Hangul syllables are composed by arithmetic; these others never change
        else:
            flags[code] |= combining(character)
            folded, points = _fold(character), _points(character)
            if (folded, points) != (character, character):
                form = folded.encode("utf-8", "surrogatepass"), points
                flags[code] |= forms.setdefault(form, len(forms)) << FORM_SHIFT
            if points[0] in seconds or (combining(points[0]) and points != character):
                flags[code] |= JOINS
    return _tables(flags, list(forms), pairs)


def _add_words(flags: np.ndarray) -> None:
    unspaced = (
        r"[[\p{L}\p{Nl}]&&"
        r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Ideographic}\p{WB=Katakana}\p{Line_Break=SA}]]"
    )
    for pattern, bits in (
        (rf"[[\p{{L}}\p{{N}}]--{unspaced}]", LETTER << WORD_SHIFT),
        (unspaced, CLUSTERED << WORD_SHIFT),
        (r"\p{M}", MARK << WORD_SHIFT),
        (r"[\p{GCB=Extend}\p{GCB=SpacingMark}]", CONTINUES),
        (r"\p{InCB=Consonant}", CONSONANT << CONJUNCT_SHIFT),
        (r"\p{InCB=Linker}", LINKER << CONJUNCT_SHIFT),
        (r"\p{InCB=Extend}", EXTEND << CONJUNCT_SHIFT),
    ):
        found = regex.findall(pattern, EVERYTHING, regex.VERSION1)
        flags[[ord(each) for each in found]] |= bits


def _fold(text: str) -> str:
    folded = normalize("NFKC", normalize("NFKD", normalize("NFKD", text).casefold()).casefold())
    return "".join(" " if each.isspace() or each == "\u200b" else each for each in folded)


def _points(character: str) -> str:
    """Decomposed and folded, but for U+0345."""
    parts = normalize("NFKD", character)
    return "".join(
        each if ord(each) == IOTA_BELOW else normalize("NFKD", _fold(each)) for each in parts
    )


def _pairs() -> dict[tuple[str, str], str]:
    """Two code points that compose, and what they compose to."""
    pairs = {}
    for character in EVERYTHING:
        parts = decomposition(character)
        if parts and "<" not in parts and len(parts.split()) == 2:
            first, second = (chr(int(part, 16)) for part in parts.split())
            if normalize("NFC", first + second) == character:
                pairs[first, second] = character
    return pairs


def _tables(
    flags: np.ndarray, forms: list[tuple[bytes, str]], pairs: dict[tuple[str, str], str]
) -> CharacterTables:
    rows = flags.reshape(-1, 1 << BLOCK_BITS)
    blocks, number = np.unique(rows, axis=0, return_inverse=True)
    keys = np.array([ord(a) << 32 | ord(b) for a, b in pairs], np.int64)
    order = np.argsort(keys)
    composed = np.array([ord(each) for each in pairs.values()], np.int32)
    texts, points = [text for text, _ in forms], ["", *(points for _, points in forms[1:])]
    return CharacterTables(
        number.reshape(-1).astype(np.int32),
        blocks.reshape(-1).astype(np.int32),
        np.cumsum([0, *map(len, texts)]).astype(np.int32),
        np.frombuffer(b"".join(texts), np.uint8),
        np.cumsum([0, *map(len, points)]).astype(np.int32),
        np.array([ord(each) for each in "".join(points)], np.int32),
        keys[order],
        composed[order],
    )
