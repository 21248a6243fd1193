"""The embedding graph of flat feeds: the same covers, the same search as for trees (§4.4).

A feed v embeds into a feed q of the same source if each condition of v follows from one of q. That
is a subset query: the key of v is its conditions, the closure of q all that its conditions imply.
Feeds lie by the rarest condition of their key, and q looks where its closure says. A trie as for
trees has a child for each of ten thousands of conditions at its top, and every look-up passes them
all; labels are few.

What must be covered of q are the item's id, each condition, and what it returns:

    a condition is covered    if a condition of v implies it, or if v returns what it looks at, so
                              that it can be tested
    a returned attribute      if v returns it; the whole item only if v does

Implications between conditions are those of model/implies.py, between neighbours
(flat_implications.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from headgate.views.cover_kernels import covers_of_range
from headgate.views.embedding_graph import EMBEDDED_MAX
from headgate.views.encode_views import Ints, Longs, Masks
from headgate.views.flat_feeds import FlatFeed, reads
from headgate.views.flat_implications import implications
from headgate.views.flat_kernels import EVERYTHING, FlatArrays, flat_edges, on_cycles
from headgate.views.pattern_kernels import NODES_MAX
from headgate.views.rewrite_cgr import REWRITINGS_MAX, Coverage
from headgate.views.rewritings import Rewritings


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
    # Each attribute is a node of its own: there is nothing to be near to.
    tops = np.array([(1 << int(count)) - 1 for count in counts], np.uint64)
    popular = np.bincount(embedded, minlength=len(feeds)).astype(np.int64)
    return Coverage(start, embedded, covers, counts, tops, np.arange(len(feeds)), popular)


def _without_cycles(
    arrays: FlatArrays, start: Longs, embedded: Ints, covers: Masks
) -> tuple[Longs, Ints, Masks]:
    """On cycles, only edges from lower to higher rank.

    Feeds that are found to imply each other have one edge already. But what is found is not
    transitive, as not all conditions are compared, so longer cycles are possible.
    """
    query = np.arange(len(start) - 1).repeat(np.diff(start))
    is_on = on_cycles(start, embedded)
    kept = ~(is_on[query] & is_on[embedded]) | (arrays.rank[embedded] < arrays.rank[query])
    counts = np.bincount(query[kept], minlength=len(start) - 1)
    return np.concatenate([[0], np.cumsum(counts)]), embedded[kept], covers[kept]


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
    """The feeds by that number of their key which occurs least; where each number's begin."""
    occurs = np.bincount(key, minlength=1)
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    rarest_first = np.lexsort((key, occurs[key], owner))
    rarest = key[rarest_first[start[:-1]]]
    begin = np.concatenate([[0], np.cumsum(np.bincount(rarest, minlength=len(occurs)))])
    return begin, np.argsort(rarest, kind="stable")


def _lists(lists: Iterable[Iterable[int]]) -> tuple[Longs, Longs]:
    """Sorted lists behind each other: where each begins, and the numbers."""
    start, numbers = [0], list[int]()
    for each in lists:
        numbers += sorted(set(each))
        start.append(len(numbers))
    return np.array(start, np.int64), np.array(numbers, np.int64)
