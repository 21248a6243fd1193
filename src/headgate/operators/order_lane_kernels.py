"""The hot loops of evaluation: lanes are laid out, and answers are applied to them.

An edge is packed in an integer: the place it leads to, shifted by two bits, and what is wanted
there (FALSE, TRUE, KNOWN). Edges lead to places of a graph, which several lanes may share; a lane's
own place is that of its graph plus the lane's shift. See order_lanes.py for the picture.

Cost: layout is two passes over the edges of a graph. In an item's whole evaluation each edge is
followed at most twice: when its predicate is answered, and when its clause is decided.
"""

from __future__ import annotations

import numba as nb
import numpy as np

ASKED, UNKNOWN, ANSWER_FALSE, ANSWER_TRUE, FAILED = -2, -1, 0, 1, 2
"""Answers of a node. FALSE and TRUE are what clauses want."""

UNDECIDED, SATISFIED, REFUSED, DROPPED = 0, 1, 2, 3
"""Verdicts on a clause; one is dropped when another clause of its subscription is satisfied."""

WANT_BITS, WANT_MASK, WANT_KNOWN = 2, 3, 2


@nb.njit(nogil=True, cache=True)
def find_graphs(lane_start, clause_of):  # type: ignore[no-untyped-def]
    """The graph of each lane. Lanes one after the other with equal clauses have the same one."""
    lanes = lane_start.shape[0] - 1
    graph_of = np.empty(lanes, np.int32)
    graphs = -1
    for lane in range(lanes):
        begin, width = lane_start[lane], lane_start[lane + 1] - lane_start[lane]
        same = lane > 0 and width == begin - lane_start[lane - 1]
        at = begin
        while same and at < begin + width:
            same = clause_of[at] == clause_of[at - width]
            at += 1
        graphs += not same
        graph_of[lane] = graphs
    return graph_of


@nb.njit(nogil=True, cache=True)
def lay_out(  # type: ignore[no-untyped-def]
    graph_start,  # the clauses of each graph …
    clause_of,  # … in the order in which they are visited
    owner,
    clause_start,
    predicates,
    wants,
    predicate_count,
    owner_count,
):
    """Edges from clauses to nodes, the nodes of each graph, and rings of clauses with one owner."""
    count = clause_of.shape[0]
    edge_start = np.zeros(count + 1, np.int32)
    for at in range(count):
        clause = clause_of[at]
        edge_start[at + 1] = edge_start[at] + clause_start[clause + 1] - clause_start[clause]
    edges = np.empty(edge_start[count], np.int32)
    node_predicate = np.empty(edge_start[count], np.int32)
    node_start = np.zeros(graph_start.shape[0], np.int32)
    ring = np.arange(count).astype(np.int32)
    node_of = np.full(predicate_count, -1, np.int32)
    first_of = np.full(owner_count, -1, np.int32)
    nodes = 0
    for graph in range(graph_start.shape[0] - 1):
        for at in range(graph_start[graph], graph_start[graph + 1]):
            clause = clause_of[at]
            edge = edge_start[at]
            for literal in range(clause_start[clause], clause_start[clause + 1]):
                predicate = predicates[literal]
                # What is below the graph's first node was left there by an earlier graph.
                if node_of[predicate] < node_start[graph]:
                    node_of[predicate] = nodes
                    node_predicate[nodes] = predicate
                    nodes += 1
                edges[edge] = node_of[predicate] << WANT_BITS | wants[literal]
                edge += 1
            first = first_of[owner[clause]]
            if first >= graph_start[graph]:
                ring[at] = ring[first]
                ring[first] = at
            else:
                first_of[owner[clause]] = at
        node_start[graph + 1] = nodes
    return edge_start, edges, node_start, node_predicate[:nodes].copy(), ring


@nb.njit(nogil=True, cache=True)
def turn_around(edge_start, edges, node_count):  # type: ignore[no-untyped-def]
    """Edges from nodes to clauses, and for each node how many clauses want what of it."""
    wanted = np.zeros((3, node_count), np.int32)
    for edge in edges:
        wanted[edge & WANT_MASK, edge >> WANT_BITS] += 1
    back_start = np.zeros(node_count + 1, np.int32)
    for node in range(node_count):
        back_start[node + 1] = back_start[node] + wanted[:, node].sum()
    backs = np.empty(edges.shape[0], np.int32)
    free = back_start[:-1].copy()
    for at in range(edge_start.shape[0] - 1):
        for edge in range(edge_start[at], edge_start[at + 1]):
            node = edges[edge] >> WANT_BITS
            backs[free[node]] = at << WANT_BITS | edges[edge] & WANT_MASK
            free[node] += 1
    return back_start, backs, wanted


