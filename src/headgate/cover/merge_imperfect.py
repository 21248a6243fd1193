"""Imperfect merging: one conjunction in place of several, at the price of some false positives.

[MBD §5.3]. The imperfect degree of a merger M of F1 … Fn is the share of P(M) that no part matches
(Definition 1); with advertisements, among the items that are advertised (Definition 2). The
imperfect merging threshold (IMT) is the degree times the probability of M, which is the share of
all items that are forwarded as false positives:

    IMT(M) = P(M) · (1 − P(F1 or … or Fn) / P(M)) = P(M) − P(F1 or … or Fn)

Candidates have the same attributes and differ in one or two conditions (§5.1.1). Conditions that
differ are joined: by their union where it can be written (`in`, touching ranges), by its hull
otherwise, and dropped where there is none. Table 1 of the paper is a part of that:

    price < 100, price > 200   ──►  price is present        price > 150, = 145   ──►  price >= 145
    price < 100, price = 145   ──►  price <= 145            contains 'a', 'b'    ──►  dropped

(The paper prints > 145 and < 145, which would lose items that the parts match.)

The best set of mergers is NP-complete to find, so this is greedy: of all pairs of neighbours the
one with the smallest IMT is merged next, from a heap, until the smallest is above the threshold.
Mergers merge again. So a run up to one threshold is the beginning of the run up to a higher one.
Neighbours are consecutive members of a group: all conjunctions with the same rest and the same
places left out, sorted by their values there:

    rest: to = 'Paris'      left out: price
        price < 100    price = 145    price = 147    price > 150
             └──────────────┴──────────────┴──────────────┘          three pairs of neighbours

Invariant: P(M) ⊇ P(F1) ∪ … ∪ P(Fn), and the declared `imt` and `degree` are not less than the true
ones, if the cells are right (cells.py). Both refer to the original parts, never to mergers: with
U1 ⊆ M1 and U2 ⊆ M2 for what the parts of two mergers match,

    P(U1 ∪ U2)  ≥  max(P(U1), P(U2), P(U1) + P(U2) − P(M1 ∩ M2))

where M1 ∩ M2 is a box again. For two conjunctions, and in cells of one item each, it is equal.

Cost: each conjunction of k conditions is in k + k(k−1)/2 groups (k where k is above PAIRS_MAX), and
is weighed with its two neighbours in each. A merger leaves its groups and enters new ones, each by
a binary search. Groups are found by hashes; equal hashes of different rests only cost a comparison.

Rejected    All pairs of a group: quadratic, and the closest are neighbours. Rounds, merging many
            pairs at a time: faster, but the result depends on where the rounds end.
            Dropping where a hull exists: it always costs more items.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import pairwise

from headgate.cover.cells import Cells
from headgate.cover.conditions import ConditionTable, Conjunction, PlaceCondition
from headgate.cover.merge_costs import MergeCosts, MergeNode
from headgate.cover.merge_perfect import Merger
from headgate.model.filters import Filter
from headgate.model.implies_values import Place
from headgate.model.schema import Schema
from headgate.model.values import Comparable

_NEIGHBOUR_SEED = 20_061_117
_MASK = 2**64 - 1
PAIRS_MAX = 16
"""A longer conjunction leaves out one condition only: it would be in too many groups."""

Rank = tuple[bool | Comparable | None, ...]
"""The sort key of a condition among others at its place."""
Entry = tuple[Rank, int]
"""The rank of the conditions that are left out, and the conjunction's number."""
Pair = tuple[int, int]


class Neighbours:
    """Conjunctions in groups, sorted by the conditions they leave out; finds neighbours."""

    def __init__(self, conditions: ConditionTable) -> None:
        self._conditions = conditions
        self._chance = random.Random(_NEIGHBOUR_SEED)
        self._groups: defaultdict[int, list[Entry]] = defaultdict(list)
        self._hashes: list[int] = []
        self._place_hashes: dict[Place, int] = {}
        self._ranks: list[Rank] = []

    def add_all(self, conjunctions: Sequence[tuple[int, Conjunction]]) -> Iterator[Pair]:
        """Add the first conjunctions, with their numbers; returns all pairs of neighbours once."""
        for number, conjunction in conjunctions:
            for key, rank in self._left_out(conjunction):
                self._groups[key].append((rank, number))
        pairs: set[Pair] = set()
        for group in self._groups.values():
            group.sort()
            pairs.update((left, right) for (_, left), (_, right) in pairwise(group))
        return iter(sorted((min(pair), max(pair)) for pair in pairs))

    def add(self, number: int, conjunction: Conjunction) -> Iterable[int]:
        """Add a conjunction; returns its neighbours."""
        neighbours: dict[int, None] = {}
        for key, rank in self._left_out(conjunction):
            group, entry = self._groups[key], (rank, number)
            insort(group, entry)
            position = bisect_left(group, entry)
            neighbours.update((other, None) for _, other in group[max(0, position - 1) : position])
            neighbours.update((other, None) for _, other in group[position + 1 : position + 2])
        return neighbours

    def remove(self, number: int, conjunction: Conjunction) -> Iterable[Pair]:
        """Remove a conjunction; returns the pairs that have become neighbours."""
        new_pairs: dict[Pair, None] = {}
        for key, rank in self._left_out(conjunction):
            group = self._groups[key]
            position = bisect_left(group, (rank, number))
            assert group[position][1] == number, "it was added with the same conditions"
            del group[position]
            if 0 < position < len(group):
                pair = group[position - 1][1], group[position][1]
                new_pairs[min(pair), max(pair)] = None
            elif not group:
                del self._groups[key]
        return new_pairs

    def _left_out(self, conjunction: Conjunction) -> Iterator[tuple[int, Rank]]:
        """The key of each group of the conjunction, and its rank in that group."""
        conditions = self._conditions.entries
        while len(self._hashes) < len(conditions):
            condition = conditions[len(self._hashes)]
            self._hashes.append(self._chance.getrandbits(64))
            self._ranks.append(_rank(condition, len(self._ranks)))
            if condition.place not in self._place_hashes:
                self._place_hashes[condition.place] = self._chance.getrandbits(64)
        change = [self._place_hashes[conditions[n].place] - self._hashes[n] for n in conjunction]
        ranks = [self._ranks[number] for number in conjunction]
        total = sum(self._hashes[number] for number in conjunction)
        for position, number in enumerate(conjunction):
            yield (total + change[position]) & _MASK, ranks[position]
            for later in range(
                position + 1, len(conjunction) if len(conjunction) <= PAIRS_MAX else 0
            ):
                first, second = (position, later)
                if conditions[conjunction[later]].place < conditions[number].place:
                    first, second = later, position
                yield (
                    (total + change[position] + change[later]) & _MASK,
                    ranks[first] + ranks[second],
                )


