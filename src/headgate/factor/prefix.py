"""Sorted prefixes: all filters in one order of clauses; common beginnings become shared nodes.

    filters               tree
    a b c                 a ─┬─ a b ─┬─ a b c        a node wherever two filters diverge, or where
    a b d                    │       └─ a b d        one of them ends
    a e                      └─ a e

Invariant: a node's predicate is the beginning of every filter below it, in the order of `rank`.

Cost: a sort, and one pass over the clauses. It needs no statistics, only an order of clauses, and
is the shape that a program has without an optimiser. Its weakness is the one order: `b c` and
`a b c` share nothing if a comes first, and `a b` and `a c` share nothing if a comes last. Two
orders are useful: the rarest clauses first skip most nodes, the most used clauses first make the
fewest nodes.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.factor.clause_sets import ClauseSets, sort_few
from headgate.factor.filter_tree import FilterTree
from headgate.match.bit_rows import Ints, Longs


def factorize_prefix(filters: ClauseSets, *, rank: Ints | None = None) -> FilterTree:
    """The filter plan. `rank[c]` is the position of clause c in the order; without it the rarest
    clauses come first."""
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
    """The parents of all nodes, and for each inserted node the line and the depth where it ends.

    In: matrix int32 [filters, width], the sorted lines of clause ranks, −1 behind the end; filters
    int64, the filter of each line; lengths int64. Out: parent int32 [nodes], lines int64 and depths
    int64 [inserted]: an inserted node is the beginning of this line, up to this depth.

    A stack holds the nodes from the root down to the previous line. Nodes deeper than the prefix
    that the next line shares with it are finished: their parent is below them on the stack.
    """
    count, used, inserted_count = filters.shape[0], 0, 0
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
                stack_depth[used], stack_node[used] = shared, count + inserted_count
                lines[inserted_count], depths[inserted_count] = line - 1, shared
                used, inserted_count = used + 1, inserted_count + 1
            parent[last] = stack_node[used - 1]
        if line < count:
            stack_depth[used], stack_node[used] = lengths[line], filters[line]
            used += 1
    return parent[: count + inserted_count], lines[:inserted_count], depths[:inserted_count]


@nb.njit(nogil=True, cache=True)
def _write_inserted(
    matrix: Ints, clause_at: Ints, lines: Longs, depths: Longs, inserted: Ints
) -> None:
    """Out: inserted int32, the clauses of the inserted nodes, ascending in each. In: clause_at
    int32, the clause of each rank; the rest as `_find_parents` gives it."""
    begin = 0
    for node in range(lines.shape[0]):
        end = begin + depths[node]
        inserted[begin:end] = clause_at[matrix[lines[node], : depths[node]]]
        sort_few(inserted[begin:end])
        begin = end
