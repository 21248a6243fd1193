"""The embedding graph: which views embed into which ([Delta §4.2, Algorithm 3]).

An embedding of view u into query v respects labels and edges ('/' goes to '/', '//' to any path
downward), and each predicate of u follows from one of v, so u contains all that v selects. An edge
also has the attributes of v that u covers; the rewriting algorithm needs nothing else.

                 u1 ─┐
                 u2 ─┼─► v      embedded[start[v] : start[v + 1]], and covers in the same places
                 u3 ─┘

Invariant: every edge u → v is an embedding. Edges are left out to break cycles, and a view has at
most EMBEDDED_MAX incoming edges, at most KEY_MAX of them from views with one key of the trie.
Embedding is transitive, so the views of a cycle all embed into each other. They are put in one
order, those with most attributes first because they serve the others best, and only edges along
this order are kept. This leaves out one edge of each pair, which is the minimum.

The paper only requires that predicates do not contradict. Then `//a[. = 5]` would embed into `//a`,
which it cannot serve: it lacks all other a. Here a predicate of u needs one of v that implies it.

A hundred thousand `//price[. > c]` have one key and five billion pairs. A query is compared with
at most KEY_MAX views of one key, those nearest to it in the order of their bounds: they are the
tightest and the best to read from. In total it is compared with at most TESTS_MAX views. Of 100,000
views over XMark at most 68 have one key, and each view takes 209 tests.

Cost: a trie lookup for each view, and an embedding test for each candidate with at most |u| · |v|
steps. Ranges of views go to threads; the kernels release the GIL. Rejected: feedback arc set
heuristics [9], which leave out edges without knowing that all cycles are pairs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numba as nb
import numpy as np

from headgate.model.tree_pattern import PatternNode
from headgate.views.label_trie import (
    LabelTrie,
    closure_codes,
    closure_room,
    first_comparison,
    label_trie,
    mixed,
)
from headgate.views.pattern_arrays import (
    NODES_MAX,
    ONE,
    Ints,
    Longs,
    Masks,
    Patterns,
    PatternVocabulary,
    covered,
    embed,
    encode_views,
)

RANGE = 1_024
"""Views for one call of a kernel: enough to hide the cost of the call, few enough that all threads
get some."""

Edges = tuple[Longs, Ints, Masks, int, int]
"""The result of the kernel `embedded` for a range of queries, by their positions in the trie."""

EMBEDDED_MAX = 4_096
"""Incoming edges of one view. Without a limit, a hundred thousand `//price[. > c]` would have five
billion edges."""

SAMPLE = 2_048
"""How many queries are used to estimate how many views a view embeds into."""

_NO_RANK: Longs = np.empty(0, np.int64)
_NO_SIGN: Masks = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddingGraph:
    start: Longs
    embedded: Ints
    covers: Masks
    edges_left_out: int
    candidates: int
    """The number of embedding tests."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedViews:
    """Views as arrays, with the trie that finds them."""

    vocabulary: PatternVocabulary
    patterns: Patterns
    trie: LabelTrie
    by_key: Patterns
    """The same patterns in the order of the trie, so that patterns tested together are adjacent."""
    popular: Longs
    """[view]: how many views of a sample it embeds into and could serve."""

    @classmethod
    def of(cls, views: Sequence[PatternNode]) -> EncodedViews:
        vocabulary = PatternVocabulary()
        vocabulary.learn(views)
        return cls.of_patterns(encode_views(views, vocabulary), vocabulary)

    @classmethod
    def of_patterns(cls, patterns: Patterns, vocabulary: PatternVocabulary) -> EncodedViews:
        trie = label_trie(patterns)
        by_key = patterns.taken(trie.order)
        popular = _popularity(by_key, trie, len(patterns.attribute_count))
        return cls(vocabulary, patterns, trie, by_key, popular)

    def __len__(self) -> int:
        return len(self.patterns.node_start) - 1


def embedding_graph(views: EncodedViews, *, threads: int | None = None) -> EmbeddingGraph:
    """The embedding graph of all views."""
    order, ranges = views.trie.order, edges_by_range(views)
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        parts = list(pool.map(ranges, range(0, len(order), RANGE)))
    counts = np.zeros(len(views), np.int64)
    counts[order] = np.concatenate([np.empty(0, np.int64), *(part[0] for part in parts)])
    start = np.concatenate([[0], np.cumsum(counts)])
    embedded_views, covers = np.empty(start[-1], np.int32), np.empty(start[-1], np.uint64)
    left_out, candidates = sum(part[3] for part in parts), sum(part[4] for part in parts)
    for first in range(0, len(order), RANGE):
        part = parts.pop(0)  # frees the memory of each part once it is copied
        place_edges(order, first, part[0], part[1], part[2], start, embedded_views, covers)
    return EmbeddingGraph(start, embedded_views, covers, left_out, candidates)


