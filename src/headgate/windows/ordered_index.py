"""From a value to the items of a window whose values are greater or less: `price < window.price`.

    number   1  3  3  8  …  | 5  2        sorted, and behind it a few that are not sorted yet
    text     'jazz'  'rock'  …

Law: as model/evaluate.py: only values of one kind compare, and what is missing does not. Cost for
each question: two binary searches, the unsorted ones, and one step for each row that is found;
these are many in most cases, as half of all values are greater than half of all values. Inserting
costs about √n comparisons for each row: sorting what is nearly sorted is linear.

Rejected: a balanced tree, for a join that has nothing but an order is rare and finds much.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isqrt

import numpy as np

from headgate.match.kernels import Longs
from headgate.model.atoms import Relation
from headgate.model.items import Item
from headgate.model.values import Comparable, Kind, Value
from headgate.windows.equality_index import key_of
from headgate.windows.pairs import Bounds, Pairs

FEW = 64
Entry = tuple[Comparable, int]
_AFTER_ALL_ROWS = 2**62


@dataclass(slots=True)
class _Values:
    ordered: list[Entry] = field(default_factory=list)
    recent: list[Entry] = field(default_factory=list)

    def settle(self) -> None:
        """Sort what is not sorted, when it has become much."""
        if len(self.recent) > FEW + isqrt(len(self.ordered)):
            self.ordered = sorted(self.ordered + self.recent)
            self.recent = []


class OrderedIndex:
    def __init__(self, attribute: str) -> None:
        self.attribute = attribute
        self._rows = 0
        self._by_kind: dict[Kind, _Values] = {}

    def insert(self, items: Sequence[Item]) -> None:
        """Take these items as the next rows."""
        for row, item in enumerate(items, self._rows):
            key = key_of(item.attributes.get(self.attribute))
            if key is not None:
                values = self._by_kind.setdefault(key[0], _Values())
                values.recent.append((key[1], row))
                values.settle()
        self._rows += len(items)

    def keep(self, rows: Longs) -> None:
        """Forget all but these rows, which are then numbered from 0."""
        new_row = np.full(self._rows, -1, np.int64)
        new_row[rows] = np.arange(rows.size)
        renamed: list[int] = new_row.tolist()
        for values in self._by_kind.values():
            for entries in (values.ordered, values.recent):
                entries[:] = [(value, renamed[row]) for value, row in entries if renamed[row] >= 0]
        self._rows = rows.size

    def find(self, values: Sequence[Value | None], relation: Relation, bounds: Bounds) -> Pairs:
        """For each question the rows for which `value relation window.attribute` holds."""
        found = [self._rows_of(value, relation) for value in values]
        questions = np.repeat(np.arange(len(found)), [len(each) for each in found])
        rows = np.array([row for each in found for row in each], np.int64)
        return bounds.hold(questions, rows)

    def _rows_of(self, value: Value | None, relation: Relation) -> list[int]:
        key = key_of(value)
        if key is None or key[0] not in self._by_kind:
            return []
        own, entries = key[1], self._by_kind[key[0]]
        ordered = entries.ordered
        match relation:
            case Relation.LESS:
                some = ordered[_place(ordered, (own, _AFTER_ALL_ROWS)) :]
            case Relation.LESS_EQUAL:
                some = ordered[_place(ordered, (own, -1)) :]
            case Relation.GREATER:
                some = ordered[: _place(ordered, (own, -1))]
            case _:
                some = ordered[: _place(ordered, (own, _AFTER_ALL_ROWS))]
        more = [row for other, row in entries.recent if relation.holds(own, other)]
        return [row for _, row in some] + more


def _place(ordered: list[Entry], entry: Entry) -> int:
    return bisect_left(ordered, entry)
