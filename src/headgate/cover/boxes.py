"""Boxes: for each place the values that are allowed there, and whether none may be there at all.

    price < 5 and to = 'Paris'       price (…, 5)       to {paris}
    its complement within all        price [5, …) or missing
                                     price (…, 5)       to anything but paris, or missing

Boxes have no opinion on places that they do not name. The union of boxes is taken apart into boxes
that have nothing in common, so that probabilities can be added:

    ┌──────┐               ┌──────┐
    │   ┌──┼───┐           │      ├───┐
    └───┼──┘   │    ──►    └───┬──┴───┤       a \\ b has at most one box for each place of b
        └──────┘               └──────┘

Cost: what is left of a union of n boxes on k places can have k^n boxes; `BOXES_MAX` bounds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.cover.place_values import is_value_atom, place_of, values_of
from headgate.model.filters import And, Filter, Or
from headgate.model.implies_values import Place
from headgate.model.intervals import EVERYTHING, NOTHING, IntervalSet
from headgate.model.schema import Schema

BOXES_MAX = 256


@dataclass(frozen=True, slots=True)
class Extent:
    """What may stand at a place."""

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
NEVER = Extent(NOTHING, False)
Box = Mapping[Place, Extent]


def boxes_of(filter_: Filter, schema: Schema) -> list[Box] | None:
    """The filter as a union of boxes; None where it is none, or one of too many."""
    match filter_:
        case Or(parts):
            found: list[Box] = []
            for part in parts:
                more = boxes_of(part, schema)
                if more is None or len(found) + len(more) > BOXES_MAX:
                    return None
                found += more
            return found
        case And(parts):
            product: list[Box] = [{}]
            for part in parts:
                factors = boxes_of(part, schema)
                if factors is None or len(product) * len(factors) > BOXES_MAX:
                    return None
                pairs = [intersection(left, right) for left in product for right in factors]
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


def intersection(left: Box, right: Box) -> Box | None:
    """What both allow; None where that is nothing."""
    both = dict(left)
    for place, extent in right.items():
        both[place] = both.get(place, ANYTHING).intersection(extent)
        if not both[place]:
            return None
    return both


def disjoint(boxes: Sequence[Box]) -> list[Box] | None:
    """Boxes with the same union and nothing in common; None where they would be too many."""
    apart: list[Box] = []
    for box in boxes:
        rest = [box] if all(box.values()) else []
        for other in list(apart):
            rest = [piece for each in rest for piece in _difference(each, other)]
            if len(rest) + len(apart) > BOXES_MAX:
                return None
        apart += rest
    return apart


def _difference(box: Box, other: Box) -> list[Box]:
    """box \\ other: place by place, what differs there and agrees at the places before."""
    if intersection(box, other) is None:
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
