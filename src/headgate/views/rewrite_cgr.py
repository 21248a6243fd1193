"""Cover-based greedy rewriting ([Delta §4.3, Algorithm 4]): at most k rewritings for each view.

A set of views rewrites v exactly if together they cover v's attributes (Proposition 4.1): each
identifier, val, cont and predicate of v is at a node of a view that an embedding maps to v's node.
So rewriting is set cover over the masks on the edges of the embedding graph:

    v = /a{cont}/b{cont}     attributes  a.id  a.cont  b.id  b.cont
    u1 = /a/b{cont}                       1             1     1      interest 3: chosen first
    u2 = /a{cont}/b                       1     1       1            interest 1 after u1

Interest is the number of attributes that are not covered yet. Among equal ones the view comes first
that covers attributes of most nodes, then a hash decides. The search goes depth first and ends with
k rewritings, each without redundant views (§4.3, "Rewriting minimization"). At most k / 6 of them
begin with the same view as long as others are left, and the last k / 6 are covers by the views that
embed into fewest others, because a view can feed only B_out others (cover_search.py).

Invariant: every rewriting is a minimal cover, no two of a view are the same, and there is one
wherever there is a cover. The search for one view takes at most 8 k steps, each linear in the views
embedded in it: beyond that, covers of many small views may be missed, but never the first.

Not in the paper: a predicate is an attribute too. A view that has neither the predicate nor the
value cannot provide it, though it has all identifiers.

`Rewritings` is the result, the rewritability graph as arrays ([Delta §2.1]):

    view v        its rewritings are view_start[v] … view_start[v + 1]
    rewriting r   reads the views members[member_start[r] : member_start[r + 1]], ascending

The source is not listed, since it can serve every view. Cycles over several views are possible; the
configuration breaks them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.model.tree_pattern import PatternNode
from headgate.views.cover_search import covers_of_range
from headgate.views.embedding_graph import (
    RANGE,
    EmbeddingGraph,
    EncodedViews,
    edges_by_range,
    embedded_in,
)
from headgate.views.pattern_arrays import ATTRIBUTE, ONE, Ints, Longs, Masks, Patterns


@dataclass(frozen=True, slots=True, eq=False)
class Rewritings:
    view_count: int
    view_start: npt.NDArray[np.int64]
    member_start: npt.NDArray[np.int64]
    members: npt.NDArray[np.int32]


REWRITINGS_MAX = 30


class Coverage(NamedTuple):
    """The input of the search: the embedding graph and the attributes of each view."""

    start: Longs
    embedded: Ints
    covers: Masks
    attribute_count: Longs
    tops: Masks
    """The highest attribute of each node of a view."""
    number: Longs
    """The number of each view, if this is a range of views in another order."""
    popular: Longs
    """[number]: how many views it embeds into, of all views or of a sample."""


Part = tuple[Longs, Longs, Ints]
"""The result for a range of views: the number of rewritings of each view, the number of views that
each rewriting reads, and those views."""


def rewrite_cgr(
    views: EncodedViews,
    graph: EmbeddingGraph,
    *,
    k: int = REWRITINGS_MAX,
    threads: int | None = None,
) -> Rewritings:
    """At most k rewritings for each view, from a whole embedding graph."""
    count, coverage = len(views), coverage_of(views, graph)
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        parts = pool.map(
            lambda first: covers_of_range(coverage, first, min(first + RANGE, count), k),
            range(0, count, RANGE),
        )
        return put_together(list(parts), coverage.number)


def rewrite_by_ranges(
    views: EncodedViews, *, k: int = REWRITINGS_MAX, threads: int | None = None
) -> Rewritings:
    """The same without a whole embedding graph: edges are dropped after each range of views."""
    order = views.trie.order
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        parts = list(pool.map(rewriter_of_ranges(views, k=k), range(0, len(order), RANGE)))
    return put_together(parts, order, view_count=len(views))


def rewriter_of_ranges(views: EncodedViews, *, k: int = REWRITINGS_MAX) -> Callable[[int], Part]:
    """A function that rewrites RANGE views, from a position in the trie on."""
    order, edges = views.trie.order, edges_by_range(views)

    def part_from(first: int) -> Part:
        counts, places, covers, _, _ = edges(first)
        range_views = np.arange(first, first + len(counts))
        start = np.concatenate([[0], np.cumsum(counts)])
        embedded = order[places].astype(np.int32)
        patterns = views.by_key.taken(range_views)
        edges_here = start, embedded, covers
        coverage = _coverage(patterns, edges_here, number=order[range_views], popular=views.popular)
        part: Part = covers_of_range(coverage, 0, len(counts), k)
        return part

    return part_from


def rewrite_new(views: EncodedViews, query: PatternNode, *, k: int = REWRITINGS_MAX) -> list[Ints]:
    """At most k rewritings of a view that is not among the views, each as the views it reads."""
    pattern, embedded, covers = embedded_in(views, query)
    start = np.array([0, len(embedded)], np.int64)
    edges = start, embedded, covers
    coverage = _coverage(pattern, edges, number=np.array([len(views)]), popular=views.popular)
    _, sizes, members = covers_of_range(coverage, 0, 1, k)
    return np.split(members, np.cumsum(sizes)[:-1]) if len(sizes) else []


def put_together(
    parts: Sequence[Part], order: Longs, *, view_count: int | None = None
) -> Rewritings:
    """Concatenate the parts, which are in `order`, and sort them by view."""
    counts = np.concatenate([np.empty(0, np.int64), *(part[0] for part in parts)])
    sizes = np.concatenate([np.empty(0, np.int64), *(part[1] for part in parts)])
    members = np.concatenate([np.empty(0, np.int32), *(part[2] for part in parts)])
    by_view = np.argsort(order.repeat(counts), kind="stable")
    view_count = len(order) if view_count is None else view_count
    view_start = np.zeros(view_count + 1, np.int64)
    view_start[order + 1] = counts
    member_start = np.concatenate([[0], np.cumsum(sizes[by_view])])
    came_from = (np.cumsum(sizes) - sizes)[by_view] - member_start[:-1]
    place = np.arange(len(members)) + came_from.repeat(sizes[by_view])
    return Rewritings(view_count, view_start.cumsum(), member_start, members[place])


def coverage_of(views: EncodedViews, graph: EmbeddingGraph) -> Coverage:
    """The input of the search for a whole graph."""
    edges = graph.start, graph.embedded, graph.covers
    number = np.arange(len(views))
    return _coverage(views.patterns, edges, number=number, popular=views.popular)


def _coverage(
    patterns: Patterns, edges: tuple[Longs, Ints, Masks], *, number: Longs, popular: Longs
) -> Coverage:
    counts, tops = patterns.attribute_count, _tops(patterns)
    return Coverage(*edges, counts, tops, number, popular)


def _tops(patterns: Patterns) -> Masks:
    """For each view a mask of the last attribute of each of its nodes."""
    sizes = np.diff(patterns.node_start)
    last = np.append(patterns.nodes[1:, ATTRIBUTE], 0) - 1
    has_nodes = sizes > 0
    ends = patterns.node_start[1:][has_nodes] - 1
    last[ends] = patterns.attribute_count[has_nodes] - 1
    tops = np.zeros(len(sizes), np.uint64)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    np.bitwise_or.at(tops, owner, ONE << last.astype(np.uint64))
    return tops
