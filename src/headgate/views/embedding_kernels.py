"""The hot loop of Algorithm 3: a range of queries against the trie.

A hundred thousand `//price[. > c]` have one key, and five billion pairs. A query is compared with
at most KEY_MAX views of one key, those around its own place in the order of their bounds: the next
ones are the tightest, and the best to read from. Whatever the keys, it is compared with at most
TESTS_MAX views. Of 100,000 views over XMark at most 68 have one key, and each takes 209 tests.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.views.pattern_kernels import NODES_MAX, ONE, covered, embed
from headgate.views.trie_kernels import closure_codes, closure_room, first_comparison, mixed

KEY_MAX = 512
TESTS_MAX = 16_384


@nb.njit(nogil=True, cache=True)
def signatures(p):  # type: ignore[no-untyped-def]
    """A small hash of each closure: views that embed into each other have the same."""
    room = np.empty(closure_room(p), np.int64)
    found = np.zeros(p.node_start.shape[0] - 1, np.uint64)
    for view in range(found.shape[0]):
        for at in range(closure_codes(p, view, room)):
            found[view] |= ONE << (mixed(room[at]) & np.uint64(63))
    return found


@nb.njit(nogil=True, cache=True)
def embedded(p, trie, queries, first, end, sign, rank, most):  # type: ignore[no-untyped-def]
    """The views that embed into queries first … end: counts, views, covers; edges left out; tests.

    A query has at most `most` of them. Views `p` are in the order of the trie. The queries are
    these views, or new ones (`rank` is then empty). Of two views that embed into each other, the
    edge from lower to higher rank is kept.
    """
    is_own = rank.shape[0] > 0
    stamp = np.full(trie.codes.shape[0], -1, np.int64)
    room = np.empty(closure_room(queries), np.int64)
    below, images = np.empty(NODES_MAX, np.uint64), np.empty(NODES_MAX, np.uint64)
    counts = np.zeros(end - first, np.int64)
    views, covers = np.empty(1024, np.int32), np.empty(1024, np.uint64)
    used, left_out, tested = 0, 0, 0
    for query in range(first, end):
        _stamp(queries, query, trie, stamp, room)
        began, node, tests_end = used, 0, tested + TESTS_MAX
        while node < trie.feature.shape[0] and used - began < most and tested < tests_end:
            if trie.feature[node] >= 0 and stamp[trie.feature[node]] != query:
                node = trie.skip[node]
                continue
            low, high = trie.first_view[node], trie.first_view[node + 1]
            if high - low > KEY_MAX:
                low, high = _nearest(p, low, high, queries, query)
            for view in range(low, high):
                if is_own and view == query:
                    continue
                if used - began == most:
                    break
                tested += 1
                if not embed(p, view, queries, query, below, images):
                    continue
                cover = covered(p, view, queries, query, images)
                is_alike = is_own and sign[view] == sign[query] and rank[view] > rank[query]
                if is_alike and embed(p, query, p, view, below, images):
                    left_out += 1
                    continue
                if used == views.shape[0]:
                    views = np.append(views, np.empty(used, np.int32))
                    covers = np.append(covers, np.empty(used, np.uint64))
                views[used] = view
                covers[used] = cover
                used += 1
            node += 1
        counts[query - first] = used - began
    return counts, views[:used].copy(), covers[:used].copy(), left_out, tested


@nb.njit(nogil=True, cache=True)
def _nearest(p, low, high, queries, query):  # type: ignore[no-untyped-def]
    """Of views low … high, which are in the order of their bounds, those around the query.

    Views that compare with the same, or with nothing, are told apart by the query's number, so that
    not all queries have the same ones.
    """
    own = first_comparison(queries, query)
    first, end = low, high
    while first < end:
        middle = (first + end) // 2
        if first_comparison(p, middle) < own:
            first = middle + 1
        else:
            end = middle
    last, end = first, high
    while last < end:
        middle = (last + end) // 2
        if first_comparison(p, middle) <= own:
            last = middle + 1
        else:
            end = middle
    place = first + np.int64(mixed(query) % np.uint64(last - first + 1))
    begin = max(low, min(place - KEY_MAX // 2, high - KEY_MAX))
    return begin, begin + KEY_MAX


@nb.njit(nogil=True, cache=True)
def place_edges(order, first, counts, views, covers, start, out_views, out_covers):  # type: ignore[no-untyped-def]
    """Edges between places of the trie, from query `first` on, to where they belong by view."""
    at = 0
    for query in range(counts.shape[0]):
        to = start[order[first + query]]
        for _ in range(counts[query]):
            out_views[to] = order[views[at]]
            out_covers[to] = covers[at]
            to += 1
            at += 1


@nb.njit(nogil=True, cache=True)
def _stamp(queries, query, trie, stamp, room):  # type: ignore[no-untyped-def]
    """Mark the features of a query that any key has."""
    for at in range(closure_codes(queries, query, room)):
        place = np.searchsorted(trie.codes, room[at])
        if place < trie.codes.shape[0] and trie.codes[place] == room[at]:
            stamp[trie.number[place]] = query
