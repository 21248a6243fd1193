"""The rows of one table of a join graph: kept once, however many edges the table has (§4).

    rows      by key → slot        values, payload and all join attributes of each slot
    indexes   one for each edge    slots by the join value of that edge (`edge.py`)

As in a two-way server a changed row gets a new slot and a new number, and slots of rows that are
gone are used again from the next batch on, as messages of this one still speak of them.

A join attribute that a row lacks is None. The row is then in no index of an edge that needs it, and
in all others: it may be in joins without that edge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from bench.baselines.multiway.graph import TableShape
from headgate.model.errors import InvalidValue
from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.boxes import LEAST, MISSING
from headgate.tables.messages import Joins, Key, Point, SemijoinRow

SLOTS_MIN = 16
Numbers = TypeVar("Numbers", Floats, Longs)


@dataclass(frozen=True, slots=True)
class TableChange:
    """What happened to a row of a table: what it is now, or that it is gone (values None)."""

    table: str
    key: Key
    joins: Joins = ()
    values: Point | None = None
    payload: bytes = b""


class RowStore:
    def __init__(self, table: str, shape: TableShape) -> None:
        self.table = table
        self.dimensions = len(shape.selection_attributes)
        self.join_attributes = len(shape.join_attributes)
        self.slot_of: dict[Key, int] = {}
        self.joins: list[Joins] = []
        self.payloads: list[bytes] = []
        self.payload_bytes: Longs = np.zeros(SLOTS_MIN, np.int64)
        self.value: Floats = np.zeros((SLOTS_MIN, self.dimensions))
        self.number: Longs = np.full(SLOTS_MIN, -1, np.int64)
        self.next_number = 0
        """The number of the next version of a row."""
        self._free: list[int] = []
        self._gone: list[int] = []

    def __len__(self) -> int:
        return len(self.slot_of)

    def checked(self, change: TableChange) -> Point | None:
        """The change's values as kernels want them; an error if they do not fit the table."""
        if change.values is not None and len(change.joins) != self.join_attributes:
            raise InvalidValue(
                f"a row of '{self.table}' has {len(change.joins)} join attributes: "
                f"expected {self.join_attributes}"
            )
        return checked_values(change.values, self.dimensions)

    def begin_batch(self) -> None:
        """Whatever went before is forgotten by now."""
        for slot in self._gone:
            self.payloads[slot] = b""
        self._free += self._gone
        self._gone.clear()

    def is_same(self, slot: int, change: TableChange, values: Sequence[float]) -> bool:
        return (
            self.joins[slot] == change.joins
            and self.payloads[slot] == change.payload
            and self.value[slot].tolist() == list(values)
        )

    def put(self, change: TableChange, values: Sequence[float]) -> int:
        """The slot of a new version of a row; no index knows it yet."""
        if self._free:
            slot = self._free.pop()
            self.payloads[slot], self.joins[slot] = change.payload, change.joins
        else:
            slot = len(self.payloads)
            self.payloads.append(change.payload)
            self.joins.append(change.joins)
            if slot == len(self.number):
                self.value, self.number = _doubled(self.value), _doubled(self.number)
                self.payload_bytes = _doubled(self.payload_bytes)
        self.value[slot] = values
        self.number[slot] = self.next_number
        self.next_number += 1
        self.payload_bytes[slot] = len(change.payload)
        self.slot_of[change.key] = slot
        return slot

    def leave(self, slot: int) -> None:
        """The slot's row is gone after this batch."""
        self._gone.append(slot)

    def row(self, slot: int) -> SemijoinRow:
        values = tuple(self.value[slot].tolist())
        number = int(self.number[slot])
        return SemijoinRow(number, self.table, self.joins[slot], values, self.payloads[slot])


def _doubled(array: Numbers) -> Numbers:
    return np.concatenate([array, np.zeros_like(array)])


def checked_values(values: Sequence[float] | None, dimensions: int) -> tuple[float, ...] | None:
    """A row's values as kernels want them: NaN is missing, and −∞ the least finite number."""
    if values is None:
        return None
    if len(values) != dimensions:
        raise InvalidValue(f"a row has {len(values)} selection values: expected {dimensions}")
    return tuple(MISSING if math.isnan(each) else max(each, LEAST) for each in map(float, values))
