"""The candidates of factorising: predicates that subsume at least two filters ([RoSeS §5]).

    filters          candidates, each with its members: the filters that it subsumes
    a b c            b c ◄── a b c, b c d
    b c d            b   ◄── a b c, b c d
    a e              c   ◄── a b c, b c d
                     a   ◄── a b c, a e

A candidate is a set of clauses that a filter has or implies, none of which implies another. A
clause that only one filter has or implies can be in no candidate. Equal sets of several filters are
one candidate: sets are brought together by a 64-bit key, and then compared.

Invariant: the members of a candidate are distinct and each is subsumed by it; the candidates of a
filter are all such sets among its most useful `width` clauses.

Cost: 2^width sets for each filter. Filters have few clauses ([RoSeS §6]: one to three), so the
width rarely matters; it is lowered until all sets together are at most PAIRS_MAX.

Rejected: the complete subsumption graph, which has an edge for each two of these sets; frequent
item sets level by level, which saves little where most filters have three clauses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.factor.clause_sets import ClauseSets, sort_few
from headgate.factor.implications import Lists, implies_clause
from headgate.factor.selectivity import Floats
from headgate.match.bit_rows import Ints, Longs, Words

WIDTH_MAX = 8
PAIRS_MAX = 24_000_000
_KEY_SEED = 2011


@dataclass(frozen=True, slots=True, eq=False)
class CandidateSets:
    """List c of `sets` has the clauses of candidate c, and list c of `members` the filters that it
    subsumes. as_filter[c] is the filter that the candidate is equal to, or −1.

    Candidates come in the order of VCA: the most selective first, among equals the more specific.
    """

    sets: Lists
    members: Lists
    as_filter: Ints
    selectivity: Floats

    @property
    def count(self) -> int:
        return self.as_filter.size

    def clauses(self, candidate: int) -> Ints:
        sets = self.sets
        return sets.values[sets.start[candidate] : sets.start[candidate + 1]]

    def predicate(self, candidate: int) -> tuple[int, ...]:
        return tuple(self.clauses(candidate).tolist())


class _Chosen(NamedTuple):
    """The clauses that the candidates of filter f are made of: clauses[f, : used[f]], ascending.

    clauses int32 [filters, width], used int32 [filters]
    """

    clauses: Ints
    used: Ints


class _Subsets(NamedTuple):
    """Sets of clauses, each found with one filter; equal sets have equal keys.

    key uint64, owner int32 (the filter), mask uint8: bit n stands for clause n of those chosen for
    the filter
    """

    key: Words
    owner: Ints
    mask: np.ndarray[tuple[int], np.dtype[np.uint8]]


def find_candidates(filters: ClauseSets, *, width: int = WIDTH_MAX) -> CandidateSets:
    """All predicates that subsume at least two of the filters."""
    sets, implied = filters.sets, filters.implied
    row_count = filters.selectivities.single.size
    shared = np.zeros(row_count, np.int64)
    _count_in_closures(sets, implied, shared)
    worth = shared * (1 - filters.selectivities.single)
    start = np.zeros(filters.filter_count + 1, np.int64)
    while True:
        chosen = _Chosen(
            np.empty((filters.filter_count, width), np.int32),
            np.zeros(filters.filter_count, np.int32),
        )
        _choose_clauses(sets, implied, shared, worth, chosen)
        total = _count_subsets(chosen, implied, start)
        if total <= PAIRS_MAX or width == 1:
            break
        width -= 1
    keys = np.random.default_rng(_KEY_SEED).integers(1, 2**63, row_count, np.uint64)
    subsets = _Subsets(
        np.empty(total, np.uint64), np.empty(total, np.int32), np.empty(total, np.uint8)
    )
    _write_subsets(chosen, implied, start, keys, subsets)
    order = np.argsort(subsets.key, kind="stable")
    subsets = _Subsets(subsets.key[order], subsets.owner[order], subsets.mask[order])
    return _in_order(filters, *_group_subsets(subsets, chosen, sets))


def _in_order(filters: ClauseSets, sets: Lists, members: Lists, as_filter: Ints) -> CandidateSets:
    """These candidates with their selectivities, in the order of VCA."""
    start, clauses = sets
    selectivity = filters.selectivities.of_sets(start, clauses)
    # How specific a set is: implied clauses are counted too, so that `price > 10` comes before
    # `price > 5` even where the sample has as many items of both.
    reach = np.diff(filters.implied.start)[clauses] + 1
    specific = np.add.reduceat(reach, start[:-1]) if clauses.size else np.zeros(0, np.int64)
    order = np.lexsort((-specific, selectivity))
    return CandidateSets(
        _take(sets, order), _take(members, order), as_filter[order], selectivity[order]
    )


def _take(lists: Lists, order: Longs) -> Lists:
    """The lists in this order."""
    lengths = np.diff(lists.start)[order]
    start = np.zeros(lists.start.size, np.int64)
    np.cumsum(lengths, out=start[1:])
    places = np.repeat(lists.start[order] - start[:-1], lengths) + np.arange(int(start[-1]))
    return Lists(start, lists.values[places])


@nb.njit(nogil=True, cache=True)
def _closure(clauses, implied, closure):  # type: ignore[no-untyped-def]
    """Write the clauses of a filter (int32), then the clauses that they imply, each once, to
    `closure` (int32). Returns their number."""
    count = clauses.shape[0]
    closure[:count] = clauses
    for clause in clauses:
        for position in range(implied.start[clause], implied.start[clause + 1]):
            is_known = False
            for place in range(count):
                if closure[place] == implied.values[position]:
                    is_known = True
                    break
            if not is_known and count < closure.shape[0]:
                closure[count] = implied.values[position]
                count += 1
    return count


@nb.njit(nogil=True, cache=True)
def _count_in_closures(sets, implied, shared):  # type: ignore[no-untyped-def]
    """Out: shared int64 [clauses], how many filters have or imply each clause. In: sets, Lists of
    clauses by filter; implied, Lists by clause."""
    closure = np.empty(256, np.int32)
    for filter_ in range(sets.start.shape[0] - 1):
        clauses = sets.values[sets.start[filter_] : sets.start[filter_ + 1]]
        for place in range(_closure(clauses, implied, closure)):
            shared[closure[place]] += 1


@nb.njit(nogil=True, cache=True)
def _choose_clauses(sets, implied, shared, worth, chosen):  # type: ignore[no-untyped-def]
    """Out: chosen (_Chosen): for each filter, the most useful of the clauses that other filters
    share. In: shared int64 [clauses], worth float64 [clauses]."""
    closure = np.empty(256, np.int32)
    chosen_clauses, width = chosen.clauses, chosen.clauses.shape[1]
    for filter_ in range(chosen.used.shape[0]):
        clauses = sets.values[sets.start[filter_] : sets.start[filter_ + 1]]
        count = 0
        for place in range(_closure(clauses, implied, closure)):
            clause = closure[place]
            if shared[clause] < 2 or (
                count == width and worth[chosen_clauses[filter_, -1]] >= worth[clause]
            ):
                continue
            # The list is sorted by worth; if it is full, the clause of least worth is dropped.
            slot = min(count, width - 1)
            while slot > 0 and worth[chosen_clauses[filter_, slot - 1]] < worth[clause]:
                chosen_clauses[filter_, slot] = chosen_clauses[filter_, slot - 1]
                slot -= 1
            chosen_clauses[filter_, slot] = clause
            count = min(count + 1, width)
        sort_few(chosen_clauses[filter_, :count])
        chosen.used[filter_] = count


@nb.njit(nogil=True, cache=True, inline="always")
def _mark_valid(clauses, implied, conflict, valid):  # type: ignore[no-untyped-def]
    """Out: valid bool [2^n]: whether no clause of the subset with this mask implies another one.
    Returns the number of valid subsets. In: clauses int32 [n]; conflict is scratch, int64 [n]."""
    count = clauses.shape[0]
    for first in range(count):
        conflict[first] = 0
        for second in range(count):
            if first != second and (
                implies_clause(clauses[first], clauses[second], implied)
                or implies_clause(clauses[second], clauses[first], implied)
            ):
                conflict[first] |= 1 << second
    total = 0
    valid[0] = True
    for mask in range(1, 1 << count):
        lowest = 0
        while not (mask >> lowest) & 1:
            lowest += 1
        valid[mask] = valid[mask & (mask - 1)] and (conflict[lowest] & mask) == 0
        total += valid[mask]
    return total


@nb.njit(nogil=True, cache=True)
def _count_subsets(chosen, implied, start):  # type: ignore[no-untyped-def]
    """Out: start int64 [filters + 1], where the subsets of each filter begin. Returns the total."""
    width = chosen.clauses.shape[1]
    conflict, valid = np.zeros(width, np.int64), np.zeros(1 << width, np.bool_)
    for filter_ in range(chosen.used.shape[0]):
        clauses = chosen.clauses[filter_, : chosen.used[filter_]]
        start[filter_ + 1] = start[filter_] + _mark_valid(clauses, implied, conflict, valid)
    return start[-1]


@nb.njit(nogil=True, cache=True)
def _write_subsets(chosen, implied, start, clause_keys, subsets):  # type: ignore[no-untyped-def]
    """Out: subsets (_Subsets), those of filter f from start[f] on. In: clause_keys uint64
    [clauses]; the key of a set is the sum of the keys of its clauses."""
    width = chosen.clauses.shape[1]
    conflict, valid = np.zeros(width, np.int64), np.zeros(1 << width, np.bool_)
    key_of = np.zeros(1 << width, np.uint64)
    for filter_ in range(chosen.used.shape[0]):
        clauses = chosen.clauses[filter_, : chosen.used[filter_]]
        _mark_valid(clauses, implied, conflict, valid)
        position = start[filter_]
        for mask in range(1, 1 << clauses.shape[0]):
            lowest = 0
            while not (mask >> lowest) & 1:
                lowest += 1
            key_of[mask] = key_of[mask & (mask - 1)] + clause_keys[clauses[lowest]]
            if valid[mask]:
                subsets.key[position], subsets.owner[position], subsets.mask[position] = (
                    key_of[mask],
                    filter_,
                    mask,
                )
                position += 1


@nb.njit(nogil=True, cache=True)
def _write_set(clauses, mask, buffer):  # type: ignore[no-untyped-def]
    """Write the clauses whose bit is in the mask to `buffer`, both int32. Returns their number."""
    count = 0
    for place in range(clauses.shape[0]):
        if (mask >> place) & 1:
            buffer[count] = clauses[place]
            count += 1
    return count


@nb.njit(nogil=True, cache=True)
def _group_subsets(subsets, chosen, filters):  # type: ignore[no-untyped-def]
    """The sets that at least two filters have: Lists of their clauses, Lists of their members, and
    the filter that each is equal to (int32, −1 if none). In: subsets (_Subsets), keys ascending.

    Different sets may have equal keys. Those that differ from the first are dropped; this is so
    rare that the lost candidates do not matter.
    """
    keys, owners, masks = subsets
    pairs = keys.shape[0]
    groups, flat, listed = _measure_groups(keys, masks)
    set_start, member_start = np.zeros(groups + 1, np.int64), np.zeros(groups + 1, np.int64)
    sets, members = np.empty(flat, np.int32), np.empty(listed, np.int32)
    as_filter = np.full(groups, -1, np.int32)
    buffer = np.empty(chosen.clauses.shape[1], np.int32)
    group, begin, used, written = 0, 0, 0, 0
    while begin < pairs:
        end = begin + 1
        while end < pairs and keys[end] == keys[begin]:
            end += 1
        if end - begin > 1:
            first = used
            used += _write_set(chosen.clauses[owners[begin]], masks[begin], sets[first:])
            candidate = sets[first:used]
            members_begin = written
            for pair in range(begin, end):
                owner = owners[pair]
                count = _write_set(chosen.clauses[owner], masks[pair], buffer)
                if not np.array_equal(buffer[:count], candidate):
                    continue
                members[written] = owner
                written += 1
                owner_clauses = filters.values[filters.start[owner] : filters.start[owner + 1]]
                if np.array_equal(owner_clauses, candidate):
                    as_filter[group] = owner
            if written - members_begin > 1:
                group += 1
                set_start[group], member_start[group] = used, written
            else:
                used, written, as_filter[group] = first, members_begin, -1
        begin = end
    return (
        Lists(set_start[: group + 1], sets[:used]),
        Lists(member_start[: group + 1], members[:written]),
        as_filter[:group],
    )


@nb.njit(nogil=True, cache=True)
def _measure_groups(keys, masks):  # type: ignore[no-untyped-def]
    """For keys that occur at least twice: their number, the clauses of their sets, and all their
    occurrences."""
    groups, flat, listed, begin = 0, 0, 0, 0
    while begin < keys.shape[0]:
        end = begin + 1
        while end < keys.shape[0] and keys[end] == keys[begin]:
            end += 1
        if end - begin > 1:
            groups += 1
            listed += end - begin
            mask = masks[begin]
            while mask:
                mask &= mask - 1
                flat += 1
        begin = end
    return groups, flat, listed
