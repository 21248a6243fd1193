"""The program: all filters on one source, compiled together ([MBD §3]), and its file.

    filters ──► distinct atoms ──► a row each            groups of atoms: one pass for each form
            ──► distinct sub-filters ──► a derived row   `or`, `not`, and what is long or nested
            ──► conjunctions of rows ──► the forest      forest.py

    form of atom                                 group            reads
    =  <  in  between  is present                OrderedAtoms     columns of numbers, coded texts
    contains, contains phrase, similar           WordAtoms        words, read once for all three
    starts with                                  PrefixAtoms      folded texts
    matches                                      PatternAtoms     texts as they are
    references, extends, shares-link             LinkAtoms        links, and URLs within texts

Invariant: for any batch, the program gives the same matches as model/evaluate.py. An item has only
attributes of the schema, and only values of their types; so an atom on anything else is false, and
its row stays zero.

A group is a frozen dataclass of arrays, texts, names and further such dataclasses, nothing else: it
can be written to a file and read from it (dataclass_codec.py). `fill` sets bits in rows that are
zero; `check` ensures that a file cannot make a kernel read or write outside of an array.

Operators cost time and bind variables; they run on the items that the program lets through, so a
filter with an operator call is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from headgate.match.array_file import Verify
from headgate.match.batch import Batch
from headgate.match.bit_rows import OR, Ints, Words, fill_derived_rows
from headgate.match.bounds import check_indices, check_starts, refuse_unless
from headgate.match.conjunctions import Conjunctions, conjunctions_of
from headgate.match.dataclass_codec import freeze, open_stored, write_stored
from headgate.match.forest import Forest, build_forest
from headgate.match.link_atoms import LinkAtoms, compile_links
from headgate.match.ordered_atoms import OrderedAtoms, compile_ordered
from headgate.match.pattern_atoms import PatternAtoms, compile_patterns
from headgate.match.prefix_atoms import PrefixAtoms, compile_prefixes
from headgate.match.texts import TEXT_TYPES
from headgate.match.word_atoms import WordAtoms, compile_words
from headgate.model.atoms import (
    Atom,
    Between,
    Call,
    Comparison,
    Constraint,
    Contains,
    In,
    IsPresent,
    LinkAtom,
    Matches,
    Relation,
    Similar,
    StartsWith,
    WindowAttribute,
)
from headgate.model.errors import PlanError, SnapshotError
from headgate.model.filters import Filter
from headgate.model.schema import Schema
from headgate.model.text import TEXT_VERSION
from headgate.model.values import Type

Group = OrderedAtoms | WordAtoms | PrefixAtoms | PatternAtoms | LinkAtoms


def compile_groups(
    atoms: Sequence[tuple[Atom, int]], types: Mapping[str, Type]
) -> tuple[Group, ...]:
    """The atoms, each with its row, in groups."""
    ordered: list[tuple[Comparison | Between | In | IsPresent, int]] = []
    words: list[tuple[Contains | Similar, int]] = []
    prefixes: list[tuple[StartsWith, int]] = []
    patterns: list[tuple[Matches, int]] = []
    links: list[tuple[LinkAtom, int]] = []
    for atom, row in atoms:
        if not _can_be_true(atom, types):
            continue
        match atom:
            case Comparison() | Between() | In() | IsPresent():
                ordered.append((atom, row))
            case Contains() | Similar():
                words.append((atom, row))
            case StartsWith():
                prefixes.append((atom, row))
            case Matches():
                patterns.append((atom, row))
            case LinkAtom():
                links.append((atom, row))
    return (
        *compile_ordered(ordered, types),
        *compile_words(words),
        *compile_prefixes(prefixes),
        *compile_patterns(patterns),
        *compile_links(links),
    )


def _can_be_true(atom: Atom, types: Mapping[str, Type]) -> bool:
    """Whether the schema has an attribute of a type that the atom can be true of."""
    match atom:
        case Call() | Constraint():
            raise PlanError("a program cannot contain operator calls; they are evaluated after it")
        case Comparison(value=WindowAttribute()) | Similar(text=WindowAttribute()):
            raise PlanError("a program cannot contain comparisons with an item of a window")
        case Comparison() | Between() | In() | IsPresent():
            return atom.attribute in types
        case LinkAtom():
            accepted: tuple[Type, ...] = (Type.LINK, *TEXT_TYPES)
        case _:
            accepted = TEXT_TYPES
    candidates = types.values() if atom.attribute is None else [types.get(atom.attribute)]
    return any(each in accepted for each in candidates)


ATOMS_MAX = 2**31
NO_ROWS: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Immutable, so thread-safe."""

    groups: tuple[Group, ...]
    atom_count: int
    derived_operators: Ints
    operand_start: Ints
    operands: Ints
    forest: Forest
    always: Ints
    """Subscriptions without any condition: every item matches them."""
    names: Ints
    """The number by which each subscription is known outside of the program, ascending."""
    types: Mapping[str, Type]
    text_version: int = TEXT_VERSION
    """The definition of words (model/text.py) that the vocabularies were made with."""

    @property
    def row_count(self) -> int:
        return self.atom_count + self.derived_operators.size

    @property
    def subscription_count(self) -> int:
        return self.names.size

    def check(self) -> None:
        """Raise `SnapshotError` if an index is out of bounds, whatever file this comes from
        (bounds.py)."""
        if self.text_version != TEXT_VERSION:
            raise SnapshotError(
                f"its words are of version {self.text_version}, and this is version "
                f"{TEXT_VERSION}; make it anew"
            )
        refuse_unless(0 <= self.atom_count < ATOMS_MAX, "atom_count", f"it is {self.atom_count}")
        for group in self.groups:
            group.check(self.atom_count)
        derived = self.derived_operators.size
        check_indices("derived_operators", self.derived_operators, OR + 1)
        check_starts("operand_start", self.operand_start, self.operands.size, parts=derived)
        per_row = np.diff(self.operand_start)
        refuse_unless(bool((per_row > 0).all()), "operand_start", "a derived row has no operands")
        check_indices("operands", self.operands, self.row_count)
        owner = np.repeat(np.arange(derived) + self.atom_count, per_row)
        refuse_unless(
            bool((self.operands < owner).all()),
            "operands",
            "a derived row has a later row as operand",
        )
        self.forest.check(self.row_count, self.subscription_count)
        check_indices("always", self.always, self.subscription_count)
        ascending = bool((np.diff(self.names, prepend=np.int32(-1)) > 0).all())
        refuse_unless(ascending, "names", "they do not ascend from 0 on")

    def rows(self, batch: Batch, muted: frozenset[int] = NO_ROWS) -> Words:
        """The rows of all atoms and derived filters for a batch. Expensive atoms in `muted` are not
        evaluated: the caller does not use their rows (row_users.py)."""
        rows = np.zeros((self.row_count, words_for(batch.size)), np.uint64)
        for group in self.groups:
            if muted and isinstance(group, PatternAtoms | WordAtoms):
                group.fill(batch, rows, muted)
            else:
                group.fill(batch, rows)
        operators = self.derived_operators
        fill_derived_rows(self.atom_count, operators, self.operand_start, self.operands, rows)
        return rows

    @property
    def metered_rows(self) -> list[int]:
        """The rows of atoms whose cost is measured: `matches` and `similar`. All others cost about
        the same, some nanoseconds."""
        rows: list[int] = []
        for group in self.groups:
            if isinstance(group, PatternAtoms):
                rows += group.rows.tolist()
            elif isinstance(group, WordAtoms) and group.similar is not None:
                rows += group.similar.row.tolist()
        return rows

    def take_costs(self) -> dict[int, int]:
        """The CPU time in ns that metered atoms have taken in this process since the last call, by
        row."""
        costs: dict[int, int] = {}
        for group in self.groups:
            if isinstance(group, PatternAtoms | WordAtoms):
                costs |= group.take_costs()
        return costs


