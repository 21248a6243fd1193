"""The results that changes make in a natural join of many tables: for subscribers who want items.

    Stocks(Symbol)  ⋈  Reviews(Symbol, Author)  ⋈  Authors(Author)

    a new review ──► its stock by Symbol ──► its author by Author        one order for each table
    a new author ──► reviews by Author ──► their stocks by Symbol        that a change may come from

A result is one version of a row of each table, which agree on all join attributes that they share.
It is made by the last of them: so each result is found once, from the row that completes it.

    a batch   ······|──────────── r1 ────────────|·····      from its change to the next of its key
              ──────────────── s1 ─────────────────────
              ··········|──── a1 ────|·················      r1 s1 a1 is made by a1

Law: what is yielded are the results that are there after some change and were not before it. That
does not depend on how changes are cut into batches.

Nothing is done row by row in Python: a step joins all changed rows of a table at once with another
table, by bisection (`versions.py`). After each step, combinations that are part of no result that
anybody wants are left out (`whole_recipients.py`): so what is looked at grows with what is wanted,
and not with all that joins. Clients that hold semijoins need none of this (`semijoin_kernels.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headgate.model.errors import InvalidValue, StateError
from headgate.tables import change_kernels as columns
from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.byte_codes import ByteCodes
from headgate.tables.changes import ChangeColumns, Mask, pieces
from headgate.tables.joined_rows import JoinedRows
from headgate.tables.part_kernels import find_parts
from headgate.tables.versions import Versions

AT_ONCE = 1 << 20
"""More combinations of rows are not looked at together."""
NEVER = np.iinfo(np.int64).max
AreWanted = Callable[[Longs], Mask]
"""Given rows by slot, [combination, table], −1 for tables that are still to be joined: whether
anybody may want a result that they are part of."""


@dataclass(frozen=True, slots=True)
class Step:
    """Which table is joined next, by which of its join attributes, and where their values are."""

    table: int
    own: tuple[int, ...]
    known: tuple[tuple[int, int], ...]
    """For each attribute a table before, and the place that the attribute has there."""


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """A row of each table for each result, by slot, and the change that made it."""

    change: Longs
    slots: Longs  # [result, table]

    def __len__(self) -> int:
        return self.change.size

    def chosen(self, some: Longs | Mask | slice) -> Results:
        return Results(self.change[some], self.slots[some])


@dataclass(frozen=True, slots=True, eq=False)
class _Lives:
    """For each slot of a table the change that made its row, and the one that ended it."""

    born: Longs
    died: Longs


class WholeJoin:
    def __init__(
        self,
        attributes: Sequence[tuple[str, ...]],
        dimensions: Sequence[int],
        *,
        numbers: tuple[int, int] = (0, 1),
    ) -> None:
        """The join attributes that each table has, and how many it is selected by."""
        self.dimensions = tuple(dimensions)
        self.rows = JoinedRows(dimensions, [len(each) for each in attributes], numbers)
        self.orders = [order_from(table, attributes) for table in range(len(attributes))]
        self._width = max(map(len, attributes))
        self._joins: ByteCodes | None = None

    def take_silently(self, changes: ChangeColumns) -> None:
        """Have the rows that these changes leave, and tell nobody."""
        self._taken(changes)

    def expired(self, now_s: float) -> ChangeColumns:
        """The deletions of rows that are kept until now or less long."""
        return self.rows.expired(now_s)

    def results(self, changes: ChangeColumns, are_wanted: AreWanted) -> Iterator[Results]:
        """Take changes in their order; what they make, as far as somebody may want it.

        Slots are those of now: valid until more changes are taken.
        """
        lines = self._taken(changes)
        lives = [self._lives(lines, table) for table in range(len(self.dimensions))]
        for table, order in enumerate(self.orders):
            made = np.flatnonzero((lines[:, columns.SIDE] == table) & (lines[:, columns.NEW] >= 0))
            slots = np.full((made.size, len(self.dimensions)), -1)
            slots[:, table] = lines[made, columns.NEW]
            begun = Results(made, slots).chosen(are_wanted(slots))
            yield from self._joined(begun, order, lives, are_wanted)

    def _joined(
        self,
        found: Results,
        steps: Sequence[Step],
        lives: Sequence[_Lives],
        are_wanted: AreWanted,
    ) -> Iterator[Results]:
        if not len(found):
            return
        if not steps:
            yield found
            return
        step = steps[0]
        codes = np.column_stack(
            [self._codes_of(table, found.slots[:, table])[:, at] for table, at in step.known]
        )
        versions = self._versions[step.table, step.own]
        if len(found) > 1 and versions.count(codes) > AT_ONCE:
            half = len(found) // 2
            for part in (slice(0, half), slice(half, None)):
                yield from self._joined(found.chosen(part), steps, lives, are_wanted)
            return
        line, slot = versions.find(codes, number_of=self._living[step.table])
        own, lived = self._codes_of(step.table, slot)[:, step.own], lives[step.table]
        change = found.change[line]
        kept = (own == codes[line]).all(axis=1)
        kept &= (lived.born[slot] < change) & (lived.died[slot] > change)
        more = found.chosen(line[kept])
        more.slots[:, step.table] = slot[kept]
        more = more.chosen(are_wanted(more.slots))
        yield from self._joined(more, steps[1:], lives, are_wanted)

    def values(self, table: int, slots: Longs) -> Floats:
        """The selection values of rows."""
        return self.rows.tables[table].slots.value[slots]

    def _lives(self, lines: Longs, table: int) -> _Lives:
        count = len(self._living[table])
        born, died = np.full(count, -1), np.full(count, NEVER)
        own = np.flatnonzero(lines[:, columns.SIDE] == table)
        for column, of in ((columns.NEW, born), (columns.OLD, died)):
            there = own[lines[own, column] >= 0]
            of[lines[there, column]] = there
        return _Lives(born, died)

    def _taken(self, changes: ChangeColumns) -> Longs:
        self.rows.tidy()
        if self.rows.joins is not self._joins:
            self._index_all()
        for table, gone in enumerate(self._gone):
            self._living[table][gone] = -1
        lines = self.rows.take(changes)
        self._know_values()
        for table in range(len(self.dimensions)):
            own = lines[lines[:, columns.SIDE] == table]
            new, old = own[:, columns.NEW], own[:, columns.OLD]
            self._gone[table] = old[old >= 0]
            self._add(table, new[new >= 0])
        return lines

    def _index_all(self) -> None:
        """The rows were loaded: make everything that is made of them."""
        self._joins = self.rows.joins
        self._values = ByteCodes()
        self._codes: Longs = np.empty((0, self._width), np.int64)
        """By join value, the codes of its parts."""
        self._versions = {
            (step.table, step.own): Versions() for order in self.orders for step in order
        }
        self._living = [np.empty(0, np.int64) for _ in self.dimensions]
        """By slot, the number of the version that it has; −1 if it is gone."""
        self._gone = [np.empty(0, np.int64) for _ in self.dimensions]
        """Slots of rows that the last changes ended."""
        self._know_values()
        for table, rows in enumerate(self.rows.tables):
            self._add(table, rows.living())

    def _add(self, table: int, slots: Longs) -> None:
        number = self.rows.tables[table].slots.number
        living = self._living[table]
        if len(number) > len(living):
            more = np.full(len(number) - len(living), -1)
            living = self._living[table] = np.concatenate([living, more])
        living[slots] = number[slots]
        codes = self._codes_of(table, slots)
        for (other, own), versions in self._versions.items():
            if other == table:
                versions.add(codes[:, own], slots, number[slots], number_of=living)

    def _codes_of(self, table: int, slots: Longs) -> Longs:
        """The codes of the join attributes of rows, [row, attribute]."""
        found: Longs = self._codes[self.rows.tables[table].slots.join[slots]]
        return found

    def _know_values(self) -> None:
        """Cut join values that are new into their parts."""
        first, texts = len(self._codes), self.rows.joins.texts
        begin, length = np.empty((2, len(texts) - first, self._width), np.int64)
        if not find_parts(texts.start, texts.data, first, begin, length):
            raise StateError("a join value is damaged: it ends before its last part")
        parts = pieces(begin.ravel(), length.ravel(), texts.data)
        fresh = self._values.codes_of(parts).reshape(-1, self._width)
        self._codes = np.concatenate([self._codes, fresh])


def order_from(first: int, attributes: Sequence[tuple[str, ...]]) -> list[Step]:
    """How to join all others to a table: each shares an attribute with those before it.

    >>> [step.table for step in order_from(2, [("a",), ("a", "b"), ("b",)])]
    [1, 0]
    """
    known = {name: (first, at) for at, name in enumerate(attributes[first])}
    left = [table for table in range(len(attributes)) if table != first]
    steps: list[Step] = []
    while left:
        table = max(left, key=lambda each: (len(known.keys() & set(attributes[each])), -each))
        shared = [name for name in attributes[table] if name in known]
        if not shared:
            raise InvalidValue("the tables of a join are not connected by its attributes")
        own = tuple(attributes[table].index(name) for name in shared)
        steps.append(Step(table, own, tuple(known[name] for name in shared)))
        for at, name in enumerate(attributes[table]):
            known.setdefault(name, (table, at))
        left.remove(table)
    return steps
