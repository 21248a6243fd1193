"""The rows of the tables of one join at the server: by key, by slot, and by join value.

    key ──► its code ──► slot ──► version number, values, join value, payload, expiry
    changes ──► JoinedRows.apply ──► lines: INSERT, DELETE or REPLACE of slots

Rows are columns: arrays by slot, and all payloads in one byte array. A changed row gets a new slot
and a new version number, so that messages can distinguish both versions. Slots of deleted rows are
reused from the next batch on, as messages of this batch still refer to them. Join values of all
tables share their codes. With two tables the rows are indexed by join value (`server.py`); with
more, a join value is the tuple of all join attributes that the table has (`result_join.py`).

Keys and payloads of deleted rows stay in memory until they are more than half of all; then the
tables are reloaded from their own rows. So an endless sequence of new keys needs at most twice the
memory of the current rows.

A missing selection value is −∞: it is in no range of a condition, as those begin at the least
finite number, but in every range without a condition, [−∞, ∞] (`boxes.py`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from headgate.match.texts import Texts
from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.byte_codes import ByteCodes
from headgate.tables.changes import ChangeColumns, copy_texts, deletions, take_texts
from headgate.tables.key_bytes import key_of
from headgate.tables.messages import JoinRow, JoinSide
from headgate.tables.table_kernels import (
    SLOT_NONE,
    RowArrays,
    RowIndex,
    apply_to_rows,
    compact,
    compact_places,
)

SLOTS_MIN = 16
WASTE_MIN = 4_096
"""With fewer keys of deleted rows a table is never reloaded."""
Numbers = TypeVar("Numbers", Floats, Longs, npt.NDArray[np.uint8])


@dataclass(frozen=True, slots=True, eq=False)
class TableContent:
    """The rows of a table in the order of their version numbers, as they are saved."""

    number: Longs
    value: Floats
    until_s: Floats
    keys: Texts
    joins: Texts
    payloads: Texts
    body_bytes: Longs

    def __len__(self) -> int:
        return self.number.size


class TableRows:
    """The rows of one table. The codes of join values (`joins`) are shared by all tables."""

    def __init__(
        self, side: int, *, dimensions: int, join_attributes: int, joins: ByteCodes
    ) -> None:
        self.side = side
        self.dimensions = dimensions
        self.join_attributes = join_attributes
        self.keys = ByteCodes()
        self._joins = joins
        self._value: Floats = np.zeros((SLOTS_MIN, dimensions))
        self._number: Longs = np.full(SLOTS_MIN, -1, np.int64)
        self._key, self._join = (np.zeros(SLOTS_MIN, np.int64) for _ in range(2))
        self._payload_start, self.payload_bytes, self._body_bytes = (
            np.zeros(SLOTS_MIN, np.int64) for _ in range(3)
        )
        self._until_s: Floats = np.full(SLOTS_MIN, math.inf)
        self._payload = np.zeros(SLOTS_MIN, np.uint8)
        self._slot_of_key: Longs = np.full(SLOTS_MIN, SLOT_NONE, np.int64)
        self._free, self._gone = (np.zeros(SLOTS_MIN, np.int64) for _ in range(2))
        self._payload_used, self._free_count, self._gone_count, self._used = (
            np.zeros(1, np.int64) for _ in range(4)
        )
        self._start, self._size, self._capacity = (np.zeros(SLOTS_MIN, np.int64) for _ in range(3))
        self._pool: Longs = np.zeros(SLOTS_MIN, np.int64)
        self._pool_used: Longs = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return int(self._used[0] - self._free_count[0] - self._gone_count[0])

    @property
    def index(self) -> RowIndex:
        """The index by join value for kernels; valid until the next batch."""
        pieces_ = self._start, self._size, self._capacity
        return RowIndex(self._value, self._number, *pieces_, self._pool, self._pool_used)

    @property
    def slots(self) -> RowArrays:
        """The rows for kernels; valid until the next `begin_batch`."""
        return RowArrays(
            self._value,
            self._number,
            self._key,
            self._join,
            self._until_s,
            self._payload_start,
            self.payload_bytes,
            self._body_bytes,
            self._payload,
            self._payload_used,
            self._slot_of_key,
            self._free,
            self._free_count,
            self._gone,
            self._gone_count,
            self._used,
        )

    @property
    def is_mostly_garbage(self) -> bool:
        """Whether most keys or payloads in memory are of deleted rows."""
        dead = len(self.keys) - len(self)
        if dead > max(WASTE_MIN, len(self)):
            return True
        used = int(self._payload_used[0])
        return used > 1 << 20 and used > 2 * int(self.payload_bytes[self.current_slots()].sum())

    def begin_batch(self, changes: ChangeColumns) -> None:
        """Reuse the slots deleted by the last batch, and reserve space for these changes."""
        gone, free = int(self._gone_count[0]), int(self._free_count[0])
        is_of_table = changes.side == self.side
        count = int(is_of_table.sum())
        slots = int(self._used[0]) + count
        if slots > len(self._number):
            self._grow_slots(slots)
        self._free[free : free + gone] = self._gone[:gone]
        self._free_count[0], self._gone_count[0] = free + gone, 0
        self.keys.reserve(changes.keys)
        codes = len(self.keys) + count
        if codes > len(self._slot_of_key):
            added = np.full(codes, SLOT_NONE, np.int64)
            self._slot_of_key = np.concatenate([self._slot_of_key, added])
        lengths = np.diff(changes.payloads.start)
        needed = int(self._payload_used[0] + lengths[is_of_table].sum())
        if needed > len(self._payload):
            self._payload = _grown(self._payload, needed)

    def reserve(self, *, joins: int, places: int) -> None:
        """Reserve space for so many join values, and so many more places in the pool."""
        if joins > len(self._start):
            self._start, self._size, self._capacity = (
                _grown(array, joins) for array in (self._start, self._size, self._capacity)
            )
        if self._pool_used[0] + places <= len(self._pool):
            return
        held = compact_places(self._size)
        pool = np.zeros(max(SLOTS_MIN, 2 * (held + places)), np.int64)
        compact(self.index, pool)
        self._pool = pool

    def current_slots(self) -> Longs:
        """The slots of all rows, in the order of their version numbers."""
        slots = self._slot_of_key[: len(self.keys)]
        current: Longs = slots[slots != SLOT_NONE]
        return current[np.argsort(self._number[current])]

    def expired(self, now_s: float) -> Texts:
        """The keys of rows that have expired, the oldest first."""
        slots = np.flatnonzero(self._until_s[: self._used[0]] <= now_s)
        slots = slots[np.lexsort((self._number[slots], self._until_s[slots]))]
        return take_texts(self.keys.texts.start, self.keys.texts.data, self._key[slots])

    def content(self) -> TableContent:
        """All rows."""
        slots, keys, joins = self.current_slots(), self.keys.texts, self._joins.texts
        begin, lengths = self._payload_start[slots], self.payload_bytes[slots]
        return TableContent(
            self._number[slots],
            self._value[slots],
            self._until_s[slots],
            take_texts(keys.start, keys.data, self._key[slots]),
            take_texts(joins.start, joins.data, self._join[slots]),
            copy_texts(begin, lengths, self._payload),
            self._body_bytes[slots],
        )

    def load(self, content: TableContent) -> None:
        """Load rows into an empty table."""
        assert not int(self._used[0]), "the table has rows"
        count = len(content)
        self._grow_slots(count)
        self._number[:count], self._value[:count] = content.number, content.value
        self._until_s[:count] = content.until_s
        self._key[:count] = self.keys.codes_of(content.keys)
        assert len(self.keys) == count, "a key comes once"
        codes = self._join[:count] = self._joins.codes_of(content.joins)
        self._slot_of_key = np.arange(count)
        self._payload = content.payloads.data.copy()
        self._payload_start[:count] = content.payloads.start[:-1]
        self.payload_bytes[:count] = np.diff(content.payloads.start)
        self._body_bytes[:count] = content.body_bytes
        self._payload_used[0] = len(self._payload)
        self._used[0] = count
        self._index_all(codes)

    def payloads_of(self, slots: Longs) -> Texts:
        return copy_texts(self._payload_start[slots], self.payload_bytes[slots], self._payload)

    def joins_of(self, slots: Longs) -> Texts:
        joins = self._joins.texts
        return take_texts(joins.start, joins.data, self._join[slots])

    def row(self, slot: int) -> JoinRow:
        values = tuple(self._value[slot].tolist())
        begin, size = int(self._payload_start[slot]), int(self.payload_bytes[slot])
        join = key_of(self._joins.texts.encoded(int(self._join[slot])))
        payload = self._payload[begin : begin + size].tobytes()
        return JoinRow(int(self._number[slot]), JoinSide(self.side), join, values, payload)

    def _index_all(self, codes: Longs) -> None:
        """Build the index of all slots by join value."""
        joins, count = len(self._joins), len(codes)
        self.reserve(joins=joins, places=0)
        slots = np.lexsort((self._number[:count], self._value[:count, 0], codes))
        self._size[:joins] = np.bincount(codes, minlength=joins)
        self._capacity[:] = self._size
        self._start[1:] = np.cumsum(self._size)[:-1]
        self._pool = slots
        self._pool_used[0] = len(slots)

    def _grow_slots(self, count: int) -> None:
        before = len(self._until_s)
        self._value, self._number = _grown(self._value, count), _grown(self._number, count)
        self._key, self._join = _grown(self._key, count), _grown(self._join, count)
        self._payload_start = _grown(self._payload_start, count)
        self.payload_bytes = _grown(self.payload_bytes, count)
        self._body_bytes = _grown(self._body_bytes, count)
        self._free, self._gone = _grown(self._free, count), _grown(self._gone, count)
        self._until_s = _grown(self._until_s, count)
        self._until_s[before:] = math.inf


def _grown(array: Numbers, count: int) -> Numbers:
    grown = np.zeros((max(count, 2 * len(array)), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


class JoinedRows:
    """The rows of all tables of a join."""

    def __init__(
        self, dimensions: Sequence[int], join_attributes: Sequence[int], numbers: tuple[int, int]
    ) -> None:
        """`dimensions` are the numbers of selection attributes by table, `join_attributes` those of
        join attributes; `numbers` are the first version number and the step to the next."""
        self.dimensions, self.join_attributes = tuple(dimensions), tuple(join_attributes)
        self.next_number, self._step = numbers
        """The number of the next version of a row."""
        self._clear()

    def __len__(self) -> int:
        return sum(map(len, self.tables))

    @property
    def join_values(self) -> int:
        """The number of join values that rows have, or have had since they were loaded."""
        return len(self.joins)

    def tidy(self) -> None:
        """Reload the rows if most memory is of deleted rows; called before a batch."""
        if any(table.is_mostly_garbage for table in self.tables):
            self.load(self.content(), next_number=self.next_number)

    def apply(self, changes: ChangeColumns) -> Longs:
        """Apply changes to the rows; return them as lines for kernels (`message_buffer.py`).

        If one change is refused, none is applied.
        """
        changes = changes.checked(self.dimensions)
        for table in self.tables:
            table.begin_batch(changes)
        self.joins.reserve(changes.joins)
        lines = np.empty((2 * len(changes), 5), np.int64)
        keys = tuple(table.keys.arrays for table in self.tables)
        slots = tuple(table.slots for table in self.tables)
        arrays, joins = changes.arrays, self.joins.arrays
        used, number = apply_to_rows(
            arrays, slots, keys, joins, self.next_number, self._step, lines
        )
        self.next_number = int(number)
        for table in self.tables:
            table.reserve(joins=self.join_values, places=0)
        return lines[:used]

    def expired(self, now_s: float) -> ChangeColumns:
        """The deletions of rows that have expired by `now_s`."""
        return deletions([table.expired(now_s) for table in self.tables], self.dimensions)

    def content(self) -> tuple[TableContent, ...]:
        """All rows of all tables."""
        return tuple(table.content() for table in self.tables)

    def load(self, content: Sequence[TableContent], *, next_number: int) -> None:
        """Replace all rows with these."""
        self._clear()
        for table, rows in zip(self.tables, content, strict=True):
            table.load(rows)
        for table in self.tables:
            table.reserve(joins=self.join_values, places=0)
        self.next_number = next_number

    def _clear(self) -> None:
        """Remove all rows."""
        self.joins = ByteCodes()
        self.tables = tuple(
            TableRows(side, dimensions=width, join_attributes=count, joins=self.joins)
            for side, (width, count) in enumerate(
                zip(self.dimensions, self.join_attributes, strict=True)
            )
        )
