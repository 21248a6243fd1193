"""The naive order: one subscription after the other, the baseline of [Operators §5.2].

Each clause is evaluated until one of its predicates is not as required. Answers are kept, so no
predicate is evaluated twice for an item. But known answers are not looked up in advance: a clause
whose third predicate is known to be false still has its first two evaluated.

    S1  a b        a is true, b is false
    S2  c b d      c is evaluated although b is known to be false
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
    DROPPED,
    REQUIRED_BITS,
    REQUIRED_MASK,
    UNKNOWN,
    is_as_required,
    one_node_each,
)


class NaiveOrder:
    name = "naive"

    def prepare(self, table: ClauseTable, estimates: PredicateEstimates) -> PreparedOrder:
        del estimates
        return PreparedOrder(table, None, _begin)


def _begin(evaluations: ItemEvaluations) -> ChooseNext:
    graphs, state = evaluations.graphs, evaluations.state
    current_slot = state.slot_start[:-1].copy()

    def choose_next(items: Ints) -> tuple[Ints, Ints]:
        return one_node_each(items, next_naive(graphs, state, items, current_slot))

    return choose_next


@nb.njit(nogil=True, cache=True)
def next_naive(graphs, state, items, current_slot):  # type: ignore[no-untyped-def]
    """The first unevaluated node of the first slot that is not yet known to fail.

    items         int32 [n]     the items that choose
    current_slot  int32 [item]  in and out: the slot that each item has reached
    returns       int32 [n]     a node for each, or -1 where nothing is left to evaluate
    """
    edge_start, edges = graphs.clause_edge_start, graphs.clause_edges
    slot_start, answers, verdicts = state.slot_start, state.answers, state.verdicts
    slot_offset, node_offset = state.slot_offset, state.node_offset
    chosen = np.full(items.shape[0], -1, np.int32)
    for n in range(items.shape[0]):
        item = items[n]
        while current_slot[item] < slot_start[item + 1] and chosen[n] < 0:
            clause = current_slot[item] - slot_offset[item]
            if verdicts[current_slot[item]] != DROPPED:
                for edge in range(edge_start[clause], edge_start[clause + 1]):
                    node = (edges[edge] >> REQUIRED_BITS) + node_offset[item]
                    if answers[node] == UNKNOWN:
                        chosen[n] = node
                        break
                    if not is_as_required(answers[node], edges[edge] & REQUIRED_MASK):
                        break
            if chosen[n] < 0:
                current_slot[item] += 1
    return chosen
