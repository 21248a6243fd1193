"""The program: all filters on one source, compiled together (DESIGN.md §5; mbd.txt §3).

    filters ──► distinct atoms ──► a row each            groups.py: one pass for all of a form
            ──► distinct sub-filters ──► a derived row   `or`, `not`, and what is long or nested
            ──► conjunctions of rows ──► the forest      forest.py

Law: for any batch, what the program matches is what `model.evaluate` says of each filter and item.

Operators cost time and bind variables; they are not part of the program (they see what it lets
through), so a filter with an operator call is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from headgate.match.batch import Batch
from headgate.match.bounds import check_indices, check_starts, refuse_unless
from headgate.match.forest import Forest, build_forest
from headgate.match.groups import Group, compile_groups
from headgate.match.kernels import AND, NOT, OR, Ints, Words, fill_derived_rows
from headgate.match.stored import freeze
from headgate.model.atoms import (
    Atom,
    Between,
    Call,
    Comparison,
    Constraint,
    Contains,
    In,
    IsPresent,
    Relation,
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
from headgate.model.schema import Schema
from headgate.model.values import Type

CONJUNCTION_MAX = 16
"""Longer conjunctions have their tail in a derived row, so that the forest stays flat."""

ATOMS_MAX = 2**31

_SIMPLE = frozenset({Comparison, Between, In, IsPresent})
"""Atoms that stay as they are. A filter of nothing else, as most are, needs no preparing."""

Derived = tuple[int, tuple[int, ...]]
"""An operator and the rows that it is applied to."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Immutable; any number of threads may use it at once."""

    groups: tuple[Group, ...]
    atom_count: int
    derived_operators: Ints
    operand_start: Ints
    operands: Ints
    forest: Forest
    always: Ints
    """Subscriptions that every item matches: they have no condition at all."""
    names: Ints
    """The number by which each subscription is known outside of the program, ascending."""
    types: Mapping[str, Type]

    @property
    def row_count(self) -> int:
        return self.atom_count + self.derived_operators.size

    @property
    def subscription_count(self) -> int:
        return self.names.size

    def check(self) -> None:
        """That every index is within its bounds, whatever file this comes from (bounds.py)."""
        refuse_unless(0 <= self.atom_count < ATOMS_MAX, "atom_count", f"it is {self.atom_count}")
        for group in self.groups:
            group.check(self.atom_count)
        derived = self.derived_operators.size
        check_indices("derived_operators", self.derived_operators, OR + 1)
        check_starts("operand_start", self.operand_start, self.operands.size, parts=derived)
        per_row = np.diff(self.operand_start)
        refuse_unless(bool((per_row > 0).all()), "operand_start", "a row is made of nothing")
        check_indices("operands", self.operands, self.row_count)
        own = np.repeat(np.arange(derived) + self.atom_count, per_row)
        refuse_unless(bool((self.operands < own).all()), "operands", "a row is made of later ones")
        self.forest.check(self.row_count, self.subscription_count)
        check_indices("always", self.always, self.subscription_count)
        ascending = bool((np.diff(self.names, prepend=np.int32(-1)) > 0).all())
        refuse_unless(ascending, "names", "they do not ascend from 0 on")

    def rows(self, batch: Batch) -> Words:
        """The rows of all atoms and derived filters for a batch."""
        rows = np.zeros((self.row_count, words_for(batch.size)), np.uint64)
        for group in self.groups:
            group.fill(batch, rows)
        operators = self.derived_operators
        fill_derived_rows(self.atom_count, operators, self.operand_start, self.operands, rows)
        return rows


def words_for(size: int) -> int:
    return (size + 63) // 64


def compile_program(
    filters: Sequence[Filter], schema: Schema, *, names: Sequence[int] | None = None
) -> Program:
    """One program for all filters; subscription i has filters[i], and the name names[i], or i."""
    types = {str(each.name): each.type for each in schema.attributes}
    build = _Build()
    lengths, flat, owners, always = build.conjunctions(filters)
    atoms = list(build.atoms.items())
    flat_rows, derived, first = build.rows_of(flat)
    uses = np.bincount(flat_rows, minlength=first + len(derived)).astype(np.int32)
    rank = _rank(atoms, derived, uses)
    operands = [row for _, rows in derived for row in rows]
    starts = np.cumsum([0, *(len(rows) for _, rows in derived)])
    program = Program(
        compile_groups(atoms, types),
        len(atoms),
        np.array([operator for operator, _ in derived], np.int32),
        starts.astype(np.int32),
        np.array(operands, np.int32),
        build_forest(lengths, flat_rows, owners, rank),
        np.array(always, np.int32),
        np.arange(len(filters), dtype=np.int32) if names is None else np.array(names, np.int32),
        types,
    )
    freeze(program)  # as in a file, so that kernels are compiled once for both
    return program


