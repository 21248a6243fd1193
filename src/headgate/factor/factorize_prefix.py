"""The sorted-prefix forest: a common order of clauses, and shared beginnings (DESIGN.md §5.3).

    a b c   a b d   a e        a ─┬─ a b ─┬─ a b c        a node wherever two filters part, or where
                                  │       └─ a b d        one ends
                                  └─ a e

Law: a node's predicate is the beginning of every filter below it, in the order of `rank`.

Cost: a sort, and one pass over the clauses. It needs no statistics but an order, and is what a
program has without an optimiser. Its weakness is the one order for all: `b c` and `a b c` share
nothing where a comes first, and where it comes last, `a b` and `a c` do not. Two orders are useful:
the rarest first skips most, and what most filters have first makes the fewest nodes.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.factor.factor_input import FactorInput
from headgate.factor.factor_kernels import sort_few
from headgate.factor.factor_tree import FactorTree
from headgate.match.kernels import Ints, Longs


def factorize_prefix(given: FactorInput, *, rank: Ints | None = None) -> FactorTree:
    """The filter plan; without a rank the rarest clauses come first."""
    order_of = given.rank() if rank is None else rank
    lengths = np.diff(given.start)
    width = int(lengths.max(initial=1))
    is_used = np.arange(width) < lengths[:, None]
    matrix = np.full(is_used.shape, np.iinfo(np.int32).max, np.int32)
    matrix[is_used] = order_of[given.clauses]
    matrix.sort(axis=1)
    matrix[~is_used] = -1
    order = np.lexsort(matrix.T[::-1])
    matrix = matrix[order]
    parent, ends, depths = _part(matrix, order, lengths[order])
    row_at = np.argsort(order_of).astype(np.int32)
    start = np.concatenate([given.start, given.start[-1] + np.cumsum(depths)])
    inserted = np.empty(int(depths.sum()), np.int32)
    _write_beginnings(matrix, row_at, ends, depths, inserted)
    clauses = np.concatenate([given.clauses, inserted])
    selectivity = given.selectivities.of_sets(start, clauses)
    return FactorTree(parent, start, clauses, selectivity, given.filter_count)


@nb.njit(nogil=True, cache=True)
def _part(matrix: Ints, filters: Longs, lengths: Longs) -> tuple[Ints, Longs, Longs]:
    """The parents of all nodes, given the filters in order: line n of the matrix is filters[n].
    An inserted node is the beginning of a line, up to a depth; both are returned for each.

    A stack has the nodes from the root down to the line before; what is deeper than what the next
    line shares with it is done, and goes below what is left.
    """
    count, used, made = filters.shape[0], 0, 0
    parent = np.full(2 * count + 1, -1, np.int32)
    ends, depths = np.empty(count + 1, np.int64), np.empty(count + 1, np.int64)
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
                ends[made], depths[made] = line - 1, shared
                used, made = used + 1, made + 1
            parent[last] = stack_node[used - 1]
        if line < count:
            stack_depth[used], stack_node[used] = lengths[line], filters[line]
            used += 1
    return parent[: count + made], ends[:made], depths[:made]


@nb.njit(nogil=True, cache=True)
def _write_beginnings(
    matrix: Ints, row_at: Ints, ends: Longs, depths: Longs, inserted: Ints
) -> None:
    """The clauses of inserted nodes, ascending in each."""
    at = 0
    for each in range(ends.shape[0]):
        end = at + depths[each]
        inserted[at:end] = row_at[matrix[ends[each], : depths[each]]]
        sort_few(inserted[at:end])
        at = end