@nb.njit(nogil=True, cache=True)
def copy_graphs(  # type: ignore[no-untyped-def]
    graph_of, graph_start, graph_node_start, graph_wanted, edge_start, lane_start
):
    """What each lane has for itself, and the shifts of its clauses and nodes from its graph's."""
    lanes = graph_of.shape[0]
    node_start = np.zeros(lanes + 1, np.int32)
    shifts = np.empty((lanes, 2), np.int32)
    for lane in range(lanes):
        graph = graph_of[lane]
        first, last = graph_node_start[graph], graph_node_start[graph + 1]
        node_start[lane + 1] = node_start[lane] + last - first
        shifts[lane, 0] = lane_start[lane] - graph_start[graph]
        shifts[lane, 1] = node_start[lane] - first
    wanted = np.empty((3, node_start[lanes]), np.int32)
    left = np.empty(lane_start[lanes], np.int32)
    for lane in range(lanes):
        graph = graph_of[lane]
        first, last = graph_node_start[graph], graph_node_start[graph + 1]
        wanted[:, node_start[lane] : node_start[lane + 1]] = graph_wanted[:, first:last]
        for at in range(lane_start[lane], lane_start[lane + 1]):
            clause = at - shifts[lane, 0]
            left[at] = edge_start[clause + 1] - edge_start[clause]
    return node_start, shifts, wanted, left


@nb.njit(nogil=True, cache=True)
def group(lanes, nodes, node_predicate, shifts, rows):  # type: ignore[no-untyped-def]
    """Lanes together with those that want the same predicate.

    Returns lanes, nodes, rows of the batch, where each group starts, one more for the end, and the
    predicate of each group.
    """
    wanted = np.empty(nodes.shape[0], np.int32)
    for n in range(nodes.shape[0]):
        wanted[n] = node_predicate[nodes[n] - shifts[lanes[n], 1]]
    order = np.argsort(wanted, kind="mergesort")
    starts = np.empty(order.shape[0] + 1, np.int64)
    predicates = np.empty(order.shape[0], np.int32)
    count = 0
    for n in range(order.shape[0]):
        predicate = wanted[order[n]]
        if count == 0 or predicate != predicates[count - 1]:
            starts[count] = n
            predicates[count] = predicate
            count += 1
    starts[count] = order.shape[0]
    return lanes[order], nodes[order], rows[lanes[order]], starts[: count + 1], predicates[:count]


@nb.njit(nogil=True, cache=True)
def tally(  # type: ignore[no-untyped-def]
    predicates, starts, answered, true, seconds, operators, counts, times, news, forget
):
    """Add up what groups of answers say of their predicates: counts[answered, true] and times; and
    the same again as news."""
    for n in range(predicates.shape[0]):
        predicate = predicates[n]
        operator = operators[predicate]
        for at in range(starts[n], starts[n + 1]):
            counts[predicate, 0] += answered[at]
            counts[predicate, 1] += answered[at] and true[at]
            news[predicate, 0] += answered[at]
            news[predicate, 1] += answered[at] and true[at]
        news[predicate, 2] += seconds[n]
        times[operator, 0] += starts[n + 1] - starts[n]
        times[operator, 1] += seconds[n]
        if counts[predicate, 0] > forget:
            counts[predicate] /= 2
        if times[operator, 0] > forget:
            times[operator] /= 2


@nb.njit(nogil=True, cache=True, inline="always")
def is_as_wanted(answer, want):  # type: ignore[no-untyped-def]
    if want == WANT_KNOWN:
        return answer != FAILED
    return answer == want


@nb.njit(nogil=True, cache=True, inline="always")
def close(  # type: ignore[no-untyped-def]
    at, verdict, lane, shifts, verdicts, open_count, edge_start, edges, wanted
):
    """The clause is decided, and wants nothing any more."""
    verdicts[at] = verdict
    open_count[lane] -= 1
    clause = at - shifts[lane, 0]
    for edge in range(edge_start[clause], edge_start[clause + 1]):
        node = (edges[edge] >> WANT_BITS) + shifts[lane, 1]
        wanted[edges[edge] & WANT_MASK, node] -= 1


@nb.njit(nogil=True, cache=True)
def satisfy(  # type: ignore[no-untyped-def]
    at, lane, shifts, verdicts, open_count, edge_start, edges, wanted, ring
):
    """The clause is satisfied; the other clauses of its subscription are dropped."""
    close(at, SATISFIED, lane, shifts, verdicts, open_count, edge_start, edges, wanted)
    other = ring[at - shifts[lane, 0]] + shifts[lane, 0]
    while other != at:
        if verdicts[other] == UNDECIDED:
            close(other, DROPPED, lane, shifts, verdicts, open_count, edge_start, edges, wanted)
        other = ring[other - shifts[lane, 0]] + shifts[lane, 0]


