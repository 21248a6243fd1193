"""The merger of a pair of conjunctions, and the probability that it matches a false positive.

    to = 'Paris'  price < 100  class = 1
    to = 'Paris'  price = 145  class = 1     common: to, class     differs: price, joined: <= 145

A node is a conjunction and the original filters (parts) that were merged into it. For each cell it
has the probability that a part matches. Conditions that all parts share are taken at their upper
bound: the true value scales the merger and its parts alike.

False positives are items that the merger matches and no part does; `vain` is their probability.
merge_imperfect.py states the invariant of these bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.cover.cells import Cells, Floats
from headgate.cover.conditions import ConditionTable, Conjunction
from headgate.model.implies_values import Place

ANY, NEVER = -1, -2


class CellProbabilities(NamedTuple):
    """The probability of each condition within each cell."""

    low: Floats  # [condition, cell]: at least
    high: Floats  # [condition, cell]: at most
    weights: Floats  # [cell]: they sum up to 1


@nb.njit(nogil=True, cache=True)
def weigh_pair(common, differences, cells, matched_parts, matched):  # type: ignore[no-untyped-def]
    """Upper bounds of the probability of the merger, and of its false positives.

    common         int64 [n]         conditions that both conjunctions have
    differences    int64 [place, 4]  the conditions of the first, the second, the merger, and the
                                     intersection; ANY stands for no condition, NEVER for one that
                                     nothing satisfies
    cells          CellProbabilities
    matched_parts  (first, second), float64 [cell]: lower bounds of what the parts of each match
    matched        float64 [cell]    out: a lower bound of what the parts of both match
    """
    low, high, weights = cells
    matched_first, matched_second = matched_parts
    total = vain = 0.0
    for cell in range(weights.shape[0]):
        shared = 1.0
        for number in common:
            shared *= high[number, cell]
        merged = overlap = shared
        left, right = matched_first[cell], matched_second[cell]
        for place in range(differences.shape[0]):
            joined, both = differences[place, 2], differences[place, 3]
            if joined >= 0:
                merged *= high[joined, cell]
            if both == NEVER:
                overlap = 0.0
            elif both >= 0:
                overlap *= high[both, cell]
            # A condition that the merger lacks is no longer shared; use its lower bound.
            number = differences[place, 0]
            if number >= 0 and number != joined and low[number, cell] < high[number, cell]:
                left *= low[number, cell] / high[number, cell]
            number = differences[place, 1]
            if number >= 0 and number != joined and low[number, cell] < high[number, cell]:
                right *= low[number, cell] / high[number, cell]
        matched_by_parts = min(merged, max(left, right, left + right - overlap))
        matched[cell] = matched_by_parts
        total += weights[cell] * merged
        vain += weights[cell] * (merged - matched_by_parts)
    return total, vain


@dataclass(frozen=True, slots=True, eq=False)
class MergeNode:
    conjunction: Conjunction
    parts: tuple[int, ...]
    matched: Floats
    """For each cell, a lower bound of the probability that a part matches."""
    probability: float
    """An upper bound of the probability of the conjunction."""
    vain: float
    """An upper bound of the probability that the conjunction matches and no part does."""


Difference = tuple[int, int, int, int]
"""At a place where two conjunctions differ: the condition of the first, of the second, of their
merger, and their intersection."""


class MergeCosts:
    def __init__(self, conditions: ConditionTable, cells: Cells) -> None:
        self._conditions = conditions
        self._cells = cells
        self._low = np.zeros((64, cells.weights.size))
        self._high = np.zeros((64, cells.weights.size))
        self._known_count = 0

    def single(self, conjunction: Conjunction, parts: tuple[int, ...]) -> MergeNode:
        """The node of a conjunction that is equal to each of its parts."""
        self._look_up_new()
        matched = self._high[list(conjunction)].prod(axis=0)
        return MergeNode(conjunction, parts, matched, float(self._cells.weights @ matched), 0.0)

    def vain(self, first: MergeNode, second: MergeNode) -> float:
        """An upper bound of the probability that the pair's merger matches a false positive."""
        return self._weigh(first, second, *self._compare(first.conjunction, second.conjunction))[1]

    def merged(self, first: MergeNode, second: MergeNode) -> MergeNode:
        common, differences = self._compare(first.conjunction, second.conjunction)
        joined = [joined for _, _, joined, _ in differences if joined != ANY]
        probability, vain, matched = self._weigh(first, second, common, differences)
        conjunction = tuple(sorted((*common, *joined)))
        parts = tuple(sorted(first.parts + second.parts))
        return MergeNode(conjunction, parts, matched, probability, vain)

    def _compare(
        self, first: Conjunction, second: Conjunction
    ) -> tuple[set[int], list[Difference]]:
        common = set(first) & set(second)
        places: dict[Place, tuple[list[int], list[int]]] = {}
        for side, conjunction in enumerate((first, second)):
            for number in conjunction:
                if number not in common:
                    place = self._conditions.entries[number].place
                    places.setdefault(place, ([], []))[side].append(number)
        return common, [each for pair in places.values() for each in self._at_place(*pair)]

    def _at_place(self, first: list[int], second: list[int]) -> Iterator[Difference]:
        """One condition on each side is joined; anything else is dropped."""
        if len(first) != 1 or len(second) != 1:
            yield from ((number, ANY, ANY, number) for number in first)
            yield from ((ANY, number, ANY, number) for number in second)
            return
        left, right = first[0], second[0]
        joined = self._conditions.joined(left, right)
        if self._conditions.entries[left].values is None:
            yield left, right, ANY, ANY
            return
        both = self._conditions.both(left, right)
        yield left, right, ANY if joined is None else joined, NEVER if both is None else both

    def _weigh(
        self, first: MergeNode, second: MergeNode, common: set[int], differences: list[Difference]
    ) -> tuple[float, float, Floats]:
        """The merger's probability, that of its false positives, and what its parts match."""
        self._look_up_new()
        matched = np.empty(self._cells.weights.size)
        probability, vain = weigh_pair(
            np.array(list(common), np.int64),
            np.array(differences, np.int64).reshape(-1, 4),
            CellProbabilities(self._low, self._high, self._cells.weights),
            (first.matched, second.matched),
            matched,
        )
        return probability, vain, matched

    def _look_up_new(self) -> None:
        """Look up the probabilities of conditions that are new since the last time."""
        conditions = self._conditions.entries
        if len(conditions) > len(self._low):
            room = np.zeros((2 * len(conditions) - len(self._low), self._cells.weights.size))
            self._low = np.concatenate([self._low, room])
            self._high = np.concatenate([self._high, room])
        for number in range(self._known_count, len(conditions)):
            self._low[number], self._high[number] = self._cells.of(conditions[number])
        self._known_count = len(conditions)
