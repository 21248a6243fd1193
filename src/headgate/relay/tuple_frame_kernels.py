"""The hot loops of tuple_frames.py: tuples as places in a table of their nodes, and back."""

from __future__ import annotations

import numba as nb
import numpy as np

FINE, UNORDERED, ENDS_EARLY, NO_NODE = range(4)


@nb.njit(nogil=True, cache=True)
def span_of(ids):  # type: ignore[no-untyped-def]
    """The least and the greatest number of a node; (0, -1) if there is none."""
    if ids.size == 0:
        return 0, -1
    low = high = ids[0, 0, 0]
    for t in range(ids.shape[0]):
        for n in range(ids.shape[1]):
            low, high = min(low, ids[t, n, 0]), max(high, ids[t, n, 0])
    return low, high


@nb.njit(nogil=True, cache=True)
def tabulate(ids, low, high):  # type: ignore[no-untyped-def]
    """The distinct nodes in order, each tuple as places among them, and whether those ascend."""
    place = np.full(high - low + 1, -1, np.int32)
    for t in range(ids.shape[0]):
        for n in range(ids.shape[1]):
            place[ids[t, n, 0] - low] = 0
    count = 0
    for at in range(place.shape[0]):
        if place[at] == 0:
            place[at] = count
            count += 1
    table = np.empty((count, 3), np.int32)
    places = np.empty((ids.shape[0], ids.shape[1]), np.int32)
    ascends = True
    for t in range(ids.shape[0]):
        before = 0  # how this tuple compares with the one before
        for n in range(ids.shape[1]):
            own = place[ids[t, n, 0] - low]
            places[t, n] = own
            for k in range(3):
                table[own, k] = ids[t, n, k]
            if t > 0 and before == 0:
                before = own - places[t - 1, n]
        ascends &= before >= 0
    return table, places, ascends


@nb.njit(nogil=True, cache=True)
def numbers_at(table, places, node):  # type: ignore[no-untyped-def]
    """The numbers of the nodes in one column of the tuples, ascending."""
    is_there = np.zeros(table.shape[0], np.bool_)
    for t in range(places.shape[0]):
        is_there[places[t, node]] = True
    found = np.empty(table.shape[0], np.int64)
    count = 0
    for at in range(table.shape[0]):
        if is_there[at]:
            found[count] = table[at, 0]
            count += 1
    return found[:count]


@nb.njit(nogil=True, cache=True)
def fault_of(table, places):  # type: ignore[no-untyped-def]
    """What is wrong with what has come from elsewhere."""
    last = -1
    for at in range(table.shape[0]):
        if table[at, 0] <= last or table[at, 2] < 0:
            return UNORDERED
        last = table[at, 0]
        if table[at, 1] < last:
            return ENDS_EARLY
    for t in range(places.shape[0]):
        for n in range(places.shape[1]):
            if places[t, n] < 0 or places[t, n] >= table.shape[0]:
                return NO_NODE
    return FINE


@nb.njit(nogil=True, cache=True)
def identify(table, places):  # type: ignore[no-untyped-def]
    """The identifiers of all tuples."""
    ids = np.empty((places.shape[0], places.shape[1], 3), np.int64)
    for t in range(places.shape[0]):
        for n in range(places.shape[1]):
            for k in range(3):
                ids[t, n, k] = table[places[t, n], k]
    return ids
