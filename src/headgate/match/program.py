"""The program: all filters on one source, compiled together (DESIGN.md §5; [MBD §3]).

    filters ──► distinct atoms ──► a row each            groups.py: one pass for all of a form
            ──► distinct sub-filters ──► a derived row   `or`, `not`, and what is long or nested
            ──► conjunctions of rows ──► the forest      forest.py

Law: for any batch, what the program matches is what `model.evaluate` says of each filter and item.

Operators cost time and bind variables; they are not part of the program (they see what it lets
through), so a filter with an operator call is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headgate.match.batch import Batch
from headgate.match.bounds import check_indices, check_starts, refuse_unless
from headgate.match.conjunctions import Conjunctions, conjunctions_of
from headgate.match.forest import Forest, build_forest
from headgate.match.groups import Group, compile_groups
from headgate.match.kernels import OR, Ints, Words, fill_derived_rows
from headgate.match.stored import freeze
from headgate.model.atoms import Atom, Between, Comparison, Relation
from headgate.model.filters import Filter
from headgate.model.schema import Schema
from headgate.model.values import Type

ATOMS_MAX = 2**31


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
    found = conjunctions_of(filters)
    rank = _rank(found)
    forest = build_forest(found.lengths, found.rows, found.owners, rank)
    return with_forest(compile_rows(found, schema, names=names), forest)


def compile_rows(
    found: Conjunctions, schema: Schema, *, names: Sequence[int] | None = None
) -> Program:
    """The program without its forest: it answers atoms and derived filters, but matches nobody."""
    types = {str(each.name): each.type for each in schema.attributes}
    derived = found.derived
    operands = [row for _, rows in derived for row in rows]
    starts = np.cumsum([0, *(len(rows) for _, rows in derived)])
    nothing = np.zeros(0, np.int32)
    empty = build_forest(nothing, nothing, nothing, np.arange(found.row_count, dtype=np.int32))
    count = found.filter_count
    rows = Program(
        compile_groups([(atom, row) for row, atom in enumerate(found.atoms)], types),
        len(found.atoms),
        np.array([operator for operator, _ in derived], np.int32),
        starts.astype(np.int32),
        np.array(operands, np.int32),
        empty,
        np.array(found.always, np.int32),
        np.arange(count, dtype=np.int32) if names is None else np.array(names, np.int32),
        types,
    )
    freeze(rows)  # as in a file, so that kernels are compiled once for both
    return rows


def with_forest(program: Program, forest: Forest) -> Program:
    """The program with this forest over its rows, ready for use."""
    grown = replace(program, forest=forest)
    freeze(grown)
    return grown


def atoms_of(filters: Sequence[Filter]) -> list[Atom]:
    """The atoms of the program of these filters, in the order of their rows."""
    return list(conjunctions_of(filters).atoms)


def _rank(found: Conjunctions) -> Ints:
    """The common order of rows: the rarely true first, then the often used."""
    uses = np.bincount(found.rows, minlength=found.row_count)
    classes = np.array([_rarity(atom) for atom in found.atoms] + [3] * len(found.derived), np.int64)
    order = np.lexsort((np.arange(classes.size), -uses, classes))
    rank = np.empty(classes.size, np.int32)
    rank[order] = np.arange(classes.size, dtype=np.int32)
    return rank


def _rarity(atom: Atom) -> int:
    """How rarely atoms of this form tend to be true; statistics will know better."""
    if isinstance(atom, Comparison):
        return 0 if atom.relation is Relation.EQUAL else 3
    return 2 if isinstance(atom, Between) else 1
