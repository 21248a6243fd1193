"""What the kernels know of each character: how it folds, and whether it is part of a word.

    code point ──► entries[block[code >> 7] << 7 | code & 127]

    bits 0–7     combining class      which marks change places when a text is normalised
    bits 8–9     word class           OTHER, LETTER, CLUSTERED (scripts without spaces), MARK
    bit  10      CONTINUES            belongs to the grapheme cluster before it
    bits 11–12   conjunct             CONSONANT, LINKER, EXTEND: conjuncts are one cluster
    bit  13      JOINS                it may compose with what is before it, or vanish
    bit  14      YOUNG                the oldest supported Python does not know it
    bits 15–     form                 0 if it folds to itself; else where its folded form is

A *form* is there twice: as UTF-8, for a character with nothing behind that joins it, and as code
points, decomposed, for all others. In the latter U+0345 is kept: it moves behind other marks before
it becomes an iota.

The file `characters.headgate` is derived from Unicode's data by tests/match/derive_characters.py,
with two libraries: `unicodedata` for folding, `regex` for words. What Python 3.11 knows folds alike
in all later versions; that is Unicode's policy. A text with a YOUNG character is folded by Python,
so that its words are those of the constants that this Python reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.match.bounds import check_indices, check_length, check_starts, refuse_unless
from headgate.match.dataclass_codec import open_stored

KIND, VERSION = "characters", 1
PATH = Path(__file__).with_name("characters.headgate")

CODE_POINTS = 0x110000
BLOCK_BITS = 7
BLOCK_MASK = (1 << BLOCK_BITS) - 1
CLASS_MASK = 0xFF
WORD_SHIFT = 8
OTHER, LETTER, CLUSTERED, MARK = range(4)
CONTINUES = 1 << 10
CONJUNCT_SHIFT = 11
CONSONANT, LINKER, EXTEND = 1, 2, 3
JOINS = 1 << 13
YOUNG = 1 << 14
FORM_SHIFT = 15

IOTA_BELOW, IOTA = 0x345, 0x3B9

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


class CharacterArrays(NamedTuple):
    """The fields of CharacterTables, as the kernels take them."""

    block: Ints
    entries: Ints
    form_start: Ints
    form_bytes: npt.NDArray[np.uint8]
    point_start: Ints
    points: Ints
    pairs: Longs
    composed: Ints


@dataclass(frozen=True, slots=True, eq=False)
class CharacterTables:
    block: Ints
    """For each 128 code points, which block of `entries` is theirs."""
    entries: Ints
    form_start: Ints
    """Where the bytes of each form begin; form 0 is empty and not used."""
    form_bytes: npt.NDArray[np.uint8]
    point_start: Ints
    points: Ints
    pairs: Longs
    """Two code points that compose to one, as first << 32 | second, sorted."""
    composed: Ints

    @property
    def arrays(self) -> CharacterArrays:
        return CharacterArrays(*(getattr(self, name) for name in CharacterArrays._fields))

    def check(self) -> None:
        """Raise `SnapshotError` where a stored place is out of its bounds."""
        check_length("block", self.block, CODE_POINTS >> BLOCK_BITS)
        blocks = self.entries.size >> BLOCK_BITS
        check_length("entries", self.entries, blocks << BLOCK_BITS)
        check_indices("block", self.block, blocks)
        forms = self.form_start.size - 1
        check_indices("forms", self.entries >> FORM_SHIFT, forms)
        check_starts("form_start", self.form_start, self.form_bytes.size)
        check_starts("point_start", self.point_start, self.points.size, parts=forms)
        check_indices("points", self.points, CODE_POINTS)
        check_indices("composed", self.composed, CODE_POINTS, length=self.pairs.size)
        ascending = bool((np.diff(self.pairs) > 0).all())
        refuse_unless(ascending, "pairs", "they do not ascend")


@cache
def character_arrays() -> CharacterArrays:
    """The tables, mapped from their file by all processes on a machine."""
    return open_stored(PATH, CharacterTables, kind=KIND, version=VERSION, any_name=True).arrays


@nb.njit(nogil=True, cache=True, inline="always")
def entry_of(code, block, entries):  # type: ignore[no-untyped-def]
    """The entry of a code point; block and entries as in CharacterTables."""
    return entries[(block[code >> BLOCK_BITS] << BLOCK_BITS) | (code & BLOCK_MASK)]


@nb.njit(nogil=True, cache=True, inline="always")
def decode(data, position, end):  # type: ignore[no-untyped-def]
    """The code point at this place of UTF-8 (uint8), and its length; a byte of none is U+FFFD."""
    lead = np.int32(data[position])
    if lead < 0x80:
        return lead, 1
    if lead < 0xE0:
        if lead >= 0xC0 and position + 2 <= end:
            return (lead & 0x1F) << 6 | np.int32(data[position + 1] & 0x3F), 2
    elif lead < 0xF0:
        if position + 3 <= end:
            middle = np.int32(data[position + 1] & 0x3F) << 6
            return (lead & 0x0F) << 12 | middle | np.int32(data[position + 2] & 0x3F), 3
    elif position + 4 <= end:
        code = (lead & 0x07) << 18 | np.int32(data[position + 1] & 0x3F) << 12
        code |= np.int32(data[position + 2] & 0x3F) << 6 | np.int32(data[position + 3] & 0x3F)
        if code < CODE_POINTS:
            return code, 4
    return np.int32(0xFFFD), 1
