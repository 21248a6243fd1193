"""Changes of rows: as objects one by one, and as columns.

    side  gone  keys     joins    payloads   values        until_s
    0     no    ACME     ACME     {…}        51.7          ∞            the row's current values
    1     yes   r17                                                     the row was deleted

Servers take columns; no change is looked at one by one in Python. Keys and join values are bytes
(`key_bytes.py`). A row without all of its join attributes joins with nothing and is treated as
deleted.

A row that arrives with unchanged values and payload is no change. Only the first `body_bytes` of a
payload are compared; the rest is the origin of the version.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from headgate.match.texts import Bytes, Texts, texts_of
from headgate.model.errors import InvalidValue
from headgate.tables.box_tree import frozen_view
from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.boxes import LEAST, MISSING
from headgate.tables.byte_codes import copy_pieces
from headgate.tables.key_bytes import key_bytes
from headgate.tables.messages import Key
from headgate.tables.table_kernels import ChangeArrays

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class JoinChange:
    """A change of a row: its current values, or None if it was deleted.

    `join` is None if the row lacks a join attribute; it then joins with nothing. `until_s` is when
    the row expires, if its table keeps rows for a limited time.
    """

    table: int
    key: Key
    join: Key | None = None
    values: tuple[float, ...] | None = None
    payload: bytes = b""
    until_s: float = math.inf


@dataclass(frozen=True, slots=True, eq=False)
class ChangeColumns:
    """Changes in their order. Values are [change, attribute]; there are as many columns as the
    table with the most selection attributes has."""

    side: npt.NDArray[np.int8]
    gone: Mask
    keys: Texts
    joins: Texts
    payloads: Texts
    body_bytes: Longs
    values: Floats
    until_s: Floats

    def __len__(self) -> int:
        return self.side.size

    @property
    def arrays(self) -> ChangeArrays:
        """The columns as kernels take them."""
        return ChangeArrays(
            frozen_view(self.side),
            frozen_view(self.gone),
            frozen_view(self.keys.start),
            frozen_view(self.keys.data),
            frozen_view(self.joins.start),
            frozen_view(self.joins.data),
            frozen_view(self.payloads.start),
            frozen_view(self.payloads.data),
            frozen_view(self.body_bytes),
            frozen_view(self.values),
            frozen_view(self.until_s),
        )

    def checked(self, dimensions: Sequence[int]) -> ChangeColumns:
        """The same changes, validated, with values as kernels take them."""
        count = len(self)
        lengths = {len(self.keys), len(self.joins), len(self.payloads), len(self.values)}
        lengths |= {self.gone.size, self.until_s.size, self.body_bytes.size}
        if lengths != {count}:
            raise InvalidValue(f"the columns of {count} changes are not equally long")
        if ((self.body_bytes < 0) | (self.body_bytes > np.diff(self.payloads.start))).any():
            raise InvalidValue("the body of a payload is longer than the payload")
        if ((self.side < 0) | (self.side >= len(dimensions))).any():
            raise InvalidValue(
                f"a change names an unknown table: expected 0 to {len(dimensions) - 1}"
            )
        if self.values.shape[1] < max(dimensions):
            raise InvalidValue(
                f"changes have {self.values.shape[1]} selection values: expected {max(dimensions)}"
            )
        return replace(self, values=selection_values(self.values))


def selection_values(values: Floats) -> Floats:
    """Values as kernels take them: NaN is missing, and −∞ the least finite number."""
    return np.ascontiguousarray(np.where(np.isnan(values), MISSING, np.maximum(values, LEAST)))


def columns_of(changes: Sequence[JoinChange], dimensions: Sequence[int]) -> ChangeColumns:
    """Changes given as objects, converted to columns one by one: for tests and small inputs."""
    values = np.full((len(changes), max(dimensions)), math.nan)
    for row, change in enumerate(changes):
        if change.values is not None:
            width = dimensions[change.table]
            if len(change.values) != width:
                raise InvalidValue(
                    f"a row has {len(change.values)} selection values: expected {width}"
                )
            values[row, :width] = change.values
    payloads = texts_of(each.payload for each in changes)
    return ChangeColumns(
        np.array([each.table for each in changes], np.int8),
        np.array([each.values is None or each.join is None for each in changes], np.bool_),
        texts_of(key_bytes(each.key) for each in changes),
        texts_of(key_bytes(each.join or ()) for each in changes),
        payloads,
        np.diff(payloads.start),
        values,
        np.array([each.until_s for each in changes], np.float64),
    )


def deletions(keys: Sequence[Texts], dimensions: Sequence[int]) -> ChangeColumns:
    """Changes that delete the rows with these keys; keys are by table."""
    counts = [len(own) for own in keys]
    count = sum(counts)
    no_texts = Texts(np.zeros(count + 1, np.int64), np.zeros(0, np.uint8))
    return ChangeColumns(
        np.repeat(np.arange(len(keys), dtype=np.int8), counts),
        np.ones(count, np.bool_),
        concatenate_texts(keys),
        no_texts,
        no_texts,
        np.zeros(count, np.int64),
        np.full((count, max(dimensions)), math.nan),
        np.full(count, math.inf),
    )


def take_texts(start: Longs, data: Bytes, chosen: Longs) -> Texts:
    """The strings at the positions `chosen`.

    >>> genres = texts_of(["rock", "pop", "jazz"])
    >>> [take_texts(genres.start, genres.data, np.array([2, 0])).text(row) for row in range(2)]
    ['jazz', 'rock']
    """
    lengths = start[chosen + 1] - start[chosen]
    return copy_texts(start[chosen], lengths, data)


def copy_texts(begin: Longs, lengths: Longs, data: Bytes) -> Texts:
    """The strings data[begin : begin + length], copied."""
    start = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=start[1:])
    out = np.empty(int(start[-1]), np.uint8)
    copy_pieces(frozen_view(begin), frozen_view(data), start, out)
    return Texts(start, out)


def concatenate_texts(parts: Sequence[Texts]) -> Texts:
    """All strings of these lists as one list."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([np.diff(each.start) for each in parts])
    start = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=start[1:])
    data = [each.data[each.start[0] : each.start[-1]] for each in parts]
    return Texts(start, np.concatenate(data))
