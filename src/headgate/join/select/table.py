"""One table of a select-join at the server: rows by key, by slot, and by join value.

A row that is changed gets a new slot and a new number, so that both versions can be told apart in
messages. Slots of rows that are gone are used again, but not before the next batch, as messages of
this one still speak of them. The order by join value is kept by kernels (`table_kernels.py`).

A value that is missing is −∞: it is in no range, for ranges begin at the least finite number, but
in those that are no condition, which begin at −∞ (`boxes.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import TypeVar

import numpy as np

from headgate.join.select.box_tree_kernels import Floats, Longs
from headgate.join.select.messages import Key, Row, Table
from headgate.join.select.table_kernels import Index, compact

SLOTS_MIN = 16
Numbers = TypeVar("Numbers", Floats, Longs)


class TableRows:
    def __init__(self, table: Table, *, dimensions: int, join_attributes: int) -> None:
        self.table = table
        self.dimensions = dimensions
        self.join_attributes = join_attributes
        self.slot_of: dict[Key, int] = {}
        self.payload_bytes: Longs = np.zeros(SLOTS_MIN, np.int64)
        self.payloads: list[bytes] = []
        self.joins: list[Key] = []
        """The join value of each slot; all slots of one value share the object."""
        self.until_s: list[float] = []
        """From when on each slot's row may expire."""
        self.codes: list[int] = []
        self._value: Floats = np.zeros((SLOTS_MIN, dimensions))
        self._number: Longs = np.full(SLOTS_MIN, -1, np.int64)
        self._start, self._size, self._capacity = (np.zeros(SLOTS_MIN, np.int64) for _ in range(3))
        self._pool: Longs = np.zeros(SLOTS_MIN, np.int64)
        self._pool_used: Longs = np.zeros(1, np.int64)
        self._oldest: list[tuple[float, int, Key]] = []
        """A heap of (time, number, key); an entry counts while the row still has both."""
        self._free: list[int] = []
        self._gone: list[int] = []

    def __len__(self) -> int:
        return len(self.slot_of)

    @property
    def index(self) -> Index:
        """What the kernels see; valid until the next batch."""
        pieces = self._start, self._size, self._capacity
        return Index(self._value, self._number, *pieces, self._pool, self._pool_used)

    def put(
        self,
        key: Key,
        *,
        number: int,
        join: Key,
        code: int,
        values: Sequence[float],
        payload: bytes,
        until_s: float,
    ) -> int:
        """The slot of a new version of a row; the index does not know it yet."""
        if self._free:
            slot = self._free.pop()
            self.payloads[slot], self.joins[slot], self.codes[slot] = payload, join, code
        else:
            slot = len(self.payloads)
            self.payloads.append(payload)
            self.joins.append(join)
            self.codes.append(code)
            self.until_s.append(until_s)
            if slot == len(self._number):
                self._value = _doubled(self._value)
                self._number = _doubled(self._number)
                self.payload_bytes = _doubled(self.payload_bytes)
        self._value[slot] = values
        self._number[slot] = number
        self.payload_bytes[slot] = len(payload)
        self.slot_of[key] = slot
        self.keep_until(slot, key, until_s)
        return slot

    def keep_until(self, slot: int, key: Key, until_s: float) -> None:
        """A row may expire from this time on, and not before."""
        self.until_s[slot] = until_s
        if until_s < math.inf:
            heappush(self._oldest, (until_s, int(self._number[slot]), key))

    def expired(self, now_s: float) -> list[Key]:
        """The rows that may expire by now, the oldest first; they are asked for once."""
        found = []
        while self._oldest and self._oldest[0][0] <= now_s:
            until_s, number, key = heappop(self._oldest)
            slot = self.slot_of.get(key, -1)
            if slot >= 0 and (self.until_s[slot], self._number[slot]) == (until_s, number):
                found.append(key)
        return found

    def is_same(self, slot: int, values: Sequence[float], payload: bytes) -> bool:
        return self._value[slot].tolist() == list(values) and self.payloads[slot] == payload

    def leave(self, slot: int) -> None:
        """The slot's row is gone after this batch."""
        self._gone.append(slot)

    def begin_batch(self) -> None:
        """Whatever went before is forgotten by now."""
        for slot in self._gone:
            self.payloads[slot] = b""
        self._free += self._gone
        self._gone.clear()

    def reserve(self, *, joins: int, places: int) -> None:
        """Have room for so many join values, and so many more places of the pool."""
        while joins > len(self._start):
            self._start, self._size, self._capacity = map(
                _doubled, (self._start, self._size, self._capacity)
            )
        if self._pool_used[0] + places <= len(self._pool):
            return
        held = int(self._capacity.sum())
        pool = np.zeros(max(SLOTS_MIN, 2 * (held + places)), np.int64)
        compact(self.index, pool)
        self._pool = pool

    def index_all(self, codes: Longs, *, joins: int) -> None:
        """Order all slots by join value, in a table whose rows were put without changes."""
        self.reserve(joins=joins, places=0)
        count = len(codes)
        slots = np.lexsort((self._number[:count], self._value[:count, 0], codes))
        self._size[:joins] = np.bincount(codes, minlength=joins)
        self._capacity[:] = self._size
        self._start[1:] = np.cumsum(self._size)[:-1]
        self._pool = slots
        self._pool_used[0] = len(slots)

    def row(self, slot: int) -> Row:
        values = tuple(self._value[slot].tolist())
        number = int(self._number[slot])
        return Row(number, self.table, self.joins[slot], values, self.payloads[slot])


def _doubled(array: Numbers) -> Numbers:
    return np.concatenate([array, np.zeros_like(array)])
