"""The hot loops over a configuration: who is fed before whom, loads, levels, latencies.

A configuration is an array `choice`: the rewriting of each view, or SOURCE. `member_start` and
`members` are those of the rewritability graph.
"""

from __future__ import annotations

import numba as nb
import numpy as np

SOURCE = -1
ABSENT = -2
"""In place of a rewriting, for a view that is no longer there."""


@nb.njit(nogil=True, cache=True)
def count_loads(member_start, members, choice, loads):  # type: ignore[no-untyped-def]
    """How many views each view feeds; the last place is the source's."""
    loads[:] = 0
    for view in range(choice.shape[0]):
        r = choice[view]
        if r == SOURCE:
            loads[loads.shape[0] - 1] += 1
        elif r >= 0:
            for at in range(member_start[r], member_start[r + 1]):
                loads[members[at]] += 1


@nb.njit(nogil=True, cache=True)
def feeding_order(member_start, members, choice):  # type: ignore[no-untyped-def]
    """Views such that each comes after those it reads; shorter than `choice` if there is a cycle.

    The second array has the level of each view: 1 from the source, else one above its members.
    """
    views = choice.shape[0]
    feeds, waits, level = _who_feeds_whom(member_start, members, choice)
    order, end = np.empty(views, np.int64), 0
    for view in range(views):
        if choice[view] == SOURCE:
            level[view] = 1
            order[end] = view
            end += 1
    at = 0
    while at < end:
        view = order[at]
        at += 1
        for place in range(feeds[0][view], feeds[0][view + 1]):
            reader = feeds[1][place]
            level[reader] = max(level[reader], level[view] + 1)
            waits[reader] -= 1
            if waits[reader] == 0:
                order[end] = reader
                end += 1
    return order[:end], level


@nb.njit(nogil=True, cache=True)
def _who_feeds_whom(member_start, members, choice):  # type: ignore[no-untyped-def]
    views = choice.shape[0]
    start, waits = np.zeros(views + 1, np.int64), np.zeros(views, np.int64)
    for view in range(views):
        if choice[view] >= 0:
            for at in range(member_start[choice[view]], member_start[choice[view] + 1]):
                start[members[at] + 1] += 1
                waits[view] += 1
    start[:] = np.cumsum(start)
    readers, place = np.empty(start[views], np.int64), start.copy()
    for view in range(views):
        if choice[view] >= 0:
            for at in range(member_start[choice[view]], member_start[choice[view] + 1]):
                readers[place[members[at]]] = view
                place[members[at]] += 1
    return (start, readers), waits, np.zeros(views, np.int64)


@nb.njit(nogil=True, cache=True)
def readers_of_all(member_start, members, choice):  # type: ignore[no-untyped-def]
    """Who feeds whom: the readers of view v are `readers[start[v] : start[v + 1]]`, ascending."""
    feeds, _, _ = _who_feeds_whom(member_start, members, choice)
    return feeds


@nb.njit(nogil=True, cache=True)
def latencies(member_start, members, choice, order, local_s, source_s):  # type: ignore[no-untyped-def]
    """λ(v): what the slowest of its members takes, and its own rewriting after that."""
    found = np.zeros(choice.shape[0])
    for at in range(order.shape[0]):
        view = order[at]
        r = choice[view]
        if r == SOURCE:
            found[view] = source_s[view]
            continue
        slowest = 0.0
        for place in range(member_start[r], member_start[r + 1]):
            slowest = max(slowest, found[members[place]])
        found[view] = slowest + local_s[r]
    return found
