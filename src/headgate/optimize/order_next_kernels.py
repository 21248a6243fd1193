"""Which node comes next in a lane: naive, Sequential, chains in order, and adaptive.

Each takes the lanes to look at and returns a node for each of them, or −1 where nothing is left to
ask; the adaptive one returns several for a lane where they have nothing to do with each other. What
a lane has come to is kept in `place` (a clause) and `edge`, or in buckets of nodes.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.optimize.order_lane_kernels import (
    ASKED,
    DROPPED,
    UNDECIDED,
    UNKNOWN,
    WANT_BITS,
    WANT_MASK,
    is_as_wanted,
)

MANTISSA_BITS = 4
BUCKET_SHIFT = 23 - MANTISSA_BITS
BUCKETS = 255 << MANTISSA_BITS
WIDTH = 64
"""So many nodes are asked at a time for a lane, at most …"""
NARROW = 128
"""… and each of them is wanted by so few clauses that looking at them is cheap."""


@nb.njit(nogil=True, cache=True)
def next_naive(  # type: ignore[no-untyped-def]
    lanes, place, lane_start, shifts, edge_start, edges, answers, verdicts
):
    """Clause by clause, each until a predicate is not as wanted, whatever is known of the rest."""
    found = np.full(lanes.shape[0], -1, np.int32)
    for n in range(lanes.shape[0]):
        lane = lanes[n]
        while place[lane] < lane_start[lane + 1] and found[n] < 0:
            clause = place[lane] - shifts[lane, 0]
            if verdicts[place[lane]] != DROPPED:
                for edge in range(edge_start[clause], edge_start[clause + 1]):
                    node = (edges[edge] >> WANT_BITS) + shifts[lane, 1]
                    if answers[node] == UNKNOWN:
                        found[n] = node
                        break
                    if not is_as_wanted(answers[node], edges[edge] & WANT_MASK):
                        break
            if found[n] < 0:
                place[lane] += 1
    return found


@nb.njit(nogil=True, cache=True)
def next_sequential(  # type: ignore[no-untyped-def]
    lanes, place, edge, lane_start, shifts, edge_start, edges, answers, verdicts, wanted
):
    """All predicates of an undecided clause that some undecided clause wants, then the next one."""
    found = np.full(lanes.shape[0], -1, np.int32)
    for n in range(lanes.shape[0]):
        lane = lanes[n]
        end = lane_start[lane + 1]
        while place[lane] < end and found[n] < 0:
            at = place[lane]
            if edge[lane] < edge_start[at - shifts[lane, 0] + 1]:
                node = (edges[edge[lane]] >> WANT_BITS) + shifts[lane, 1]
                edge[lane] += 1
                if answers[node] == UNKNOWN and wanted[:, node].sum() > 0:
                    found[n] = node
                continue
            at += 1
            while at < end and verdicts[at] != UNDECIDED:
                at += 1
            place[lane] = at
            edge[lane] = edge_start[at - shifts[lane, 0]]
    return found


@nb.njit(nogil=True, cache=True)
def first_unknown(at, lane, shifts, edge_start, edges, answers):  # type: ignore[no-untyped-def]
    clause = at - shifts[lane, 0]
    for edge in range(edge_start[clause], edge_start[clause + 1]):
        node = (edges[edge] >> WANT_BITS) + shifts[lane, 1]
        if answers[node] == UNKNOWN:
            return node
    return -1


@nb.njit(nogil=True, cache=True)
def next_in_chains(  # type: ignore[no-untyped-def]
    lanes, place, lane_start, shifts, edge_start, edges, answers, verdicts
):
    """The topmost open node of the first undecided chain."""
    found = np.full(lanes.shape[0], -1, np.int32)
    for n in range(lanes.shape[0]):
        lane = lanes[n]
        while place[lane] < lane_start[lane + 1] and verdicts[place[lane]] != UNDECIDED:
            place[lane] += 1
        if place[lane] < lane_start[lane + 1]:
            found[n] = first_unknown(place[lane], lane, shifts, edge_start, edges, answers)
    return found


@nb.njit(nogil=True, cache=True, inline="always")
def bucket_of(node, gain, wanted):  # type: ignore[no-untyped-def]
    """The bucket of a node's score: how many clauses an answer decides, for what it costs.

    The bits of a positive float, read as an integer, have its order. The upper ones tell scores
    apart that differ by 1 in 2 ** MANTISSA_BITS. 0 is the bucket of nodes that nobody wants.
    """
    score = np.float32(
        wanted[0, node] * gain[0] + wanted[1, node] * gain[1] + wanted[2, node] * gain[2]
    )
    return score.view(np.int32) >> BUCKET_SHIFT


@nb.njit(nogil=True, cache=True)
def fill_buckets(  # type: ignore[no-untyped-def]
    node_start, node_predicate, shifts, wanted, gains, following, heads, tops
):
    """Every node into the list of its bucket."""
    heads[:] = -1
    tops[:] = 0
    for lane in range(node_start.shape[0] - 1):
        for node in range(node_start[lane], node_start[lane + 1]):
            bucket = bucket_of(node, gains[node_predicate[node - shifts[lane, 1]]], wanted)
            following[node] = heads[lane, bucket]
            heads[lane, bucket] = node
            tops[lane] = max(tops[lane], bucket)


@nb.njit(nogil=True, cache=True)
def next_adaptive(  # type: ignore[no-untyped-def]
    lanes,
    following,  # the next node in the same bucket
    heads,  # [lane, bucket]: the first node
    tops,  # the highest bucket with a node
    marks,  # of a graph's clauses: the last choice in which a node of theirs was
    choice,  # the number of the last choice
    gains,
    lane_start,
    shifts,
    edge_start,
    edges,
    back_start,
    backs,
    node_predicate,
    wanted,
    answers,
    verdicts,
    open_count,
    forced,
    forced_count,
):
    """What must be asked anyway; otherwise the node with the greatest score, and those behind it.

    Scores only decrease. So a node may lie in too high a bucket, never in too low a one, and is put
    where it belongs when it comes up. For the same reason nodes that share no undecided clause with
    the first one, and come next to it, will come next whatever its answer is.
    """
    found_lanes = np.empty(lanes.shape[0] * WIDTH, np.int32)
    found = np.empty(lanes.shape[0] * WIDTH, np.int32)
    count = 0
    for n in range(lanes.shape[0]):
        lane = lanes[n]
        if open_count[lane] == 0:
            continue
        first = count
        while forced_count[lane] > 0 and count < first + WIDTH:
            forced_count[lane] -= 1
            at = forced[lane_start[lane] + forced_count[lane]]
            if verdicts[at] == UNDECIDED:
                node = first_unknown(at, lane, shifts, edge_start, edges, answers)
                if node >= 0:  # not asked for another clause in this round
                    answers[node] = ASKED
                    found[count] = node
                    found_lanes[count] = lane
                    count += 1
        if count > first:
            continue
        choice[0] += 1
        while tops[lane] > 0 and count < first + WIDTH:
            node = heads[lane, tops[lane]]
            if node < 0:
                tops[lane] -= 1
                continue
            clauses = wanted[0, node] + wanted[1, node] + wanted[2, node]
            if clauses == 0 or answers[node] != UNKNOWN:
                heads[lane, tops[lane]] = following[node]
                continue
            own = node - shifts[lane, 1]
            bucket = bucket_of(node, gains[node_predicate[own]], wanted)
            if bucket != tops[lane]:
                heads[lane, tops[lane]] = following[node]
                following[node] = heads[lane, bucket]
                heads[lane, bucket] = node
                continue
            span = backs[back_start[own] : back_start[own + 1]]
            if count > first and (
                clauses > NARROW or is_marked(span, lane, shifts, verdicts, marks, choice[0])
            ):
                break
            heads[lane, tops[lane]] = following[node]
            found[count] = node
            found_lanes[count] = lane
            count += 1
            if clauses > NARROW:
                break
            for back in span:
                marks[back >> WANT_BITS] = choice[0]
    return found_lanes[:count], found[:count]


@nb.njit(nogil=True, cache=True, inline="always")
def is_marked(backs, lane, shifts, verdicts, marks, choice):  # type: ignore[no-untyped-def]
    """Whether an undecided clause has a node that is chosen already."""
    for back in backs:
        clause = back >> WANT_BITS
        if marks[clause] == choice and verdicts[clause + shifts[lane, 0]] == UNDECIDED:
            return True
    return False
