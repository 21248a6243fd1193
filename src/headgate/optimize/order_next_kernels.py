"""Which node comes next in a lane: naive, Sequential, chains in order, and adaptive.

Each takes the lanes to look at and returns a node for each of them, or −1 where nothing is left to
ask. What a lane has come to is kept in `place` (a clause) and `edge`, or in buckets of nodes.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.optimize.order_lane_kernels import (
    DROPPED,
    UNDECIDED,
    UNKNOWN,
    WANT_BITS,
    WANT_MASK,
    count_wanted,
    is_as_wanted,
    is_wanted,
)

MANTISSA_BITS = 4
BUCKET_SHIFT = 23 - MANTISSA_BITS
BUCKETS = 255 << MANTISSA_BITS
REFILL = 4


@nb.njit(nogil=True, cache=True)
def next_naive(  # type: ignore[no-untyped-def]
    lanes, place, lane_start, edge_start, edges, answers, verdicts
):
    """Clause by clause, each until a predicate is not as wanted, whatever is known of the rest."""
    found = np.full(lanes.shape[0], -1, np.int32)
    for n in range(lanes.shape[0]):
        lane = lanes[n]
        while place[lane] < lane_start[lane + 1] and found[n] < 0:
            at = place[lane]
            if verdicts[at] != DROPPED:
                for edge in range(edge_start[at], edge_start[at + 1]):
                    node, want = edges[edge] >> WANT_BITS, edges[edge] & WANT_MASK
                    answer = answers[node]
                    if answer == UNKNOWN:
                        found[n] = node
                        break
                    if not is_as_wanted(answer, want):
                        break
            if found[n] < 0:
                place[lane] += 1
    return found


@nb.njit(nogil=True, cache=True)
def next_sequential(  # type: ignore[no-untyped-def]
    lanes,
    place,
    edge,
    lane_start,
    edge_start,
    edges,
    back_start,
    back_end,
    backs,
    answers,
    verdicts,
):
    """All predicates of an undecided clause that some undecided clause wants, then the next one."""
    found = np.full(lanes.shape[0], -1, np.int32)
    for n in range(lanes.shape[0]):
        lane = lanes[n]
        end = lane_start[lane + 1]
        while place[lane] < end and found[n] < 0:
            at = place[lane]
            if edge[lane] < edge_start[at + 1]:
                node = edges[edge[lane]] >> WANT_BITS
                edge[lane] += 1
                unknown = answers[node] == UNKNOWN
                if unknown and is_wanted(node, back_start, back_end, backs, verdicts):
                    found[n] = node
                continue
            at += 1
            while at < end and verdicts[at] != UNDECIDED:
                at += 1
            place[lane] = at
            edge[lane] = edge_start[at]
    return found


@nb.njit(nogil=True, cache=True)
def first_unknown(at, edge_start, edges, answers):  # type: ignore[no-untyped-def]
    for edge in range(edge_start[at], edge_start[at + 1]):
        if answers[edges[edge] >> WANT_BITS] == UNKNOWN:
            return edges[edge] >> WANT_BITS
    return -1


@nb.njit(nogil=True, cache=True)
def next_in_chains(  # type: ignore[no-untyped-def]
    lanes, place, lane_start, edge_start, edges, answers, verdicts
):
    """The topmost open node of the first undecided chain."""
    found = np.full(lanes.shape[0], -1, np.int32)
    for n in range(lanes.shape[0]):
        lane = lanes[n]
        while place[lane] < lane_start[lane + 1] and verdicts[place[lane]] != UNDECIDED:
            place[lane] += 1
        if place[lane] < lane_start[lane + 1]:
            found[n] = first_unknown(place[lane], edge_start, edges, answers)
    return found


@nb.njit(nogil=True, cache=True)
def bucket_of(wanted, gain):  # type: ignore[no-untyped-def]
    """The bucket of a node's score: how many clauses an answer decides, for what it costs.

    The bits of a positive float, read as an integer, have its order. The upper ones tell scores
    apart that differ by 1 in 2 ** MANTISSA_BITS. 0 is the bucket of nodes that nobody wants.
    """
    score = np.float32(wanted[0] * gain[0] + wanted[1] * gain[1] + wanted[2] * gain[2])
    return score.view(np.int32) >> BUCKET_SHIFT


@nb.njit(nogil=True, cache=True)
def fill_all_buckets(  # type: ignore[no-untyped-def]
    node_start, node_predicate, wanted, gains, following, heads, tops
):
    """Every node into the list of its bucket, when nothing is decided yet."""
    heads[:] = -1
    tops[:] = 0
    for lane in range(node_start.shape[0] - 1):
        for node in range(node_start[lane], node_start[lane + 1]):
            counts = (wanted[0, node], wanted[1, node], wanted[2, node])
            bucket = bucket_of(counts, gains[node_predicate[node]])
            following[node] = heads[lane, bucket]
            heads[lane, bucket] = node
            tops[lane] = max(tops[lane], bucket)


@nb.njit(nogil=True, cache=True)
def fill_buckets(  # type: ignore[no-untyped-def]
    lane,
    generation,
    filled,  # of each node: in which generation it was put into a bucket
    following,
    heads,
    tops,
    lane_start,
    edge_start,
    edges,
    back_start,
    back_end,
    backs,
    node_predicate,
    answers,
    verdicts,
    gains,
):
    """Every node that an undecided clause of the lane still wants, into the list of its bucket."""
    heads[lane, :] = -1
    tops[lane] = 0
    for at in range(lane_start[lane], lane_start[lane + 1]):
        if verdicts[at] != UNDECIDED:
            continue
        for edge in range(edge_start[at], edge_start[at + 1]):
            node = edges[edge] >> WANT_BITS
            if filled[node] == generation or answers[node] != UNKNOWN:
                continue
            filled[node] = generation
            counts = count_wanted(node, back_start, back_end, backs, verdicts)
            bucket = bucket_of(counts, gains[node_predicate[node]])
            following[node] = heads[lane, bucket]
            heads[lane, bucket] = node
            tops[lane] = max(tops[lane], bucket)


@nb.njit(nogil=True, cache=True)
def next_adaptive(  # type: ignore[no-untyped-def]
    lanes,
    generations,  # how often the buckets of a lane have been filled …
    refill_at,  # … and how few undecided clauses are left when they are filled again
    filled,
    following,  # the next node in the same bucket
    heads,  # [lane, bucket]: the first node
    tops,  # the highest bucket with a node
    forced,
    forced_count,
    lane_start,
    edge_start,
    edges,
    back_start,
    back_end,
    backs,
    node_predicate,
    answers,
    verdicts,
    open_count,
    gains,
):
    """What must be asked anyway; otherwise the node with the greatest score.

    Scores only decrease. So a node may lie in too high a bucket, never in too low a one, and is put
    where it belongs when it comes up. Most nodes lose all their clauses without ever being asked;
    the buckets are filled anew when one in REFILL clauses is left, so that few of them come up.
    """
    found = np.full(lanes.shape[0], -1, np.int32)
    for n in range(lanes.shape[0]):
        lane = lanes[n]
        if open_count[lane] == 0:
            continue
        if open_count[lane] <= refill_at[lane]:
            generations[lane] += 1
            refill_at[lane] = open_count[lane] // REFILL
            fill_buckets(
                lane,
                generations[lane],
                filled,
                following,
                heads,
                tops,
                lane_start,
                edge_start,
                edges,
                back_start,
                back_end,
                backs,
                node_predicate,
                answers,
                verdicts,
                gains,
            )
        while forced_count[lane] > 0 and found[n] < 0:
            forced_count[lane] -= 1
            at = forced[lane_start[lane] + forced_count[lane]]
            if verdicts[at] == UNDECIDED:
                found[n] = first_unknown(at, edge_start, edges, answers)
        while tops[lane] > 0 and found[n] < 0:
            node = heads[lane, tops[lane]]
            if node < 0:
                tops[lane] -= 1
                continue
            heads[lane, tops[lane]] = following[node]
            if answers[node] != UNKNOWN:
                continue
            counts = count_wanted(node, back_start, back_end, backs, verdicts)
            if back_end[node] == back_start[node]:
                continue
            bucket = bucket_of(counts, gains[node_predicate[node]])
            if bucket == tops[lane]:
                found[n] = node
            else:
                following[node] = heads[lane, bucket]
                heads[lane, bucket] = node
    return found
