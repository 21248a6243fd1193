"""Which conjunctions lie side by side: the same but for one or two conditions, and next in order.

    rest: to = 'Paris'      left out: price
        price < 100    price = 145    price = 147    price > 150
             └──────────────┴──────────────┴──────────────┘          three pairs of neighbours

A group is all conjunctions with the same rest and the same places left out, in the order of the
values there. When one comes or goes, its neighbours in each group change.

Groups are found by hashes as in leave_one_out.py; two rests with equal hashes would make odd
neighbours, never a wrong merger, as whoever merges a pair compares it whole.

Cost: for k conditions, k + k(k−1)/2 groups to enter or leave (k where k is above `PAIRS_MAX`), each
by a binary search.
"""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from headgate.cover.conditions import Condition, Conditions, Conjunction
from headgate.model.implies_values import Place
from headgate.model.values import Comparable

_SEED = 20_061_117
_MASK = 2**64 - 1
PAIRS_MAX = 16
"""A longer conjunction leaves out one condition only: it would be in too many groups."""

Rank = tuple[bool | Comparable | None, ...]
"""Where a condition stands among others at its place."""
Entry = tuple[Rank, int]
"""A conjunction's number behind the rank of what it leaves out."""
Pair = tuple[int, int]


class Neighbours:
    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._chance = random.Random(_SEED)
        self._groups: defaultdict[int, list[Entry]] = defaultdict(list)
        self._hashes: list[int] = []
        self._place_hashes: dict[Place, int] = {}
        self._ranks: list[Rank] = []

    def add_all(self, conjunctions: Sequence[tuple[int, Conjunction]]) -> Iterator[Pair]:
        """The first conjunctions, with their numbers; all pairs of neighbours, once each."""
        for number, conjunction in conjunctions:
            for key, rank in self._left_out(conjunction):
                self._groups[key].append((rank, number))
        found: set[Pair] = set()
        for group in self._groups.values():
            group.sort()
            found.update((left, right) for (_, left), (_, right) in pairwise(group))
        return iter(sorted((min(pair), max(pair)) for pair in found))

    def add(self, number: int, conjunction: Conjunction) -> Iterable[int]:
        """The new one's neighbours."""
        found: dict[int, None] = {}
        for key, rank in self._left_out(conjunction):
            group, entry = self._groups[key], (rank, number)
            insort(group, entry)
            at = bisect_left(group, entry)
            found.update((other, None) for _, other in group[max(0, at - 1) : at])
            found.update((other, None) for _, other in group[at + 1 : at + 2])
        return found

    def remove(self, number: int, conjunction: Conjunction) -> Iterable[Pair]:
        """The pairs that are neighbours now that it is gone."""
        found: dict[Pair, None] = {}
        for key, rank in self._left_out(conjunction):
            group = self._groups[key]
            at = bisect_left(group, (rank, number))
            assert group[at][1] == number, "it was added with the same conditions"
            del group[at]
            if 0 < at < len(group):
                pair = group[at - 1][1], group[at][1]
                found[min(pair), max(pair)] = None
            elif not group:
                del self._groups[key]
        return found

    def _left_out(self, conjunction: Conjunction) -> Iterator[tuple[int, Rank]]:
        """The key of each group, and the rank in it."""
        known = self._conditions.known
        while len(self._hashes) < len(known):
            condition = known[len(self._hashes)]
            self._hashes.append(self._chance.getrandbits(64))
            self._ranks.append(_rank(condition, len(self._ranks)))
            if condition.place not in self._place_hashes:
                self._place_hashes[condition.place] = self._chance.getrandbits(64)
        change = [self._place_hashes[known[n].place] - self._hashes[n] for n in conjunction]
        ranks = [self._ranks[number] for number in conjunction]
        total = sum(self._hashes[number] for number in conjunction)
        for at, number in enumerate(conjunction):
            yield (total + change[at]) & _MASK, ranks[at]
            for later in range(at + 1, len(conjunction) if len(conjunction) <= PAIRS_MAX else 0):
                first, second = (at, later)
                if known[conjunction[later]].place < known[number].place:
                    first, second = later, at
                yield (total + change[at] + change[later]) & _MASK, ranks[first] + ranks[second]


def _rank(condition: Condition, number: int) -> Rank:
    """By the lower end, then the upper one; without values, in the order of numbers.

    The place comes first, so that values of two kinds are never compared, whatever the hashes.
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
