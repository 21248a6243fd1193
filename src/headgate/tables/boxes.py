"""Subscriptions as boxes, and how to get them from plans ([Select-Joins §2.2]).

    σ[PER between 45 and 70 and Name contains 'x'](Stocks) ⋈ₙ[Symbol] σ[Rating >= 6](Reviews)

    sides        Stocks    PER [45, 70]       residual: Name contains 'x'
                 Reviews   Rating [6, ∞)
    residual     a filter above the join: it compares attributes of several sides or looks at the
                 whole item
    box          [45, 70] × [6, ∞)

Ranges are closed. A missing value is −∞. An attribute without a condition has the range [−∞, ∞],
which contains −∞; a condition never does, so its bounds are at least `LEAST`, the least finite
number.

Invariant: a row that satisfies its side's filter is in the side's ranges. The converse holds if the
residual is empty and numbers are exact: a float holds every integer up to 2⁵³ and every microsecond
until the year 2255. Residuals are evaluated on results (`results.py`), as the paper leaves "the
remaining selection conditions" to subscribers (Appendix C).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from headgate.model.atoms import Atom, Between, Comparison, Relation
from headgate.model.errors import InvalidValue
from headgate.model.filters import TRUE, And, Filter, Not, Or, conjunction, conjuncts
from headgate.model.values import Kind, Value, kind_of
from headgate.plan import algebra
from headgate.tables.box_tree_kernels import Floats, Longs

MISSING = -math.inf
LEAST = -float(np.finfo(np.float64).max)
"""The lower bound of a condition that has none, as `PER <= 70`."""


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Subscriptions as boxes: bounds are [subscription, attribute], the left table's attributes
    first.

    A number identifies a subscription. Numbers are small, and are reused after it has ended.
    """

    numbers: Longs
    low: Floats
    high: Floats

    def __post_init__(self) -> None:
        if self.low.shape != self.high.shape or len(self.low) != len(self.numbers):
            raise InvalidValue(
                f"bounds have different shapes: {len(self.numbers)} subscriptions, lower bounds "
                f"{self.low.shape}, upper bounds {self.high.shape}"
            )
        if np.isnan(self.low).any() or np.isnan(self.high).any():
            row = int(np.argmax((np.isnan(self.low) | np.isnan(self.high)).any(axis=1)))
            raise InvalidValue(f"subscription {self.numbers[row]} has a bound that is not a number")
        if len(np.unique(self.numbers)) < len(self.numbers) or (self.numbers < 0).any():
            raise InvalidValue("subscription numbers must be unique and not negative")
        if (self.low > self.high).any():
            row = int(np.argmax((self.low > self.high).any(axis=1)))
            raise InvalidValue(f"subscription {self.numbers[row]} has a range that is empty")


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ROUNDED_FROM = 2.0**53
"""From here on, not every integer is a float."""
Range = tuple[float, float]
ANY: Range = (MISSING, math.inf)


