"""What is factorised: the distinct filters of one source as sets of clauses, in flat arrays.

    filters ──► conjunctions of rows ──► equivalent clauses are one, implied ones are dropped
            ──► distinct sets: filters that ask the same are one terminal of the tree ([RoSeS §5])

A clause is a row of the program: an atom, or a disjunction, negation or nested filter of atoms. So
`price > 10 and price > 5` is the set {price > 10}, and clause c implies those in its list
(subsumption.py).

Everything in it is an array of NumPy or a number, so it can go to another process.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headgate.factor.factor_kernels import reduce_sets
from headgate.factor.factor_selectivity import Floats, Selectivities
from headgate.factor.subsumption import Implications
from headgate.match.conjunctions import Conjunctions
from headgate.match.kernels import Ints, Longs


@dataclass(frozen=True, slots=True, eq=False)
class FactorInput:
    """Filter f has the clauses clauses[start[f] : start[f + 1]], ascending; none implies another.

    Conjunction i of those that were given is of subscription owners[i], and is filter distinct[i].
    """

    start: Longs
    clauses: Ints
    distinct: Ints
    owners: Ints
    implied_start: Longs
    implied: Ints
    selectivities: Selectivities

    @property
    def filter_count(self) -> int:
        return self.start.size - 1

    @property
    def asked_count(self) -> int:
        """How many filters were asked, equal ones included: what the naive plan evaluates."""
        return self.distinct.size

    def predicates(self) -> list[tuple[int, ...]]:
        flat, start = self.clauses.tolist(), self.start.tolist()
        return [tuple(flat[at:end]) for at, end in pairwise(start)]

    def rank(self) -> Ints:
        """The common order of clauses: the rarest first."""
        return _ranks(self.selectivities.single)

    def rank_by_use(self) -> Ints:
        """The other common order: what most filters have comes first."""
        return _ranks(-np.bincount(self.clauses, minlength=self.selectivities.single.size))


def factor_input(
    found: Conjunctions, implications: Implications, selectivities: Selectivities
) -> FactorInput:
    """The distinct filters among the conjunctions."""
    lengths = np.empty_like(found.lengths)
    clauses = np.empty_like(found.rows)
    implied = implications.start, implications.implied
    used = reduce_sets(found.lengths, found.rows, implications.same_as, *implied, lengths, clauses)
    start, kept, distinct = _distinct(lengths, clauses[:used])
    return FactorInput(start, kept, distinct, found.owners, *implied, selectivities)


def _ranks(values: Floats | Longs) -> Ints:
    """The place of each among all, the least first."""
    rank = np.empty(values.size, np.int32)
    rank[np.argsort(values, kind="stable")] = np.arange(values.size, dtype=np.int32)
    return rank


def _distinct(lengths: Ints, clauses: Ints) -> tuple[Longs, Ints, Ints]:
    """The distinct ones of many sets, and which of them each is."""
    width = int(lengths.max(initial=1))
    is_used = np.arange(width) < lengths[:, None]
    matrix = np.full(is_used.shape, -1, np.int32)
    matrix[is_used] = clauses
    order = np.lexsort(matrix.T[::-1])
    matrix = matrix[order]
    is_new = np.ones(order.size, bool)
    is_new[1:] = (matrix[1:] != matrix[:-1]).any(axis=1)
    distinct = np.empty(order.size, np.int32)
    distinct[order] = np.cumsum(is_new) - 1
    own = lengths[order][is_new]
    start = np.zeros(own.size + 1, np.int64)
    np.cumsum(own, out=start[1:])
    rows = matrix[is_new]
    return start, rows[rows >= 0], distinct
