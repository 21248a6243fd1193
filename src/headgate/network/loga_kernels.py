"""The hot loops of LOGA: how many views a view reaches, what pays best, and what it changes."""

from __future__ import annotations

import heapq

import numba as nb
import numpy as np

from headgate.network.configuration_kernels import SOURCE
from headgate.network.feed_state_kernels import NONE, fits, switch


@nb.njit(nogil=True, cache=True)
def count_reachable(state):  # type: ignore[no-untyped-def]
    """How many views each view feeds, directly or through others."""
    views = state.choice.shape[0]
    found, seen = np.zeros(views, np.int64), np.full(views, -1, np.int32)
    queue = np.empty(views, np.int64)
    for view in range(views):
        queue[0], at, end = view, 0, 1
        while at < end:
            slot = state.head[queue[at]]
            at += 1
            while slot != NONE:
                reader = state.slot_view[slot]
                if seen[reader] != view:
                    seen[reader] = view
                    queue[end] = reader
                    end += 1
                slot = state.forward[slot]
        found[view] = end - 1
    return found


@nb.njit(nogil=True, cache=True)
def latency_through(state, latency, r):  # type: ignore[no-untyped-def]
    """λ of a view with this rewriting."""
    slowest = 0.0
    for slot in range(state.member_start[r], state.member_start[r + 1]):
        slowest = max(slowest, latency[state.members[slot]])
    return slowest + state.latency_s[r]


@nb.njit(nogil=True, cache=True)
def latency_now(state, latency, view):  # type: ignore[no-untyped-def]
    if state.choice[view] == SOURCE:
        return state.source_latency_s[view]
    return latency_through(state, latency, state.choice[view])


@nb.njit(nogil=True, cache=True)
def best_fit(state, latency, view, below, rate, allowance):  # type: ignore[no-untyped-def]
    """The rewriting that lowers λ(v) and pays best, within the limits and the allowance, or NONE.

    What it pays is the latency that v and the views below it may gain, less `rate` for each unit of
    utilisation that it adds. At a rate of zero this is the rewriting with the least λ(v).
    """
    best, taken = 0.0, NONE
    now = state.utilization[state.choice[view]]
    for r in range(state.first[view], state.end[view]):
        gain = latency[view] - latency_through(state, latency, r)
        added = state.utilization[r] - now
        pays = gain * (below + 1) - rate * added
        if gain > 0 and pays > best and added <= allowance and fits(state, view, r):
            best, taken = pays, r
    return taken


@nb.njit(nogil=True, cache=True)
def spread(state, latency, view):  # type: ignore[no-untyped-def]
    """Recompute λ of a view and of those below it that it changes.

    A view is looked at again whenever what it reads has changed. λ rises along every feed, so in
    the order of λ almost all are looked at once.
    """
    heap = [(latency[view], np.int64(view))]
    last = np.int64(NONE)
    while len(heap) > 0:
        _, at = heapq.heappop(heap)
        if at == last:
            continue
        last = at
        now = latency_now(state, latency, at)
        if now == latency[at]:
            continue
        latency[at] = now
        slot = state.head[at]
        while slot != NONE:
            reader = np.int64(state.slot_view[slot])
            heapq.heappush(heap, (latency[reader], reader))
            slot = state.forward[slot]


@nb.njit(nogil=True, cache=True)
def replace_in_order(state, latency, order, reach, rate, allowance):  # type: ignore[no-untyped-def]
    """One round of Algorithm 2: lines 6 to 16. How many were replaced, and what that used."""
    replaced, used = 0, 0.0
    for view in order:
        before = state.choice[view]
        r = best_fit(state, latency, view, reach[view], rate, allowance - used)
        if r != NONE:
            used += state.utilization[r] - state.utilization[before]
            switch(state, view, r)
            spread(state, latency, view)
            replaced += 1
    return replaced, used
