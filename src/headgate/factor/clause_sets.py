"""The input of factorising: the distinct filters of one source as sets of clauses, in flat arrays.

    filters ──► conjunctions of rows      match/conjunctions.py
            ──► equivalent clauses become one clause, implied clauses are dropped
            ──► distinct sets: equal filters become one terminal of the tree ([RoSeS §5])

A clause is a row of the program: an atom, or a disjunction, negation or nested filter of atoms. For
example, `price > 10 and price > 5` becomes the set {price > 10} (implications.py).

All fields are NumPy arrays or numbers, so the input of a source can be sent to another process.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numba as nb
import numpy as np

from headgate.factor.implications import Implications, Lists, implies_clause
from headgate.factor.selectivity import Floats, Selectivities
from headgate.match.bit_rows import Ints, Longs
from headgate.match.conjunctions import Conjunctions


@dataclass(frozen=True, slots=True, eq=False)
class ClauseSets:
    """Filter f has the clauses clauses[start[f] : start[f + 1]], ascending; none implies another.

    Conjunction i of the source belongs to subscription owners[i], and is filter distinct[i]. List c
    of `implied` has the clauses that clause c implies.
    """

    start: Longs
    clauses: Ints
    distinct: Ints
    owners: Ints
    implied: Lists
    selectivities: Selectivities

    @property
    def sets(self) -> Lists:
        """The clauses of each filter."""
        return Lists(self.start, self.clauses)

    @property
    def filter_count(self) -> int:
        """Distinct filters."""
        return self.start.size - 1

    @property
    def total_count(self) -> int:
        """All filters, equal ones included: what the naive plan evaluates."""
        return self.distinct.size

    def predicates(self) -> list[tuple[int, ...]]:
        flat, start = self.clauses.tolist(), self.start.tolist()
        return [tuple(flat[begin:end]) for begin, end in pairwise(start)]

    def rank(self) -> Ints:
        """The place of each clause in the order by selectivity, the rarest first."""
        return _ranks(self.selectivities.single)

    def rank_by_use(self) -> Ints:
        """The place of each clause in the order by use, the one in most filters first."""
        return _ranks(-np.bincount(self.clauses, minlength=self.selectivities.single.size))


def clause_sets(
    conjunctions: Conjunctions, implications: Implications, selectivities: Selectivities
) -> ClauseSets:
    """The distinct filters among the conjunctions."""
    lengths = np.empty_like(conjunctions.lengths)
    clauses = np.empty_like(conjunctions.rows)
    used = reduce_sets(conjunctions.lengths, conjunctions.rows, implications, lengths, clauses)
    start, kept_clauses, distinct = _distinct(lengths, clauses[:used])
    owners, implied = conjunctions.owners, implications.implied
    return ClauseSets(start, kept_clauses, distinct, owners, implied, selectivities)


def reduce_sets(
    lengths: Ints, rows: Ints, implications: Implications, kept_lengths: Ints, kept: Ints
) -> int:
    """Reduce each set: replace clauses by the first equivalent one, drop clauses that others imply.

    Set i has lengths[i] clauses, one after the other in `rows`. The reduced sets are written to
    kept_lengths and kept. Returns the number of clauses in `kept`.
    """
    same_as, implied = implications.same_as, implications.implied
    return int(_reduce_sets(lengths, rows, same_as, implied, kept_lengths, kept))


def _ranks(values: Floats | Longs) -> Ints:
    rank = np.empty(values.size, np.int32)
    rank[np.argsort(values, kind="stable")] = np.arange(values.size, dtype=np.int32)
    return rank


def _distinct(lengths: Ints, clauses: Ints) -> tuple[Longs, Ints, Ints]:
    """The distinct sets (start, clauses), and the number of the distinct set that each set is."""
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
    start = np.zeros(int(is_new.sum()) + 1, np.int64)
    np.cumsum(lengths[order][is_new], out=start[1:])
    rows = matrix[is_new]
    return start, rows[rows >= 0], distinct


# Kernels. A set is a short int32 array of clauses, ascending.


@nb.njit(nogil=True, cache=True)
def sort_few(values):  # type: ignore[no-untyped-def]
    """Sort a short int32 array in place, by insertion."""
    for position in range(1, values.shape[0]):
        value, place = values[position], position
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@nb.njit(nogil=True, cache=True)
def _reduce_sets(lengths, rows, same_as, implied, kept_lengths, kept):  # type: ignore[no-untyped-def]
    """In: lengths int32 [sets], rows int32 [all], same_as int32 [clauses], implied Lists. Out:
    kept_lengths int32 [sets], kept int32 [all]; returns how many of `kept` are used."""
    used, position = 0, 0
    buffer = np.empty(lengths.max() if lengths.shape[0] else 0, np.int32)
    for set_number in range(lengths.shape[0]):
        count = lengths[set_number]
        for place in range(count):
            buffer[place] = same_as[rows[position + place]]
        position += count
        clauses = buffer[:count]
        sort_few(clauses)
        first = used
        for place in range(count):
            clause = clauses[place]
            if place > 0 and clauses[place - 1] == clause:
                continue
            is_needed = True
            for other in clauses:
                if other != clause and implies_clause(other, clause, implied):
                    is_needed = False
                    break
            if is_needed:
                kept[used] = clause
                used += 1
        kept_lengths[set_number] = used - first
    return used
