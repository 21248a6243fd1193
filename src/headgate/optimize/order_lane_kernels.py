"""The hot loops of evaluation: lanes are laid out, and answers are applied to them.

An edge is packed in an integer: the place it leads to, shifted by two bits, and what is wanted
there (FALSE, TRUE, KNOWN). All places are counted over all lanes, so that a kernel needs no lane to
follow an edge. See order_lanes.py for the picture.

Cost: layout is two passes over the edges, or a copy where a lane has the clauses of the last one.
An answer is a pass over the clauses of its node. Deciding a clause writes one byte and tells
nobody: whoever counts undecided clauses looks at them. Rejected: counts of all nodes kept up to
date, which is four writes to distant places for each clause decided, and took four times as long.
"""

from __future__ import annotations

import numba as nb
import numpy as np

UNKNOWN, ANSWER_FALSE, ANSWER_TRUE, FAILED = -1, 0, 1, 2
"""Answers of a node. FALSE and TRUE are what clauses want."""

UNDECIDED, SATISFIED, REFUSED, DROPPED = 0, 1, 2, 3
"""Verdicts on a clause; one is dropped when another clause of its subscription is satisfied."""

WANT_BITS, WANT_MASK, WANT_KNOWN = 2, 3, 2


@nb.njit(nogil=True, cache=True)
def lay_out(  # type: ignore[no-untyped-def]
    lane_start,  # the clauses of each lane …
    clause_of,  # … in the order in which they are visited
    owner,
    clause_start,
    predicates,
    wants,
    predicate_count,
    owner_count,
):
    """Edges from clauses to nodes, the nodes of each lane, and rings of clauses with one owner."""
    count = clause_of.shape[0]
    edge_start = np.zeros(count + 1, np.int32)
    for at in range(count):
        clause = clause_of[at]
        edge_start[at + 1] = edge_start[at] + clause_start[clause + 1] - clause_start[clause]
    edges = np.empty(edge_start[count], np.int32)
    node_predicate = np.empty(edge_start[count], np.int32)
    node_start = np.zeros(lane_start.shape[0], np.int32)
    ring = np.arange(count).astype(np.int32)
    node_of = np.full(predicate_count, -1, np.int32)
    first_of = np.full(owner_count, -1, np.int32)
    nodes = 0
    for lane in range(lane_start.shape[0] - 1):
        begin, end = lane_start[lane], lane_start[lane + 1]
        if is_like_the_last(lane, lane_start, clause_of):
            width = end - begin
            before = node_start[lane] - node_start[lane - 1]
            for at in range(begin, end):
                ring[at] = ring[at - width] + width
            length = edge_start[end] - edge_start[begin]
            for edge in range(edge_start[begin], edge_start[end]):
                edges[edge] = edges[edge - length] + (before << WANT_BITS)
            node_predicate[nodes : nodes + before] = node_predicate[nodes - before : nodes]
            nodes += before
            node_start[lane + 1] = nodes
            continue
        for at in range(begin, end):
            clause = clause_of[at]
            edge = edge_start[at]
            for literal in range(clause_start[clause], clause_start[clause + 1]):
                predicate = predicates[literal]
                # What is below the lane's first node was left there by an earlier lane.
                if node_of[predicate] < node_start[lane]:
                    node_of[predicate] = nodes
                    node_predicate[nodes] = predicate
                    nodes += 1
                edges[edge] = node_of[predicate] << WANT_BITS | wants[literal]
                edge += 1
            first = first_of[owner[clause]]
            if first >= begin:
                ring[at] = ring[first]
                ring[first] = at
            else:
                first_of[owner[clause]] = at
        node_start[lane + 1] = nodes
    return edge_start, edges, node_start, node_predicate[:nodes].copy(), ring


@nb.njit(nogil=True, cache=True)
def is_like_the_last(lane, lane_start, clause_of):  # type: ignore[no-untyped-def]
    """Whether the lane has the clauses of the one before it, as where no clause has a guard."""
    begin, end = lane_start[lane], lane_start[lane + 1]
    if lane == 0 or end - begin != begin - lane_start[lane - 1]:
        return False
    width = end - begin
    for at in range(begin, end):  # noqa: SIM110 - all() is no kernel
        if clause_of[at] != clause_of[at - width]:
            return False
    return True


