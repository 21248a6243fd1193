"""Sets of values at a place, from atoms and back to atoms. A place is an attribute or a part of it.

Merging ([MBD §5]) unites the values that atoms allow at one place. With the attribute's type that
is a set of values of one kind, and an atom is one way to write such a set:

    price > 3            (3, …)            int: [4, …)          and back: price >= 4
    price = 4, = 5       {4}, {5}          int: [4, 5) [5, 6)   together: price between 4 and 5
    price < 3, >= 3      everything                             together: price is present

Invariant: the atoms that `atoms_for` writes are together true of exactly the values of the set, on
items that conform to the schema. Atoms on texts and links are parsed again before they are
returned: where the set cannot be written exactly (a folded text that folds to another one, a link
without a known spelling) the result is None, never something similar.

Integers are kept as [first, beyond), so that 4 and 5 touch; model/intervals.py takes every order as
dense, which is right for all other types. Nothing is known of an attribute without a type.

Cost: linear in the intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeGuard

from headgate.model.atoms import (
    Atom,
    Between,
    Comparison,
    In,
    IsPresent,
    Relation,
    StartsWith,
    TimestampPart,
    WindowAttribute,
)
from headgate.model.filters import Filter
from headgate.model.implies_normal import Literal
from headgate.model.implies_values import Place, allowed_values
from headgate.model.intervals import HIGHEST, LOWEST, Cut, Interval, IntervalSet, interval_set
from headgate.model.values import Comparable, Kind, Type, Value, comparable, kind_of_type

ValueAtom = Comparison | Between | In | IsPresent | StartsWith
Spellings = Mapping[Comparable, Value]
"""Constants as users wrote them, by the form in which they compare; for one kind of value."""

SPELLED_TYPES = (Type.TEXT, Type.XML, Type.LINK)
"""Types whose values compare in another form than that in which they are written."""
IN_VALUES_MAX = 32
"""The most values of an `in` made by merging: a longer list costs more than it saves."""


def is_value_atom(filter_: Filter) -> TypeGuard[ValueAtom]:
    """Whether an atom restricts values, by constants only."""
    match filter_:
        case Comparison(_, _, WindowAttribute()):
            return False
    return isinstance(filter_, ValueAtom)


def place_of(atom: ValueAtom) -> Place:
    return atom.attribute, (None if isinstance(atom, IsPresent | StartsWith) else atom.part)


def kind_at(place: Place, type_: Type) -> Kind | None:
    """The kind that values of the place are compared as; None for a part of no timestamp."""
    part = place[1]
    if part is None:
        return kind_of_type(type_)
    if type_ is not Type.TIMESTAMP:
        return None
    return Kind.TIMESTAMP if part is TimestampPart.DATE else Kind.NUMBER


def is_whole(place: Place, type_: Type) -> bool:
    """Whether the place has integers only."""
    return type_ is Type.INT or (place[1] is not None and kind_at(place, type_) is Kind.NUMBER)


def values_of(atom: ValueAtom, type_: Type) -> IntervalSet:
    """The values at the atom's place for which it is true."""
    place = place_of(atom)
    kind = kind_at(place, type_)
    allowed = allowed_values(Literal(atom, positive=True))
    assert allowed is not None, "a value atom says what it allows"
    values = IntervalSet(()) if kind is None else allowed[1].of(kind)
    return _whole_numbers(values) if is_whole(place, type_) else values


def everything_at(place: Place, type_: Type) -> IntervalSet:
    """All values that the place can have."""
    if place[1] is None:
        return values_of(IsPresent(place[0]), type_)
    return IntervalSet(((LOWEST, HIGHEST),))


def hull(values: IntervalSet) -> IntervalSet:
    """The smallest interval around the set, which is not empty."""
    return IntervalSet(((values.intervals[0][0], values.intervals[-1][1]),))


def union(sets: Iterable[IntervalSet]) -> IntervalSet:
    return interval_set(interval for each in sets for interval in each.intervals)


def points_of(
    values: IntervalSet, place: Place, type_: Type, count_max: int
) -> list[Comparable] | None:
    """The values one by one, where they are finitely many and not too many."""
    if not is_whole(place, type_):
        points = values.points()
        return None if points is None or len(points) > count_max else list(points)
    integers: list[Comparable] = []
    for low, high in values.intervals:
        if not isinstance(low.value, int) or not isinstance(high.value, int):
            return None
        if high.value - low.value > count_max - len(integers):
            return None
        integers += range(low.value, high.value)
    return integers


