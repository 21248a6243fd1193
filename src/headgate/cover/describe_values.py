"""Dependencies between the places of a description: parts of timestamps, words and links.

A description (describe_filter.py) has the allowed values of each place. Places are not always
independent; the functions here apply what one place implies for another:

    published.year = 2026                          published is an instant
    published > … and not published.month = 5      its month is 1 … 4 or 6 … 12, and not missing
    title in ('rock', 'pop') and title contains 'rock'          title: {'rock'}
    title != 'rock'                                title: any text, and the filter is not exact
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from xml.sax.saxutils import escape

from headgate.model.atoms import Comparison, Contains, LinkAtom, Relation, Similar, TimestampPart
from headgate.model.implies import contradictory
from headgate.model.implies_normal import Literal
from headgate.model.implies_values import ANY, PRESENT, ValueSet
from headgate.model.intervals import NOTHING, IntervalSet, between, interval_set, values_in
from headgate.model.text import NormalLink
from headgate.model.values import Comparable, Kind, Link, Value, Xml, comparable

DescriptionPlace = tuple[object, ...]
"""("value", attribute, part), or a property that an item has or has not: ("word", attribute,
word), …"""
Description = dict[DescriptionPlace, ValueSet]

_TEXT_KINDS = (Kind.TEXT, Kind.XML, Kind.LINK)
_INSTANTS = ValueSet(False, {Kind.TIMESTAMP: PRESENT.of(Kind.TIMESTAMP)})
_NO_INSTANTS = _INSTANTS.complement()
_PART_RANGE: dict[object, IntervalSet] = {
    TimestampPart.DATE: PRESENT.of(Kind.TIMESTAMP),
    TimestampPart.YEAR: between(1, 9999),
    TimestampPart.MONTH: between(1, 12),
    TimestampPart.DAY: between(1, 31),
    TimestampPart.HOUR: between(0, 23),
    TimestampPart.MINUTE: between(0, 59),
    TimestampPart.SECOND: between(0, 59),
    TimestampPart.WEEKDAY: between(1, 7),
}


def restrict_parts(values: Description) -> None:
    """Make whole attributes and their parts consistent: only an instant has parts."""
    at_parts = [place for place in values if place[2] is not None]
    for place in at_parts:
        of_part, whole = values[place], ("value", place[1], None)
        if not of_part.missing:
            values[whole] = values.get(whole, ANY).intersection(_INSTANTS)
        if not _possible(of_part, place[2]):
            values[whole] = values.get(whole, ANY).intersection(_NO_INSTANTS)
    for place in at_parts:
        of_attribute = values.get(("value", place[1], None), ANY)
        left = _possible(values[place], place[2])
        if of_attribute.missing or set(of_attribute.kinds) - {Kind.TIMESTAMP}:
            del values[place]  # it may have no parts, which a place cannot express
        elif left == _PART_RANGE[place[2]]:
            del values[place]  # every instant has such a part
        else:
            kind = Kind.TIMESTAMP if place[2] is TimestampPart.DATE else Kind.NUMBER
            values[place] = ValueSet(False, {kind: left} if left else {})


def _possible(values: ValueSet, part: object) -> IntervalSet:
    """The values that a part can have: instants, or a union of closed ranges of integers."""
    if part is TimestampPart.DATE:
        return values.of(Kind.TIMESTAMP)
    integers = NOTHING
    for low, high in values.of(Kind.NUMBER).intersection(_PART_RANGE[part]).intervals:
        assert isinstance(low.value, int | float)
        assert isinstance(high.value, int | float)
        first = math.floor(low.value) + 1 if low.after else math.ceil(low.value)
        last = math.floor(high.value) if high.after else math.ceil(high.value) - 1
        if first <= last:
            integers = _join_integers(integers, between(first, last))
    return integers


def _join_integers(before: IntervalSet, later: IntervalSet) -> IntervalSet:
    """The union of sets of integers; [1, 4] and [5, 6] become [1, 6]. `later` has one interval."""
    if before:
        low, high = before.intervals[-1]
        next_low, next_high = later.intervals[0]
        if high.value + 1 == next_low.value:  # type: ignore[operator]  # both are integers
            return interval_set((*before.intervals[:-1], (low, next_high)))
    return before.union(later)


def without_refuted(
    place: DescriptionPlace, values: ValueSet, literals: Iterable[Literal]
) -> ValueSet:
    """Remove single texts and links, and ends of intervals, that contradict a literal.

    `title >= 'a' and title contains 'rock'` excludes 'a', as `title > 'a'` does.
    """
    _, attribute, part = place
    refuters = [each for each in literals if _can_refute(each, attribute)]
    if part is not None or not refuters:
        return values
    assert isinstance(attribute, str)
    kinds = dict(values.kinds)
    for kind in _TEXT_KINDS:
        ends = [cut for low, high in values.of(kind).intervals for cut in (low, high)]
        inside = {cut.value for at, cut in enumerate(ends) if cut.after == bool(at % 2)}
        refuted = [
            point
            for point in inside
            if point is not None
            and any(_refutes(each, attribute, point, kind) for each in refuters)
        ]
        if refuted:
            kinds[kind] = kinds[kind].intersection(values_in(refuted).complement())
    return ValueSet(values.missing, {kind: each for kind, each in kinds.items() if each})


def _can_refute(literal: Literal, attribute: object) -> bool:
    """Whether the literal can rule out single texts or links of the attribute."""
    atom = literal.atom
    if not isinstance(atom, Contains | Similar | LinkAtom):
        return False
    return atom.attribute == attribute or (atom.attribute is None and not literal.positive)


def _refutes(literal: Literal, attribute: str, point: Comparable, kind: Kind) -> bool:
    constant = _spelled(point, kind)
    if comparable(constant) != point:
        return False
    return contradictory((literal, Literal(Comparison(attribute, Relation.EQUAL, constant), True)))


def _spelled(point: Comparable, kind: Kind) -> Value:
    """A constant that should compare as this text or link does."""
    if isinstance(point, NormalLink):
        return Link(f"{point.scheme}://{point.host}{point.path}"[0 if point.scheme else 3 :])
    return Xml(escape(str(point))) if kind is Kind.XML else str(point)


def without_holes(values: ValueSet) -> ValueSet:
    """The values, with gaps filled that a filter about words can imply without naming values.

    `not title contains 'rock'` implies `title != 'rock'` and `not title starts with 'rock'`, but
    its description has no values for `title`. So that description still finds the pair, two kinds
    of restriction are dropped here: gaps of a single text or link, and sets that exclude nothing
    but texts and links.
    """
    others = (kind for kind in PRESENT.kinds if kind not in _TEXT_KINDS)
    if values.missing and all(values.of(kind) == PRESENT.of(kind) for kind in others):
        return ANY
    kinds = dict(values.kinds)
    for kind in _TEXT_KINDS:
        intervals = values.of(kind).intervals
        holes = [
            (end, start) for (_, end), (start, _) in pairwise(intervals) if end.value == start.value
        ]
        if holes:
            kinds[kind] = interval_set((*intervals, *holes))
    return ValueSet(values.missing, kinds) if kinds != values.kinds else values
