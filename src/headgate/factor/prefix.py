"""Sorted prefixes: all filters in one order of clauses; common beginnings become shared nodes.

    filters               tree
    a b c                 a ─┬─ a b ─┬─ a b c        a node wherever two filters diverge, or where
    a b d                    │       └─ a b d        one of them ends
    a e                      └─ a e

Invariant: a node's predicate is the beginning of every filter below it, in the order of `rank`.

Cost: a sort, and one pass over the clauses. It needs no statistics but an order, and is the shape
that a program has without an optimiser. Its weakness is the single order: `b c` and `a b c` share
nothing where a comes first, and where a comes last, `a b` and `a c` share nothing. Two orders are
useful: the rarest clauses first skip most nodes, the most used clauses first make the fewest nodes.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.factor.clause_sets import ClauseSets, sort_few
from headgate.factor.filter_tree import FilterTree
from headgate.match.bit_rows import Ints, Longs


def factorize_prefix(filters: ClauseSets, *, rank: Ints | None = None) -> FilterTree:
    """The filter plan; without a rank the rarest clauses come first. rank[c]: the place of clause
    c."""
    order_of = filters.rank() if rank is None else rank
    lengths = np.diff(filters.start)
    width = int(lengths.max(initial=1))
    is_used = np.arange(width) < lengths[:, None]
    matrix = np.full(is_used.shape, np.iinfo(np.int32).max, np.int32)
    matrix[is_used] = order_of[filters.clauses]
    matrix.sort(axis=1)
    matrix[~is_used] = -1
    order = np.lexsort(matrix.T[::-1])
    matrix = matrix[order]
    parent, lines, depths = _find_parents(matrix, order, lengths[order])
    clause_at = np.argsort(order_of).astype(np.int32)
    start = np.concatenate([filters.start, filters.start[-1] + np.cumsum(depths)])
    inserted = np.empty(int(depths.sum()), np.int32)
    _write_inserted(matrix, clause_at, lines, depths, inserted)
    clauses = np.concatenate([filters.clauses, inserted])
    selectivity = filters.selectivities.of_sets(start, clauses)
    return FilterTree(parent, start, clauses, selectivity, filters.filter_count)


@nb.njit(nogil=True, cache=True)
def _find_parents(matrix: Ints, filters: Longs, lengths: Longs) -> tuple[Ints, Longs, Longs]:
    """Parents of all nodes, and for each inserted node the line and the depth that it ends at.

    In: matrix int32 [filters, width], the sorted lines of clause ranks, −1 behind the end; filters
    int64, the filter of each line; lengths int64. Out: parent int32 [nodes], lines int64 and depths
    int64 [inserted]: an inserted node is the beginning of this line, up to this depth.

    A stack holds the nodes from the root down to the line before. Nodes that are deeper than what
    the next line shares with it are finished, and go below what is left on the stack.
    """
    count, used, made = filters.shape[0], 0, 0
    parent = np.full(2 * count + 1, -1, np.int32)
    lines, depths = np.empty(count + 1, np.int64), np.empty(count + 1, np.int64)
    stack_depth = np.empty(matrix.shape[1] + 1, np.int64)
    stack_node = np.empty(matrix.shape[1] + 1, np.int64)
    for line in range(count + 1):
        shared = 0
        if 0 < line < count:
            most = min(lengths[line - 1], lengths[line])
            while shared < most and matrix[line, shared] == matrix[line - 1, shared]:
                shared += 1
        last = -1
        while used > 0 and stack_depth[used - 1] > shared:
            used -= 1
            if last >= 0:
                parent[last] = stack_node[used]
            last = stack_node[used]
        if last >= 0 and shared > 0:
            if used == 0 or stack_depth[used - 1] < shared:
                stack_depth[used], stack_node[used] = shared, count + made
                lines[made], depths[made] = line - 1, shared
                used, made = used + 1, made + 1
            parent[last] = stack_node[used - 1]
        if line < count:
            stack_depth[used], stack_node[used] = lengths[line], filters[line]
            used += 1
    return parent[: count + made], lines[:made], depths[:made]


@nb.njit(nogil=True, cache=True)
def _write_inserted(
    matrix: Ints, clause_at: Ints, lines: Longs, depths: Longs, inserted: Ints
) -> None:
    """Out: inserted int32, the clauses of the inserted nodes, ascending in each. In: clause_at
    int32, the clause of each rank; the rest as `_find_parents` gives it."""
    at = 0
    for node in range(lines.shape[0]):
        end = at + depths[node]
        inserted[at:end] = clause_at[matrix[lines[node], : depths[node]]]
        sort_few(inserted[at:end])
        at = end