def edges_by_range(views: EncodedViews) -> Callable[[int], Edges]:
    """A function that finds the edges to RANGE views, from a position in the trie on."""
    by_key, order = views.by_key, views.trie.order
    sign, rank = signatures(by_key), _ranks(views.patterns)[order]

    def edges(first: int) -> Edges:
        end = min(first + RANGE, len(order))
        range_edges: Edges = embedded(
            by_key, views.trie, by_key, first, end, sign, rank, EMBEDDED_MAX
        )
        return range_edges

    return edges


def embedded_in(views: EncodedViews, query: PatternNode) -> tuple[Patterns, Ints, Masks]:
    """For a new view: its arrays, the views that embed into it, and their covers."""
    pattern = encode_views([query], views.vocabulary)
    _, places, covers, _, _ = embedded(
        views.by_key, views.trie, pattern, 0, 1, _NO_SIGN, _NO_RANK, EMBEDDED_MAX
    )
    return pattern, views.trie.order[places].astype(np.int32), covers


def _popularity(by_key: Patterns, trie: LabelTrie, count: int) -> Longs:
    """How many views of a sample each view embeds into; at most SAMPLE, spread over the trie."""
    size = min(SAMPLE, len(trie.order))
    sample = by_key.taken(np.arange(size) * len(trie.order) // max(size, 1))
    _, places, _, _, _ = embedded(by_key, trie, sample, 0, size, _NO_SIGN, _NO_RANK, EMBEDDED_MAX)
    return np.bincount(trie.order[places], minlength=count).astype(np.int64)


def _ranks(patterns: Patterns) -> Longs:
    """The order of the views of a cycle: views with more attributes come first."""
    rank = np.empty(len(patterns.attribute_count), np.int64)
    rank[np.argsort(-patterns.attribute_count, kind="stable")] = np.arange(len(rank))
    return rank


# Kernels.

KEY_MAX = 512
TESTS_MAX = 16_384


@nb.njit(nogil=True, cache=True)
def signatures(p):  # type: ignore[no-untyped-def]
    """A Bloom filter of each closure: views that embed into each other have the same one."""
    room = np.empty(closure_room(p), np.int64)
    signs = np.zeros(p.node_start.shape[0] - 1, np.uint64)
    for view in range(signs.shape[0]):
        for position in range(closure_codes(p, view, room)):
            signs[view] |= ONE << (mixed(room[position]) & np.uint64(63))
    return signs


@nb.njit(nogil=True, cache=True)
def embedded(p, trie, queries, first, end, sign, rank, most):  # type: ignore[no-untyped-def]
    """The views that embed into queries first … end − 1, at most `most` for each query.

    p        Patterns, in the order of the trie
    trie     LabelTrie
    queries  Patterns: the same views, or new ones; for new ones `sign` and `rank` are empty
    sign     uint64 [view]  from `signatures`
    rank     int64 [view]   of two views that embed into each other, the edge from lower to higher
                            rank is kept
    Returns counts int64 [query], views int32 [edge], covers uint64 [edge], the number of edges
    left out, and the number of tests.
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
    """The KEY_MAX of the views low … high − 1, sorted by their bounds, that are around the query's.

    Among views with the same bounds, or without any, a hash of the query's number chooses, so that
    queries do not all get the same ones.
    """
    query_bounds = first_comparison(queries, query)
    first, end = low, high
    while first < end:
        middle = (first + end) // 2
        if first_comparison(p, middle) < query_bounds:
            first = middle + 1
        else:
            end = middle
    last, end = first, high
    while last < end:
        middle = (last + end) // 2
        if first_comparison(p, middle) <= query_bounds:
            last = middle + 1
        else:
            end = middle
    place = first + np.int64(mixed(query) % np.uint64(last - first + 1))
    begin = max(low, min(place - KEY_MAX // 2, high - KEY_MAX))
    return begin, begin + KEY_MAX


@nb.njit(nogil=True, cache=True)
def place_edges(order, first, counts, views, covers, start, out_views, out_covers):  # type: ignore[no-untyped-def]
    """Copy the edges of queries from `first` on to the positions of their views, renumbered from
    positions in the trie to views."""
    edge = 0
    for query in range(counts.shape[0]):
        to = start[order[first + query]]
        for _ in range(counts[query]):
            out_views[to] = order[views[edge]]
            out_covers[to] = covers[edge]
            to += 1
            edge += 1


@nb.njit(nogil=True, cache=True)
def _stamp(queries, query, trie, stamp, room):  # type: ignore[no-untyped-def]
    """Mark the features of a query that any key has."""
    for position in range(closure_codes(queries, query, room)):
        place = np.searchsorted(trie.codes, room[position])
        if place < trie.codes.shape[0] and trie.codes[place] == room[position]:
            stamp[trie.number[place]] = query
