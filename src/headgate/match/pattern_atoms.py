"""Atoms on patterns: `title matches '^re:'`, by google-re2 (DESIGN.md §8).

A text is given to all patterns on its attribute at once (pattern_search.py). Patterns see texts as
they are, unfolded; an empty text is a text, and what is missing is none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numba as nb
import numpy as np

from headgate.match.batch import Batch
from headgate.match.bounds import check_indices, refuse_unless
from headgate.match.kernels import LOW_BITS, ONE, Ints, Longs, Words
from headgate.match.pattern_search import PatternSearch
from headgate.match.text_columns import TEXT_TYPES
from headgate.match.texts import Texts, texts_of
from headgate.model.atoms import Matches


@dataclass(frozen=True, slots=True, eq=False)
class PatternAtoms:
    """The patterns that are asked for on an attribute, or on the whole item."""

    attribute: str | None
    patterns: Texts
    rows: Ints
    search: PatternSearch = field(init=False, repr=False)
    """The compiled patterns. They are compiled when the first text comes, not when this is made."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "search", PatternSearch(self.patterns))

    def fill(self, batch: Batch, rows: Words) -> None:
        """Set the bits of these atoms in rows that are zero."""
        for column in batch.columns_of(self.attribute, *TEXT_TYPES):
            there = np.nonzero(column.valid)[0]
            texts = [column.texts.encoded(item) for item in there.tolist()]
            found = self.search.find(texts)
            if found:
                patterns, places = np.array(found, np.int64).T
                set_bits(self.rows[patterns], there[places], rows)

    def check(self, row_count: int) -> None:
        """Raise `SnapshotError` where a stored place is out of its bounds."""
        self.patterns.check("patterns")
        try:
            for pattern in range(len(self.patterns)):
                self.patterns.encoded(pattern).decode()
        except UnicodeDecodeError:
            refuse_unless(False, "patterns", "it is no text")
        check_indices("pattern rows", self.rows, row_count, length=len(self.patterns))


def compile_patterns(atoms: Iterable[tuple[Matches, int]]) -> list[PatternAtoms]:
    """The atoms, each with its row, in one group for each attribute."""
    by_attribute: dict[str | None, list[tuple[str, int]]] = {}
    for atom, row in atoms:
        name = None if atom.attribute is None else str(atom.attribute)
        by_attribute.setdefault(name, []).append((atom.pattern, row))
    return [_compile(name, pairs) for name, pairs in by_attribute.items()]


def _compile(attribute: str | None, pairs: list[tuple[str, int]]) -> PatternAtoms:
    rows = np.array([row for _, row in pairs], np.int32)
    return PatternAtoms(attribute, texts_of(pattern for pattern, _ in pairs), rows)


@nb.njit(nogil=True, cache=True)
def set_bits(row: Ints, items: Longs, rows: Words) -> None:
    """Set the bit of each item in the row beside it."""
    for at in range(row.shape[0]):
        rows[row[at], items[at] >> 6] |= ONE << (np.uint64(items[at]) & LOW_BITS)
