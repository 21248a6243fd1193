"""Atoms on how a text begins: `title starts with 'Re:'` (DESIGN.md §5.1).

Text and prefix are folded (text_columns.py); prefixes.py finds the prefixes of each text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from headgate.match.batch import Batch
from headgate.match.kernels import Words
from headgate.match.prefixes import Prefixes, build_prefixes
from headgate.match.text_columns import TEXT_TYPES
from headgate.model.atoms import StartsWith


@dataclass(frozen=True, slots=True, eq=False)
class PrefixAtoms:
    """The prefixes that are asked for on one attribute."""

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