@nb.njit(nogil=True, cache=True)
def turn_around(lane_start, clause_of, edge_start, edges, node_start):  # type: ignore[no-untyped-def]
    """Edges from nodes to clauses, and for each node how many clauses want what of it."""
    node_count = node_start[-1]
    wanted = np.zeros((3, node_count), np.int32)
    back_start = np.zeros(node_count + 1, np.int32)
    backs = np.empty(edges.shape[0], np.int32)
    free = np.empty(node_count, np.int32)
    for lane in range(lane_start.shape[0] - 1):
        begin, end = lane_start[lane], lane_start[lane + 1]
        first, last = node_start[lane], node_start[lane + 1]
        if is_like_the_last(lane, lane_start, clause_of):
            width, length = end - begin, edge_start[end] - edge_start[begin]
            wanted[:, first:last] = wanted[:, 2 * first - last : first]
            for node in range(first, last):
                back_start[node + 1] = back_start[node + 1 - (last - first)] + length
            for back in range(edge_start[begin], edge_start[end]):
                backs[back] = backs[back - length] + (width << WANT_BITS)
            continue
        for edge in range(edge_start[begin], edge_start[end]):
            wanted[edges[edge] & WANT_MASK, edges[edge] >> WANT_BITS] += 1
        for node in range(first, last):
            free[node] = back_start[node]
            back_start[node + 1] = back_start[node] + wanted[:, node].sum()
        for at in range(begin, end):
            for edge in range(edge_start[at], edge_start[at + 1]):
                node = edges[edge] >> WANT_BITS
                backs[free[node]] = at << WANT_BITS | edges[edge] & WANT_MASK
                free[node] += 1
    return back_start, backs, wanted


@nb.njit(nogil=True, cache=True)
def count_wanted(node, back_start, back_end, backs, verdicts):  # type: ignore[no-untyped-def]
    """How many undecided clauses want the node false, true, known; decided ones are cut out."""
    false, true, known = 0, 0, 0
    end = back_start[node]
    for back in range(back_start[node], back_end[node]):
        edge = backs[back]
        if verdicts[edge >> WANT_BITS] == UNDECIDED:
            backs[end] = edge
            end += 1
            want = edge & WANT_MASK
            false += want == 0
            true += want == 1
            known += want == WANT_KNOWN
    back_end[node] = end
    return false, true, known


@nb.njit(nogil=True, cache=True)
def is_wanted(node, back_start, back_end, backs, verdicts):  # type: ignore[no-untyped-def]
    for back in range(back_start[node], back_end[node]):
        if verdicts[backs[back] >> WANT_BITS] == UNDECIDED:
            return True
    return False


@nb.njit(nogil=True, cache=True)
def group(lanes, nodes, node_predicate, rows):  # type: ignore[no-untyped-def]
    """Lanes that go on, together with those that want the same predicate.

    Returns lanes, nodes, rows of the batch, and where each group starts, one more for the end.
    """
    going_on = np.flatnonzero(nodes >= 0)
    order = going_on[np.argsort(node_predicate[nodes[going_on]], kind="mergesort")]
    starts = np.empty(order.shape[0] + 1, np.int64)
    count = 0
    before = -1
    for n in range(order.shape[0]):
        predicate = node_predicate[nodes[order[n]]]
        if predicate != before:
            starts[count] = n
            count += 1
            before = predicate
    starts[count] = order.shape[0]
    return lanes[order], nodes[order], rows[lanes[order]], starts[: count + 1]