def atoms_of(filters: Sequence[Filter]) -> list[Atom]:
    """The atoms of the program of these filters, in the order of their rows."""
    build = _Build()
    build.conjunctions(filters)
    return list(build.atoms)


def _prepared(filter_: Filter) -> Filter:
    """The filter with `true` and `false` worked out, so that they are all of it or no part of it,
    and with `contains` asking for one word at a time."""
    match filter_:
        case And(parts):
            return conjunction(map(_prepared, parts))
        case Or(parts):
            return disjunction(map(_prepared, parts))
        case Not(part):
            inner = _prepared(part)
            if inner in (TRUE, FALSE):
                return FALSE if inner == TRUE else TRUE
            return Not(inner)
        case Contains(attribute, _, False) if len(filter_.words) > 1:
            return conjunction(Contains(attribute, word) for word in filter_.words)
    return filter_


@dataclass(slots=True)
class _Build:
    """Distinct atoms and derived filters, numbered as they are met. Derived numbers are negative
    until all atoms are known, since their rows come after those of the atoms."""

    atoms: dict[Atom, int] = field(default_factory=dict)
    derived: dict[Derived, int] = field(default_factory=dict)

    def conjunctions(self, filters: Sequence[Filter]) -> tuple[Ints, list[int], Ints, list[int]]:
        lengths: list[int] = []
        flat: list[int] = []
        owners: list[int] = []
        always: list[int] = []
        for owner, filter_ in enumerate(filters):
            parts = conjuncts(filter_)
            if not _SIMPLE.issuperset(map(type, parts)):
                parts = conjuncts(_prepared(filter_))
            rows = self._conjunction(parts)
            if rows is None:
                continue  # never true
            if not rows:
                always.append(owner)
                continue
            lengths.append(len(rows))
            flat += rows
            owners.append(owner)
        return np.array(lengths, np.int32), flat, np.array(owners, np.int32), always

    def _conjunction(self, parts: Sequence[Filter]) -> list[int] | None:
        rows: dict[int, None] = {}
        for part in parts:
            if isinstance(part, Or) and not part.parts:
                return None
            rows[self._row(part)] = None
        found = list(rows)
        if len(found) > CONJUNCTION_MAX:
            found[CONJUNCTION_MAX - 1 :] = [self._derive(AND, found[CONJUNCTION_MAX - 1 :])]
        return found

    def _row(self, filter_: Filter) -> int:
        match filter_:
            case Comparison() | Between() | In() | IsPresent():
                return self.atoms.setdefault(filter_, len(self.atoms))
            case Not(part):
                return self._derive(NOT, [self._row(part)])
            case Or(parts) | And(parts):
                assert parts, "true and false are dealt with before"
                operator = OR if isinstance(filter_, Or) else AND
                return self._derive(operator, [self._row(part) for part in parts])
            case Call() | Constraint():
                raise PlanError("an operator call is no part of a program; it comes behind it")
            case atom:
                return self.atoms.setdefault(atom, len(self.atoms))

    def _derive(self, operator: int, rows: list[int]) -> int:
        key = operator, tuple(sorted(set(rows)))
        return self.derived.setdefault(key, -1 - len(self.derived))

    def rows_of(self, flat: list[int]) -> tuple[Ints, list[Derived], int]:
        """All numbers as rows: negative ones now follow the atoms."""
        first = len(self.atoms)

        def row(number: int) -> int:
            return number if number >= 0 else first - 1 - number

        derived = [(operator, tuple(map(row, rows))) for operator, rows in self.derived]
        numbers = np.array(flat, np.int64)
        return np.where(numbers >= 0, numbers, first - 1 - numbers).astype(np.int32), derived, first


def _rank(atoms: list[tuple[Atom, int]], derived: list[Derived], uses: Ints) -> Ints:
    """The common order of rows: the rarely true first, then the often used."""
    classes = np.array([_rarity(atom) for atom, _ in atoms] + [3] * len(derived), np.int64)
    order = np.lexsort((np.arange(classes.size), -uses, classes))
    rank = np.empty(classes.size, np.int32)
    rank[order] = np.arange(classes.size, dtype=np.int32)
    return rank


def _rarity(atom: Atom) -> int:
    """How rarely atoms of this form tend to be true; statistics will know better."""
    if isinstance(atom, Comparison):
        return 0 if atom.relation is Relation.EQUAL else 3
    return 2 if isinstance(atom, Between) else 1
