"""Conjunctions as sets of numbered conditions, one for each place that they restrict.

    price > 3 and price <= 9 and title contains 'rock'
        condition 0    place (price, –)     values (3, 9]
        condition 1    no values            title contains 'rock'

All value atoms of a conjunction on one place make one condition, so two conjunctions differ in one
condition exactly if they allow different values at one place, however that is written. Everything
else in a conjunction (words, links, negations, operator calls) is a condition without values, which
is only compared for equality. All parts with variables are one condition, because one substitution
must satisfy them together. Equal conditions have equal numbers (the predicate index of
[MBD §3.1]), and a conjunction is a sorted tuple of numbers, with one for each place of values.

Invariant: the filter of a conjunction's numbers is true of the same items as the conjunction.

Rejected: the atoms themselves as numbers. `x > 4` and `x >= 5` on integers would differ, and
`x > 3 and x < 9` would never meet `x between 9 and 12`.

Cost: a dictionary look-up for each atom; sets are only computed for distinct atoms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headgate.cover.value_sets import (
    IN_VALUES_MAX,
    ValueAtom,
    atoms_for,
    hull,
    is_value_atom,
    kind_at,
    place_of,
    spelled_constants,
    union,
    values_of,
)
from headgate.model.filters import FALSE, And, Filter, conjunction, conjuncts, variables_of
from headgate.model.implies_values import Place
from headgate.model.intervals import IntervalSet
from headgate.model.schema import Schema
from headgate.model.values import Comparable, Type, Value, kind_of

Conjunction = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlaceCondition:
    """A condition: either a set of allowed `values` at `place`, or, if `values` is None, the
    filters in `written`.

    Without values, `place` only names what the condition reads, such as 'Contains title'.
    """

    place: Place
    values: IntervalSet | None
    written: tuple[Filter, ...]


@dataclass(slots=True)
class ConditionTable:
    """All distinct conditions, numbered in the order in which they are first read."""

    schema: Schema
    in_values_max: int = IN_VALUES_MAX
    entries: list[PlaceCondition] = field(default_factory=list)
    _types: dict[str, Type] = field(init=False)
    _of_atom: dict[Filter, int] = field(default_factory=dict)
    _of_values: dict[tuple[Place, IntervalSet], int] = field(default_factory=dict)
    _never: set[int] = field(default_factory=set)
    _in_common: dict[tuple[Place, IntervalSet], int] = field(default_factory=dict)
    """Intersections of conditions. Their probability is needed; they are never part of a filter."""
    _unwritable: set[tuple[Place, IntervalSet]] = field(default_factory=set)
    _spellings: dict[Place, dict[Comparable, Value]] = field(default_factory=dict)
    _joined: dict[tuple[int, int], int | None] = field(default_factory=dict)
    _both: dict[tuple[int, int], int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._types = {each.name: each.type for each in self.schema.attributes}

    def read(self, filter_: Filter) -> Conjunction | None:
        """The numbers of the filter's conditions, or None where no item can satisfy it."""
        number_set = {self._of_atom.get(part, -1) for part in conjuncts(filter_)}
        if -1 in number_set:  # something new, or nested
            parts = conjuncts(conjunction(conjuncts(filter_)))
            if FALSE in parts:
                return None
            number_set = {self._number_of_part(part) for part in _joint_parts(parts)}
        numbers = sorted(number_set)
        if len({self.entries[number].place for number in numbers}) < len(numbers):
            numbers = sorted(self._one_for_each_place(numbers))
        return tuple(numbers) if self._never.isdisjoint(numbers) else None

    def filter_of(self, numbers: Iterable[int]) -> Filter:
        return conjunction(part for number in numbers for part in self.entries[number].written)

    def type_at(self, number: int) -> Type:
        return self._types[self.entries[number].place[0]]

    def values(self, number: int) -> IntervalSet:
        values = self.entries[number].values
        assert values is not None, "the condition is not one on values"
        return values

    def union(self, numbers: Sequence[int]) -> int | None:
        """The union of conditions at one place; None if it cannot be written as atoms."""
        return self.with_values(numbers[0], union(map(self.values, numbers)))

    def joined(self, left: int, right: int) -> int | None:
        """The smallest condition that contains both and can be written: their union, or its hull.

        None if there is neither, so that both must be dropped.
        """
        key = (left, right) if left < right else (right, left)
        if key not in self._joined:
            self._joined[key] = self._join(*key)
        return self._joined[key]

    def both(self, left: int, right: int) -> int | None:
        """The intersection of two conditions with values; None if it is empty."""
        key = (left, right) if left < right else (right, left)
        if key not in self._both:
            self._both[key] = self._intersect(*key)
        return self._both[key]

    def with_values(self, like: int, values: IntervalSet) -> int | None:
        """The condition of these values at the same place, if it can be written."""
        example = self.entries[like]
        place = example.place
        assert example.values is not None, "only conditions on values can be joined"
        key = (place, values)
        if key in self._of_values or key in self._unwritable:
            return self._of_values.get(key)
        type_, spellings = self.type_at(like), self._spellings.get(place, {})
        limit = self.in_values_max
        atoms = atoms_for(place, type_, values, spellings, in_values_max=limit)
        if atoms is None:
            self._unwritable.add(key)
            return None
        return self._number(example, values, atoms)

    def _intersect(self, left: int, right: int) -> int | None:
        common = self.values(left).intersection(self.values(right))
        if not common:
            return None
        key = (self.entries[left].place, common)
        number = self._of_values.get(key, self._in_common.get(key))
        if number is None:
            written = self.entries[left].written + self.entries[right].written
            number = self._in_common[key] = self._add(PlaceCondition(key[0], common, written))
        return number

    def _join(self, left: int, right: int) -> int | None:
        first, second = self.entries[left].values, self.entries[right].values
        if first is None or second is None:
            return None
        united = first.union(second)
        exact = self.with_values(left, united)
        return exact if exact is not None else self.with_values(left, hull(united))

    def _number_of_part(self, part: Filter) -> int:
        number = self._of_atom.get(part)
        if number is not None:
            return number
        if is_value_atom(part) and part.attribute in self._types:
            number = self._read_atom(part)
        else:
            name = f"{type(part).__name__} {getattr(part, 'attribute', None)}"
            number = self._add(PlaceCondition((name, None), None, conjuncts(part)))
        self._of_atom[part] = number
        return number

    def _read_atom(self, atom: ValueAtom) -> int:
        place, type_ = place_of(atom), self._types[atom.attribute]
        spelled = self._spellings.setdefault(place, {})
        for form, value in spelled_constants(atom).items():
            if kind_of(value) is kind_at(place, type_):
                spelled.setdefault(form, value)
        return self._number(PlaceCondition(place, None, ()), values_of(atom, type_), (atom,))

    def _number(
        self, like: PlaceCondition, values: IntervalSet, written: tuple[Filter, ...]
    ) -> int:
        """The number of the condition with these values; it keeps the atoms of the first use."""
        key = (like.place, values)
        number = self._of_values.get(key)
        if number is None:
            number = self._of_values[key] = self._add(PlaceCondition(like.place, values, written))
        return number

    def _add(self, condition: PlaceCondition) -> int:
        if condition.values is not None and not condition.values:
            self._never.add(len(self.entries))
        self.entries.append(condition)
        return len(self.entries) - 1

    def _one_for_each_place(self, numbers: list[int]) -> list[int]:
        """Replace conditions at the same place by their intersection, written as all their atoms.
        Conditions without values stay separate."""
        by_place: dict[Place, int] = {}
        without_values: list[int] = []
        for number in numbers:
            condition = self.entries[number]
            if condition.values is None:
                without_values.append(number)
            elif condition.place not in by_place:
                by_place[condition.place] = number
            else:
                before = by_place[condition.place]
                common = self.values(before).intersection(condition.values)
                written = self.entries[before].written + condition.written
                by_place[condition.place] = self._number(condition, common, written)
        return [*by_place.values(), *without_values]


def _joint_parts(parts: Sequence[Filter]) -> list[Filter]:
    """The parts, with all parts that have variables as one `And`: one substitution must satisfy
    them together."""
    joint = tuple(part for part in parts if variables_of(part))
    return [part for part in parts if not variables_of(part)] + ([And(joint)] if joint else [])
