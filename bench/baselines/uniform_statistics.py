"""Statistics of numbers that are uniform over a range, as in the experiments of [MBD §6]."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from headgate.cover.probability import Distribution, Statistics
from headgate.model.implies_values import Place
from headgate.model.intervals import Cut, Interval, IntervalSet
from headgate.model.schema import Schema
from headgate.model.values import Kind, Type, kind_of_type


@dataclass(frozen=True, slots=True)
class UniformDistribution:
    """All numbers from low to high, both included; integers where `whole`."""

    low: float
    high: float
    whole: bool = True
    presence: float = 1.0

    def __post_init__(self) -> None:
        assert self.low < self.high or (self.whole and self.low == self.high)
        assert 0 <= self.presence <= 1

    def share(self, values: IntervalSet) -> float:
        size = sum(self._size(each) for each in values.intervals)
        return self.presence * min(1.0, size / (self.high - self.low + self.whole))

    def _size(self, interval: Interval) -> float:
        low, high = (self._bound(cut) for cut in interval)
        return max(0.0, min(high, self.high + self.whole) - max(low, self.low))

    def _bound(self, cut: Cut) -> float:
        """Where the cut lies; among integers, the first one beyond it."""
        if cut.value is None:
            return math.inf if cut.after else -math.inf
        assert isinstance(cut.value, int | float), "only numbers are uniform"
        if not self.whole or math.isinf(cut.value):
            return cut.value
        return math.floor(cut.value) + 1 if cut.after else math.ceil(cut.value)


def uniform_statistics(schema: Schema, ranges: Mapping[str, tuple[float, float]]) -> Statistics:
    """Numbers that are uniform over their ranges, both ends included, and in every item."""
    found: dict[Place, Distribution] = {}
    for name, (low, high) in ranges.items():
        attribute = schema.get(name)
        assert attribute is not None, f"the schema has no '{name}'"
        assert kind_of_type(attribute.type) is Kind.NUMBER, f"'{name}' is no number"
        found[name, None] = UniformDistribution(low, high, whole=attribute.type is Type.INT)
    return Statistics(schema, found)
