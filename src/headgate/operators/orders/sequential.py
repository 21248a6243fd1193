"""The Sequential order: Algorithm 1 of [Operators §4.1].

Take any undecided subscription and *mark* it. Evaluate those of its predicates that are still
unknown, each if some undecided subscription contains it, even when the marked subscription is
decided in between. Subscriptions that an answer decides are removed at once.

    S1  a b        marked: a is false, so S1 is decided; b is evaluated because S2 contains it
    S2  b c        b is false: S2 is decided, and c is never evaluated
    S3  d e        marked: …

Guarantee (Theorem 2): it evaluates at most d times as many predicates as any order, if no
subscription has more than d of them. Marked subscriptions have no new predicate in common, and any
order must evaluate at least one new predicate of each to decide it. Where costs differ, the factor
is d · Cmax / Cmin (§4.3). The theorem is about conjunctions.

"Any" means here: subscriptions in the order of registration, predicates as written.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.match.bit_rows import Ints
from headgate.operators.orders.clause_table import ClauseTable
from headgate.operators.orders.estimates import PredicateEstimates
from headgate.operators.orders.evaluator import ChooseNext, PreparedOrder
from headgate.operators.orders.item_evaluations import ItemEvaluations
from headgate.operators.orders.item_kernels import (
    REQUIRED_BITS,
    UNDECIDED,
    UNKNOWN,
    one_node_each,
)


class SequentialOrder:
    name = "sequential"

    def prepare(self, table: ClauseTable, estimates: PredicateEstimates) -> PreparedOrder:
        del estimates
        return PreparedOrder(table, None, _begin)


def _begin(evaluations: ItemEvaluations) -> ChooseNext:
    graphs, state = evaluations.graphs, evaluations.state
    marked_slot = state.slot_start[:-1].copy()
    next_edge = graphs.clause_edge_start[marked_slot - state.slot_offset]

    def choose_next(items: Ints) -> tuple[Ints, Ints]:
        return one_node_each(items, next_sequential(graphs, state, items, marked_slot, next_edge))

    return choose_next


@nb.njit(nogil=True, cache=True)
def next_sequential(graphs, state, items, marked_slot, next_edge):  # type: ignore[no-untyped-def]
    """The next unknown node of the marked slot that an undecided slot needs; then the next slot.

    items        int32 [n]     the items that choose
    marked_slot  int32 [item]  in and out: the marked slot of each item
    next_edge    int32 [item]  in and out: the next edge of its clause to look at
    returns      int32 [n]     a node for each, or -1 where nothing is left to evaluate
    """
    edge_start, edges = graphs.clause_edge_start, graphs.clause_edges
    slot_start, slot_offset = state.slot_start, state.slot_offset
    node_offset = state.node_offset
    answers, verdicts, demand = state.answers, state.verdicts, state.demand
    chosen = np.full(items.shape[0], -1, np.int32)
    for n in range(items.shape[0]):
        item = items[n]
        end = slot_start[item + 1]
        while marked_slot[item] < end and chosen[n] < 0:
            slot = marked_slot[item]
            if next_edge[item] < edge_start[slot - slot_offset[item] + 1]:
                node = (edges[next_edge[item]] >> REQUIRED_BITS) + node_offset[item]
                next_edge[item] += 1
                if answers[node] == UNKNOWN and demand[:, node].sum() > 0:
                    chosen[n] = node
                continue
            slot += 1
            while slot < end and verdicts[slot] != UNDECIDED:
                slot += 1
            marked_slot[item] = slot
            next_edge[item] = edge_start[slot - slot_offset[item]]
    return chosen
