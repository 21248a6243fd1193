"""The probability that an item satisfies a filter, from statistics ([MBD §5.3, §6]).

For each place there is a distribution of values. Different places are taken as independent, because
nothing better is known; several atoms on one place are one set of values (conditions.py):

    P(x > 3 and x < 9 and y = 1)  =  P(x in (3, 9)) · P(y in {1})

A filter becomes a union of *boxes*: for each place the allowed values, and whether the attribute
may be missing. A box does not restrict places that it does not name. The union is split into
disjoint boxes, so that probabilities can be added:

    price < 5 and to = 'Paris'       price (…, 5)       to {paris}
    its complement                   price [5, …) or missing
                                     price (…, 5)       to anything but paris, or missing

    ┌──────┐               ┌──────┐
    │   ┌──┼───┐           │      ├───┐
    └───┼──┘   │    ──►    └───┬──┴───┤       a \\ b has at most one box for each place of b
        └──────┘               └──────┘

The result is a pair of bounds. They are equal for filters of value atoms with `and` and `or`, on
places whose distribution is known, as long as there are at most BOXES_MAX boxes. Other parts of a
filter, such as words or operator calls, have a probability between 0 and 1.

Invariant: if places are independent, the probability lies within the bounds.

Cost: a union of n boxes on k places can have k^n disjoint boxes; BOXES_MAX bounds it.

Rejected: a probability for words as well, taken as independent of the rest. What the text of an
item contains depends on what it equals or begins with; where words matter, use a sample (cells.py).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from headgate.cover.value_sets import is_value_atom, place_of, values_of
from headgate.model.filters import And, Filter, Not, Or
from headgate.model.implies_values import Place
from headgate.model.intervals import EVERYTHING, NOTHING, Cut, IntervalSet
from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.model.values import (
    Comparable,
    Kind,
    comparable,
    is_missing,
    kind_of,
    kind_of_type,
)

BOXES_MAX = 256


@dataclass(frozen=True, slots=True)
class Extent:
    """The values that a place may have."""

    values: IntervalSet
    missing: bool

    def __bool__(self) -> bool:
        return self.missing or bool(self.values)

    def intersection(self, other: Extent) -> Extent:
        values = self.values.intersection(other.values)
        return Extent(values, self.missing and other.missing)

    def complement(self) -> Extent:
        return Extent(self.values.complement(), not self.missing)


ANYTHING = Extent(EVERYTHING, True)
NO_EXTENT = Extent(NOTHING, False)
Box = Mapping[Place, Extent]


def boxes_of(filter_: Filter, schema: Schema) -> list[Box] | None:
    """The filter as a union of boxes; None if it is not one, or has too many."""
    match filter_:
        case Or(parts):
            union: list[Box] = []
            for part in parts:
                boxes_of_part = boxes_of(part, schema)
                if boxes_of_part is None or len(union) + len(boxes_of_part) > BOXES_MAX:
                    return None
                union += boxes_of_part
            return union
        case And(parts):
            product: list[Box] = [{}]
            for part in parts:
                factors = boxes_of(part, schema)
                if factors is None or len(product) * len(factors) > BOXES_MAX:
                    return None
                pairs = [box_intersection(left, right) for left in product for right in factors]
                product = [each for each in pairs if each is not None]
            return product
    box = _box_of_atom(filter_, schema)
    return None if box is None else [box]


def _box_of_atom(filter_: Filter, schema: Schema) -> Box | None:
    if not is_value_atom(filter_):
        return None
    attribute = schema.get(filter_.attribute)
    if attribute is None:
        return None
    return {place_of(filter_): Extent(values_of(filter_, attribute.type), False)}


def box_intersection(left: Box, right: Box) -> Box | None:
    """The values that both allow; None if there are none."""
    both = dict(left)
    for place, extent in right.items():
        both[place] = both.get(place, ANYTHING).intersection(extent)
        if not both[place]:
            return None
    return both


def disjoint(boxes: Sequence[Box]) -> list[Box] | None:
    """Disjoint boxes with the same union; None if there would be too many."""
    split: list[Box] = []
    for box in boxes:
        rest = [box] if all(box.values()) else []
        for other in list(split):
            rest = [piece for each in rest for piece in _difference(each, other)]
            if len(rest) + len(split) > BOXES_MAX:
                return None
        split += rest
    return split


def _difference(box: Box, other: Box) -> list[Box]:
    """box \\ other: for each place a box that differs there and agrees at the places before."""
    if box_intersection(box, other) is None:
        return [box]
    pieces: list[Box] = []
    agreeing = dict(box)
    for place, extent in other.items():
        here = agreeing.get(place, ANYTHING)
        outside = here.intersection(extent.complement())
        if outside:
            pieces.append({**agreeing, place: outside})
        agreeing[place] = here.intersection(extent)
    return pieces


@dataclass(frozen=True, slots=True)
class ProbabilityBounds:
    """A lower and an upper bound of a probability."""

    low: float
    high: float

    def __post_init__(self) -> None:
        assert 0 <= self.low <= self.high <= 1, self

    def complement(self) -> ProbabilityBounds:
        return ProbabilityBounds(1 - self.high, 1 - self.low)


UNKNOWN = ProbabilityBounds(0, 1)


class Distribution(Protocol):
    """The distribution of values at a place; `presence` is the probability of having a value."""

    @property
    def presence(self) -> float: ...

    def share(self, values: IntervalSet) -> float:
        """The probability of the values; at most the presence."""
        ...


@dataclass(frozen=True, slots=True)
class SampledDistribution:
    """The sorted values of a sample of `item_count` items, some of which may have no value."""

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
    """Distributions of the items of one source. Immutable; without an entry a place is unknown."""

    schema: Schema
    distributions: Mapping[Place, Distribution]

    def of_extent(self, place: Place, extent: Extent) -> ProbabilityBounds:
        """The probability that the value at a place is in the extent."""
        if extent.missing and not extent.values.complement():
            return ProbabilityBounds(1, 1)
        distribution = self.distributions.get(place)
        if distribution is None:
            return UNKNOWN
        share = distribution.share(extent.values) + (
            1 - distribution.presence if extent.missing else 0
        )
        share = min(1.0, max(0.0, share))
        return ProbabilityBounds(share, share)

    def of_box(self, box: Box) -> ProbabilityBounds:
        low = high = 1.0
        for place, extent in box.items():
            bounds = self.of_extent(place, extent)
            low, high = low * bounds.low, high * bounds.high
        return ProbabilityBounds(low, high)

    def probability(self, filter_: Filter) -> ProbabilityBounds:
        boxes = boxes_of(filter_, self.schema)
        split = None if boxes is None else disjoint(boxes)
        if split is None:
            return self._by_parts(filter_)
        bounds = [self.of_box(box) for box in split]
        low, high = sum(each.low for each in bounds), sum(each.high for each in bounds)
        if low < high:  # if a place is unknown, the bounds by parts may be tighter
            by_parts = self._by_parts(filter_)
            low, high = max(low, by_parts.low), min(high, by_parts.high)
        return ProbabilityBounds(min(1.0, low), min(1.0, max(low, high)))

    def _by_parts(self, filter_: Filter) -> ProbabilityBounds:
        """Bounds that hold whatever the dependence between the parts (Fréchet)."""
        match filter_:
            case Not(part):
                return self.probability(part).complement()
            case And(parts):
                bounds = [self.probability(part) for part in parts]
                low = max(0.0, 1 - sum(1 - each.low for each in bounds))
                return ProbabilityBounds(low, min((each.high for each in bounds), default=1.0))
            case Or(parts):
                bounds = [self.probability(part) for part in parts]
                high = min(1.0, sum(each.high for each in bounds))
                return ProbabilityBounds(max((each.low for each in bounds), default=0.0), high)
        boxes = boxes_of(filter_, self.schema)
        return self.of_box(boxes[0]) if boxes else UNKNOWN


def counted_statistics(schema: Schema, items: Iterable[Item]) -> Statistics:
    """The distribution of each attribute in a sample; correlations are not counted."""
    sample = list(items)
    distributions: dict[Place, Distribution] = {}
    for attribute in schema.attributes:
        values = values_in_items(sample, attribute.name, kind_of_type(attribute.type))
        distributions[attribute.name, None] = SampledDistribution(
            sorted(v for v in values if v is not None), len(sample)
        )
    return Statistics(schema, distributions)


def values_in_items(items: Sequence[Item], attribute: str, kind: Kind) -> list[Comparable | None]:
    """Each item's value in the form in which it compares; None where it has none of this kind."""
    raw = [item.attributes.get(attribute) for item in items]
    return [
        None
        if value is None or is_missing(value) or kind_of(value) is not kind
        else comparable(value)
        for value in raw
    ]
