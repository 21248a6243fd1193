"""The hot loops of a living configuration: where one view can be put, and what it must not read."""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.network.configuration_kernels import ABSENT, SOURCE
from headgate.network.feed_state_kernels import NO_FIT, NONE, attach, detach, fits
from headgate.network.loga_kernels import latency_through, spread


@nb.njit(nogil=True, cache=True)
def mark_below(state, view, mark, stamp):  # type: ignore[no-untyped-def]
    """Stamp a view and all that it feeds, directly or through others."""
    stack = [np.int64(view)]
    mark[view] = stamp
    while len(stack) > 0:
        slot = state.head[stack.pop()]
        while slot != NONE:
            reader = state.slot_view[slot]
            if mark[reader] != stamp:
                mark[reader] = stamp
                stack.append(np.int64(reader))
            slot = state.forward[slot]


@nb.njit(nogil=True, cache=True)
def can_read(state, r, mark, stamp):  # type: ignore[no-untyped-def]
    """Whether all members of a rewriting are there, and none is fed by the view itself."""
    for slot in range(state.member_start[r], state.member_start[r + 1]):
        member = state.members[slot]
        if state.choice[member] == ABSENT or mark[member] == stamp:
            return False
    return True


@nb.njit(nogil=True, cache=True)
def place(state, latency, view, weights, marks):  # type: ignore[no-untyped-def]
    """Feed an absent view by the rewriting of least cost that fits, else by the source.

    Returns what was chosen, or NO_FIT if the source is full too; then nothing has changed.
    """
    (alpha, beta), (mark, stamp) = weights, marks
    mark_below(state, view, mark, stamp)
    best, taken = np.inf, NO_FIT
    for r in range(state.first[view], state.end[view]):
        if can_read(state, r, mark, stamp) and fits(state, view, r):
            cost = alpha * state.utilization[r] + beta * latency_through(state, latency, r)
            if cost < best:
                best, taken = cost, r
    if taken == NO_FIT and fits(state, view, SOURCE):
        taken = SOURCE
    if taken != NO_FIT:
        attach(state, view, taken)
        spread(state, latency, view)
    return taken


@nb.njit(nogil=True, cache=True)
def take_out(state, view):  # type: ignore[no-untyped-def]
    """Make a view absent; its readers still read it."""
    detach(state, view)
    state.choice[view] = ABSENT
