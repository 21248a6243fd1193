"""The hot loops over flat feeds: who embeds into whom, and what is covered."""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.views.embedding_kernels import TESTS_MAX
from headgate.views.pattern_kernels import NONE, ONE

Longs = npt.NDArray[np.int64]

EVERYTHING = 0


class FlatArrays(NamedTuple):
    """Lists of numbers, sorted for each feed: those of feed f are from start[f] to start[f + 1].

    The last number of a key or a closure is that of the source.
    """

    key_start: Longs  # the conditions of a feed, and its source
    key: Longs
    closure_start: Longs  # all conditions that these imply, and the source
    closure: Longs
    return_start: Longs  # what a feed returns; EVERYTHING alone for whole items
    returns: Longs
    read_start: Longs  # [condition + 1]: what a condition looks at
    reads: Longs
    rank: Longs  # [feed]: of feeds that imply each other, lower ones serve higher ones
    attribute_count: Longs  # [feed]; 0 for a feed that is left to the source
    rarest_start: Longs  # [number + 1]: feeds of whose keys it is the rarest number …
    by_rarest: Longs  # … are by_rarest[rarest_start[number] : rarest_start[number + 1]]


@nb.njit(nogil=True, cache=True)
def flat_edges(f, most):  # type: ignore[no-untyped-def]
    """For each feed the feeds that embed into it, and the attributes that they cover.

    Who embeds has its rarest number in the closure of the query: only those are tested, each once.
    Feeds that imply each other have one edge. A feed has at most `most`, after TESTS_MAX tests.
    """
    count = f.attribute_count.shape[0]
    start = np.zeros(count + 1, np.int64)
    views, covers = np.empty(1024, np.int32), np.empty(1024, np.uint64)
    used = 0
    for query in range(count):
        began, tests = used, TESTS_MAX if f.attribute_count[query] > 0 else 0
        for at in range(f.closure_start[query], f.closure_start[query + 1]):
            low, high = f.rarest_start[f.closure[at]], f.rarest_start[f.closure[at] + 1]
            for place in range(low, high):
                if used - began == most or tests == 0:
                    break
                tests -= 1
                view = f.by_rarest[place]
                if view == query or not _embeds(f, view, query):
                    continue
                if f.rank[view] > f.rank[query] and _embeds(f, query, view):
                    continue
                if used == views.shape[0]:
                    views = np.append(views, np.empty(used, np.int32))
                    covers = np.append(covers, np.empty(used, np.uint64))
                views[used] = view
                covers[used] = _covered(f, view, query)
                used += 1
        start[query + 1] = used
    return start, views[:used].copy(), covers[:used].copy()


@nb.njit(nogil=True, cache=True)
def _has(numbers, low, high, wanted):  # type: ignore[no-untyped-def]
    place = low + np.searchsorted(numbers[low:high], wanted)
    return place < high and numbers[place] == wanted


@nb.njit(nogil=True, cache=True)
def _embeds(f, view, query):  # type: ignore[no-untyped-def]
    """Whether the key of the view is in the closure of the query."""
    low, high = f.closure_start[query], f.closure_start[query + 1]
    for at in range(f.key_start[view], f.key_start[view + 1]):
        if not _has(f.closure, low, high, f.key[at]):
            return False
    return True


@nb.njit(nogil=True, cache=True)
def _covered(f, view, query):  # type: ignore[no-untyped-def]
    """The item's id, then each condition, then what is returned."""
    cover, bit = ONE, ONE
    low, high = f.return_start[view], f.return_start[view + 1]
    has_all = low < high and f.returns[low] == EVERYTHING
    for at in range(f.key_start[query], f.key_start[query + 1] - 1):
        condition = f.key[at]
        is_covered = has_all
        if not is_covered:
            is_covered = True
            for read in range(f.read_start[condition], f.read_start[condition + 1]):
                is_covered &= _has(f.returns, low, high, f.reads[read])
        if not is_covered:
            first, end = f.closure_start[view], f.closure_start[view + 1]
            is_covered = _has(f.closure, first, end, condition)
        cover |= ONE << bit if is_covered else NONE
        bit += ONE
    for at in range(f.return_start[query], f.return_start[query + 1]):
        is_covered = has_all or _has(f.returns, low, high, f.returns[at])
        cover |= ONE << bit if is_covered else NONE
        bit += ONE
    return cover


@nb.njit(nogil=True, cache=True)
def on_cycles(start, views):  # type: ignore[no-untyped-def]
    """Which feeds are on a cycle of edges, or between two: those that never run out of input."""
    count = start.shape[0] - 1
    waiting, readers = np.zeros(count, np.int64), np.zeros(count + 1, np.int64)
    for query in range(count):
        waiting[query] = start[query + 1] - start[query]
    for at in range(views.shape[0]):
        readers[views[at] + 1] += 1
    readers = np.cumsum(readers)
    reader, place = np.empty(views.shape[0], np.int64), readers[:-1].copy()
    for query in range(count):
        for at in range(start[query], start[query + 1]):
            reader[place[views[at]]] = query
            place[views[at]] += 1
    free = [query for query in range(count) if waiting[query] == 0]
    while len(free) > 0:
        done = free.pop()
        for at in range(readers[done], readers[done + 1]):
            waiting[reader[at]] -= 1
            if waiting[reader[at]] == 0:
                free.append(reader[at])
    return waiting > 0
