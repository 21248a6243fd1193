"""Statistics: how probable it is that an item satisfies a filter ([MBD §5.3, §6]).

For each place a distribution, uniform over a range as in the paper's experiments, or counted in a
sample of items. Different places are taken as independent, since nothing better is known; several
atoms on one place are not, they are one set of values (conditions.py):

    P(x > 3 and x < 9 and y = 1)  =  P(x in (3, 9)) · P(y in {1})

The answer is a pair of bounds. They are equal for filters made of value atoms with `and` and `or`,
on places whose distribution is known, as long as the union of boxes has not too many (boxes.py).
Whatever else a filter has, words or operators, is between never and always true.

Law: if places are independent, the probability lies within the bounds.

Rejected: a probability for words as well, taken as independent of the rest. What an item's text
contains depends on what it equals or begins with; whoever needs words counts a sample as a whole
(cells.py).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from headgate.cover.boxes import Box, Extent, boxes_of, disjoint
from headgate.model.filters import And, Filter, Not, Or
from headgate.model.implies_values import Place
from headgate.model.intervals import Cut, Interval, IntervalSet
from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.model.values import (
    Comparable,
    Kind,
    Type,
    comparable,
    is_missing,
    kind_of,
    kind_of_type,
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """A probability that is known to lie between two numbers."""

    low: float
    high: float

    def __post_init__(self) -> None:
        assert 0 <= self.low <= self.high <= 1, self

    def complement(self) -> Bounds:
        return Bounds(1 - self.high, 1 - self.low)


UNKNOWN = Bounds(0, 1)


class Distribution(Protocol):
    """How probable the values at a place are; `presence` is that of there being any."""

    @property
    def presence(self) -> float: ...

    def share(self, values: IntervalSet) -> float:
        """The probability of the values; at most the presence."""
        ...


@dataclass(frozen=True, slots=True)
class Uniform:
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


@dataclass(frozen=True, slots=True)
class Counted:
    """The values of a sample, in order; some items of it may have had none."""

    ordered: Sequence[Comparable]
    item_count: int

    @property
    def presence(self) -> float:
        return len(self.ordered) / self.item_count if self.item_count else 0.0

    def share(self, values: IntervalSet) -> float:
        if not self.item_count:
            return 0.0
        counts = (
            position(self.ordered, high) - position(self.ordered, low)
            for low, high in values.intervals
        )
        return sum(counts) / self.item_count


def position(ordered: Sequence[Comparable], cut: Cut) -> int:
    """How many of the values lie before the cut."""
    if cut.value is None:
        return len(ordered) if cut.after else 0
    search = bisect_right if cut.after else bisect_left
    return search(ordered, cut.value)


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of the items of one source. Immutable; a place without an entry is unknown."""

    schema: Schema
    distributions: Mapping[Place, Distribution]

    def of_extent(self, place: Place, extent: Extent) -> Bounds:
        """The probability of what may stand at a place."""
        if extent.missing and not extent.values.complement():
            return Bounds(1, 1)
        known = self.distributions.get(place)
        if known is None:
            return UNKNOWN
        share = known.share(extent.values) + (1 - known.presence if extent.missing else 0)
        share = min(1.0, max(0.0, share))
        return Bounds(share, share)

    def of_box(self, box: Box) -> Bounds:
        low = high = 1.0
        for place, extent in box.items():
            bounds = self.of_extent(place, extent)
            low, high = low * bounds.low, high * bounds.high
        return Bounds(low, high)

    def probability(self, filter_: Filter) -> Bounds:
        boxes = boxes_of(filter_, self.schema)
        apart = None if boxes is None else disjoint(boxes)
        if apart is None:
            return self._by_parts(filter_)
        bounds = [self.of_box(box) for box in apart]
        low, high = sum(each.low for each in bounds), sum(each.high for each in bounds)
        if low < high:  # where something is unknown, the parts can say more than the pieces
            by_parts = self._by_parts(filter_)
            low, high = max(low, by_parts.low), min(high, by_parts.high)
        return Bounds(min(1.0, low), min(1.0, max(low, high)))

    def _by_parts(self, filter_: Filter) -> Bounds:
        """What holds however the parts depend on each other."""
        match filter_:
            case Not(part):
                return self.probability(part).complement()
            case And(parts):
                found = [self.probability(part) for part in parts]
                low = max(0.0, 1 - sum(1 - each.low for each in found))
                return Bounds(low, min((each.high for each in found), default=1.0))
            case Or(parts):
                found = [self.probability(part) for part in parts]
                high = min(1.0, sum(each.high for each in found))
                return Bounds(max((each.low for each in found), default=0.0), high)
        boxes = boxes_of(filter_, self.schema)
        return self.of_box(boxes[0]) if boxes else UNKNOWN


def uniform_statistics(schema: Schema, ranges: Mapping[str, tuple[float, float]]) -> Statistics:
    """Numbers that are uniform over their ranges, both ends included, and in every item."""
    found: dict[Place, Distribution] = {}
    for name, (low, high) in ranges.items():
        attribute = schema.get(name)
        assert attribute is not None, f"the schema has no '{name}'"
        assert kind_of_type(attribute.type) is Kind.NUMBER, f"'{name}' is no number"
        found[name, None] = Uniform(low, high, whole=attribute.type is Type.INT)
    return Statistics(schema, found)


def counted_statistics(schema: Schema, items: Iterable[Item]) -> Statistics:
    """The distribution of each attribute in a sample; those between them are not looked at."""
    sample = list(items)
    found: dict[Place, Distribution] = {}
    for attribute in schema.attributes:
        values = values_in_items(sample, attribute.name, kind_of_type(attribute.type))
        found[attribute.name, None] = Counted(
            sorted(v for v in values if v is not None), len(sample)
        )
    return Statistics(schema, found)


def values_in_items(items: Sequence[Item], attribute: str, kind: Kind) -> list[Comparable | None]:
    """Each item's value in the form in which it compares; None where it has none of this kind."""
    raw = [item.attributes.get(attribute) for item in items]
    return [
        None
        if value is None or is_missing(value) or kind_of(value) is not kind
        else comparable(value)
        for value in raw
    ]