@nb.njit(nogil=True, cache=True)
def tally(  # type: ignore[no-untyped-def]
    predicates, starts, answered, true, seconds, operators, counts, times, forget
):
    """Add up what groups of answers say of their predicates: counts[answered, true] and times."""
    for n in range(predicates.shape[0]):
        predicate = predicates[n]
        operator = operators[predicate]
        for at in range(starts[n], starts[n + 1]):
            counts[predicate, 0] += answered[at]
            counts[predicate, 1] += answered[at] and true[at]
        times[operator, 0] += starts[n + 1] - starts[n]
        times[operator, 1] += seconds[n]
        if counts[predicate, 0] > forget:
            counts[predicate] /= 2
        if times[operator, 0] > forget:
            times[operator] /= 2


@nb.njit(nogil=True, cache=True)
def is_as_wanted(answer, want):  # type: ignore[no-untyped-def]
    if want == WANT_KNOWN:
        return answer != FAILED
    return answer == want


@nb.njit(nogil=True, cache=True)
def satisfy(at, lane, verdicts, ring, open_count):  # type: ignore[no-untyped-def]
    """The clause is satisfied; the other clauses of its subscription are dropped."""
    verdicts[at] = SATISFIED
    open_count[lane] -= 1
    other = ring[at]
    while other != at:
        if verdicts[other] == UNDECIDED:
            verdicts[other] = DROPPED
            open_count[lane] -= 1
        other = ring[other]


@nb.njit(nogil=True, cache=True)
def refuse(at, lane, verdicts, open_count):  # type: ignore[no-untyped-def]
    verdicts[at] = REFUSED
    open_count[lane] -= 1


@nb.njit(nogil=True, cache=True)
def decide_all(  # type: ignore[no-untyped-def]
    places, lanes, satisfied, left, verdicts, ring, open_count
):
    """Clauses whose joint part was judged: refused, satisfied, or waiting for more answers."""
    for n in range(places.shape[0]):
        at = places[n]
        if verdicts[at] == UNDECIDED and not satisfied[n]:
            refuse(at, lanes[n], verdicts, open_count)
        elif verdicts[at] == UNDECIDED and left[at] == 0:
            satisfy(at, lanes[n], verdicts, ring, open_count)


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
    answers,
    left,
    verdicts,
    forced,  # clauses with one open predicate: a stack for each lane …
    forced_count,  # … and its height
    lane_of,  # of each answer
    lane_start,
    clause_of,
    joint,
    back_start,
    back_end,
    backs,
    ring,
    open_count,
    judged,  # out: clauses whose joint part must be judged
):
    """Answers of one round, one for a lane at most. Returns how many clauses are to be judged."""
    count = 0
    for n in range(nodes.shape[0]):
        node, lane = nodes[n], lane_of[n]
        answer = np.int8(true[n]) if answered[n] else np.int8(FAILED)
        answers[node] = answer
        for back in range(back_start[node], back_end[node]):
            at, want = backs[back] >> WANT_BITS, backs[back] & WANT_MASK
            if verdicts[at] != UNDECIDED:
                continue
            if not is_as_wanted(answer, want):
                refuse(at, lane, verdicts, open_count)
                continue
            left[at] -= 1
            if joint[clause_of[at]] >= 0:
                judged[count] = at
                count += 1
            elif left[at] == 0:
                satisfy(at, lane, verdicts, ring, open_count)
            if left[at] == 1:
                forced[lane_start[lane] + forced_count[lane]] = at
                forced_count[lane] += 1
    return count


@nb.njit(nogil=True, cache=True)
def refuse_by_tests(  # type: ignore[no-untyped-def]
    node,
    lane,
    predicate,
    solutions,
    verdicts,
    open_count,
    clause_of,
    clause_start,
    predicates,
    test_start,
    tests,
    back_start,
    back_end,
    backs,
):
    """Refuse the clauses of which no solution of this answer passes the tests."""
    columns, relations, constants = tests
    for back in range(back_start[node], back_end[node]):
        at = backs[back] >> WANT_BITS
        if verdicts[at] != UNDECIDED:
            continue
        clause = clause_of[at]
        for literal in range(clause_start[clause], clause_start[clause + 1]):
            if predicates[literal] == predicate:
                own = (test_start[literal], test_start[literal + 1])
                if own[0] < own[1] and not passes(solutions, own, columns, relations, constants):
                    refuse(at, lane, verdicts, open_count)
                break
