"""What an atom says about the value of its attribute: the values it allows, kind by kind.

A value set covers everything an attribute can be: missing, or a value of one of the kinds.

    price < 5              number: (…, 5)
    not price < 5          missing; number: [5, …); every other kind
    price is present       every kind
    title starts with 'ab' text, xml: ['ab', 'ac')
    title contains 'rock'  no more than these: text, xml          (necessary, not sufficient)

Value sets of one attribute form a Boolean algebra, so conjunctions, disjunctions and negations of
such atoms are decided by emptiness. A part of a timestamp (published.year) is a value of its own,
missing exactly where the attribute is no timestamp.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from headgate.model.atoms import (
    Between,
    Comparison,
    Contains,
    In,
    IsPresent,
    LinkAtom,
    Matches,
    Relation,
    Similar,
    StartsWith,
    TimestampPart,
    WindowAttribute,
)
from headgate.model.implies_normal import Literal
from headgate.model.intervals import (
    EVERYTHING,
    NOTHING,
    Cut,
    Interval,
    IntervalSet,
    above,
    below,
    between,
    values_in,
    with_prefix,
)
from headgate.model.text import NormalLink
from headgate.model.values import Comparable, Kind, comparable

ValueAtom = Comparison | Between | In | IsPresent | StartsWith
Place = tuple[str, TimestampPart | None]

_ALL_OF_KIND: dict[Kind, IntervalSet] = {
    Kind.NUMBER: between(-math.inf, math.inf),
    Kind.BOOL: values_in((False, True)),
    Kind.TEXT: above("", included=True),
    Kind.TIMESTAMP: EVERYTHING,
    Kind.LINK: above(NormalLink("", "", ""), included=True),
    Kind.BYTES: above(b"", included=True),
    Kind.XML: above("", included=True),
}
_PART_RANGE = {
    TimestampPart.YEAR: between(1, 9999),
    TimestampPart.MONTH: between(1, 12),
    TimestampPart.DAY: between(1, 31),
    TimestampPart.HOUR: between(0, 23),
    TimestampPart.MINUTE: between(0, 59),
    TimestampPart.SECOND: between(0, 59),
    TimestampPart.WEEKDAY: between(1, 7),
}


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Whether the attribute may be missing, and its values by kind; an absent kind has none."""

    missing: bool
    kinds: Mapping[Kind, IntervalSet]

    def of(self, kind: Kind) -> IntervalSet:
        return self.kinds.get(kind, NOTHING)

    def intersection(self, other: ValueSet) -> ValueSet:
        if self is ANY:
            return other
        both = {
            kind: values.intersection(other.kinds[kind])
            for kind, values in self.kinds.items()
            if kind in other.kinds
        }
        return ValueSet(self.missing and other.missing, {k: v for k, v in both.items() if v})

    def complement(self) -> ValueSet:
        remaining = {
            kind: every.intersection(self.of(kind).complement())
            for kind, every in _ALL_OF_KIND.items()
        }
        return ValueSet(
            not self.missing, {kind: values for kind, values in remaining.items() if values}
        )


ANY = ValueSet(True, _ALL_OF_KIND)
PRESENT = ValueSet(False, _ALL_OF_KIND)
TEXTS = ValueSet(False, {kind: _ALL_OF_KIND[kind] for kind in (Kind.TEXT, Kind.XML)})
WITH_LINKS = ValueSet(False, {k: _ALL_OF_KIND[k] for k in (Kind.TEXT, Kind.XML, Kind.LINK)})


def allowed_values(literal: Literal) -> tuple[Place, ValueSet] | None:
    """Where the literal looks and what may stand there; None where it says nothing of values."""
    match literal.atom:
        case Comparison(attribute, _, WindowAttribute(), part):
            return ((attribute, part), PRESENT) if literal.positive else None
        case (
            Comparison(attribute, part=part)
            | Between(attribute, part=part)
            | In(attribute, part=part)
        ):
            return (attribute, part), _values_satisfying(literal.atom, literal.positive)
        case IsPresent(attribute) | StartsWith(attribute):
            return (attribute, None), _values_satisfying(literal.atom, literal.positive)
        case Contains(str(attribute)) | Similar(str(attribute)) | Matches(str(attribute)):
            return ((attribute, None), TEXTS) if literal.positive else None
        case LinkAtom(str(attribute)):
            return ((attribute, None), WITH_LINKS) if literal.positive else None
    return None


@lru_cache(maxsize=4096)
def _values_satisfying(atom: ValueAtom, positive: bool) -> ValueSet:
    """The values for which the atom is true; a new subscription is compared with many others."""
    if not positive:
        return _values_satisfying(atom, True).complement()
    match atom:
        case IsPresent():
            return PRESENT
        case StartsWith():
            texts = with_prefix(atom.folded)
            return ValueSet(False, {Kind.TEXT: texts, Kind.XML: texts})
    assert atom.kind is not None, "a comparison with the window has no constant"
    values = _constants(atom).intersection(_ALL_OF_KIND[atom.kind])
    return ValueSet(False, {atom.kind: values} if values else {})


def _constants(atom: Comparison | Between | In) -> IntervalSet:
    match atom:
        case Comparison(_, relation, constant):
            assert not isinstance(constant, WindowAttribute)
            return _related(relation, comparable(constant))
        case Between(_, low, high):
            return between(comparable(low), comparable(high))
        case In(_, constants):
            return values_in(comparable(constant) for constant in constants)


def _related(relation: Relation, constant: Comparable) -> IntervalSet:
    match relation:
        case Relation.EQUAL:
            return values_in([constant])
        case Relation.NOT_EQUAL:
            return values_in([constant]).complement()
        case Relation.LESS | Relation.LESS_EQUAL:
            return below(constant, included=relation is Relation.LESS_EQUAL)
        case Relation.GREATER | Relation.GREATER_EQUAL:
            return above(constant, included=relation is Relation.GREATER_EQUAL)


def is_possible(values: ValueSet, parts: Mapping[TimestampPart, ValueSet]) -> bool:
    """Whether an attribute can have such a value and such parts.

    A timestamp has all parts and anything else has none. What the instant says about its parts,
    and the parts about each other, is not looked at.
    """
    can_be_no_timestamp = values.missing or any(kind is not Kind.TIMESTAMP for kind in values.kinds)
    if can_be_no_timestamp and all(allowed.missing for allowed in parts.values()):
        return True
    return bool(values.of(Kind.TIMESTAMP)) and all(
        _some_part(part, allowed) for part, allowed in parts.items()
    )


def _some_part(part: TimestampPart, allowed: ValueSet) -> bool:
    """Whether a timestamp's part can have one of the values: an instant, or a small integer."""
    if part is TimestampPart.DATE:
        return bool(allowed.of(Kind.TIMESTAMP))
    numbers = allowed.of(Kind.NUMBER).intersection(_PART_RANGE[part])
    return any(_holds_integer(interval) for interval in numbers.intervals)


def _holds_integer(interval: Interval) -> bool:
    low, high = interval
    assert isinstance(low.value, (int, float)), "the range of a part is finite"
    first = math.floor(low.value) + 1 if low.after else math.ceil(low.value)
    return Cut(first, False) < high
