"""The hot loops of evaluation, compiled by Numba: build the graphs, apply the answers.

item_evaluations.py has the picture of items, slots, nodes and graphs. An edge is packed in one
int32: the place that it leads to, shifted left by two bits, and what the clause requires of the
predicate (FALSE, TRUE or KNOWN). Edges lead to places of a graph, which several items may share;
the place of an item is that of its graph plus the item's offset.

Cost: building is two passes over the edges of a graph. During the whole evaluation of an item each
edge is followed at most twice: when its predicate is answered, and when its clause is decided.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.match.bit_rows import Ints
from headgate.operators.answers import Bools
from headgate.operators.orders.clause_table import Bytes
from headgate.operators.orders.predicates import has_passing_solution

CHOSEN, UNKNOWN, ANSWER_FALSE, ANSWER_TRUE, FAILED = -2, -1, 0, 1, 2
"""The state of a node. The answers FALSE and TRUE are equal to what clauses require."""

UNDECIDED, SATISFIED, REFUTED, DROPPED = 0, 1, 2, 3
"""The verdict on a slot. It is dropped when another clause of its subscription is satisfied."""

REQUIRED_BITS, REQUIRED_MASK, REQUIRED_KNOWN = 2, 3, 2

DENSE = 16
"""Items with more than a DENSE-th of all clauses are sorted with a bitmap, others by comparison."""


class ClauseArrays(NamedTuple):
    """The columns of a ClauseTable that the graphs are built from."""

    owner: Ints  # [clause]
    clause_start: Ints  # [clause + 1]: the first literal of each clause
    predicates: Ints  # [literal]
    required: Bytes  # [literal]


class EvaluationGraphs(NamedTuple):
    """The links between clauses and nodes, for all graphs of a group of items. Read-only."""

    clause_edge_start: Ints  # [clause + 1]
    clause_edges: Ints  # [edge]: node and requirement
    node_edge_start: Ints  # [node + 1]
    node_edges: Ints  # [edge]: clause and requirement
    node_predicate: Ints  # [node]
    sibling: Ints  # [clause]: the next clause of the same subscription, in a ring


class EvaluationState(NamedTuple):
    """What is known of each item, slot and node. Kernels write to `demand` and those after it."""

    slot_start: Ints  # [item + 1]
    clause_of: Ints  # [slot]: the clause in the table
    node_start: Ints  # [item + 1]
    slot_offset: Ints  # [item]: from clauses of the graph to slots
    node_offset: Ints  # [item]: from nodes of the graph to nodes of the item
    demand: Ints  # [3, node]: how many undecided slots require FALSE, TRUE, KNOWN
    answers: Bytes  # [node]
    open_literals: Ints  # [slot]: literals that are not answered yet
    verdicts: Bytes  # [slot]
    open_slots: Ints  # [item]: slots that are undecided
    unit_slots: Ints  # [slot]: a stack for each item of slots with one open literal …
    unit_count: Ints  # [item]: … and its height


class RoundResult(NamedTuple):
    """The answers of one round."""

    items: Ints  # [answer]
    nodes: Ints  # [answer]
    answered: Bools  # [answer]: false where the call failed
    true: Bools  # [answer]


def one_node_each(items: Ints, nodes: Ints) -> tuple[Ints, Ints]:
    """The pairs of items and nodes, without items whose node is -1."""
    chosen = nodes >= 0
    return items[chosen], nodes[chosen]


@nb.njit(nogil=True, cache=True)
def find_graphs(slot_start, clause_of):  # type: ignore[no-untyped-def]
    """The graph of each item, int32 [item]; consecutive items with equal clauses share one."""
    items = slot_start.shape[0] - 1
    graph_of = np.empty(items, np.int32)
    graph = -1
    for item in range(items):
        begin, width = slot_start[item], slot_start[item + 1] - slot_start[item]
        same = item > 0 and width == begin - slot_start[item - 1]
        slot = begin
        while same and slot < begin + width:
            same = clause_of[slot] == clause_of[slot - width]
            slot += 1
        graph += not same
        graph_of[item] = graph
    return graph_of


@nb.njit(nogil=True, cache=True)
def build_graphs(graph_start, clause_of, clauses, predicate_count, owner_count):  # type: ignore[no-untyped-def]
    """Edges from clauses to nodes.

    graph_start  int32 [graph + 1]  the clauses of each graph …
    clause_of    int32 [clause]     … as numbers of the table, in the order of visit
    clauses      ClauseArrays
    returns      edge_start, edges, node_start of each graph, node_predicate, sibling
    """
    owner, clause_start = clauses.owner, clauses.clause_start
    predicates, required = clauses.predicates, clauses.required
    count = clause_of.shape[0]
    edge_start = np.zeros(count + 1, np.int32)
    for place in range(count):
        clause = clause_of[place]
        edge_start[place + 1] = edge_start[place] + clause_start[clause + 1] - clause_start[clause]
    edges = np.empty(edge_start[count], np.int32)
    node_predicate = np.empty(edge_start[count], np.int32)
    node_start = np.zeros(graph_start.shape[0], np.int32)
    sibling = np.arange(count).astype(np.int32)
    node_of = np.full(predicate_count, -1, np.int32)
    first_of_owner = np.full(owner_count, -1, np.int32)
    nodes = 0
    for graph in range(graph_start.shape[0] - 1):
        for place in range(graph_start[graph], graph_start[graph + 1]):
            clause = clause_of[place]
            edge = edge_start[place]
            for literal in range(clause_start[clause], clause_start[clause + 1]):
                predicate = predicates[literal]
                # A number below the graph's first node was left there by an earlier graph.
                if node_of[predicate] < node_start[graph]:
                    node_of[predicate] = nodes
                    node_predicate[nodes] = predicate
                    nodes += 1
                edges[edge] = node_of[predicate] << REQUIRED_BITS | required[literal]
                edge += 1
            first = first_of_owner[owner[clause]]
            if first >= graph_start[graph]:
                sibling[place] = sibling[first]
                sibling[first] = place
            else:
                first_of_owner[owner[clause]] = place
        node_start[graph + 1] = nodes
    return edge_start, edges, node_start, node_predicate[:nodes].copy(), sibling


@nb.njit(nogil=True, cache=True)
def reverse_edges(edge_start, edges, node_count):  # type: ignore[no-untyped-def]
    """Edges from nodes to clauses: node_edge_start, node_edges, and the demand [3, node]."""
    demand = np.zeros((3, node_count), np.int32)
    for edge in edges:
        demand[edge & REQUIRED_MASK, edge >> REQUIRED_BITS] += 1
    node_edge_start = np.zeros(node_count + 1, np.int32)
    for node in range(node_count):
        node_edge_start[node + 1] = node_edge_start[node] + demand[:, node].sum()
    node_edges = np.empty(edges.shape[0], np.int32)
    free = node_edge_start[:-1].copy()
    for clause in range(edge_start.shape[0] - 1):
        for edge in range(edge_start[clause], edge_start[clause + 1]):
            node = edges[edge] >> REQUIRED_BITS
            node_edges[free[node]] = clause << REQUIRED_BITS | edges[edge] & REQUIRED_MASK
            free[node] += 1
    return node_edge_start, node_edges, demand


@nb.njit(nogil=True, cache=True)
def copy_graphs(graphs, graph_of, graph_start, graph_node_start, graph_demand, slot_start):  # type: ignore[no-untyped-def]
    """The offsets of each item, and its own copies of the demand and of the literal counts.

    Returns node_start, slot_offset, node_offset, demand and open_literals.
    """
    items, edge_start = graph_of.shape[0], graphs.clause_edge_start
    node_start = np.zeros(items + 1, np.int32)
    slot_offset, node_offset = np.empty(items, np.int32), np.empty(items, np.int32)
    for item in range(items):
        graph = graph_of[item]
        first, last = graph_node_start[graph], graph_node_start[graph + 1]
        node_start[item + 1] = node_start[item] + last - first
        slot_offset[item] = slot_start[item] - graph_start[graph]
        node_offset[item] = node_start[item] - first
    demand = np.empty((3, node_start[items]), np.int32)
    open_literals = np.empty(slot_start[items], np.int32)
    for item in range(items):
        graph = graph_of[item]
        first, last = graph_node_start[graph], graph_node_start[graph + 1]
        demand[:, node_start[item] : node_start[item + 1]] = graph_demand[:, first:last]
        for slot in range(slot_start[item], slot_start[item + 1]):
            clause = slot - slot_offset[item]
            open_literals[slot] = edge_start[clause + 1] - edge_start[clause]
    return node_start, slot_offset, node_offset, demand, open_literals


@nb.njit(nogil=True, cache=True)
def sort_by_rank(slot_start, clauses, rank, visit):  # type: ignore[no-untyped-def]
    """The clauses of each item, sorted by their place in `visit`; rank[visit[n]] is n."""
    ordered = np.empty_like(clauses)
    marked = np.zeros(visit.shape[0], np.bool_)
    for item in range(slot_start.shape[0] - 1):
        start, end = slot_start[item], slot_start[item + 1]
        if (end - start) * DENSE < visit.shape[0]:
            places = np.sort(rank[clauses[start:end]])
            for n in range(places.shape[0]):
                ordered[start + n] = visit[places[n]]
            continue
        for clause in clauses[start:end]:
            marked[rank[clause]] = True
        slot = start
        for place in range(visit.shape[0]):
            if marked[place]:
                marked[place] = False
                ordered[slot] = visit[place]
                slot += 1
    return ordered


@nb.njit(nogil=True, cache=True)
def group_by_predicate(items, nodes, node_predicate, node_offset, rows):  # type: ignore[no-untyped-def]
    """Sort chosen pairs of an item and a node by predicate.

    Returns items, nodes and rows of the batch in that order, where each group starts (one more for
    the end, int64), and the predicate of each group.
    """
    chosen = np.empty(nodes.shape[0], np.int32)
    for n in range(nodes.shape[0]):
        chosen[n] = node_predicate[nodes[n] - node_offset[items[n]]]
    order = np.argsort(chosen, kind="mergesort")
    starts = np.empty(order.shape[0] + 1, np.int64)
    predicates = np.empty(order.shape[0], np.int32)
    count = 0
    for n in range(order.shape[0]):
        predicate = chosen[order[n]]
        if count == 0 or predicate != predicates[count - 1]:
            starts[count] = n
            predicates[count] = predicate
            count += 1
    starts[count] = order.shape[0]
    return items[order], nodes[order], rows[items[order]], starts[: count + 1], predicates[:count]


@nb.njit(nogil=True, cache=True, inline="always")
def is_as_required(answer, required):  # type: ignore[no-untyped-def]
    if required == REQUIRED_KNOWN:
        return answer != FAILED
    return answer == required


@nb.njit(nogil=True, cache=True)
def first_unknown(edges, first, last, node_offset, answers):  # type: ignore[no-untyped-def]
    """The first node of edges[first:last] that is not answered, or -1."""
    for edge in range(first, last):
        node = (edges[edge] >> REQUIRED_BITS) + node_offset
        if answers[node] == UNKNOWN:
            return node
    return -1


@nb.njit(nogil=True, cache=True, inline="always")
def drop_demand(edges, first, last, node_offset, demand):  # type: ignore[no-untyped-def]
    """The clause with edges[first:last] requires nothing of its nodes any more."""
    for edge in range(first, last):
        node = (edges[edge] >> REQUIRED_BITS) + node_offset
        demand[edges[edge] & REQUIRED_MASK, node] -= 1


@nb.njit(nogil=True, cache=True)
def close_slot(slot, verdict, item, graphs, state):  # type: ignore[no-untyped-def]
    """Set the verdict of a slot, which demands nothing of its nodes from now on."""
    state.verdicts[slot] = verdict
    state.open_slots[item] -= 1
    clause, edge_start = slot - state.slot_offset[item], graphs.clause_edge_start
    first, last = edge_start[clause], edge_start[clause + 1]
    drop_demand(graphs.clause_edges, first, last, state.node_offset[item], state.demand)


@nb.njit(nogil=True, cache=True)
def satisfy_slot(slot, item, graphs, state):  # type: ignore[no-untyped-def]
    """Satisfy a slot and drop the other slots of its subscription."""
    close_slot(slot, SATISFIED, item, graphs, state)
    offset = state.slot_offset[item]
    sibling = graphs.sibling[slot - offset] + offset
    while sibling != slot:
        if state.verdicts[sibling] == UNDECIDED:
            close_slot(sibling, DROPPED, item, graphs, state)
        sibling = graphs.sibling[sibling - offset] + offset


@nb.njit(nogil=True, cache=True)
def decide_slots(graphs, state, slots, items, satisfiable):  # type: ignore[no-untyped-def]
    """Apply the check of joint constraints: refute, satisfy, or leave open for more answers."""
    for n in range(slots.shape[0]):
        slot, item = slots[n], items[n]
        if state.verdicts[slot] == UNDECIDED and not satisfiable[n]:
            close_slot(slot, REFUTED, item, graphs, state)
        elif state.verdicts[slot] == UNDECIDED and state.open_literals[slot] == 0:
            satisfy_slot(slot, item, graphs, state)


@nb.njit(nogil=True, cache=True)
def apply_answers(graphs, state, result, joint, joint_slots):  # type: ignore[no-untyped-def]
    """Apply the answers of one round to all slots that contain their nodes.

    joint        int32 [clause]  the joint constraint of each clause of the table, or -1
    joint_slots  int32 [slot]    out: the slots whose joint constraint must be checked
    returns      how many of those there are

    Precondition: the nodes of one item share no slot with a joint constraint.
    """
    items, nodes, answered, true = result
    # Taking an array out of a tuple counts a reference, which is too slow within the loops.
    node_edge_start, node_edges = graphs.node_edge_start, graphs.node_edges
    clause_edge_start, clause_edges = graphs.clause_edge_start, graphs.clause_edges
    open_slots, demand = state.open_slots, state.demand
    verdicts, open_literals, clause_of = state.verdicts, state.open_literals, state.clause_of
    answers, node_offsets, slot_offsets = state.answers, state.node_offset, state.slot_offset
    unit_slots, unit_count, slot_start = state.unit_slots, state.unit_count, state.slot_start
    count = 0
    for n in range(nodes.shape[0]):
        node, item = nodes[n], items[n]
        answer = np.int8(true[n]) if answered[n] else np.int8(FAILED)
        answers[node] = answer
        node_offset, slot_offset = node_offsets[item], slot_offsets[item]
        graph_node = node - node_offset
        for edge in range(node_edge_start[graph_node], node_edge_start[graph_node + 1]):
            slot = (node_edges[edge] >> REQUIRED_BITS) + slot_offset
            if verdicts[slot] != UNDECIDED:
                continue
            if not is_as_required(answer, node_edges[edge] & REQUIRED_MASK):
                verdicts[slot] = REFUTED
                open_slots[item] -= 1
                clause = slot - slot_offset
                first, last = clause_edge_start[clause], clause_edge_start[clause + 1]
                drop_demand(clause_edges, first, last, node_offset, demand)
                continue
            open_literals[slot] -= 1
            if joint[clause_of[slot]] >= 0:
                joint_slots[count] = slot
                count += 1
            elif open_literals[slot] == 0:
                satisfy_slot(slot, item, graphs, state)
            if open_literals[slot] == 1:
                unit_slots[slot_start[item] + unit_count[item]] = slot
                unit_count[item] += 1
    return count


@nb.njit(nogil=True, cache=True)
def refute_by_tests(graphs, state, item, node, solutions, tests):  # type: ignore[no-untyped-def]
    """Refute the slots of a node whose value tests no solution passes.

    solutions  float64 [solution, column]
    tests      ValueTests
    """
    graph_node, slot_offset = node - state.node_offset[item], state.slot_offset[item]
    predicate = graphs.node_predicate[graph_node]
    for edge in range(graphs.node_edge_start[graph_node], graphs.node_edge_start[graph_node + 1]):
        slot = (graphs.node_edges[edge] >> REQUIRED_BITS) + slot_offset
        if state.verdicts[slot] != UNDECIDED:
            continue
        clause = state.clause_of[slot]
        for literal in range(tests.clause_start[clause], tests.clause_start[clause + 1]):
            if tests.predicates[literal] == predicate:
                if not has_passing_solution(solutions, literal, tests):
                    close_slot(slot, REFUTED, item, graphs, state)
                break