def _rank(condition: PlaceCondition, number: int) -> Rank:
    """Sort by the lower end, then by the upper end; conditions without values by number.

    The place comes first, so values of two kinds are not compared, even if hashes collide.
    """
    attribute, part = condition.place
    place = attribute, part or ""
    if not condition.values:
        return (*place, number)
    low, high = condition.values.intervals[0][0], condition.values.intervals[-1][1]
    return (
        *place,
        low.value is not None,
        low.value,
        low.after,
        high.value is None,
        high.value,
        high.after,
    )


ROUNDING = 1e-12
"""Sums of probabilities are not exact; a probability below this counts as 0."""


def merge_imperfect(
    filters: Sequence[Filter],
    schema: Schema,
    cells: Cells,
    *,
    threshold: float,
    total_max: float = math.inf,
) -> list[Merger]:
    """Mergers of two parts and more, each with an IMT of at most the threshold.

    Parts are positions in `filters`. No filter is part of two mergers, and filters that no item
    can satisfy are part of none. The threshold limits each merger; `total_max` limits the sum of
    their IMTs, and so the share of all items that are forwarded as false positives.
    """
    return ImperfectMerging(filters, schema, cells).up_to(threshold, total_max=total_max)


class ImperfectMerging:
    """A run that can be continued to a higher threshold. One thread at a time."""

    def __init__(self, filters: Sequence[Filter], schema: Schema, cells: Cells) -> None:
        self._conditions = ConditionTable(schema)
        self._weights = MergeCosts(self._conditions, cells)
        self._neighbours = Neighbours(self._conditions)
        self._nodes: list[MergeNode | None] = []
        self._number_of: dict[Conjunction, int] = {}
        self._heap: list[tuple[float, int, int]] = []
        self._total = 0.0
        positions: dict[Conjunction, list[int]] = {}
        for position, filter_ in enumerate(filters):
            conjunction = self._conditions.read(filter_)
            if conjunction is not None:
                positions.setdefault(conjunction, []).append(position)
        for conjunction, parts in positions.items():
            self._number_of[conjunction] = len(self._nodes)
            self._nodes.append(self._weights.single(conjunction, tuple(parts)))
        for left, right in self._neighbours.add_all(list(enumerate(positions))):
            self._weigh(left, right)

    def up_to(self, threshold: float, *, total_max: float = math.inf) -> list[Merger]:
        """All mergers within these limits, which are not lower than those of the call before."""
        while self._heap and self._heap[0][0] <= threshold:
            vain, left, right = heappop(self._heap)
            first, second = self._nodes[left], self._nodes[right]
            if first is None or second is None:
                continue
            if self._total + vain - first.vain - second.vain > total_max:
                heappush(self._heap, (vain, left, right))
                break
            self._remove(left)
            self._remove(right)
            self._add(self._weights.merged(first, second))
        mergers = [self._merger(each) for each in self._nodes if each and len(each.parts) > 1]
        return sorted(mergers, key=lambda merger: merger.parts)

    def _add(self, node: MergeNode) -> None:
        """Add a node; one with the same conditions is merged into it."""
        same = self._number_of.get(node.conjunction)
        if same is not None:
            other = self._nodes[same]
            assert other is not None
            self._remove(same)
            node = self._weights.merged(other, node)
        number = len(self._nodes)
        self._nodes.append(node)
        self._number_of[node.conjunction] = number
        self._total += node.vain
        for neighbour in self._neighbours.add(number, node.conjunction):
            self._weigh(neighbour, number)

    def _remove(self, number: int) -> None:
        node = self._nodes[number]
        assert node is not None
        self._nodes[number] = None
        self._total -= node.vain
        del self._number_of[node.conjunction]
        for left, right in self._neighbours.remove(number, node.conjunction):
            self._weigh(left, right)

    def _weigh(self, left: int, right: int) -> None:
        first, second = self._nodes[left], self._nodes[right]
        if first is not None and second is not None:
            vain = self._weights.vain(first, second)
            heappush(self._heap, (vain if vain > ROUNDING else 0.0, left, right))

    def _merger(self, node: MergeNode) -> Merger:
        vain = node.vain if node.vain > ROUNDING else 0.0
        degree = min(1.0, vain / node.probability) if vain else 0.0
        return Merger(self._conditions.filter_of(node.conjunction), node.parts, degree, vain)
