"""Rewritings of many views: equal patterns are rewritten once and serve each other ([Delta §5.5]).

Popular patterns occur many times: 10,000 views of §5.5 have about 3,000 patterns. All copies of a
pattern embed into each other, so their edges alone would be quadratic. Instead each distinct
pattern is rewritten once, and its copies share the rewritings:

    p0 ◄── p1, p2, …                    a copy reads one of the copies before it
    p from q ⋈ r:  p2 from q1 ⋈ r0      or copies of the views that p is rewritten from

Invariant: every rewriting is valid, a view does not have the same one twice, and no cycle is added
because copies read only earlier copies. A hash chooses which copy is read, which spreads the load.
A copy has up to k / 2 rewritings from other copies; the rest are those of the pattern.

Equal patterns are found by a hash that does not depend on the order of children. As a user can
construct hash collisions, the two views are then tested to cover each other.
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
    """Classes of equal views: view v is in class of[v]; the views of class c are
    copies[start[c] : start[c + 1]], ascending. The first of them represents the class."""

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
    """At most k rewritings for each of these views. Views may be equal."""
    vocabulary = PatternVocabulary()
    vocabulary.learn(views)
    patterns = encode_views(views, vocabulary)
    classes = equivalent_views(patterns)
    encoded = EncodedViews.of_patterns(patterns.taken(classes.first), vocabulary)
    return share(rewrite(encoded, k), classes, k=k)


def equivalent_views(patterns: Patterns) -> Classes:
    """The classes of views with the same pattern."""
    count = len(patterns.node_start) - 1
    _, first_of_class, of = np.unique(tree_hashes(patterns), return_index=True, return_inverse=True)
    first = first_of_class[of]
    alone = ~cover_each_other(patterns, first)
    first[alone] = np.arange(count)[alone]
    _, of = np.unique(first, return_inverse=True)
    start = np.concatenate([[0], np.cumsum(np.bincount(of))]).astype(np.int64)
    return Classes(of.astype(np.int64), start, np.argsort(of, kind="stable"))


def share(rewritings: Rewritings, classes: Classes, *, k: int = REWRITINGS_MAX) -> Rewritings:
    """The rewritings of classes as rewritings of their views."""
    lines = rewritings.view_start, rewritings.member_start, rewritings.members
    return Rewritings(
        len(classes.of), *expand(*lines, classes.of, classes.start, classes.copies, k)
    )


# Kernels.


@nb.njit(nogil=True, cache=True)
def tree_hashes(p):  # type: ignore[no-untyped-def]
    """A hash of each view, the same for all orders of children and predicates."""
    hashes = np.zeros(p.node_start.shape[0] - 1, np.uint64)
    below = np.empty(NODES_MAX, np.uint64)
    for view in range(hashes.shape[0]):
        nodes = p.nodes[p.node_start[view] : p.node_start[view + 1]]
        below[:] = NONE
        for n in range(nodes.shape[0] - 1, -1, -1):
            node_hash = mixed(nodes[n, LABEL] * 16 + nodes[n, AXIS] * 8 + nodes[n, MARKS])
            for row in range(nodes[n, PREDICATES], nodes[n, PREDICATES_END]):
                predicate = NONE
                for column in range(p.predicates.shape[1]):
                    predicate = mixed(predicate + np.uint64(p.predicates[row, column]))
                node_hash += mixed(predicate)
            node_hash = mixed(node_hash + mixed(below[n]))
            if n > 0:
                below[nodes[n, PARENT]] += node_hash
            else:
                hashes[view] = node_hash
    return hashes


@nb.njit(nogil=True, cache=True)
def cover_each_other(p, first):  # type: ignore[no-untyped-def]
    """bool [view]: whether the view and the view first[view] cover each other."""
    is_equal = np.zeros(first.shape[0], np.bool_)
    below, images = np.empty(NODES_MAX, np.uint64), np.empty(NODES_MAX, np.uint64)
    for view in range(first.shape[0]):
        is_equal[view] = (
            p.attribute_count[view] == p.attribute_count[first[view]]
            and _covers_all(p, view, first[view], below, images)
            and _covers_all(p, first[view], view, below, images)
        )
    return is_equal


@nb.njit(nogil=True, cache=True)
def _covers_all(p, view, query, below, images):  # type: ignore[no-untyped-def]
    if not embed(p, view, p, query, below, images):
        return False
    required = ALL >> np.uint64(NODES_MAX - p.attribute_count[query])
    return covered(p, view, p, query, images) == required


@nb.njit(nogil=True, cache=True)
def expand(class_rewritings, line_start, class_members, of, class_start, copies, k):  # type: ignore[no-untyped-def]
    """Turn rewritings of classes into rewritings of views: (view_start, member_start, members).

    class_rewritings  int64 [class + 1]      the first rewriting of each class
    line_start        int64 [rewriting + 1]  the first of the classes that a rewriting reads
    class_members     int32                  those classes
    of, class_start, copies                  as in Classes
    k                                        at most this many rewritings for a view
    """
    place = np.empty(of.shape[0], np.int64)  # of each view among the copies of its class
    for position in range(copies.shape[0]):
        place[copies[position]] = position - class_start[of[copies[position]]]
    view_start = np.zeros(of.shape[0] + 1, np.int64)
    size = 0
    for view in range(of.shape[0]):
        low, high = class_rewritings[of[view]], class_rewritings[of[view] + 1]
        copy_count = min(place[view], k // 2)
        end = low + min(high - low, k - copy_count)
        view_start[view + 1] = view_start[view] + copy_count + end - low
        size += copy_count + line_start[end] - line_start[low]
    member_start = np.zeros(view_start[-1] + 1, np.int64)
    members = np.empty(size, np.int32)
    filled, rewriting = 0, 0
    for view in range(of.shape[0]):
        copy_count = min(place[view], k // 2)
        for number in range(copy_count):
            # The earlier copies in `copy_count` equal parts; one copy is drawn from each.
            low, high = place[view] * number // copy_count, place[view] * (number + 1) // copy_count
            members[filled] = copies[class_start[of[view]] + low + _draw(view, number, high - low)]
            filled, rewriting = filled + 1, rewriting + 1
            member_start[rewriting] = filled
        first = class_rewritings[of[view]]
        for line in range(first, first + view_start[view + 1] - rewriting):
            began = filled
            for m in range(line_start[line], line_start[line + 1]):
                low, high = class_start[class_members[m]], class_start[class_members[m] + 1]
                members[filled] = copies[low + _draw(view, m, high - low)]
                filled += 1
            members[began:filled].sort()
            rewriting += 1
            member_start[rewriting] = filled
    return view_start, member_start, members


@nb.njit(nogil=True, cache=True)
def _draw(first_key, second_key, count):  # type: ignore[no-untyped-def]
    """A pseudo-random number below `count`, determined by the two keys."""
    return np.int64(mixed(first_key * 1_000_003 + second_key) % np.uint64(count))
