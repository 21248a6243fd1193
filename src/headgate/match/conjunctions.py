"""Filters as conjunctions of rows: the input of the compiler and of the factoriser (factor/).

    title contains 'rock pop' and (price > 5 or price < 2)          rows 0, 1 and 4

    row 0   title contains 'rock'        atoms first, each once for all filters
    row 1   title contains 'pop'
    row 2   price > 5
    row 3   price < 2
    row 4   row 2 or row 3               then derived rows: `or`, `not`, and what is long or nested

Invariant: an item satisfies a filter exactly if it satisfies all rows of its conjunction. A filter
that no item satisfies has no conjunction, and one that all items satisfy is in `always`.

Cost: one step for each part of each filter, in Python; all later stages work on arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

import numpy as np

from headgate.match.bit_rows import AND, NOT, OR, Ints
from headgate.model.atoms import (
    Atom,
    Between,
    Call,
    Comparison,
    Constraint,
    Contains,
    In,
    IsPresent,
)
from headgate.model.errors import PlanError
from headgate.model.filters import (
    FALSE,
    TRUE,
    And,
    Filter,
    Not,
    Or,
    conjunction,
    conjuncts,
    disjunction,
)

CONJUNCTION_MAX = 16
"""Longer conjunctions have their tail in a derived row, so that the forest stays flat."""

_SIMPLE = frozenset({Comparison, Between, In, IsPresent})
"""Atoms that need no preparation; most filters consist of nothing else."""

Derived = tuple[int, tuple[int, ...]]
"""An operator and the rows that it is applied to."""

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True, eq=False)
class Conjunctions:
    """Conjunction i is of filter owners[i], and has lengths[i] rows, one after the other in `rows`.

    No row occurs twice in a conjunction.
    """

    lengths: Ints
    rows: Ints
    owners: Ints
    always: tuple[int, ...]
    """The filters that all items satisfy."""
    atoms: tuple[Atom, ...]
    derived: tuple[Derived, ...]
    filter_count: int

    @property
    def row_count(self) -> int:
        return len(self.atoms) + len(self.derived)

    def row_filters(self) -> list[Filter]:
        """The condition of each row, as a filter."""
        conditions: list[Filter] = list(self.atoms)
        for operator, rows in self.derived:
            conditions.append(_derived_filter(operator, [conditions[row] for row in rows]))
        return conditions


def conjunctions_of(filters: Sequence[Filter]) -> Conjunctions:
    """The filters as conjunctions over common rows."""
    return ConjunctionBuilder().conjunctions(filters)


def _key_at(numbered: dict[Key, int], place: int) -> Key:
    """The key at a place. It is searched from the end, as it is usually a recent one."""
    return next(islice(reversed(numbered), len(numbered) - 1 - place, None))


def _derived_filter(operator: int, parts: Sequence[Filter]) -> Filter:
    if operator == NOT:
        return Not(parts[0])
    return Or(tuple(parts)) if operator == OR else And(tuple(parts))


def _simplified(filter_: Filter) -> Filter:
    """The filter with `true` and `false` simplified away (unless they are all of it), and with each
    `contains` of several words as a conjunction of words and phrases."""
    match filter_:
        case And(parts):
            return conjunction(map(_simplified, parts))
        case Or(parts):
            return disjunction(map(_simplified, parts))
        case Not(part):
            inner = _simplified(part)
            if inner in (TRUE, FALSE):
                return FALSE if inner == TRUE else TRUE
            return Not(inner)
        case Contains(phrase=False) if len(filter_.words) > 1 or filter_.phrases:
            return conjunction(filter_.parts())
    return filter_


@dataclass(slots=True)
class ConjunctionBuilder:
    """Numbers distinct atoms and derived filters in the order of their first use. Numbers of
    derived filters are negative until all atoms are known, since their rows come after those of the
    atoms."""

    atoms: dict[Atom, int] = field(default_factory=dict)
    derived: dict[Derived, int] = field(default_factory=dict)

    def numbers_of(self, filter_: Filter) -> list[int] | None:
        """The conjunction of a filter; None if no item satisfies it."""
        parts = conjuncts(filter_)
        if not _SIMPLE.issuperset(map(type, parts)):
            parts = conjuncts(_simplified(filter_))
        return self._conjunction(parts)

    def conjunctions(self, filters: Sequence[Filter]) -> Conjunctions:
        """The conjunctions of these filters, over all atoms and derived filters numbered so far."""
        lengths: list[int] = []
        flat: list[int] = []
        owners: list[int] = []
        always: list[int] = []
        for owner, filter_ in enumerate(filters):
            numbers = self.numbers_of(filter_)
            if numbers is None:
                continue  # never true
            if not numbers:
                always.append(owner)
                continue
            lengths.append(len(numbers))
            flat += numbers
            owners.append(owner)
        numbers_of_rows = np.array(flat, np.int64)
        return Conjunctions(
            np.array(lengths, np.int32),
            np.where(
                numbers_of_rows >= 0, numbers_of_rows, len(self.atoms) - 1 - numbers_of_rows
            ).astype(np.int32),
            np.array(owners, np.int32),
            tuple(always),
            tuple(self.atoms),
            tuple((operator, tuple(map(self.row, own))) for operator, own in self.derived),
            len(filters),
        )

    def row(self, number: int) -> int:
        """The row of a number, valid until another atom is added: derived rows follow the atoms."""
        return number if number >= 0 else len(self.atoms) - 1 - number

    def filter_of(self, number: int) -> Filter:
        """The condition of a number, as a filter."""
        if number >= 0:
            return _key_at(self.atoms, number)
        operator, numbers = _key_at(self.derived, -1 - number)
        return _derived_filter(operator, [self.filter_of(each) for each in numbers])

    def _conjunction(self, parts: Sequence[Filter]) -> list[int] | None:
        rows: dict[int, None] = {}
        for part in parts:
            if isinstance(part, Or) and not part.parts:
                return None
            rows[self._row(part)] = None
        numbers = list(rows)
        if len(numbers) > CONJUNCTION_MAX:
            numbers[CONJUNCTION_MAX - 1 :] = [self._derive(AND, numbers[CONJUNCTION_MAX - 1 :])]
        return numbers

    def _row(self, filter_: Filter) -> int:
        match filter_:
            case Comparison() | Between() | In() | IsPresent():
                return self.atoms.setdefault(filter_, len(self.atoms))
            case Not(part):
                return self._derive(NOT, [self._row(part)])
            case Or(parts) | And(parts):
                assert parts, "true and false have been simplified away"
                operator = OR if isinstance(filter_, Or) else AND
                return self._derive(operator, [self._row(part) for part in parts])
            case Call() | Constraint():
                raise PlanError(
                    "a program cannot contain operator calls; they are evaluated after it"
                )
            case atom:
                return self.atoms.setdefault(atom, len(self.atoms))

    def _derive(self, operator: int, rows: list[int]) -> int:
        key = operator, tuple(sorted(set(rows)))
        return self.derived.setdefault(key, -1 - len(self.derived))
