"""The adaptive order, the default: evaluate the predicate that decides most clauses for its cost.

[Operators] fixes an order of subscriptions beforehand. But the answers for an item change what is
worth evaluating: once a popular predicate is false, no open subscription may need the others. So
the choice is made for each item, after each answer, by

    score(t) = (slots that require t · P(t is false) + slots that require not t · P(t is true)) /
    cost

over undecided slots. This is the greedy rule for set cover; by Theorem 1 no polynomial order is
better by more than a constant factor. Three things make it cheap and good:

    unit slots  A slot with a single open literal cannot be decided without it. It is evaluated
                first: it costs nothing that is not due anyway, and may decide other slots.
    buckets     The nodes of an item lie in linked lists of nearly equal scores (within 6 %).
                Scores only decrease, so a node may lie in a bucket that is too high, never too
                low, and is moved when it comes up. The buckets are walked down once for an item.

                    bucket   4     3     2     1       bucket_heads: the first node of each
                             n7    n2    n9            next_node: the following one
                                   n5    n4            top_bucket: the highest that has a node

    batches     If the second best node shares no undecided slot with the best, it stays the best
                of the rest whatever the answer is, because others only lose. So both are
                evaluated in one round, and the third, up to NODES_PER_ROUND.

Selectivities and costs are those of the estimates when a group of items begins: declared ones
first, then learned ones.

Cost: each edge of an item is followed at most twice, and a node is moved as often as it comes up
with an outdated score.

Rejected: a heap, which is exact, evaluates the same number within one percent, and misses the cache
on every level. Weighting a clause by how few literals it has left, or by the chance that another
literal of it will be evaluated anyway: on the paper's workloads that saves 0 to 3 % of the
evaluations, but scores would then also grow, and every choice would cost more.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.match.bit_rows import Ints, Longs
from headgate.operators.orders.clause_table import ClauseTable
from headgate.operators.orders.clauses import FALSE, KNOWN, TRUE
from headgate.operators.orders.estimates import PredicateEstimates
from headgate.operators.orders.evaluator import ChooseNext, PreparedOrder
from headgate.operators.orders.item_evaluations import ItemEvaluations
from headgate.operators.orders.item_kernels import (
    CHOSEN,
    REQUIRED_BITS,
    UNDECIDED,
    UNKNOWN,
    first_unknown,
)

Gains = npt.NDArray[np.float32]

KNOWN_GAIN = 1e-3
"""A node that needs to be KNOWN decides nothing by itself, but must be evaluated in the end."""
MANTISSA_BITS = 4
BUCKET_SHIFT = 23 - MANTISSA_BITS
BUCKETS = 255 << MANTISSA_BITS
NODES_PER_ROUND = 64
"""At most so many nodes are evaluated for an item in one round …"""
SLOTS_PER_NODE_MAX = 128
"""… and each of them is in so few open slots that comparing them with each other is cheap."""


class AdaptiveOrder:
    name = "adaptive"

    def prepare(self, table: ClauseTable, estimates: PredicateEstimates) -> PreparedOrder:
        return PreparedOrder(
            table, None, lambda evaluations: _begin(evaluations, gains_of(estimates))
        )


def gains_of(estimates: PredicateEstimates) -> Gains:
    """[predicate, requirement]: the expected number of slots with this requirement that an answer
    decides, for each unit of cost.

    Costs are relative to their mean, so that scores neither vanish nor overflow.
    """
    selectivity, cost = estimates.selectivity(), estimates.cost()
    gains = np.empty((selectivity.size, 3), np.float64)
    gains[:, FALSE], gains[:, TRUE], gains[:, KNOWN] = selectivity, 1 - selectivity, KNOWN_GAIN
    relative = np.maximum(cost / max(float(cost.mean()), 1e-30), 1e-9) if cost.size else cost
    return (gains / relative[:, None]).astype(np.float32)


class ScoreBuckets(NamedTuple):
    """The nodes of all items by score."""

    gains: Gains  # [predicate, requirement]
    bucket_heads: Ints  # [item, bucket]: the first node, or -1
    top_bucket: Ints  # [item]
    next_node: Ints  # [node]: the next one in the same bucket, or -1
    marks: Longs  # [clause of a graph]: the last choice that took a node of the clause
    choice: Longs  # [1]: the number of the last choice


def _begin(evaluations: ItemEvaluations, gains: Gains) -> ChooseNext:
    graphs, state = evaluations.graphs, evaluations.state
    buckets = ScoreBuckets(
        gains,
        np.full((evaluations.count, BUCKETS), -1, np.int32),
        np.zeros(evaluations.count, np.int32),
        np.empty(state.answers.size, np.int32),
        np.zeros(graphs.clause_edge_start.size, np.int64),
        np.zeros(1, np.int64),
    )
    fill_buckets(graphs, state, buckets)

    def choose_next(items: Ints) -> tuple[Ints, Ints]:
        chosen: tuple[Ints, Ints] = next_adaptive(graphs, state, buckets, items)
        return chosen

    return choose_next


@nb.njit(nogil=True, cache=True, inline="always")
def bucket_of(node, gain, demand):  # type: ignore[no-untyped-def]
    """The bucket of a node's score; 0 for nodes that no open slot needs.

    The bits of a positive float, read as an integer, have the order of the floats. The upper bits
    distinguish scores that differ by 1 in 2 ** MANTISSA_BITS.
    """
    score = np.float32(
        demand[0, node] * gain[0] + demand[1, node] * gain[1] + demand[2, node] * gain[2]
    )
    return score.view(np.int32) >> BUCKET_SHIFT


@nb.njit(nogil=True, cache=True)
def fill_buckets(graphs, state, buckets):  # type: ignore[no-untyped-def]
    """Put every node into the list of its bucket; out: bucket_heads, top_bucket, next_node."""
    gains, heads, next_node = buckets.gains, buckets.bucket_heads, buckets.next_node
    node_predicate, demand = graphs.node_predicate, state.demand
    for item in range(state.node_start.shape[0] - 1):
        offset = state.node_offset[item]
        for node in range(state.node_start[item], state.node_start[item + 1]):
            bucket = bucket_of(node, gains[node_predicate[node - offset]], demand)
            next_node[node] = heads[item, bucket]
            heads[item, bucket] = node
            buckets.top_bucket[item] = max(buckets.top_bucket[item], bucket)


@nb.njit(nogil=True, cache=True)
def next_adaptive(graphs, state, buckets, items):  # type: ignore[no-untyped-def]
    """Choose the nodes of unit slots, or else those with the best scores.

    items    int32 [n]  the items that choose
    returns  pairs of an item and a node, int32 each, sorted by item
    """
    chosen_items = np.empty(items.shape[0] * NODES_PER_ROUND, np.int32)
    chosen = np.empty(items.shape[0] * NODES_PER_ROUND, np.int32)
    open_slots, choice = state.open_slots, buckets.choice
    end = 0
    for n in range(items.shape[0]):
        item, first = items[n], end
        if open_slots[item] == 0:
            continue
        room = chosen[first : first + NODES_PER_ROUND]
        end += choose_unit_nodes(graphs, state, item, room)
        if end == first:
            choice[0] += 1
            end += choose_best_nodes(graphs, state, buckets, item, room)
        chosen_items[first:end] = item
    return chosen_items[:end], chosen[:end]


@nb.njit(nogil=True, cache=True)
def choose_unit_nodes(graphs, state, item, chosen):  # type: ignore[no-untyped-def]
    """Write the open nodes of unit slots to `chosen`, and mark them as CHOSEN; returns how many."""
    edge_start, edges = graphs.clause_edge_start, graphs.clause_edges
    slot_offset, node_offset = state.slot_offset[item], state.node_offset[item]
    verdicts, answers, unit_slots = state.verdicts, state.answers, state.unit_slots
    begin, height, count = state.slot_start[item], state.unit_count[item], 0
    while height > 0 and count < NODES_PER_ROUND:
        height -= 1
        slot = unit_slots[begin + height]
        if verdicts[slot] == UNDECIDED:
            clause = slot - slot_offset
            first, last = edge_start[clause], edge_start[clause + 1]
            node = first_unknown(edges, first, last, node_offset, answers)
            if node >= 0:  # -1: chosen for another slot in this round
                answers[node] = CHOSEN
                chosen[count] = node
                count += 1
    state.unit_count[item] = height
    return count


@nb.njit(nogil=True, cache=True)
def choose_best_nodes(graphs, state, buckets, item, chosen):  # type: ignore[no-untyped-def]
    """Write the best node to `chosen`, and those after it that share no open slot; how many."""
    heads, next_node, gains = buckets.bucket_heads[item], buckets.next_node, buckets.gains
    marks, choice = buckets.marks, buckets.choice[0]
    demand, answers, verdicts = state.demand, state.answers, state.verdicts
    node_offset, slot_offset = state.node_offset[item], state.slot_offset[item]
    node_predicate, edge_start = graphs.node_predicate, graphs.node_edge_start
    edges = graphs.node_edges
    top, count = buckets.top_bucket[item], 0
    while top > 0 and count < NODES_PER_ROUND:
        node = heads[top]
        if node < 0:
            top -= 1
            continue
        slots = demand[0, node] + demand[1, node] + demand[2, node]
        if slots == 0 or answers[node] != UNKNOWN:
            heads[top] = next_node[node]
            continue
        graph_node = node - node_offset
        bucket = bucket_of(node, gains[node_predicate[graph_node]], demand)
        if bucket != top:
            heads[top] = next_node[node]
            next_node[node] = heads[bucket]
            heads[bucket] = node
            continue
        own_edges = edges[edge_start[graph_node] : edge_start[graph_node + 1]]
        is_popular = slots > SLOTS_PER_NODE_MAX
        if count > 0 and (
            is_popular or shares_open_slot(own_edges, slot_offset, verdicts, marks, choice)
        ):
            break
        heads[top] = next_node[node]
        chosen[count] = node
        count += 1
        if is_popular:
            break
        for edge in own_edges:
            marks[edge >> REQUIRED_BITS] = choice
    buckets.top_bucket[item] = top
    return count


@nb.njit(nogil=True, cache=True, inline="always")
def shares_open_slot(edges, slot_offset, verdicts, marks, choice):  # type: ignore[no-untyped-def]
    """Whether an undecided slot of these edges has a node that this choice took already."""
    for edge in edges:
        clause = edge >> REQUIRED_BITS
        if marks[clause] == choice and verdicts[clause + slot_offset] == UNDECIDED:
            return True
    return False