def words_for(size: int) -> int:
    return (size + 63) // 64


def compile_program(
    filters: Sequence[Filter], schema: Schema, *, names: Sequence[int] | None = None
) -> Program:
    """One program for all filters; subscription i has filters[i], and the name names[i], or i."""
    conjunctions = conjunctions_of(filters)
    rank = _rank(conjunctions)
    forest = build_forest(conjunctions.lengths, conjunctions.rows, conjunctions.owners, rank)
    return with_forest(compile_rows(conjunctions, schema, names=names), forest)


def compile_rows(
    conjunctions: Conjunctions, schema: Schema, *, names: Sequence[int] | None = None
) -> Program:
    """The program without its forest: it computes the rows, but matches nothing."""
    types = {str(each.name): each.type for each in schema.attributes}
    derived = conjunctions.derived
    operands = [row for _, rows in derived for row in rows]
    starts = np.cumsum([0, *(len(rows) for _, rows in derived)])
    count = conjunctions.filter_count
    rows = Program(
        compile_groups([(atom, row) for row, atom in enumerate(conjunctions.atoms)], types),
        len(conjunctions.atoms),
        np.array([operator for operator, _ in derived], np.int32),
        starts.astype(np.int32),
        np.array(operands, np.int32),
        _empty_forest(),
        np.array(conjunctions.always, np.int32),
        np.arange(count, dtype=np.int32) if names is None else np.array(names, np.int32),
        types,
    )
    freeze(rows)  # read-only as in a file, so that kernels are compiled once for both
    return rows


def with_forest(program: Program, forest: Forest) -> Program:
    """The program with this forest over its rows, ready for use."""
    freeze(forest)
    return replace(program, forest=forest)


@lru_cache(maxsize=1)
def _empty_forest() -> Forest:
    nothing = np.zeros(0, np.int32)
    return build_forest(nothing, nothing, nothing, nothing)


def atoms_of(filters: Sequence[Filter]) -> list[Atom]:
    """The atoms of the program of these filters, in the order of their rows."""
    return list(conjunctions_of(filters).atoms)


def _rank(conjunctions: Conjunctions) -> Ints:
    """The common order of rows: those that are rarely true first, then those that are used
    often."""
    uses = np.bincount(conjunctions.rows, minlength=conjunctions.row_count)
    classes = np.array(
        [_rarity(atom) for atom in conjunctions.atoms] + [3] * len(conjunctions.derived), np.int64
    )
    order = np.lexsort((np.arange(classes.size), -uses, classes))
    rank = np.empty(classes.size, np.int32)
    rank[order] = np.arange(classes.size, dtype=np.int32)
    return rank


def _rarity(atom: Atom) -> int:
    """Atoms of a lower class tend to be true more rarely. factor/ uses statistics instead."""
    if isinstance(atom, Comparison):
        return 0 if atom.relation is Relation.EQUAL else 3
    return 2 if isinstance(atom, Between) else 1


KIND, VERSION = "program", 3
"""The version of the fields of a program; a file of another version is refused."""


def write_program(folder: Path, program: Program) -> Path:
    """Write the program; the same program always has the same file name."""
    return write_stored(folder, program, kind=KIND, version=VERSION)


def open_program(path: Path, *, verify: Verify = "checksum") -> Program:
    """Open the program in this file; use verify="full" for a file that comes from elsewhere."""
    return open_stored(path, Program, kind=KIND, version=VERSION, verify=verify)
