"""The hot loops of factorising: sets of clauses on flat arrays, compiled by Numba, without the GIL.

A predicate is a set of clauses, ascending; many of them lie one after the other:

    start   0     2        5            set n:  clauses[start[n] : start[n + 1]]
    clauses 3  8  1  3  8

clause c implies implied[implied_start[c] : implied_start[c + 1]], itself not among them.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.match.kernels import popcount


@nb.njit(nogil=True, cache=True)
def sort_few(values):  # type: ignore[no-untyped-def]
    """Sort a short array in place, by insertion. Numba's np.sort is not used here: in processes
    that had run certain other kernels before, it left arrays as they were."""
    for at in range(1, values.shape[0]):
        value, place = values[at], at
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@nb.njit(nogil=True, cache=True, inline="always")
def implies_clause(specific, general, implied_start, implied):  # type: ignore[no-untyped-def]
    if specific == general:
        return True
    for at in range(implied_start[specific], implied_start[specific + 1]):
        if implied[at] == general:
            return True
    return False


@nb.njit(nogil=True, cache=True)
def subsumes(general, specific, implied_start, implied):  # type: ignore[no-untyped-def]
    """Whether each clause of the one set follows from a clause of the other."""
    for wanted in general:
        found = False
        for clause in specific:
            if implies_clause(clause, wanted, implied_start, implied):
                found = True
                break
        if not found:
            return False
    return True


@nb.njit(nogil=True, cache=True)
def selectivities_of_sets(start, clauses, bits, size, single, found):  # type: ignore[no-untyped-def]
    """found[n]: the share of items that satisfy set n (factor_selectivity.py)."""
    word_count = bits.shape[1]
    for each in range(found.shape[0]):
        first, last = start[each], start[each + 1]
        count, product = np.uint64(0), 1.0
        for at in range(first, last):
            product *= single[clauses[at]]
        for word in range(word_count):
            value = ~np.uint64(0)
            for at in range(first, last):
                value &= bits[clauses[at], word]
            count += popcount(value)
        if first == last:
            found[each] = 1.0
        elif size == 0:
            found[each] = product
        else:
            found[each] = count / size if count > 0 else min(product, 0.5 / size)


@nb.njit(nogil=True, cache=True)
def reduce_sets(lengths, rows, same_as, implied_start, implied, kept_lengths, kept):  # type: ignore[no-untyped-def]
    """Each set with equivalent clauses made one, and without those that others in it imply. The
    clauses that are left ascend. How many there are in all."""
    used, at = 0, 0
    buffer = np.empty(lengths.max() if lengths.shape[0] else 0, np.int32)
    for each in range(lengths.shape[0]):
        count = lengths[each]
        for place in range(count):
            buffer[place] = same_as[rows[at + place]]
        at += count
        own = buffer[:count]
        sort_few(own)
        first = used
        for place in range(count):
            clause = own[place]
            if place > 0 and own[place - 1] == clause:
                continue
            needed = True
            for other in own:
                if other != clause and implies_clause(other, clause, implied_start, implied):
                    needed = False
                    break
            if needed:
                kept[used] = clause
                used += 1
        kept_lengths[each] = used - first
    return used


@nb.njit(nogil=True, cache=True)
def paths_of_filters(  # type: ignore[no-untyped-def]
    filter_count, parent, start, clauses, rank, path_max, path_start, paths, write
):
    """For each filter the rows from the root down to it. Without `write` only how many there are:
    path_start[f + 1] is that of filter f. A way that is too long is given up: the filter then
    stands alone."""
    chain = np.empty(path_max + 1, np.int64)
    path = np.empty(2 * path_max + 64, np.int32)
    for each in range(filter_count):
        depth, node = 0, each
        while node >= 0 and depth <= path_max:
            chain[depth] = node
            depth += 1
            node = parent[node]
        length = path_max + 1
        if node < 0:
            length = _fill_path(chain, depth, start, clauses, rank, path_max, path)
        if length > path_max:
            chain[0] = each
            length = _fill_path(chain, 1, start, clauses, rank, path.shape[0], path)
        if write:
            paths[path_start[each] : path_start[each] + length] = path[:length]
        else:
            path_start[each + 1] = length


@nb.njit(nogil=True, cache=True)
def _fill_path(chain, depth, start, clauses, rank, room, path):  # type: ignore[no-untyped-def]
    """The rows of the chain's nodes, the last one first; within a node by rank. How many, or more
    than there is room for."""
    length = 0
    for level in range(depth - 1, -1, -1):
        node, first = chain[level], length
        for at in range(start[node], start[node + 1]):
            clause, known = clauses[at], False
            for place in range(first):
                if path[place] == clause:
                    known = True
                    break
            if known:
                continue
            if length >= room:
                return room + 1
            place = length
            while place > first and rank[path[place - 1]] > rank[clause]:
                path[place] = path[place - 1]
                place -= 1
            path[place] = clause
            length += 1
    return length


@nb.njit(nogil=True, cache=True)
def forest_visits(node_row, node_depth, bits, size, single, batch, depth):  # type: ignore[no-untyped-def]
    """How many nodes of a forest a walk over a batch is expected to visit: those whose parent has
    an item of the batch left."""
    word_count, total = bits.shape[1], 0.0
    left = np.empty((depth + 1, word_count), np.uint64)
    left[0] = ~np.uint64(0)
    products, visits = np.ones(depth + 1), np.ones(depth + 1)
    for node in range(node_row.shape[0]):
        level, row = node_depth[node], node_row[node]
        total += visits[level]
        count = np.uint64(0)
        for word in range(word_count):
            value = left[level, word] & bits[row, word]
            left[level + 1, word] = value
            count += popcount(value)
        products[level + 1] = products[level] * single[row]
        share = products[level + 1]
        if size > 0:
            share = count / size if count > 0 else min(share, 0.5 / size)
        visits[level + 1] = 1.0 - (1.0 - share) ** batch
    return total
