"""What the merger of a pair of conjunctions is, and what it costs (merge_imperfect.py has the law).

    to = 'Paris'  price < 100  class = 1
    to = 'Paris'  price = 145  class = 1     common: to, class     differs: price, joined: <= 145

A node is a conjunction with the original parts that it stands for. For each cell it knows how
probable it is that one of them matches, with every condition that all of them share taken at its
greatest probability: whatever its true one, it scales the merger and its parts alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headgate.cover.cells import Cells, Floats
from headgate.cover.conditions import Conditions, Conjunction
from headgate.cover.imperfect_kernels import ANY, NEVER, weigh_pair
from headgate.model.implies_values import Place


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    conjunction: Conjunction
    parts: tuple[int, ...]
    matched: Floats
    """For each cell, how probable it is at least that a part matches."""
    probability: float
    """Of the conjunction; at most this."""
    vain: float
    """The probability that the conjunction matches and none of the parts does; at most this."""


Difference = tuple[int, int, int, int]
"""At a place where two conjunctions differ: the condition of the first, of the second, of their
merger, and what holds where the first and the second hold."""


class PairWeights:
    def __init__(self, conditions: Conditions, cells: Cells) -> None:
        self._conditions = conditions
        self._cells = cells
        self._low = np.zeros((64, cells.weights.size))
        self._high = np.zeros((64, cells.weights.size))
        self._known_count = 0

    def single(self, conjunction: Conjunction, parts: tuple[int, ...]) -> Node:
        """A conjunction that is nothing but its parts, which are equal."""
        self._look_up_new()
        matched = self._high[list(conjunction)].prod(axis=0)
        return Node(conjunction, parts, matched, float(self._cells.weights @ matched), 0.0)

    def vain(self, first: Node, second: Node) -> float:
        """The probability that the pair's merger matches an item in vain."""
        return self._weigh(first, second, *self._compare(first.conjunction, second.conjunction))[1]

    def merged(self, first: Node, second: Node) -> Node:
        common, differences = self._compare(first.conjunction, second.conjunction)
        joined = [joined for _, _, joined, _ in differences if joined != ANY]
        probability, vain, matched = self._weigh(first, second, common, differences)
        conjunction = tuple(sorted((*common, *joined)))
        parts = tuple(sorted(first.parts + second.parts))
        return Node(conjunction, parts, matched, probability, vain)

    def _compare(
        self, first: Conjunction, second: Conjunction
    ) -> tuple[set[int], list[Difference]]:
        common = set(first) & set(second)
        places: dict[Place, tuple[list[int], list[int]]] = {}
        for side, conjunction in enumerate((first, second)):
            for number in conjunction:
                if number not in common:
                    place = self._conditions.known[number].place
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
        if self._conditions.known[left].values is None:
            yield left, right, ANY, ANY
            return
        both = self._conditions.both(left, right)
        yield left, right, ANY if joined is None else joined, NEVER if both is None else both

    def _weigh(
        self, first: Node, second: Node, common: set[int], differences: list[Difference]
    ) -> tuple[float, float, Floats]:
        """The merger's probability, how much of it is in vain, and what its parts match."""
        self._look_up_new()
        matched = np.empty(self._cells.weights.size)
        probability, vain = weigh_pair(
            np.array(list(common), np.int64),
            np.array(differences, np.int64).reshape(-1, 4),
            self._low,
            self._high,
            first.matched,
            second.matched,
            self._cells.weights,
            matched,
        )
        return probability, vain, matched

    def _look_up_new(self) -> None:
        """Ask the cells about the conditions that were made since the last time."""
        known = self._conditions.known
        if len(known) > len(self._low):
            more = np.zeros((2 * len(known) - len(self._low), self._cells.weights.size))
            self._low = np.concatenate([self._low, more])
            self._high = np.concatenate([self._high, more])
        for number in range(self._known_count, len(known)):
            self._low[number], self._high[number] = self._cells.of(known[number])
        self._known_count = len(known)