@dataclass(frozen=True, slots=True)
class SelectedTable:
    """One side of a select-join: a table, its ranges by attribute, and its residual filter `rest`.

    `on` are the join attributes that the table has; with more than two sides it may lack some.
    """

    table: str
    ranges: Mapping[str, Range]
    rest: Filter = TRUE
    on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SelectJoin:
    """A natural join of selected tables; `rest` is the residual filter above the join."""

    on: tuple[str, ...]
    sides: tuple[SelectedTable, ...]
    rest: Filter = TRUE

    @property
    def signature(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Tables and join attributes: joins with the same signature are processed together."""
        return tuple(side.table for side in self.sides), self.on

    @property
    def is_empty(self) -> bool:
        """Whether a range is empty, so that the join never has a result."""
        return any(low > high for side in self.sides for low, high in side.ranges.values())


def select_join_of(plan: algebra.Plan) -> SelectJoin | None:
    """A plan in normal form as a select-join; None if it is not one.

    Each side must be a table with or without a filter, not a union or a join.
    """
    match plan:
        case algebra.Filter(rest, algebra.NaturalJoin() as join):
            pass
        case algebra.NaturalJoin() as join:
            rest = TRUE
        case _:
            return None
    sides = [
        _side(input_, tuple(name for name in join.on if name in side.attributes))
        for side, input_ in zip(join.sides, join.inputs, strict=True)
    ]
    selected = tuple(side for side in sides if side is not None)
    return SelectJoin(join.on, selected, rest) if len(selected) == len(sides) else None


def _side(plan: algebra.Plan, on: tuple[str, ...]) -> SelectedTable | None:
    match plan:
        case algebra.Source(name):
            return SelectedTable(name, {}, on=on)
        case algebra.Filter(filter_, algebra.Source(name)):
            return _selected(name, filter_, on)
        case _:
            return None


def _selected(table: str, filter_: Filter, on: tuple[str, ...]) -> SelectedTable:
    ranges: dict[str, Range] = {}
    rest: list[Filter] = []
    for part in conjuncts(filter_):
        bounds = None if isinstance(part, And | Or | Not) else range_of(part)
        if bounds is None:
            rest.append(part)
            continue
        attribute, (low, high) = bounds
        before = ranges.get(attribute, ANY)
        ranges[attribute] = max(low, before[0]), min(high, before[1])
    return SelectedTable(table, ranges, conjunction(rest) if rest else TRUE, on)


def range_of(atom: Atom) -> tuple[str, Range] | None:
    """The attribute and range of an atom; None if the atom is not a range of numbers.

    >>> range_of(Comparison("PER", Relation.GREATER_EQUAL, 45))
    ('PER', (45.0, inf))
    """
    match atom:
        case Between(attribute, low, high, None):
            first, last = number_of(low), number_of(high)
            if first is not None and last is not None:
                return attribute, (max(first, LEAST), last)
        case Comparison(attribute, relation, int() | float() | datetime() as value, None):
            number = number_of(value)
            if number is not None and relation is not Relation.NOT_EQUAL:
                return attribute, _range_of_relation(
                    relation, number, is_exact=_is_exact(value, number)
                )
        case _:
            pass
    return None


def _range_of_relation(relation: Relation, number: float, *, is_exact: bool) -> Range:
    """A bound that rounding may have moved is included in the range."""
    match relation:
        case Relation.EQUAL:
            return number, number
        case Relation.LESS:
            return LEAST, float(np.nextafter(number, -np.inf)) if is_exact else number
        case Relation.LESS_EQUAL:
            return LEAST, number
        case Relation.GREATER:
            return float(np.nextafter(number, np.inf)) if is_exact else number, math.inf
        case _:
            return max(number, LEAST), math.inf


def number_of(value: Value | None) -> float | None:
    """A number or a timestamp as a float; None if it is neither, or missing."""
    if value is None:
        return None
    kind = kind_of(value)
    if kind is Kind.TIMESTAMP:
        assert isinstance(value, datetime), "timestamps are datetimes"
        since = value - EPOCH
        return float((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)
    if kind is not Kind.NUMBER:
        return None
    assert isinstance(value, int | float), "numbers are ints or floats"
    number = float(value)
    return None if math.isnan(number) else number


def _is_exact(value: Value, number: float) -> bool:
    """Whether the bound is exact, and no other value rounds to it."""
    return (isinstance(value, datetime) or value == number) and abs(number) < ROUNDED_FROM


@dataclass(frozen=True, slots=True, eq=False)
class BoxGroup:
    """Subscriptions of one signature as boxes over all attributes that any of them restricts."""

    attributes: tuple[tuple[str, ...], tuple[str, ...]]
    boxes: Boxes

    @property
    def dimensions(self) -> tuple[int, int]:
        left, right = self.attributes
        return max(1, len(left)), max(1, len(right))


def box_group(numbers: Sequence[int], joins: Iterable[SelectJoin]) -> BoxGroup:
    """The boxes of two-way select-joins that have the same signature.

    None of them may be empty. A table that nobody restricts gets one attribute with the empty name
    and the range [−∞, ∞].
    """
    joins = list(joins)
    assert len({join.signature for join in joins}) <= 1, "joins of one group have one signature"
    assert all(len(join.sides) == 2 for join in joins), "joins of a box group have two sides"
    left, right = (
        tuple(sorted({name for join in joins for name in join.sides[side].ranges}))
        for side in range(2)
    )
    columns = [(0, name) for name in left or ("",)] + [(1, name) for name in right or ("",)]
    bounds = np.array(
        [[join.sides[side].ranges.get(name, ANY) for side, name in columns] for join in joins]
    ).reshape(len(joins), len(columns), 2)
    low, high = np.ascontiguousarray(bounds[..., 0]), np.ascontiguousarray(bounds[..., 1])
    return BoxGroup((left, right), Boxes(np.array(numbers, np.int64), low, high))
