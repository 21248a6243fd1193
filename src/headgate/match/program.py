"""The program: all filters on one source, compiled together (DESIGN.md §5; mbd.txt §3).

    filters ──► distinct atoms ──► a row each            ordered_atoms.py, other atoms by themselves
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
from headgate.match.forest import Forest, build_forest
from headgate.match.kernels import AND, NOT, OR, Ints, Words, fill_derived_rows
from headgate.match.ordered_atoms import OrderedAtoms, compile_ordered, is_ordered
from headgate.match.word_atoms import WordAtoms, compile_words, is_word
from headgate.model.atoms import (
    Atom,
    Between,
    Call,
    Comparison,
    Constraint,
    Contains,
    In,
    Relation,
)
from headgate.model.errors import PlanError
from headgate.model.evaluate import matches
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

Derived = tuple[int, tuple[int, ...]]
"""An operator and the rows that it is applied to."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Immutable; any number of threads may use it at once."""

    ordered: tuple[OrderedAtoms, ...]
    words: tuple[WordAtoms, ...]
    other_atoms: tuple[tuple[Atom, int], ...]
    atom_count: int
    derived_operators: Ints
    operand_start: Ints
    operands: Ints
    forest: Forest
    always: Ints
    """Subscriptions that every item matches: they have no condition at all."""
    subscription_count: int
    types: Mapping[str, Type]

    @property
    def row_count(self) -> int:
        return self.atom_count + self.derived_operators.size

    def rows(self, batch: Batch) -> Words:
        """The rows of all atoms and derived filters for a batch."""
        rows = np.zeros((self.row_count, words_for(batch.size)), np.uint64)
        for atoms in self.ordered:
            atoms.fill(batch, rows)
        for table in self.words:
            table.fill(batch, rows)
        for atom, row in self.other_atoms:
            answers = [matches(atom, item) for item in batch.items]
            rows[row] = pack(answers, rows.shape[1])
        operators = self.derived_operators
        fill_derived_rows(self.atom_count, operators, self.operand_start, self.operands, rows)
        return rows


def words_for(size: int) -> int:
    return (size + 63) // 64


def pack(answers: Sequence[bool], word_count: int) -> Words:
    """Answers as the bits of a row."""
    padded = np.zeros(word_count * 64, bool)
    padded[: len(answers)] = answers
    return np.packbits(padded, bitorder="little").view(np.uint64)


def compile_program(filters: Sequence[Filter], schema: Schema) -> Program:
    """One program for all filters; subscription i has filters[i]."""
    types = {str(each.name): each.type for each in schema.attributes}
    build = _Build()
    lengths, flat, owners, always = build.conjunctions(filters)
    atoms = list(build.atoms.items())
    ordered = compile_ordered(((a, row) for a, row in atoms if is_ordered(a, types)), types)
    by_words = compile_words((a, row) for a, row in atoms if is_word(a, types))
    others = tuple(
        (a, row) for a, row in atoms if not is_ordered(a, types) and not is_word(a, types)
    )
    flat_rows, derived, first = build.rows_of(flat)
    uses = np.bincount(flat_rows, minlength=first + len(derived)).astype(np.int32)
    rank = _rank(atoms, derived, uses)
    operands = [row for _, rows in derived for row in rows]
    starts = np.cumsum([0, *(len(rows) for _, rows in derived)])
    return Program(
        tuple(ordered),
        tuple(by_words),
        others,
        len(atoms),
        np.array([operator for operator, _ in derived], np.int32),
        starts.astype(np.int32),
        np.array(operands, np.int32),
        build_forest(lengths, flat_rows, owners, rank),
        np.array(always, np.int32),
        len(filters),
        types,
    )


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
            rows = self._conjunction(conjuncts(_prepared(filter_)))
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
            if part == FALSE:
                return None
            rows[self._row(part)] = None
        found = list(rows)
        if len(found) > CONJUNCTION_MAX:
            found[CONJUNCTION_MAX - 1 :] = [self._derive(AND, found[CONJUNCTION_MAX - 1 :])]
        return found

    def _row(self, filter_: Filter) -> int:
        match filter_:
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
    match atom:
        case Comparison(_, Relation.EQUAL):
            return 0
        case In():
            return 1
        case Between():
            return 2
        case Comparison():
            return 3
    return 1
