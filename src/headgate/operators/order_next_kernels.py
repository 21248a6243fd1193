"""Which node comes next in a lane: naive, Sequential, and chains in order.

Each takes the lanes to look at and returns a node for each of them, or −1 where nothing is left to
ask. What a lane has come to is kept in `place` (a clause) and `edge`.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.operators.order_lane_kernels import (
    DROPPED,
    UNDECIDED,
    UNKNOWN,
    WANT_BITS,
    WANT_MASK,
    is_as_wanted,
)


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
