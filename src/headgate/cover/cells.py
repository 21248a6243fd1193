"""Cells: a partition of all items, such that conditions are independent within each cell.

Imperfect merging needs the probability that an item satisfies a merger but none of its parts. Two
kinds of knowledge have the same form: a weight for each cell, and for each condition and cell the
probability of the condition within it.

    statistics                       one cell                 weight 1
    statistics and advertisements    a cell for each box      its share of what is advertised
    a sample of items                a cell for each item     one in n; a condition is 0 or 1 there
    … and advertisements             … that is advertised

With advertisements ([MBD §5.4], Definition 2) only items that satisfy one of them count. Their
union is split into disjoint boxes (probability.py), and all probabilities are conditional on an
item being in it.

Where a probability is not known (words without a sample, attributes without a distribution), the
bounds are 0 and 1.

Cost: memory for each condition and cell; a sample of a thousand items is enough to distinguish
conditions that differ in one percent of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from headgate.cover.conditions import PlaceCondition
from headgate.cover.probability import (
    ANYTHING,
    Box,
    Extent,
    Statistics,
    boxes_of,
    disjoint,
    position,
    values_in_items,
)
from headgate.model.errors import OperatorError, PlanError
from headgate.model.evaluate import matches
from headgate.model.filters import And, Filter, Or
from headgate.model.implies_values import Place
from headgate.model.intervals import IntervalSet
from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.model.values import Comparable, kind_of_type

Floats = npt.NDArray[np.float64]
CellNumbers = npt.NDArray[np.int64]


class Cells(Protocol):
    """The weights sum up to 1. `of` gives a lower and an upper bound for each cell."""

    @property
    def weights(self) -> Floats: ...

    def of(self, condition: PlaceCondition) -> tuple[Floats, Floats]: ...


@dataclass(frozen=True, slots=True, eq=False)
class BoxCells:
    """Disjoint boxes, each of a known probability above 0."""

    statistics: Statistics
    boxes: tuple[Box, ...]
    weights: Floats
    _at_place: dict[Place, tuple[list[Extent], CellNumbers]] = field(default_factory=dict)

    def of(self, condition: PlaceCondition) -> tuple[Floats, Floats]:
        if condition.values is None:
            return np.zeros(len(self.boxes)), np.ones(len(self.boxes))
        given, which = self._extents(condition.place)
        bounds = [self._within(condition.place, each, condition.values) for each in given]
        low, high = zip(*bounds, strict=True)
        return np.array(low)[which], np.array(high)[which]

    def _extents(self, place: Place) -> tuple[list[Extent], CellNumbers]:
        """The different extents that boxes have at a place, and which of them each box has."""
        if place not in self._at_place:
            numbers: dict[Extent, int] = {}
            extents = (box.get(place, ANYTHING) for box in self.boxes)
            which = np.array([numbers.setdefault(each, len(numbers)) for each in extents], np.int64)
            self._at_place[place] = list(numbers), which
        return self._at_place[place]

    def _within(self, place: Place, given: Extent, values: IntervalSet) -> tuple[float, float]:
        """The probability of the values, given the extent."""
        if given is ANYTHING:
            bounds = self.statistics.of_extent(place, Extent(values, False))
            return bounds.low, bounds.high
        part = self.statistics.of_extent(place, Extent(values, False).intersection(given))
        whole = self.statistics.of_extent(place, given).low
        return min(1.0, part.low / whole), min(1.0, part.high / whole)


def cells_of_statistics(
    statistics: Statistics, advertisements: Sequence[Filter] | None = None
) -> BoxCells:
    """The cells of what is advertised; without advertisements, of everything.

    Raises PlanError where the probability of what is advertised is not known, or is 0.
    """
    if advertisements is None:
        return BoxCells(statistics, ({},), np.ones(1))
    boxes = boxes_of(Or(tuple(advertisements)), statistics.schema)
    split = None if boxes is None else disjoint(boxes)
    bounds = [statistics.of_box(box) for box in split or ()]
    if split is None or any(each.low < each.high for each in bounds):
        raise PlanError(
            "the statistics do not give the probability of the advertisements; use a sample"
        )
    shares = np.array([each.low for each in bounds])
    if not shares.any():
        raise PlanError(
            "according to the statistics, no item satisfies the advertisements; "
            "correct one of the two"
        )
    possible = tuple(box for box, share in zip(split, shares, strict=True) if share > 0)
    return BoxCells(statistics, possible, shares[shares > 0] / shares.sum())


class SampleCells:
    """A cell for each item of a sample. Conditions are evaluated on each item, words included."""

    def __init__(self, items: Sequence[Item], schema: Schema) -> None:
        if not items:
            raise PlanError(
                "no item of the sample satisfies the advertisements; use a larger sample"
            )
        self.items = items
        self.weights = np.full(len(items), 1 / len(items))
        self._ordered: dict[str, tuple[list[Comparable], npt.NDArray[np.int64]]] = {}
        for attribute in schema.attributes:
            values = values_in_items(items, attribute.name, kind_of_type(attribute.type))
            present = [(value, at) for at, value in enumerate(values) if value is not None]
            present.sort()
            places = np.array([at for _, at in present], np.int64)
            self._ordered[attribute.name] = [value for value, _ in present], places

    def of(self, condition: PlaceCondition) -> tuple[Floats, Floats]:
        name, part = condition.place
        if condition.values is None or part is not None:
            return self._evaluated(And(condition.written))
        ordered, places = self._ordered[name]
        is_satisfied = np.zeros(len(self.items))
        for low, high in condition.values.intervals:
            is_satisfied[places[position(ordered, low) : position(ordered, high)]] = 1
        return is_satisfied, is_satisfied

    def _evaluated(self, filter_: Filter) -> tuple[Floats, Floats]:
        """Evaluate the filter on each item with the naive evaluator. Operators are not called: a
        filter with an operator gets the bounds 0 and 1."""
        try:
            is_satisfied = np.array([matches(filter_, item) for item in self.items], np.float64)
        except OperatorError:
            return np.zeros(len(self.items)), np.ones(len(self.items))
        return is_satisfied, is_satisfied


def cells_of_sample(
    items: Sequence[Item], schema: Schema, advertisements: Sequence[Filter] | None = None
) -> SampleCells:
    """The cells of a sample's items; with advertisements, of those that satisfy one of them."""
    if advertisements is not None:
        advertised = Or(tuple(advertisements))
        items = [item for item in items if matches(advertised, item)]
    return SampleCells(items, schema)