def atoms_for(
    place: Place,
    type_: Type,
    values: IntervalSet,
    spellings: Spellings,
    *,
    in_values_max: int = IN_VALUES_MAX,
) -> tuple[ValueAtom, ...] | None:
    """One or two atoms that together are true of exactly these values; None if there are none."""
    if not values or kind_at(place, type_) is None:
        return None
    atoms = _written(place, type_, values, spellings, in_values_max)
    if atoms is None or type_ not in SPELLED_TYPES:
        return atoms
    reread = [values_of(atom, type_) for atom in atoms]
    return atoms if reread[0].intersection(reread[-1]) == values else None


def _written(
    place: Place, type_: Type, values: IntervalSet, spellings: Spellings, in_values_max: int
) -> tuple[ValueAtom, ...] | None:
    attribute, part = place
    everything = everything_at(place, type_)
    if values == everything:
        return (IsPresent(attribute),)
    count_max = max(1, in_values_max)
    if len(values.intervals) == 1:
        return _interval(place, type_, values.intervals[0], everything, spellings)
    points = points_of(values, place, type_, count_max)
    if points is not None:
        values_in = tuple(spellings.get(point, _plain(point)) for point in points)
        return None if None in values_in else (In(attribute, values_in, part),)  # type: ignore[arg-type]
    gap = points_of(everything.intersection(values.complement()), place, type_, 1)
    if gap is not None:
        return _compared(place, Relation.NOT_EQUAL, gap[0], spellings)
    return None


def _interval(
    place: Place, type_: Type, interval: Interval, everything: IntervalSet, spellings: Spellings
) -> tuple[ValueAtom, ...] | None:
    low, high = interval
    lowest, highest = everything.intervals[0][0], everything.intervals[-1][1]
    if is_whole(place, type_):
        high = Cut(high.value - 1, True) if isinstance(high.value, int) else high
    if low.value is not None and low.value == high.value:
        return _compared(place, Relation.EQUAL, low.value, spellings)
    bounds: list[tuple[ValueAtom, ...] | None] = []
    if low != lowest:
        relation = Relation.GREATER if low.after else Relation.GREATER_EQUAL
        bounds.append(_compared(place, relation, low.value, spellings))
    if high != highest:
        relation = Relation.LESS_EQUAL if high.after else Relation.LESS
        bounds.append(_compared(place, relation, high.value, spellings))
    atoms = [atom for each in bounds if each is not None for atom in each]
    if len(atoms) < len(bounds):
        return None
    return _between(atoms) if len(atoms) == 2 else tuple(atoms)


def _between(atoms: list[ValueAtom]) -> tuple[ValueAtom, ...]:
    """Two closed bounds are one atom."""
    match atoms:
        case [
            Comparison(attribute, Relation.GREATER_EQUAL, low, part),
            Comparison(_, Relation.LESS_EQUAL, high),
        ]:
            assert not isinstance(low, WindowAttribute)
            assert not isinstance(high, WindowAttribute)
            return (Between(attribute, low, high, part),)
    return tuple(atoms)


def _compared(
    place: Place, relation: Relation, bound: Comparable | None, spellings: Spellings
) -> tuple[ValueAtom, ...] | None:
    if bound is None:
        return None
    value = spellings.get(bound, _plain(bound))
    return None if value is None else (Comparison(place[0], relation, value, place[1]),)


def _plain(value: Comparable) -> Value | None:
    """A comparable form that is a value itself. A link's is not."""
    return None if isinstance(value, tuple) or not isinstance(value, Value) else value


def spelled_constants(atom: Atom) -> dict[Comparable, Value]:
    """The atom's constants by the form in which they compare."""
    match atom:
        case Comparison(_, _, value) if not isinstance(value, WindowAttribute):
            return {comparable(value): value}
        case Between(_, low, high):
            return {comparable(low): low, comparable(high): high}
        case In(_, values):
            return {comparable(value): value for value in values}
    return {}


def _whole_numbers(values: IntervalSet) -> IntervalSet:
    return interval_set((_whole_cut(low), _whole_cut(high)) for low, high in values.intervals)


def _whole_cut(cut: Cut) -> Cut:
    """The same place among the integers, always just before one."""
    value = cut.value
    if value is None:
        return cut
    assert isinstance(value, int | float)
    if math.isinf(value):
        return LOWEST if value < 0 else HIGHEST
    return Cut(math.floor(value) + 1 if cut.after else math.ceil(value), False)
