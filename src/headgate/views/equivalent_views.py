"""Views that are the same pattern: planned once, and serving each other ([Delta §5.5]).

Popular views are asked for again and again: 10,000 views of §5.5 are about 3,000 patterns. All
copies embed into each other, so their edges alone would be quadratic. Instead each distinct pattern
is rewritten once, and its copies share what was found:

    p0 ◄── p1, p2, …                    a copy reads one of the copies before it
    p from q ⋈ r:  p2 from q1 ⋈ r0      or what p is rewritten from, by any copy of each

Law: every rewriting is one of equal views, no two of a view are the same, and there is no cycle if
there was none: copies read only earlier copies. Which copy is read is spread by a hash, so that all
can share the load. A copy has up to k / 2 rewritings from its own kind; the rest are the pattern's.

Equal patterns are found by a hash that does not depend on the order of children; that two views
cover each other is then tested, as whoever knows the hash could make it collide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from headgate.model.tree_pattern import PatternNode
from headgate.views.embedding_graph import EncodedViews
from headgate.views.encode_views import Longs, Patterns, Vocabulary, encode_views
from headgate.views.equivalence_kernels import cover_each_other, expand, tree_hashes
from headgate.views.rewrite_cgr import REWRITINGS_MAX, rewrite_by_ranges
from headgate.views.rewritings import Rewritings


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
    vocabulary = Vocabulary()
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
