"""The hot loops of candidates.py: the sets of clauses of each filter, and equal ones together."""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.factor.factor_kernels import implies_clause, sort_few


@nb.njit(nogil=True, cache=True)
def _closure(own, implied_start, implied, found):  # type: ignore[no-untyped-def]
    """The clauses of a filter, then what they imply, each once; how many."""
    count = own.shape[0]
    found[:count] = own
    for clause in own:
        for at in range(implied_start[clause], implied_start[clause + 1]):
            known = False
            for place in range(count):
                if found[place] == implied[at]:
                    known = True
                    break
            if not known and count < found.shape[0]:
                found[count] = implied[at]
                count += 1
    return count


@nb.njit(nogil=True, cache=True)
def count_in_closures(start, clauses, implied_start, implied, shared):  # type: ignore[no-untyped-def]
    """shared[c]: how many filters have or imply clause c."""
    found = np.empty(256, np.int32)
    for each in range(start.shape[0] - 1):
        own = clauses[start[each] : start[each + 1]]
        for place in range(_closure(own, implied_start, implied, found)):
            shared[found[place]] += 1


@nb.njit(nogil=True, cache=True)
def choose_clauses(start, clauses, implied_start, implied, shared, worth, chosen, chosen_count):  # type: ignore[no-untyped-def]
    """For each filter the clauses that its candidates are made of: what others share, and of that
    what is worth most."""
    found = np.empty(256, np.int32)
    width = chosen.shape[1]
    for each in range(chosen.shape[0]):
        own = clauses[start[each] : start[each + 1]]
        count = 0
        for place in range(_closure(own, implied_start, implied, found)):
            clause = found[place]
            if shared[clause] < 2 or (count == width and worth[chosen[each, -1]] >= worth[clause]):
                continue
            # Sorted by worth while there may be more than fit: the least one falls out.
            at = min(count, width - 1)
            while at > 0 and worth[chosen[each, at - 1]] < worth[clause]:
                chosen[each, at] = chosen[each, at - 1]
                at -= 1
            chosen[each, at] = clause
            count = min(count + 1, width)
        sort_few(chosen[each, :count])
        chosen_count[each] = count


@nb.njit(nogil=True, cache=True, inline="always")
def _sets_of(own, implied_start, implied, conflict, valid):  # type: ignore[no-untyped-def]
    """valid[mask]: whether no clause of the set implies another one of it. How many are."""
    count = own.shape[0]
    for one in range(count):
        conflict[one] = 0
        for other in range(count):
            if one != other and (
                implies_clause(own[one], own[other], implied_start, implied)
                or implies_clause(own[other], own[one], implied_start, implied)
            ):
                conflict[one] |= 1 << other
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
def count_sets(chosen, chosen_count, implied_start, implied, set_start):  # type: ignore[no-untyped-def]
    """Where the sets of each filter begin, and how many there are in all."""
    conflict, valid = np.zeros(chosen.shape[1], np.int64), np.zeros(1 << chosen.shape[1], np.bool_)
    for each in range(chosen.shape[0]):
        own = chosen[each, : chosen_count[each]]
        total = _sets_of(own, implied_start, implied, conflict, valid)
        set_start[each + 1] = set_start[each] + total
    return set_start[-1]


@nb.njit(nogil=True, cache=True)
def write_sets(  # type: ignore[no-untyped-def]
    chosen, chosen_count, implied_start, implied, set_start, clause_keys, keys, owners, masks
):
    """The sets of all filters: the key of each, its filter, and which clauses of it are in it."""
    size = 1 << chosen.shape[1]
    conflict, valid = np.zeros(chosen.shape[1], np.int64), np.zeros(size, np.bool_)
    key_of = np.zeros(size, np.uint64)
    for each in range(chosen.shape[0]):
        own = chosen[each, : chosen_count[each]]
        _sets_of(own, implied_start, implied, conflict, valid)
        at = set_start[each]
        for mask in range(1, 1 << own.shape[0]):
            lowest = 0
            while not (mask >> lowest) & 1:
                lowest += 1
            key_of[mask] = key_of[mask & (mask - 1)] + clause_keys[own[lowest]]
            if valid[mask]:
                keys[at], owners[at], masks[at] = key_of[mask], each, mask
                at += 1


@nb.njit(nogil=True, cache=True)
def _write_set(own, mask, buffer):  # type: ignore[no-untyped-def]
    count = 0
    for place in range(own.shape[0]):
        if (mask >> place) & 1:
            buffer[count] = own[place]
            count += 1
    return count


@nb.njit(nogil=True, cache=True)
def group_sets(keys, owners, masks, chosen, start, clauses):  # type: ignore[no-untyped-def]
    """Sets that at least two filters have: their clauses, their members, and which filter each is.
    Keys ascend. Equal keys may be of different sets: those that differ from the first are left
    out, which is so rare that what is lost does not matter."""
    pairs = keys.shape[0]
    groups, flat, listed = _measure_groups(keys, masks)
    set_start, member_start = np.zeros(groups + 1, np.int64), np.zeros(groups + 1, np.int64)
    sets, members = np.empty(flat, np.int32), np.empty(listed, np.int32)
    as_filter = np.full(groups, -1, np.int32)
    buffer = np.empty(chosen.shape[1], np.int32)
    group, at, used, written = 0, 0, 0, 0
    while at < pairs:
        end = at + 1
        while end < pairs and keys[end] == keys[at]:
            end += 1
        if end - at > 1:
            first = used
            used += _write_set(chosen[owners[at]], masks[at], sets[first:])
            wanted = sets[first:used]
            begin = written
            for pair in range(at, end):
                owner = owners[pair]
                count = _write_set(chosen[owner], masks[pair], buffer)
                if not np.array_equal(buffer[:count], wanted):
                    continue
                members[written] = owner
                written += 1
                if np.array_equal(clauses[start[owner] : start[owner + 1]], wanted):
                    as_filter[group] = owner
            if written - begin > 1:
                group += 1
                set_start[group], member_start[group] = used, written
            else:
                used, written, as_filter[group] = first, begin, -1
        at = end
    return (
        set_start[: group + 1],
        sets[:used],
        member_start[: group + 1],
        members[:written],
        as_filter[:group],
    )


@nb.njit(nogil=True, cache=True)
def _measure_groups(keys, masks):  # type: ignore[no-untyped-def]
    """How many keys come at least twice, how many clauses their sets have, how many pairs."""
    groups, flat, listed, at = 0, 0, 0, 0
    while at < keys.shape[0]:
        end = at + 1
        while end < keys.shape[0] and keys[end] == keys[at]:
            end += 1
        if end - at > 1:
            groups += 1
            listed += end - at
            mask = masks[at]
            while mask:
                mask &= mask - 1
                flat += 1
        at = end
    return groups, flat, listed
