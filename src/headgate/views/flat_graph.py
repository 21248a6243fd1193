"""The embedding graph of flat feeds, with covers as for tree patterns ([Delta §4.4]).

A feed v embeds into a feed q of the same source if each condition of v follows from one of q. This
is a subset query. Conditions and sources have numbers:

    key of v        the conditions of v, and its source
    closure of q    all conditions that those of q imply, and its source
    v embeds        if its key is a subset of the closure

Feeds are indexed by the rarest number of their key, and q tests the feeds under each number of its
closure. A trie as for trees would have a child for each of ten thousand conditions at its root, and
every lookup would pass them all.

A cover of q has the item's id, each condition, and each returned attribute:

    a condition is covered    if a condition of v implies it, or if v returns the attributes that
                              it reads, so that it can be tested
    a returned attribute      if v returns it; the whole item only if v does
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.views.cover_search import covers_of_range
from headgate.views.embedding_graph import EMBEDDED_MAX, TESTS_MAX
from headgate.views.flat_feeds import FlatFeed, implications, reads
from headgate.views.pattern_arrays import NODES_MAX, NONE, ONE, Ints, Longs, Masks
from headgate.views.rewrite_cgr import REWRITINGS_MAX, Coverage, Rewritings


def rewrite_flat(feeds: Sequence[FlatFeed], *, k: int = REWRITINGS_MAX) -> Rewritings:
    """At most k rewritings for each feed."""
    coverage = flat_coverage(feeds)
    counts, sizes, members = covers_of_range(coverage, 0, len(feeds), k)
    return Rewritings(
        len(feeds),
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([[0], np.cumsum(sizes)]),
        members,
    )


def flat_coverage(feeds: Sequence[FlatFeed]) -> Coverage:
    """Which feeds embed into which, and what they cover."""
    arrays = _Encoding(feeds).arrays()
    start, embedded, covers = _without_cycles(arrays, *flat_edges(arrays, EMBEDDED_MAX))
    counts = arrays.attribute_count
    # Flat feeds have no nodes; count each attribute as a node of its own.
    tops = np.array([(1 << int(count)) - 1 for count in counts], np.uint64)
    popular = np.bincount(embedded, minlength=len(feeds)).astype(np.int64)
    return Coverage(start, embedded, covers, counts, tops, np.arange(len(feeds)), popular)


def _without_cycles(
    arrays: FlatArrays, start: Longs, embedded: Ints, covers: Masks
) -> tuple[Longs, Ints, Masks]:
    """Remove edges on cycles, except those from lower to higher rank.

    Of two feeds that imply each other, one edge has been removed already. Longer cycles are still
    possible: not all conditions are compared, so the implications found are not transitive.
    """
    query = np.arange(len(start) - 1).repeat(np.diff(start))
    is_on = on_cycles(start, embedded)
    is_kept = ~(is_on[query] & is_on[embedded]) | (arrays.rank[embedded] < arrays.rank[query])
    counts = np.bincount(query[is_kept], minlength=len(start) - 1)
    return np.concatenate([[0], np.cumsum(counts)]), embedded[is_kept], covers[is_kept]


class _Encoding:
    def __init__(self, feeds: Sequence[FlatFeed]) -> None:
        self.feeds = feeds
        self.conditions = list(dict.fromkeys(each for feed in feeds for each in feed.conditions))
        self.number_of = {condition: number for number, condition in enumerate(self.conditions)}
        sources = dict.fromkeys(feed.source for feed in feeds)
        # Sources come after all conditions, so that they are the last of each list.
        count = len(self.conditions)
        self.source_of = {name: count + number for number, name in enumerate(sources)}
        self.names: dict[str, int] = {}

    def arrays(self) -> FlatArrays:
        implied = implications(self.conditions)
        keys = [[self.number_of[each] for each in feed.conditions] for feed in self.feeds]
        sources = [self.source_of[feed.source] for feed in self.feeds]
        closures = [
            {source}.union(*(implied[each] for each in key))
            for key, source in zip(keys, sources, strict=True)
        ]
        returned = [self._names(feed.returns) for feed in self.feeds]
        counts = [1 + len(key) + len(own) for key, own in zip(keys, returned, strict=True)]
        key_start, key = _lists([*key, source] for key, source in zip(keys, sources, strict=True))
        return FlatArrays(
            key_start,
            key,
            *_lists(closures),
            *_lists(returned),
            *_lists(self._names(reads(condition)) for condition in self.conditions),
            self._ranks(),
            np.array([count if count <= NODES_MAX else 0 for count in counts], np.int64),
            *_by_rarest(key_start, key),
        )

    def _names(self, names: frozenset[str] | None) -> list[int]:
        if names is None:
            return [EVERYTHING]
        return [self.names.setdefault(name, len(self.names) + 1) for name in names]

    def _ranks(self) -> Longs:
        """Feeds that return more come first."""
        most = [-len(feed.returns) if feed.returns is not None else -(10**9) for feed in self.feeds]
        rank = np.empty(len(most), np.int64)
        rank[np.argsort(most, kind="stable")] = np.arange(len(most))
        return rank


def _by_rarest(start: Longs, key: Longs) -> tuple[Longs, Longs]:
    """An index of feeds by the rarest number of their key: (start of each number, feeds)."""
    occurs = np.bincount(key, minlength=1)
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    rarest_first = np.lexsort((key, occurs[key], owner))
    rarest = key[rarest_first[start[:-1]]]
    begin = np.concatenate([[0], np.cumsum(np.bincount(rarest, minlength=len(occurs)))])
    return begin, np.argsort(rarest, kind="stable")


def _lists(lists: Iterable[Iterable[int]]) -> tuple[Longs, Longs]:
    """Sorted lists concatenated: the start of each list, and the numbers."""
    start, numbers = [0], list[int]()
    for list_ in lists:
        numbers += sorted(set(list_))
        start.append(len(numbers))
    return np.array(start, np.int64), np.array(numbers, np.int64)


# Kernels.


EVERYTHING = 0


class FlatArrays(NamedTuple):
    """Lists of numbers, sorted for each feed: those of feed f are from start[f] to start[f + 1].

    The last number of a key or a closure is that of the source.
    """

    key_start: Longs  # the conditions of a feed, and its source
    key: Longs
    closure_start: Longs  # all conditions that these imply, and the source
    closure: Longs
    return_start: Longs  # the attributes that a feed returns; EVERYTHING alone for whole items
    returns: Longs
    read_start: Longs  # [condition + 1]: the attributes that a condition reads
    reads: Longs
    rank: Longs  # [feed]: of feeds that imply each other, lower ones serve higher ones
    attribute_count: Longs  # [feed]; 0 for a feed that is left to the source
    rarest_start: Longs  # [number + 1]: feeds of whose keys it is the rarest number …
    by_rarest: Longs  # … are by_rarest[rarest_start[number] : rarest_start[number + 1]]


@nb.njit(nogil=True, cache=True)
def flat_edges(f, most):  # type: ignore[no-untyped-def]
    """For each feed the feeds that embed into it, and the attributes that they cover.

    f     FlatArrays
    most  at most this many edges for a feed, from at most TESTS_MAX tests
    Returns start int64 [feed + 1], views int32 [edge], covers uint64 [edge].

    A feed that embeds has its rarest number in the closure of the query, so only feeds under those
    numbers are tested. Of two feeds that embed into each other, one edge is kept.
    """
    count = f.attribute_count.shape[0]
    start = np.zeros(count + 1, np.int64)
    views, covers = np.empty(1024, np.int32), np.empty(1024, np.uint64)
    used = 0
    for query in range(count):
        began, tests = used, TESTS_MAX if f.attribute_count[query] > 0 else 0
        for position in range(f.closure_start[query], f.closure_start[query + 1]):
            low, high = f.rarest_start[f.closure[position]], f.rarest_start[f.closure[position] + 1]
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
def _has(numbers, low, high, number):  # type: ignore[no-untyped-def]
    place = low + np.searchsorted(numbers[low:high], number)
    return place < high and numbers[place] == number


@nb.njit(nogil=True, cache=True)
def _embeds(f, view, query):  # type: ignore[no-untyped-def]
    """Whether the key of the view is in the closure of the query."""
    low, high = f.closure_start[query], f.closure_start[query + 1]
    for position in range(f.key_start[view], f.key_start[view + 1]):
        if not _has(f.closure, low, high, f.key[position]):
            return False
    return True


@nb.njit(nogil=True, cache=True)
def _covered(f, view, query):  # type: ignore[no-untyped-def]
    """The bit mask of covered attributes: the id, then each condition, then each returned one."""
    cover, bit = ONE, ONE
    low, high = f.return_start[view], f.return_start[view + 1]
    has_all = low < high and f.returns[low] == EVERYTHING
    for position in range(f.key_start[query], f.key_start[query + 1] - 1):
        condition = f.key[position]
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
    for position in range(f.return_start[query], f.return_start[query + 1]):
        is_covered = has_all or _has(f.returns, low, high, f.returns[position])
        cover |= ONE << bit if is_covered else NONE
        bit += ONE
    return cover


@nb.njit(nogil=True, cache=True)
def on_cycles(start, views):  # type: ignore[no-untyped-def]
    """bool [feed]: whether it is on a cycle of edges or downstream of one (topological sort)."""
    count = start.shape[0] - 1
    waiting, readers = np.zeros(count, np.int64), np.zeros(count + 1, np.int64)
    for query in range(count):
        waiting[query] = start[query + 1] - start[query]
    for edge in range(views.shape[0]):
        readers[views[edge] + 1] += 1
    readers = np.cumsum(readers)
    reader, place = np.empty(views.shape[0], np.int64), readers[:-1].copy()
    for query in range(count):
        for edge in range(start[query], start[query + 1]):
            reader[place[views[edge]]] = query
            place[views[edge]] += 1
    free = [query for query in range(count) if waiting[query] == 0]
    while len(free) > 0:
        done = free.pop()
        for edge in range(readers[done], readers[done + 1]):
            waiting[reader[edge]] -= 1
            if waiting[reader[edge]] == 0:
                free.append(reader[edge])
    return waiting > 0
