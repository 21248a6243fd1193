"""New results of a natural join of many tables, for feeds that are delivered as items.

    Stocks(Symbol)  ⋈  Reviews(Symbol, Author)  ⋈  Authors(Author)

    a new review ──► its stock by Symbol ──► its author by Author        one join order per table
    a new author ──► reviews by Author ──► their stocks by Symbol        that a change may come from

A result is one version of a row of each table that agree on all shared join attributes. It is made
by the latest of them, so each result is found once, from the change that completes it.

    a batch   ······|──────────── r1 ────────────|·····      from its change to the next of its key
              ──────────────── s1 ─────────────────────
              ··········|──── a1 ────|·················      r1 s1 a1 is made by a1

Invariant: the results are those that exist after some change and did not exist before it. They do
not depend on how changes are cut into batches.

All changed rows of a table are joined at once with the next table, by bisection in a
`VersionIndex`. After each step, combinations that no subscription can select are dropped, so the
work grows with what is delivered and not with all that joins. Clients that hold semijoins need none
of this.

A `VersionIndex` finds row versions by some of their join values:

    base   all versions, sorted by hash    found by bisection
    tail   those added since               sorted again for each batch; few

When the tail has a quarter of the base's size, both are merged without deleted versions. An entry
is valid as long as its slot still has its version number. The key is a hash of the join values'
codes; the caller compares the codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headgate.model.errors import InvalidValue, StateError
from headgate.tables import message_buffer as columns
from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.byte_codes import ByteCodes
from headgate.tables.changes import ChangeColumns, Mask, copy_texts
from headgate.tables.key_bytes import find_parts
from headgate.tables.table_rows import JoinedRows

TAIL_MIN = 4_096
Hashes = npt.NDArray[np.uint64]
_PRIME = np.uint64(0x9E3779B97F4A7C15)


def hash_codes(codes: Longs) -> Hashes:
    """A hash of each row of codes (int64, [row, attribute])."""
    hashes: Hashes = np.zeros(len(codes), np.uint64)
    for column in codes.T:
        hashes = (hashes ^ column.astype(np.uint64)) * _PRIME
        hashes ^= hashes >> np.uint64(29)
    return hashes


@dataclass(slots=True)
class _SortedEntries:
    keys: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    slots: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    numbers: Longs = field(default_factory=lambda: np.empty(0, np.int64))

    @classmethod
    def of(cls, keys: Hashes, slots: Longs, numbers: Longs) -> _SortedEntries:
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], slots[order], numbers[order])

    def __len__(self) -> int:
        return self.keys.size

    def runs(self, keys: Hashes) -> tuple[Longs, Longs]:
        """For each key, where its entries begin, and how many there are."""
        first = np.searchsorted(self.keys, keys, "left")
        return first, np.searchsorted(self.keys, keys, "right") - first


@dataclass(slots=True)
class VersionIndex:
    """Row versions by join values: a sorted base and a short sorted tail."""

    _base: _SortedEntries = field(default_factory=_SortedEntries)
    _tail: _SortedEntries = field(default_factory=_SortedEntries)

    def add(self, codes: Longs, slots: Longs, numbers: Longs, *, number_of: Longs) -> None:
        """Add row versions under the codes of their join values; `number_of` is the current version
        number of each slot."""
        self._tail = self._merged(
            self._tail, _SortedEntries(hash_codes(codes), slots, numbers), number_of
        )
        if len(self._tail) > max(TAIL_MIN, len(self._base) // 4):
            self._base = self._merged(self._base, self._tail, number_of)
            self._tail = _SortedEntries()

    @staticmethod
    def _merged(first: _SortedEntries, second: _SortedEntries, number_of: Longs) -> _SortedEntries:
        """Both merged, without deleted versions."""
        keys = np.concatenate([first.keys, second.keys])
        slots = np.concatenate([first.slots, second.slots])
        numbers = np.concatenate([first.numbers, second.numbers])
        is_current = number_of[slots] == numbers
        return _SortedEntries.of(keys[is_current], slots[is_current], numbers[is_current])

    def count(self, codes: Longs) -> int:
        """An upper bound of the number of pairs that `find` returns."""
        keys = hash_codes(codes)
        return int(sum(each.runs(keys)[1].sum() for each in (self._base, self._tail)))

    def find(self, codes: Longs, *, number_of: Longs) -> tuple[Longs, Longs]:
        """Pairs of a row of `codes` and a slot that may have these codes."""
        keys, lines, slots = hash_codes(codes), [], []
        for entries in (self._base, self._tail):
            first, counts = entries.runs(keys)
            line = np.repeat(np.arange(keys.size), counts)
            place = np.arange(line.size) + np.repeat(first - np.cumsum(counts) + counts, counts)
            is_current = number_of[entries.slots[place]] == entries.numbers[place]
            lines.append(line[is_current])
            slots.append(entries.slots[place][is_current])
        return np.concatenate(lines), np.concatenate(slots)


COMBINATIONS_MAX = 1 << 20
"""The most combinations of rows that are joined at once."""
NEVER = np.iinfo(np.int64).max
MaySelect = Callable[[Longs], Mask]
"""For combinations of rows by slot, [combination, table], −1 for tables that are not joined yet:
whether any subscription can select a result with them."""


@dataclass(frozen=True, slots=True)
class JoinStep:
    """The table that is joined next, and the positions of its attributes that are already known."""

    table: int
    own: tuple[int, ...]
    origins: tuple[tuple[int, int], ...]
    """For each attribute, an earlier table that has it and its position there."""


@dataclass(frozen=True, slots=True, eq=False)
class JoinResults:
    """The rows of each result, by slot, and the change that made it."""

    change: Longs
    slots: Longs  # [result, table]

    def __len__(self) -> int:
        return self.change.size

    def take(self, chosen: Longs | Mask | slice) -> JoinResults:
        return JoinResults(self.change[chosen], self.slots[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class _Lifetimes:
    """For each slot of a table, the change that created its row, and the one that deleted it."""

    created: Longs
    deleted: Longs


class ResultJoin:
    """The rows of a result group, and the new results of each batch."""

    def __init__(
        self,
        attributes: Sequence[tuple[str, ...]],
        dimensions: Sequence[int],
        *,
        numbers: tuple[int, int] = (0, 1),
    ) -> None:
        """`attributes` are the join attributes of each table, `dimensions` the numbers of selection
        attributes; `numbers` are the first version number and the step to the next."""
        self.dimensions = tuple(dimensions)
        self.rows = JoinedRows(dimensions, [len(each) for each in attributes], numbers)
        self.orders = [order_from(table, attributes) for table in range(len(attributes))]
        self._width = max(map(len, attributes))
        self._joins: ByteCodes | None = None

    def apply_silently(self, changes: ChangeColumns) -> None:
        """Apply changes to the rows without results."""
        self._to_lines(changes)

    def expired(self, now_s: float) -> ChangeColumns:
        """The deletions of rows that have expired by `now_s`."""
        return self.rows.expired(now_s)

    def results(self, changes: ChangeColumns, may_select: MaySelect) -> Iterator[JoinResults]:
        """Apply changes in their order; yield the new results that a subscription may select.

        Slots are valid until the next changes are applied.
        """
        lines = self._to_lines(changes)
        lifetimes = [self._lifetimes(lines, table) for table in range(len(self.dimensions))]
        for table, order in enumerate(self.orders):
            new = np.flatnonzero((lines[:, columns.SIDE] == table) & (lines[:, columns.NEW] >= 0))
            slots = np.full((new.size, len(self.dimensions)), -1)
            slots[:, table] = lines[new, columns.NEW]
            started = JoinResults(new, slots).take(may_select(slots))
            yield from self._extend(started, order, lifetimes, may_select)

    def _extend(
        self,
        partial: JoinResults,
        steps: Sequence[JoinStep],
        lifetimes: Sequence[_Lifetimes],
        may_select: MaySelect,
    ) -> Iterator[JoinResults]:
        """Join partial results with the tables of the remaining steps."""
        if not len(partial):
            return
        if not steps:
            yield partial
            return
        step = steps[0]
        codes = np.column_stack(
            [self._codes_of(table, partial.slots[:, table])[:, at] for table, at in step.origins]
        )
        versions = self._versions[step.table, step.own]
        if len(partial) > 1 and versions.count(codes) > COMBINATIONS_MAX:
            half = len(partial) // 2
            for part in (slice(0, half), slice(half, None)):
                yield from self._extend(partial.take(part), steps, lifetimes, may_select)
            return
        line, slot = versions.find(codes, number_of=self._current[step.table])
        own_codes, lifetime = self._codes_of(step.table, slot)[:, step.own], lifetimes[step.table]
        change = partial.change[line]
        kept = (own_codes == codes[line]).all(axis=1)
        kept &= (lifetime.created[slot] < change) & (lifetime.deleted[slot] > change)
        extended = partial.take(line[kept])
        extended.slots[:, step.table] = slot[kept]
        extended = extended.take(may_select(extended.slots))
        yield from self._extend(extended, steps[1:], lifetimes, may_select)

    def values(self, table: int, slots: Longs) -> Floats:
        """The selection values of rows."""
        return self.rows.tables[table].slots.value[slots]

    def _lifetimes(self, lines: Longs, table: int) -> _Lifetimes:
        count = len(self._current[table])
        created, deleted = np.full(count, -1), np.full(count, NEVER)
        changes = np.flatnonzero(lines[:, columns.SIDE] == table)
        for column, position_of in ((columns.NEW, created), (columns.OLD, deleted)):
            present = changes[lines[changes, column] >= 0]
            position_of[lines[present, column]] = present
        return _Lifetimes(created, deleted)

    def _to_lines(self, changes: ChangeColumns) -> Longs:
        self.rows.tidy()
        if self.rows.joins is not self._joins:
            self._index_all()
        for table, gone in enumerate(self._deleted):
            self._current[table][gone] = -1
        lines = self.rows.apply(changes)
        self._decode_new_values()
        for table in range(len(self.dimensions)):
            table_lines = lines[lines[:, columns.SIDE] == table]
            new, old = table_lines[:, columns.NEW], table_lines[:, columns.OLD]
            self._deleted[table] = old[old >= 0]
            self._add(table, new[new >= 0])
        return lines

    def _index_all(self) -> None:
        """Build all indexes, after the rows were loaded."""
        self._joins = self.rows.joins
        self._values = ByteCodes()
        self._codes: Longs = np.empty((0, self._width), np.int64)
        """For each join value, the codes of its attributes."""
        self._versions = {
            (step.table, step.own): VersionIndex() for order in self.orders for step in order
        }
        self._current = [np.empty(0, np.int64) for _ in self.dimensions]
        """For each slot, the number of its version; −1 if it was deleted."""
        self._deleted = [np.empty(0, np.int64) for _ in self.dimensions]
        """Slots of rows that the last batch deleted."""
        self._decode_new_values()
        for table, rows in enumerate(self.rows.tables):
            self._add(table, rows.current_slots())

    def _add(self, table: int, slots: Longs) -> None:
        number = self.rows.tables[table].slots.number
        current = self._current[table]
        if len(number) > len(current):
            padding = np.full(len(number) - len(current), -1)
            current = self._current[table] = np.concatenate([current, padding])
        current[slots] = number[slots]
        codes = self._codes_of(table, slots)
        for (indexed, attributes), versions in self._versions.items():
            if indexed == table:
                versions.add(codes[:, attributes], slots, number[slots], number_of=current)

    def _codes_of(self, table: int, slots: Longs) -> Longs:
        """The codes of the join attributes of rows, [row, attribute]."""
        codes: Longs = self._codes[self.rows.tables[table].slots.join[slots]]
        return codes

    def _decode_new_values(self) -> None:
        """Decode the attributes of new join values."""
        first, texts = len(self._codes), self.rows.joins.texts
        begin, length = np.empty((2, len(texts) - first, self._width), np.int64)
        if not find_parts(texts.start, texts.data, first, begin, length):
            raise StateError("a join value is damaged: it ends before its last part")
        parts = copy_texts(begin.ravel(), length.ravel(), texts.data)
        new_codes = self._values.codes_of(parts).reshape(-1, self._width)
        self._codes = np.concatenate([self._codes, new_codes])


def order_from(first: int, attributes: Sequence[tuple[str, ...]]) -> list[JoinStep]:
    """The order in which the other tables are joined to a table: each shares an attribute with an
    earlier one.

    >>> [step.table for step in order_from(2, [("a",), ("a", "b"), ("b",)])]
    [1, 0]
    """
    origin = {name: (first, at) for at, name in enumerate(attributes[first])}
    remaining = [table for table in range(len(attributes)) if table != first]
    steps: list[JoinStep] = []
    while remaining:
        table = max(remaining, key=lambda each: (len(origin.keys() & set(attributes[each])), -each))
        shared = [name for name in attributes[table] if name in origin]
        if not shared:
            raise InvalidValue("the tables of a join are not connected by its attributes")
        positions = tuple(attributes[table].index(name) for name in shared)
        steps.append(JoinStep(table, positions, tuple(origin[name] for name in shared)))
        for position, name in enumerate(attributes[table]):
            origin.setdefault(name, (table, position))
        remaining.remove(table)
    return steps
