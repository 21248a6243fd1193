"""Atoms on how a text begins: `title starts with 'Re:'`, by a binary search among sorted prefixes.

Each prefix knows the longest other prefix that it begins with, its parent:

    a ◄── ab ◄── abc         text "abd": the last prefix that is not greater is abc. The text has
     ◄── b                   two bytes in common with it, so it begins with ab, and so with a.

Invariant: let s be the last prefix that is not greater than the text. Every prefix p of the text
lies at or before s, and everything between p and the text begins with p; so p is s or above s.

Cost for each text: one binary search, and one step for each prefix from s up to the root. Text and
prefix are folded (texts.py). Links are found through prefixes as well (link_atoms.py).

Rejected: a hash for each length of prefix, which hashes a text once for each length; a trie of
bytes, which needs an array for each node or a search in each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from headgate.match.batch import Batch
from headgate.match.bit_rows import Ints, Longs, Words
from headgate.match.bounds import check_indices, check_length, check_starts, refuse_unless
from headgate.match.text_kernels import fill_prefix_rows, find_longest, rank_texts
from headgate.match.texts import TEXT_TYPES, Texts, texts_of
from headgate.model.atoms import StartsWith


@dataclass(frozen=True, slots=True, eq=False)
class Prefixes:
    """Sorted prefixes, and the rows of the atoms that each makes true."""

    texts: Texts
    parent: Ints
    """The longest other prefix that each begins with, which comes before it; −1 if none."""
    row_start: Ints
    rows: Ints

    def longest(self, texts: Texts) -> Longs:
        """For each text the longest prefix that it begins with, or −1."""
        longest = np.empty(len(texts), np.int64)
        rank_texts(texts.arrays, self.texts.arrays, longest)
        find_longest(texts.arrays, self.texts.arrays, self.parent, longest)
        return longest

    def fill(self, items: Longs, longest: Longs, rows: Words) -> None:
        """Set the bits of the items that have these longest prefixes."""
        fill_prefix_rows(items, longest, self.parent, self.row_start, self.rows, rows)

    def check(self, row_count: int) -> None:
        """Raise `SnapshotError` where a stored place is out of its bounds."""
        self.texts.check("prefixes")
        count = len(self.texts)
        check_length("parent", self.parent, count)
        check_indices("parent", self.parent, max(count, 1), least=-1)
        before = bool((self.parent < np.arange(count)).all())
        refuse_unless(before, "parent", "a prefix is above itself")
        check_starts("row_start", self.row_start, self.rows.size, parts=count)
        check_indices("rows", self.rows, row_count)


def build_prefixes(pairs: Iterable[tuple[bytes, int]]) -> Prefixes:
    """The prefixes, each with the row of an atom that it makes true."""
    rows_of: dict[bytes, list[int]] = {}
    for prefix, row in pairs:
        rows_of.setdefault(prefix, []).append(row)
    ordered = sorted(rows_of)
    parent: list[int] = []
    above: list[int] = []  # from the root to the prefix before this one
    for number, prefix in enumerate(ordered):
        while above and not prefix.startswith(ordered[above[-1]]):
            above.pop()
        parent.append(above[-1] if above else -1)
        above.append(number)
    lengths = [len(rows_of[prefix]) for prefix in ordered]
    return Prefixes(
        texts_of(ordered),
        np.array(parent, np.int32),
        np.cumsum([0, *lengths]).astype(np.int32),
        np.array([row for prefix in ordered for row in rows_of[prefix]], np.int32),
    )


@dataclass(frozen=True, slots=True, eq=False)
class PrefixAtoms:
    """The `starts with` atoms on one attribute."""

    attribute: str
    prefixes: Prefixes

    def fill(self, batch: Batch, rows: Words) -> None:
        """Set the bits of these atoms in rows that are zero."""
        for column in batch.columns_of(self.attribute, *TEXT_TYPES):
            longest = self.prefixes.longest(column.folded)
            self.prefixes.fill(np.arange(batch.size), longest, rows)

    def check(self, row_count: int) -> None:
        """Raise `SnapshotError` where a stored place is out of its bounds."""
        self.prefixes.check(row_count)


def compile_prefixes(atoms: Iterable[tuple[StartsWith, int]]) -> list[PrefixAtoms]:
    """The atoms, each with its row, in one group for each attribute."""
    by_attribute: dict[str, list[tuple[bytes, int]]] = {}
    for atom, row in atoms:
        folded = atom.folded.encode("utf-8", "surrogatepass")
        by_attribute.setdefault(str(atom.attribute), []).append((folded, row))
    return [PrefixAtoms(name, build_prefixes(pairs)) for name, pairs in by_attribute.items()]
