"""A configuration that is being changed: loads, and lists of who reads whom, kept at each switch.

    readers of view m      head[m] ──► slot ──► slot ──► -1        forward[slot], back[slot]

A slot is a place in `members`: the rewriting it belongs to is that of view `slot_view[slot]`. It
is in the list of its member as long as its rewriting is chosen, so that a switch costs one step for
each member, whatever the number of readers.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.network.configuration_kernels import SOURCE
from headgate.network.configuration_problem import Floats, Ints, Longs

NONE = -1
NO_FIT = -3


class FeedState(NamedTuple):
    """Views are rows of the first arrays, rewritings of the next, slots of the last."""

    first: Longs  # [view]: its rewritings, from here …
    end: Longs  # … up to here
    member_start: Longs  # [rewriting + 1]
    members: Ints  # [slot]
    slot_view: Ints  # [slot]
    utilization: Floats  # [rewriting]
    latency_s: Floats  # [rewriting]
    source_utilization: Floats  # [view]
    source_latency_s: Floats  # [view]
    limit: Longs  # [view, and the source]
    choice: Longs  # [view]
    loads: Longs  # [view, and the source]
    head: Ints  # [view]
    forward: Ints  # [slot]
    back: Ints  # [slot]


@nb.njit(nogil=True, cache=True)
def attach(state, view, r):  # type: ignore[no-untyped-def]
    state.choice[view] = r
    if r == SOURCE:
        state.loads[state.loads.shape[0] - 1] += 1
        return
    for slot in range(state.member_start[r], state.member_start[r + 1]):
        member = state.members[slot]
        state.loads[member] += 1
        after = state.head[member]
        state.forward[slot], state.back[slot] = after, NONE
        if after != NONE:
            state.back[after] = slot
        state.head[member] = slot


@nb.njit(nogil=True, cache=True)
def detach(state, view):  # type: ignore[no-untyped-def]
    r = state.choice[view]
    if r == SOURCE:
        state.loads[state.loads.shape[0] - 1] -= 1
        return
    for slot in range(state.member_start[r], state.member_start[r + 1]):
        member = state.members[slot]
        state.loads[member] -= 1
        before, after = state.back[slot], state.forward[slot]
        if before != NONE:
            state.forward[before] = after
        else:
            state.head[member] = after
        if after != NONE:
            state.back[after] = before


@nb.njit(nogil=True, cache=True)
def switch(state, view, r):  # type: ignore[no-untyped-def]
    detach(state, view)
    attach(state, view, r)


@nb.njit(nogil=True, cache=True)
def attach_all(state, choice):  # type: ignore[no-untyped-def]
    """From nothing; `state.head` is all NONE and `state.loads` all zero."""
    for view in range(choice.shape[0]):
        if choice[view] >= SOURCE:
            attach(state, view, choice[view])


@nb.njit(nogil=True, cache=True)
def reads(state, r, member):  # type: ignore[no-untyped-def]
    if r >= 0:
        for slot in range(state.member_start[r], state.member_start[r + 1]):
            if state.members[slot] == member:
                return True
    return False


@nb.njit(nogil=True, cache=True)
def fits(state, view, r):  # type: ignore[no-untyped-def]
    """Whether a view may switch to a rewriting or the source; what it reads now becomes free."""
    now = state.choice[view]
    if r == now:
        return True
    if r == SOURCE:
        last = state.loads.shape[0] - 1
        return state.loads[last] < state.limit[last]
    for slot in range(state.member_start[r], state.member_start[r + 1]):
        member = state.members[slot]
        if state.loads[member] >= state.limit[member] and not (
            state.loads[member] == state.limit[member] and reads(state, now, member)
        ):
            return False
    return True


@nb.njit(nogil=True, cache=True)
def excess(state):  # type: ignore[no-untyped-def]
    """By how much limits are exceeded, over all views and the source."""
    return np.maximum(state.loads - state.limit, 0).sum()
