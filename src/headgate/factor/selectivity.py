"""The share of items that satisfy a conjunction, counted in a sample ([RoSeS §4.2, §5]).

    title contains 'rock'     1 0 1 1 0 0 …      the row of an atom for the sample, a bit per item
    title contains 'live'     1 0 0 1 0 1 …
    both                      1 0 0 1 0 0 …      AND the rows and count the bits: 2 of 64

Invariant: a conjunction never has a greater selectivity than one with fewer of its clauses. The
methods rely on it: they take candidates from the rarest on.

Words of real texts are far from independent ('prime' and 'minister'), so independence is assumed
last. In this order: the count in the sample; where that is zero, the product of the selectivities
of the clauses, but less than one item of the sample. A clause that is true of no item of the sample
has the selectivity that the catalog measured; without one it is guessed from the form of the atom.

Rejected: the catalog's selectivity of an atom together with the sample's of a conjunction. They
come from different items, so `a and b` could seem more frequent than `a`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.match.batch import Batch
from headgate.match.bit_rows import AND, NOT, Ints, Longs, Words, popcount
from headgate.match.conjunctions import Conjunctions
from headgate.match.program import Program
from headgate.model.atoms import Atom, Comparison, Relation

Floats = npt.NDArray[np.float64]
Measured = Callable[[Atom], float | None]
"""The share of items that satisfy an atom, as the catalog has measured it; None if it has not."""

SAMPLE_BYTES_MAX = 256 * 2**20
"""A larger sample is cut to this size: for a million distinct atoms that is 2,000 items."""
GUESS_EQUAL, GUESS_ORDER, GUESS_OTHER = 0.02, 0.4, 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Selectivities:
    """single[c] is the selectivity of clause c, and bits[c] its row for the sample. Without a
    sample the rows have no words."""

    single: Floats
    bits: Words
    sample_size: int

    def of_sets(self, start: Longs, clauses: Ints) -> Floats:
        """The selectivities of conjunctions: set n is clauses[start[n] : start[n + 1]]."""
        shares = np.empty(start.size - 1, np.float64)
        _count_sets(start, clauses, self.bits, self.sample_size, self.single, shares)
        return shares

    def with_clause(self, share: float, row: Words) -> Selectivities:
        """With one more clause. Everything is copied: 2 ms for 10,000 clauses."""
        single, bits = np.append(self.single, share), np.concatenate([self.bits, row[None]])
        return Selectivities(single, bits, self.sample_size)


def nothing_measured(_: Atom) -> float | None:
    """The statistics of a catalog that has measured nothing."""
    return None


def selectivities_of(
    conjunctions: Conjunctions, rows: Program, *, sample: Batch | None, measured: Measured
) -> Selectivities:
    """The selectivities of the rows of these conjunctions; `rows` is their program
    (`compile_rows`)."""
    bits, size = _sample_bits(rows, sample)
    measured_shares = [measured(atom) for atom in conjunctions.atoms]
    single = np.empty(conjunctions.row_count)
    single[: len(measured_shares)] = [
        _guess(atom) if share is None else share
        for atom, share in zip(conjunctions.atoms, measured_shares, strict=True)
    ]
    for row, (operator, parts) in enumerate(conjunctions.derived, start=len(measured_shares)):
        part_shares = single[list(parts)]
        if operator == NOT:
            single[row] = 1 - part_shares[0]
        else:
            single[row] = part_shares.prod() if operator == AND else 1 - (1 - part_shares).prod()
    if size:
        counted = np.bitwise_count(bits).sum(axis=1, dtype=np.int64) / size
        single = np.where(counted > 0, counted, np.minimum(single, 0.5 / size))
    return Selectivities(single, bits, size)


def _sample_bits(rows: Program, sample: Batch | None) -> tuple[Words, int]:
    """The rows of the sample and its size. Bits beyond its end, which a negation sets, are
    cleared."""
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


@nb.njit(nogil=True, cache=True)
def _count_sets(start, clauses, bits, size, single, shares):  # type: ignore[no-untyped-def]
    """In: start int64 [sets + 1], clauses int32, bits uint64 [clause, word], size of the sample,
    single float64 [clause]. Out: shares float64 [sets], the selectivity of each set."""
    word_count = bits.shape[1]
    for set_number in range(shares.shape[0]):
        first, last = start[set_number], start[set_number + 1]
        count, product = np.uint64(0), 1.0
        for position in range(first, last):
            product *= single[clauses[position]]
        for word in range(word_count):
            value = ~np.uint64(0)
            for position in range(first, last):
                value &= bits[clauses[position], word]
            count += popcount(value)
        if first == last:
            shares[set_number] = 1.0
        elif size == 0:
            shares[set_number] = product
        else:
            shares[set_number] = count / size if count > 0 else min(product, 0.5 / size)
