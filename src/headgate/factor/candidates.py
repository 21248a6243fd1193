"""The candidates of factorising: predicates that subsume at least two filters ([RoSeS §5]).

    a b c    b c d    a e        b c ◄── a b c, b c d        each with the filters that it subsumes,
                                 b   ◄── a b c, b c d        its members, and with its selectivity
                                 c   ◄── a b c, b c d
                                 a   ◄── a b c, a e

A candidate is a set of clauses out of those that a filter has or implies, none of which implies
another. A clause that only one filter has or implies can be in no candidate. The same set, found
with several filters, is one candidate: sets are brought together by a 64-bit key, and compared.

Law: no two members of `members` of a candidate are equal, each is subsumed by it, and the
candidates of a filter are all such sets among its most useful `width` clauses.

Cost: 2^width sets for each filter. Filters have few clauses ([RoSeS §6]: one to three), so width
hardly matters for them; it is lowered until all sets together are at most PAIRS_MAX.

Rejected: the complete subsumption graph, which has an edge for each two of these sets; frequent
item sets level by level, which saves little where most filters have three clauses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.factor.candidate_kernels import (
    choose_clauses,
    count_in_closures,
    count_sets,
    group_sets,
    write_sets,
)
from headgate.factor.factor_input import FactorInput
from headgate.factor.factor_selectivity import Floats
from headgate.match.kernels import Ints, Longs

WIDTH_MAX = 8
PAIRS_MAX = 24_000_000
_KEY_SEED = 2011


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Candidate c is the set clauses[start[c] : start[c + 1]], and subsumes the filters
    members[member_start[c] : member_start[c + 1]]. as_filter[c] is the filter that it is, or −1.

    They come in the order of VCA: the most selective first, the more specific first among equals.
    """

    start: Longs
    clauses: Ints
    member_start: Longs
    members: Ints
    as_filter: Ints
    selectivity: Floats

    @property
    def count(self) -> int:
        return self.start.size - 1

    def predicate(self, candidate: int) -> tuple[int, ...]:
        return tuple(self.clauses[self.start[candidate] : self.start[candidate + 1]].tolist())


def find_candidates(given: FactorInput, *, width: int = WIDTH_MAX) -> Candidates:
    """All predicates that subsume at least two of the filters."""
    own = given.start, given.clauses, given.implied_start, given.implied
    rows = given.selectivities.single.size
    shared = np.zeros(rows, np.int64)
    count_in_closures(*own, shared)
    worth = shared * (1 - given.selectivities.single)
    chosen_start = np.zeros(given.filter_count + 1, np.int64)
    while True:
        chosen = np.empty((given.filter_count, width), np.int32)
        chosen_count = np.zeros(given.filter_count, np.int32)
        choose_clauses(*own, shared, worth, chosen, chosen_count)
        sets = count_sets(chosen, chosen_count, *own[2:], chosen_start)
        if sets <= PAIRS_MAX or width == 1:
            break
        width -= 1
    keys = np.random.default_rng(_KEY_SEED).integers(1, 2**63, rows, np.uint64)
    key, owner, mask = (np.empty(sets, each) for each in (np.uint64, np.int32, np.uint8))
    write_sets(chosen, chosen_count, *own[2:], chosen_start, keys, key, owner, mask)
    order = np.argsort(key, kind="stable")
    key, owner, mask = key[order], owner[order], mask[order]
    start, clauses, member_start, members, as_filter = group_sets(
        key, owner, mask, chosen, given.start, given.clauses
    )
    found = Candidates(start, clauses, member_start, members, as_filter, np.zeros(0))
    return _in_order(given, found)


def _in_order(given: FactorInput, found: Candidates) -> Candidates:
    """The same ones with their selectivities, in the order of VCA."""
    start, clauses = found.start, found.clauses
    selectivity = given.selectivities.of_sets(start, clauses)
    # How much a set says: what it implies is counted too, so that `price > 10` comes before
    # `price > 5`, of which it may be no more selective in a sample.
    reach = np.diff(given.implied_start)[clauses] + 1
    said = np.add.reduceat(reach, start[:-1]) if clauses.size else np.zeros(0, np.int64)
    order = np.lexsort((-said, selectivity))
    members = _take(found.member_start, found.members, order)
    own = _take(start, clauses, order)
    return Candidates(*own, *members, found.as_filter[order], selectivity[order])


def _take(start: Longs, flat: Ints, order: Longs) -> tuple[Longs, Ints]:
    """Lists in another order."""
    lengths = np.diff(start)[order]
    taken = np.zeros(start.size, np.int64)
    np.cumsum(lengths, out=taken[1:])
    places = np.repeat(start[order] - taken[:-1], lengths) + np.arange(int(taken[-1]))
    return taken, flat[places]
