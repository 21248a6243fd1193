"""The embedding graph of flat feeds: the same trie, the same covers, the same search (§4.4).

A feed v embeds into a feed q of the same source if each condition of v follows from one of q. That
is a subset query: the key of v is its conditions, the closure of q all that its conditions imply.
What must be covered of q are the item's id, each condition, and what it returns:

    a condition is covered    if a condition of v implies it, or if v returns what it looks at, so
                              that it can be tested
    a returned attribute      if v returns it; the whole item only if v does

Implications between conditions are those of model/implies.py. All pairs of a hundred thousand
conditions would take days, so a condition is compared with those on the same attributes that are
nearest to it in the order of their constants, NEAR on either side: the tightest feeds are the best
to read from. What is not compared costs a rewriting, never a wrong one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from headgate.model.atoms import Between, Comparison, Contains, Relation, WindowAttribute
from headgate.model.filters import Filter, atoms_of
from headgate.model.implies import implies_filter
from headgate.model.values import Kind, comparable, kind_of
from headgate.views.cover_kernels import covers_of_range
from headgate.views.embedding_graph import EMBEDDED_MAX
from headgate.views.encode_views import Ints, Longs, Masks
from headgate.views.flat_feeds import FlatFeed, reads
from headgate.views.flat_kernels import EVERYTHING, FlatArrays, flat_edges, on_cycles
from headgate.views.label_trie import trie_of_keys
from headgate.views.pattern_kernels import NODES_MAX
from headgate.views.rewrite_cgr import REWRITINGS_MAX, Coverage
from headgate.views.rewritings import Rewritings

NEAR = 32


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
    trie = trie_of_keys(arrays.key_start, arrays.key)
    start, embedded, covers = _without_cycles(arrays, *flat_edges(arrays, trie, EMBEDDED_MAX))
    counts = arrays.attribute_count
    # Each attribute is a node of its own: there is nothing to be near to.
    tops = np.array([(1 << int(count)) - 1 for count in counts], np.uint64)
    return Coverage(start, embedded, covers, counts, tops, np.arange(len(feeds)))


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
        return FlatArrays(
            *_lists([*key, source] for key, source in zip(keys, sources, strict=True)),
            *_lists(closures),
            *_lists(returned),
            *_lists(self._names(reads(condition)) for condition in self.conditions),
            self._ranks(),
            np.array([count if count <= NODES_MAX else 0 for count in counts], np.int64),
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


def _lists(lists: Iterable[Iterable[int]]) -> tuple[Longs, Longs]:
    """Sorted lists behind each other: where each begins, and the numbers."""
    start, numbers = [0], list[int]()
    for each in lists:
        numbers += sorted(set(each))
        start.append(len(numbers))
    return np.array(start, np.int64), np.array(numbers, np.int64)


def implications(conditions: Sequence[Filter]) -> list[set[int]]:
    """For each condition the numbers of those that it is found to imply, itself included."""
    implied = [{number} for number in range(len(conditions))]
    alike: dict[object, list[int]] = {}
    for number, condition in enumerate(conditions):
        alike.setdefault(reads(condition), []).append(number)
    for group in alike.values():
        group.sort(key=lambda number: _order(conditions[number]))
        for place, one in enumerate(group):
            near = group[max(place - NEAR, 0) : place] + group[place + 1 : place + 1 + NEAR]
            implied[one].update(
                each for each in near if _implies(conditions[one], conditions[each])
            )
    return implied


_BELOW = (Relation.LESS, Relation.LESS_EQUAL)
_ABOVE = (Relation.GREATER, Relation.GREATER_EQUAL)


def _implies(specific: Filter, general: Filter) -> bool:
    """As model/implies.py says, which takes its time: some comparisons can be told at a glance."""
    if isinstance(specific, Comparison) and isinstance(general, Comparison):
        one, other = specific.relation, general.relation
        if specific.kind is not general.kind:
            return False
        is_number = specific.kind is Kind.NUMBER and specific.part is general.part is None
        if is_number and one in _BELOW and other in (Relation.EQUAL, *_ABOVE):
            return False
        if is_number and one in _ABOVE and other in (Relation.EQUAL, *_BELOW):
            return False
    return implies_filter(specific, general)


def _order(condition: Filter) -> tuple[str, float, str]:
    """Conditions with constants of one kind side by side, in the order of the constants."""
    for atom in atoms_of(condition):
        if isinstance(atom, Comparison) and not isinstance(atom.value, WindowAttribute):
            value = comparable(atom.value)
            size = float(value) if isinstance(value, int | float) else 0.0
            return kind_of(atom.value), size, str(value)
        if isinstance(atom, Between):
            return _order(Comparison(atom.attribute, Relation.EQUAL, atom.low))
        if isinstance(atom, Contains):
            return "words", 0.0, " ".join(atom.words)
    return "", 0.0, str(condition)
