"""How many items satisfy a conjunction: counted in a sample of real items ([RoSeS §4.2, §5]).

    title contains 'rock'     1 0 1 1 0 0 …      a row of the matcher for the sample, a bit per item
    title contains 'live'     1 0 0 1 0 1 …
    both                      1 0 0 1 0 0 …      AND, and count the bits: 2 of 64

Law: a conjunction with more clauses is never more selective than one with fewer of them, whatever
is known. The optimisers lean on it: they go through candidates from the rarest on.

Words of real texts are far from independent ('prime' and 'minister'), so independence is the last
resort. In this order: what the sample counted; where it counted nothing, the product of what each
clause has alone, but less than one item of the sample. A clause that the sample never saw has the
selectivity that the catalog measured, and one that nobody measured a guess by its form.

Rejected: mixing the catalog's selectivity of an atom with the sample's of a conjunction. They come
from different items, so that `a and b` could seem more frequent than `a`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.factor.factor_kernels import selectivities_of_sets
from headgate.match.batch import Batch
from headgate.match.conjunctions import Conjunctions
from headgate.match.kernels import AND, NOT, Ints, Longs, Words
from headgate.match.program import Program
from headgate.model.atoms import Atom, Comparison, Relation

Floats = npt.NDArray[np.float64]
Measured = Callable[[Atom], float | None]
"""What the catalog has measured of an atom: the share of items that satisfy it, if it knows."""

SAMPLE_BYTES_MAX = 256 * 2**20
"""A larger sample than fits into this is cut: a million distinct atoms have two thousand items."""
GUESS_EQUAL, GUESS_ORDER, GUESS_OTHER = 0.02, 0.4, 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Selectivities:
    """Of each clause alone, and its row for the sample: bits[clause]; no words without a sample."""

    single: Floats
    bits: Words
    sample_size: int

    def of_sets(self, start: Longs, clauses: Ints) -> Floats:
        """Of conjunctions: set n has the clauses clauses[start[n] : start[n + 1]]."""
        found = np.empty(start.size - 1, np.float64)
        selectivities_of_sets(start, clauses, self.bits, self.sample_size, self.single, found)
        return found

    def with_clause(self, share: float, row: Words) -> Selectivities:
        """With one clause more; all is copied, which takes 2 ms for 10,000 clauses."""
        single, bits = np.append(self.single, share), np.concatenate([self.bits, row[None]])
        return Selectivities(single, bits, self.sample_size)


def nothing_measured(_: Atom) -> float | None:
    """A catalog that has measured nothing."""
    return None


def selectivities_of(
    found: Conjunctions, rows: Program, *, sample: Batch | None, measured: Measured
) -> Selectivities:
    """What is known of each row of the conjunctions; `rows` is their program (`compile_rows`)."""
    bits, size = _sample_bits(rows, sample)
    known = [measured(atom) for atom in found.atoms]
    single = np.empty(found.row_count)
    single[: len(known)] = [
        _guess(atom) if share is None else share
        for atom, share in zip(found.atoms, known, strict=True)
    ]
    for at, (operator, parts) in enumerate(found.derived, start=len(known)):
        own = single[list(parts)]
        if operator == NOT:
            single[at] = 1 - own[0]
        else:
            single[at] = own.prod() if operator == AND else 1 - (1 - own).prod()
    if size:
        counted = np.bitwise_count(bits).sum(axis=1, dtype=np.int64) / size
        single = np.where(counted > 0, counted, np.minimum(single, 0.5 / size))
    return Selectivities(single, bits, size)


def _sample_bits(rows: Program, sample: Batch | None) -> tuple[Words, int]:
    """The sample's rows, without the bits beyond its end, which a negation may have set."""
    if sample is None or not sample.size:
        return np.zeros((rows.row_count, 0), np.uint64), 0
    bits = rows.rows(sample)
    words = max(1, min(bits.shape[1], SAMPLE_BYTES_MAX // (8 * max(rows.row_count, 1))))
    size = min(sample.size, 64 * words)
    bits = np.ascontiguousarray(bits[:, :words])
    if size % 64:
        bits[:, -1] &= (np.uint64(1) << np.uint64(size % 64)) - np.uint64(1)
    return bits, size


def _guess(atom: Atom) -> float:
    if isinstance(atom, Comparison):
        return GUESS_EQUAL if atom.relation is Relation.EQUAL else GUESS_ORDER
    return GUESS_OTHER
