"""Views with the same pattern: rewritten once, and serving each other ([Delta §5.5]).

Popular views occur again and again: 10,000 views of §5.5 have about 3,000 patterns. All copies
embed into each other, so their edges alone would be quadratic. Instead each distinct pattern is
rewritten once, and its copies share the rewritings:

    p0 ◄── p1, p2, …                    a copy reads one of the copies before it
    p from q ⋈ r:  p2 from q1 ⋈ r0      or what p is rewritten from, by any copy of each

Invariant: every rewriting is one of equal views, no two of a view are the same, and no cycle is
added: copies read only earlier copies. A hash chooses which copy is read, so all share the load. A
copy has up to k / 2 rewritings from its own kind; the rest are those of the pattern.

Equal patterns are found by a hash that does not depend on the order of children. Then it is tested
that the two views cover each other, since hash collisions can be made on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numba as nb
import numpy as np

from headgate.model.tree_pattern import PatternNode
from headgate.views.embedding_graph import EncodedViews
from headgate.views.label_trie import mixed
from headgate.views.pattern_arrays import (
    ALL,
    AXIS,
    LABEL,
    MARKS,
    NODES_MAX,
    NONE,
    PARENT,
    PREDICATES,
    PREDICATES_END,
    Longs,
    Patterns,
    PatternVocabulary,
    covered,
    embed,
    encode_views,
)
from headgate.views.rewrite_cgr import REWRITINGS_MAX, Rewritings, rewrite_by_ranges


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Views by their pattern: `of[view]`, and the copies of class c in
    copies[start[c] : start[c + 1]], ascending; the first of them represents it."""

    of: Longs
    start: Longs
    copies: Longs

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def first(self) -> Longs:
        return self.copies[self.start[:-1]]


Rewrite = Callable[[EncodedViews, int], Rewritings]
"""Rewrites each of some distinct views, at most k times."""


def rewrite_here(views: EncodedViews, k: int) -> Rewritings:
    return rewrite_by_ranges(views, k=k)


def find_rewritings(
    views: Sequence[PatternNode], *, k: int = REWRITINGS_MAX, rewrite: Rewrite = rewrite_here
) -> Rewritings:
    """At most k rewritings for each of these views, whether or not some are the same."""
    vocabulary = PatternVocabulary()
    vocabulary.learn(views)
    patterns = encode_views(views, vocabulary)
    classes = equivalent_views(patterns)
    encoded = EncodedViews.of_patterns(patterns.taken(classes.first), vocabulary)
    return share(rewrite(encoded, k), classes, k=k)


def equivalent_views(patterns: Patterns) -> Classes:
    """Which views are the same pattern."""
    count = len(patterns.node_start) - 1
    _, at, of = np.unique(tree_hashes(patterns), return_index=True, return_inverse=True)
    first = at[of]
    alone = ~cover_each_other(patterns, first)
    first[alone] = np.arange(count)[alone]
    _, of = np.unique(first, return_inverse=True)
    start = np.concatenate([[0], np.cumsum(np.bincount(of))]).astype(np.int64)
    return Classes(of.astype(np.int64), start, np.argsort(of, kind="stable"))


def share(found: Rewritings, classes: Classes, *, k: int = REWRITINGS_MAX) -> Rewritings:
    """The rewritings of classes as rewritings of their views."""
    lines = found.view_start, found.member_start, found.members
    return Rewritings(
        len(classes.of), *expand(*lines, classes.of, classes.start, classes.copies, k)
    )


# Kernels.


@nb.njit(nogil=True, cache=True)
def tree_hashes(p):  # type: ignore[no-untyped-def]
    """A hash of each view, the same for all orders of children and predicates."""
    found = np.zeros(p.node_start.shape[0] - 1, np.uint64)
    below = np.empty(NODES_MAX, np.uint64)
    for view in range(found.shape[0]):
        nodes = p.nodes[p.node_start[view] : p.node_start[view + 1]]
        below[:] = NONE
        for n in range(nodes.shape[0] - 1, -1, -1):
            own = mixed(nodes[n, LABEL] * 16 + nodes[n, AXIS] * 8 + nodes[n, MARKS])
            for at in range(nodes[n, PREDICATES], nodes[n, PREDICATES_END]):
                predicate = NONE
                for column in range(p.predicates.shape[1]):
                    predicate = mixed(predicate + np.uint64(p.predicates[at, column]))
                own += mixed(predicate)
            own = mixed(own + mixed(below[n]))
            if n > 0:
                below[nodes[n, PARENT]] += own
            else:
                found[view] = own
    return found


@nb.njit(nogil=True, cache=True)
def cover_each_other(p, first):  # type: ignore[no-untyped-def]
    """For each view whether it and the view `first[view]` have all that the other has."""
    found = np.zeros(first.shape[0], np.bool_)
    below, images = np.empty(NODES_MAX, np.uint64), np.empty(NODES_MAX, np.uint64)
    for view in range(first.shape[0]):
        found[view] = (
            p.attribute_count[view] == p.attribute_count[first[view]]
            and _covers_all(p, view, first[view], below, images)
            and _covers_all(p, first[view], view, below, images)
        )
    return found


@nb.njit(nogil=True, cache=True)
def _covers_all(p, view, query, below, images):  # type: ignore[no-untyped-def]
    if not embed(p, view, p, query, below, images):
        return False
    wanted = ALL >> np.uint64(NODES_MAX - p.attribute_count[query])
    return covered(p, view, p, query, images) == wanted


@nb.njit(nogil=True, cache=True)
def expand(found_start, line_start, found, of, class_start, copies, k):  # type: ignore[no-untyped-def]
    """Rewritings of classes to rewritings of views: starts of views, starts of members, members.

    `found[line_start[r] : line_start[r + 1]]` are the classes that rewriting r reads; the
    rewritings of class c are from `found_start[c]` up to `found_start[c + 1]`.
    """
    place = np.empty(of.shape[0], np.int64)  # of each view among the copies of its class
    for at in range(copies.shape[0]):
        place[copies[at]] = at - class_start[of[copies[at]]]
    view_start = np.zeros(of.shape[0] + 1, np.int64)
    size = 0
    for view in range(of.shape[0]):
        low, high = found_start[of[view]], found_start[of[view] + 1]
        own = min(place[view], k // 2)
        end = low + min(high - low, k - own)
        view_start[view + 1] = view_start[view] + own + end - low
        size += own + line_start[end] - line_start[low]
    member_start = np.zeros(view_start[-1] + 1, np.int64)
    members = np.empty(size, np.int32)
    at, rewriting = 0, 0
    for view in range(of.shape[0]):
        own = min(place[view], k // 2)
        for number in range(own):
            # One of each k-th part of the copies before: all different, and spread.
            low, high = place[view] * number // own, place[view] * (number + 1) // own
            members[at] = copies[class_start[of[view]] + low + _draw(view, number, high - low)]
            at, rewriting = at + 1, rewriting + 1
            member_start[rewriting] = at
        first = found_start[of[view]]
        for line in range(first, first + view_start[view + 1] - rewriting):
            began = at
            for m in range(line_start[line], line_start[line + 1]):
                low, high = class_start[found[m]], class_start[found[m] + 1]
                members[at] = copies[low + _draw(view, m, high - low)]
                at += 1
            members[began:at].sort()
            rewriting += 1
            member_start[rewriting] = at
    return view_start, member_start, members


@nb.njit(nogil=True, cache=True)
def _draw(one, other, count):  # type: ignore[no-untyped-def]
    """A number below `count` that looks like chance."""
    return np.int64(mixed(one * 1_000_003 + other) % np.uint64(count))
