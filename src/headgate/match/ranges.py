"""Comparisons as ranges between cuts, on the values that a column can hold.

Each value v makes two *cuts*, v⁻ just below it and v⁺ just above it:

    x < v    (−∞, v⁻)        x = v    (v⁻, v⁺)         x between l and h    (l⁻, h⁺)
    x <= v   (−∞, v⁺)        x != v   (−∞, v⁻) (v⁺, ∞)
    x > v    (v⁺, ∞)         x in …   (v⁻, v⁺) …       x is present         (−∞, ∞)

A constant that the column cannot hold falls between two values that it can: on integers, 2.5⁻ and
2.5⁺ are both 2⁺. So integers and floats are compared exactly, as the naive evaluator does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from headgate.match.batch import microseconds
from headgate.match.link_forms import ordered_link
from headgate.match.texts import Texts, texts_of
from headgate.model.atoms import (
    Between,
    Comparison,
    In,
    IsPresent,
    Relation,
    TimestampPart,
    WindowAttribute,
)
from headgate.model.values import (
    INT_MAX,
    INT_MIN,
    Kind,
    Link,
    Type,
    Value,
    comparable,
    kind_of,
    kind_of_type,
)

Number = int | float
Cut = tuple[Number, int]
"""A value, and 0 for just below or 1 for just above it."""
Range = tuple[Cut, Cut]
OrderedAtom = Comparison | Between | In | IsPresent
BOTTOM: Cut = (-math.inf, 0)
TOP: Cut = (math.inf, 2)


@dataclass(frozen=True, slots=True)
class Codes:
    """The sorted constants on an attribute whose values are not numbers, and the code of each."""

    texts: Texts
    code_of: Mapping[bytes, int]


def codes_of(atoms: Iterable[OrderedAtom], type_: Type) -> Codes:
    kind = kind_of_type(type_)
    constants = (value for atom in atoms for value in constants_of(atom))
    ordered = sorted({compared_bytes(each) for each in constants if kind_of(each) is kind})
    return Codes(texts_of(ordered), {each: 2 * at + 1 for at, each in enumerate(ordered)})


def compared_bytes(value: Value) -> bytes:
    """Bytes that compare as the values of this kind do; columns hold the same bytes (texts.py)."""
    match value:
        case Link():
            return ordered_link(value)
        case bytes():
            return value
    text = comparable(value)
    assert isinstance(text, str)
    return text.encode("utf-8", "surrogatepass")


def constants_of(atom: OrderedAtom) -> list[Value]:
    match atom:
        case Between(_, low, high):
            return [low, high]
        case In(_, values):
            return list(values)
        case Comparison(_, _, value) if not isinstance(value, WindowAttribute):
            return [value]
    return []


@lru_cache(maxsize=65_536)
def number_ranges(atom: OrderedAtom, type_: Type) -> list[Range]:
    """`ranges_of` on a column of numbers; cached, as the same atoms are compiled often."""
    return ranges_of(atom, type_, None)


def ranges_of(atom: OrderedAtom, type_: Type, codes: Codes | None) -> list[Range]:
    """The ranges that the atom is true of, on a column of this type; none if it is never true."""
    kind = _compared_kind(atom, type_)
    match atom:
        case IsPresent():
            return [(BOTTOM, TOP)]
        case Between(_, low, high) if kind_of(low) is kind:
            return [(_cuts(low, type_, codes)[0], _cuts(high, type_, codes)[1])]
        case In(_, values) if kind_of(values[0]) is kind:
            return [_cuts(value, type_, codes) for value in values]
        case Comparison(_, relation, value) if kind_of(constants_of(atom)[0]) is kind:
            assert not isinstance(value, WindowAttribute)
            return _comparison(relation, *_cuts(value, type_, codes))
    return []


def _compared_kind(atom: OrderedAtom, type_: Type) -> Kind | None:
    part = getattr(atom, "part", None)
    if part is None:
        return kind_of_type(type_)
    if type_ is not Type.TIMESTAMP:
        return None  # only timestamps have parts
    return Kind.TIMESTAMP if part is TimestampPart.DATE else Kind.NUMBER


def _comparison(relation: Relation, below: Cut, above: Cut) -> list[Range]:
    match relation:
        case Relation.EQUAL:
            return [(below, above)]
        case Relation.NOT_EQUAL:
            return [(BOTTOM, below), (above, TOP)]
        case Relation.LESS:
            return [(BOTTOM, below)]
        case Relation.LESS_EQUAL:
            return [(BOTTOM, above)]
        case Relation.GREATER:
            return [(above, TOP)]
        case Relation.GREATER_EQUAL:
            return [(below, TOP)]


def _cuts(value: Value, type_: Type, codes: Codes | None) -> Range:
    """The cuts just below and just above a constant, on values that the column can hold."""
    if codes is not None:
        return _int_cuts(codes.code_of[compared_bytes(value)])
    if isinstance(value, datetime):
        value = microseconds(value)
    assert isinstance(value, int | float)
    return _float_cuts(value) if type_ is Type.FLOAT else _int_cuts(value)


def _int_cuts(value: Number) -> Range:
    if value > INT_MAX:
        return (INT_MAX, 1), (INT_MAX, 1)
    if value < INT_MIN:
        return (INT_MIN, 0), (INT_MIN, 0)
    floor = math.floor(value)
    return ((floor, 0), (floor, 1)) if floor == value else ((floor, 1), (floor, 1))


def _float_cuts(value: Number) -> Range:
    nearest = float(value)
    if nearest == value:
        return (nearest, 0), (nearest, 1)
    side = 0 if nearest > value else 1
    return (nearest, side), (nearest, side)
