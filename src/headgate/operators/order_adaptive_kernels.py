"""Which nodes come next in a lane by the adaptive order: what must be asked, or what decides most.

The nodes of a lane lie in buckets of nearly equal scores:

    bucket    4     3     2     1        heads: the first node of each; following: the next one
              n7    n2    n9             tops: the highest that has one
                    n5    n4

Scores only decrease. So a node may lie in too high a bucket, never in too low a one, and is put
where it belongs when it comes up. For the same reason nodes that come next to the first one, and
share no undecided clause with it or with each other, will come next whatever its answer is: they
are chosen together. (If an answer makes a clause that must be asked, that would come before them.)
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.operators.order_lane_kernels import ASKED, UNDECIDED, UNKNOWN, WANT_BITS
from headgate.operators.order_next_kernels import first_unknown

MANTISSA_BITS = 4
BUCKET_SHIFT = 23 - MANTISSA_BITS
BUCKETS = 255 << MANTISSA_BITS
WIDTH = 64
"""So many nodes are asked at a time for a lane, at most …"""
NARROW = 128
"""… and each of them is wanted by so few clauses that looking at them is cheap."""


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
    following,
    heads,  # [lane, bucket]
    tops,
    marks,
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
    """Pairs of a lane and a node: what must be asked anyway, otherwise those that decide most."""
    found_lanes = np.empty(lanes.shape[0] * WIDTH, np.int32)
    found = np.empty(lanes.shape[0] * WIDTH, np.int32)
    end = 0
    for n in range(lanes.shape[0]):
        lane, first = lanes[n], end
        if open_count[lane] == 0:
            continue
        own = found[first : first + WIDTH]
        stack = forced[lane_start[lane] : lane_start[lane + 1]]
        end += choose_forced(
            own, lane, stack, forced_count, shifts, edge_start, edges, answers, verdicts
        )
        if end == first:
            choice[0] += 1
            end += choose_best(
                own,
                lane,
                following,
                heads[lane],
                tops,
                marks,
                choice[0],
                gains,
                shifts,
                back_start,
                backs,
                node_predicate,
                wanted,
                answers,
                verdicts,
            )
        found_lanes[first:end] = lane
    return found_lanes[:end], found[:end]


@nb.njit(nogil=True, cache=True)
def choose_forced(  # type: ignore[no-untyped-def]
    found, lane, stack, height, shifts, edge_start, edges, answers, verdicts
):
    """The open nodes of clauses that have only one; how many there are."""
    count = 0
    while height[lane] > 0 and count < WIDTH:
        height[lane] -= 1
        at = stack[height[lane]]
        if verdicts[at] == UNDECIDED:
            node = first_unknown(at, lane, shifts, edge_start, edges, answers)
            if node >= 0:  # not asked for another clause in this round
                answers[node] = ASKED
                found[count] = node
                count += 1
    return count


@nb.njit(nogil=True, cache=True)
def choose_best(  # type: ignore[no-untyped-def]
    found,
    lane,
    following,
    heads,  # of this lane
    tops,
    marks,  # of a graph's clauses: the last choice in which a node of theirs was
    choice,
    gains,
    shifts,
    back_start,
    backs,
    node_predicate,
    wanted,
    answers,
    verdicts,
):
    """The node with the greatest score, and those behind it as far as they have nothing to do with
    each other; how many there are."""
    count = 0
    while tops[lane] > 0 and count < WIDTH:
        top = tops[lane]
        node = heads[top]
        if node < 0:
            tops[lane] -= 1
            continue
        clauses = wanted[0, node] + wanted[1, node] + wanted[2, node]
        if clauses == 0 or answers[node] != UNKNOWN:
            heads[top] = following[node]
            continue
        own = node - shifts[lane, 1]
        bucket = bucket_of(node, gains[node_predicate[own]], wanted)
        if bucket != top:
            heads[top] = following[node]
            following[node] = heads[bucket]
            heads[bucket] = node
            continue
        span = backs[back_start[own] : back_start[own + 1]]
        is_wide = clauses > NARROW
        if count > 0 and (is_wide or is_marked(span, lane, shifts, verdicts, marks, choice)):
            break
        heads[top] = following[node]
        found[count] = node
        count += 1
        if is_wide:
            break
        for back in span:
            marks[back >> WANT_BITS] = choice
    return count


@nb.njit(nogil=True, cache=True, inline="always")
def is_marked(backs, lane, shifts, verdicts, marks, choice):  # type: ignore[no-untyped-def]
    """Whether an undecided clause has a node that is chosen already."""
    for back in backs:
        clause = back >> WANT_BITS
        if marks[clause] == choice and verdicts[clause + shifts[lane, 0]] == UNDECIDED:
            return True
    return False
