"""From a value to the items of a window: `title = window.title`, `price < window.price`.

**Equality.**

    'rock' ──► row 7 ──► row 4 ──► row 1        a chain through `previous`, the newest row first

Two values are equal if they are of one kind and compare as equal (model/values.py); a missing value
is equal to nothing. Cost: one dictionary lookup, and one step per row of the chain, including
expired rows, which are never more than the others. Rejected: lists of rows instead of chains, as
most values have a single row, for which a list is the most expensive form; hashes instead of
values, as these would have to be compared again.

**Order.**

    number   1  3  3  8  …  | 5  2        sorted, and after it a few that are not sorted yet
    text     'jazz'  'rock'  …

As in model/evaluate.py only values of one kind compare, and a missing value does not. Cost per
lookup: two binary searches, the unsorted values, and one step per row found; these are many in most
cases. Inserting costs about √n comparisons per row: sorting what is nearly sorted is linear.
Rejected: a balanced tree, as a join on nothing but an order is rare and finds much."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isqrt

import numpy as np

from headgate.match.bit_rows import Longs
from headgate.model.atoms import Relation
from headgate.model.values import Comparable, Kind, Value, comparable, is_missing, kind_of
from headgate.windows.find_pairs import Pairs, WindowBounds, find_in_chains, find_pairs
from headgate.windows.growing_array import GrowingArray

Key = tuple[Kind, Comparable]


def key_of(value: Value | None) -> Key | None:
    """A key that two values share if and only if they are equal; None for a missing value."""
    return None if value is None or is_missing(value) else (kind_of(value), comparable(value))


class EqualityIndex:
    """Chains of rows by the value of one attribute."""

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute
        self._newest: dict[Key, int] = {}
        self._keys: list[Key | None] = []
        self._previous = GrowingArray(np.int32)

    def insert(self, values: Sequence[Value | None]) -> None:
        """Add rows with these values of the attribute."""
        self._link([key_of(value) for value in values])

    def keep(self, rows: Longs) -> None:
        """Keep only these rows, renumbered from 0."""
        keys = [self._keys[row] for row in rows.tolist()]
        self._newest, self._keys, self._previous = {}, [], GrowingArray(np.int32)
        self._link(keys)

    def find(self, values: Sequence[Value | None], bounds: WindowBounds) -> Pairs:
        """For each lookup of a value, the rows that have it."""
        heads = np.array([self._head(value) for value in values], np.int64)
        return find_pairs(find_in_chains, bounds, heads, self._previous.array)

    def _head(self, value: Value | None) -> int:
        key = key_of(value)
        return -1 if key is None else self._newest.get(key, -1)

    def _link(self, keys: list[Key | None]) -> None:
        newest, row = self._newest, len(self._keys)
        previous: list[int] = []
        for key in keys:
            if key is None:
                previous.append(-1)
            else:
                previous.append(newest.get(key, -1))
                newest[key] = row
            row += 1
        self._keys += keys
        self._previous.extend(previous, len(previous))


FEW = 64
"""So many recent values stay unsorted, plus the square root of the sorted ones."""
Entry = tuple[Comparable, int]
_AFTER_ALL_ROWS = 2**62


@dataclass(slots=True)
class _Values:
    """The values of one kind with their rows: sorted ones, and recent ones in any order."""

    ordered: list[Entry] = field(default_factory=list)
    recent: list[Entry] = field(default_factory=list)

    def settle(self) -> None:
        """Sort the recent values when there are many."""
        if len(self.recent) > FEW + isqrt(len(self.ordered)):
            self.ordered = sorted(self.ordered + self.recent)
            self.recent = []


class OrderedWindowIndex:
    """The rows of a window sorted by one attribute."""

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute
        self._rows = 0
        self._by_kind: dict[Kind, _Values] = {}

    def insert(self, values: Sequence[Value | None]) -> None:
        """Add rows with these values of the attribute."""
        for row, value in enumerate(values, self._rows):
            key = key_of(value)
            if key is not None:
                of_kind = self._by_kind.setdefault(key[0], _Values())
                of_kind.recent.append((key[1], row))
                of_kind.settle()
        self._rows += len(values)

    def keep(self, rows: Longs) -> None:
        """Keep only these rows, renumbered from 0."""
        new_row = np.full(self._rows, -1, np.int64)
        new_row[rows] = np.arange(rows.size)
        renamed: list[int] = new_row.tolist()
        for values in self._by_kind.values():
            for entries in (values.ordered, values.recent):
                entries[:] = [(value, renamed[row]) for value, row in entries if renamed[row] >= 0]
        self._rows = rows.size

    def find(
        self, values: Sequence[Value | None], relation: Relation, bounds: WindowBounds
    ) -> Pairs:
        """For each lookup the rows for which `value relation window.attribute` holds."""
        rows_by_lookup = [self._rows_of(value, relation) for value in values]
        lookups = np.repeat(np.arange(len(rows_by_lookup)), [len(each) for each in rows_by_lookup])
        rows = np.array([row for each in rows_by_lookup for row in each], np.int64)
        return bounds.pairs_within(lookups, rows)

    def _rows_of(self, value: Value | None, relation: Relation) -> list[int]:
        key = key_of(value)
        if key is None or key[0] not in self._by_kind:
            return []
        bound, entries = key[1], self._by_kind[key[0]]
        ordered = entries.ordered
        match relation:
            case Relation.LESS:
                matching = ordered[_place(ordered, (bound, _AFTER_ALL_ROWS)) :]
            case Relation.LESS_EQUAL:
                matching = ordered[_place(ordered, (bound, -1)) :]
            case Relation.GREATER:
                matching = ordered[: _place(ordered, (bound, -1))]
            case _:
                matching = ordered[: _place(ordered, (bound, _AFTER_ALL_ROWS))]
        recent_rows = [row for other, row in entries.recent if relation.holds(bound, other)]
        return [row for _, row in matching] + recent_rows


def _place(ordered: list[Entry], entry: Entry) -> int:
    return bisect_left(ordered, entry)