@nb.njit(nogil=True, cache=True)
def decide_all(  # type: ignore[no-untyped-def]
    places,
    lanes,
    satisfied,
    left,
    shifts,
    verdicts,
    open_count,
    edge_start,
    edges,
    wanted,
    ring,
):
    """Clauses whose joint part was judged: refused, satisfied, or waiting for more answers."""
    for n in range(places.shape[0]):
        at, lane = places[n], lanes[n]
        if verdicts[at] == UNDECIDED and not satisfied[n]:
            close(at, REFUSED, lane, shifts, verdicts, open_count, edge_start, edges, wanted)
        elif verdicts[at] == UNDECIDED and left[at] == 0:
            satisfy(at, lane, shifts, verdicts, open_count, edge_start, edges, wanted, ring)


@nb.njit(nogil=True, cache=True)
def holds(value, relation, constant):  # type: ignore[no-untyped-def]
    """The relations in the order of order_value_tests.RELATIONS; NaN is in no relation."""
    if np.isnan(value):
        return False
    if relation == 0:
        return value == constant
    if relation == 1:
        return value != constant
    if relation == 2:
        return value < constant
    if relation == 3:
        return value <= constant
    if relation == 4:
        return value > constant
    return value >= constant


@nb.njit(nogil=True, cache=True)
def passes(solutions, tests, columns, relations, constants):  # type: ignore[no-untyped-def]
    """Whether one solution passes all tests of a literal."""
    for solution in range(solutions.shape[0]):
        found = True
        for test in range(tests[0], tests[1]):
            value = solutions[solution, columns[test]]
            if not holds(value, relations[test], constants[test]):
                found = False
                break
        if found:
            return True
    return False


@nb.njit(nogil=True, cache=True)
def apply_answers(  # type: ignore[no-untyped-def]
    nodes,
    answered,
    true,
    lane_of,  # of each answer
    shifts,
    lane_start,
    clause_of,
    joint,
    edge_start,
    edges,
    back_start,
    backs,
    ring,
    wanted,
    answers,
    left,
    verdicts,
    open_count,
    forced,  # clauses with one open predicate: a stack for each lane …
    forced_count,  # … and its height
    judged,  # out: clauses whose joint part must be judged
):
    """Answers of one round. Those of one lane are to nodes that share no clause which needs to be
    judged. Returns how many clauses are to be judged."""
    count = 0
    for n in range(nodes.shape[0]):
        node, lane = nodes[n], lane_of[n]
        answer = np.int8(true[n]) if answered[n] else np.int8(FAILED)
        answers[node] = answer
        own = node - shifts[lane, 1]
        for back in range(back_start[own], back_start[own + 1]):
            at, want = (backs[back] >> WANT_BITS) + shifts[lane, 0], backs[back] & WANT_MASK
            if verdicts[at] != UNDECIDED:
                continue
            if not is_as_wanted(answer, want):
                close(at, REFUSED, lane, shifts, verdicts, open_count, edge_start, edges, wanted)
                continue
            left[at] -= 1
            if joint[clause_of[at]] >= 0:
                judged[count] = at
                count += 1
            elif left[at] == 0:
                satisfy(at, lane, shifts, verdicts, open_count, edge_start, edges, wanted, ring)
            if left[at] == 1:
                forced[lane_start[lane] + forced_count[lane]] = at
                forced_count[lane] += 1
    return count


@nb.njit(nogil=True, cache=True)
def refuse_by_tests(  # type: ignore[no-untyped-def]
    node,
    lane,
    solutions,
    shifts,
    clause_of,
    node_predicate,
    clause_start,
    predicates,
    test_start,
    tests,
    edge_start,
    edges,
    back_start,
    backs,
    wanted,
    verdicts,
    open_count,
):
    """Refuse the clauses of which no solution of this answer passes the tests."""
    columns, relations, constants = tests
    own = node - shifts[lane, 1]
    for back in range(back_start[own], back_start[own + 1]):
        at = (backs[back] >> WANT_BITS) + shifts[lane, 0]
        if verdicts[at] != UNDECIDED:
            continue
        clause = clause_of[at]
        for literal in range(clause_start[clause], clause_start[clause + 1]):
            if predicates[literal] == node_predicate[own]:
                span = (test_start[literal], test_start[literal + 1])
                if span[0] < span[1] and not passes(solutions, span, columns, relations, constants):
                    close(
                        at, REFUSED, lane, shifts, verdicts, open_count, edge_start, edges, wanted
                    )
                break
