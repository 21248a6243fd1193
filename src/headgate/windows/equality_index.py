"""From a value to the items of a window that have it: `title = window.title`.

    'rock' ──► row 7 ──► row 4 ──► row 1        a chain through `previous`, the newest row first

Law: two values are equal if they are of one kind and compare as equal (model/values.py); what is
missing is equal to nothing. Cost: one look into a dictionary, and one step for each row of the
chain, those that are no longer in the window included, which are never more than the others.

Rejected: lists of rows instead of chains, as most values have a single row, for which a list is
the most expensive form; and hashes instead of values, as they would have to be compared again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headgate.match.kernels import Longs
from headgate.model.items import Item
from headgate.model.values import Comparable, Kind, Value, comparable, is_missing, kind_of
from headgate.windows.growing import Growing
from headgate.windows.join_kernels import find_in_chains
from headgate.windows.pairs import Bounds, Pairs, find_pairs

Key = tuple[Kind, Comparable]


def key_of(value: Value | None) -> Key | None:
    """What two values have in common if they are equal; nothing for what is missing."""
    return None if value is None or is_missing(value) else (kind_of(value), comparable(value))


class EqualityIndex:
    def __init__(self, attribute: str) -> None:
        self.attribute = attribute
        self._newest: dict[Key, int] = {}
        self._keys: list[Key | None] = []
        self._previous = Growing(np.int32)

    def insert(self, items: Sequence[Item]) -> None:
        """Take these items as the next rows."""
        self._link([key_of(item.attributes.get(self.attribute)) for item in items])

    def keep(self, rows: Longs) -> None:
        """Forget all but these rows, which are then numbered from 0."""
        keys = [self._keys[row] for row in rows.tolist()]
        self._newest, self._keys, self._previous = {}, [], Growing(np.int32)
        self._link(keys)

    def find(self, values: Sequence[Value | None], bounds: Bounds) -> Pairs:
        """For each question, which asks for a value, the rows that have it."""
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
