"""The items of a window of time as columns, for families of joins; indexes, expiry, JSON.

    row          0        1        2             rows in the order of arrival
    times        8:00     8:05     7:59          event time; a lookup sees a range of it
    arrived      8:10     8:10     8:10          a lookup at 8:09 sees none of them
    chunk, at    (0, 0)   (0, 3)   (1, 0)        where the item is: chunks are Arrow batches
    text         '{"id":…}'  –     –             its JSON, made when it is a partner first

It keeps the invariant of window_state.py for windows of time; items become Python objects only
where a predicate has to be evaluated on a pair (a residual), and JSON where they are written. An
item is a partner many times: its JSON is made once.

Expiry: rows that no later lookup can see are dropped when they are half of all rows. Chunks of
which less than half is used are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from headgate.match.bit_rows import Longs
from headgate.match.item_columns import items_from_arrow
from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.model.values import Value
from headgate.windows.access_path import EqualTo, OrderedBy, Path, SimilarTo
from headgate.windows.arrivals import NEVER_US
from headgate.windows.find_pairs import WindowBounds
from headgate.windows.growing_array import GrowingArray
from headgate.windows.log_rows import SourceRows, annotation_texts, column_values
from headgate.windows.similar_index import SimilarIndex
from headgate.windows.value_indexes import EqualityIndex, OrderedWindowIndex

Encode = Callable[[Item, str], str]
"""The JSON of an item and of the annotations that it has, which are JSON already."""


class StoredRows:
    """The items of rows, as places in Arrow batches."""

    def __init__(self) -> None:
        self._chunks: list[tuple[pa.RecordBatch, Schema]] = []
        self._chunk = GrowingArray(np.int32)
        self._at = GrowingArray(np.int32)
        self._texts: list[str | None] = []

    def __len__(self) -> int:
        return len(self._texts)

    def append(self, rows: SourceRows) -> None:
        self._chunk.extend(len(self._chunks), len(rows))
        self._at.extend(np.arange(len(rows)), len(rows))
        self._chunks.append((rows.batch, rows.schema))
        self._texts += [None] * len(rows)

    def items(self, rows: Longs) -> list[Item]:
        """The items of these rows, in this order."""
        found: list[Item | None] = [None] * rows.size
        for chunk, places in self._by_chunk(rows):
            batch, schema = self._chunks[chunk]
            taken = batch.take(pa.array(self._at.array[rows[places]]))
            for place, item in zip(places.tolist(), items_from_arrow(taken, schema), strict=True):
                found[place] = item
        return [each for each in found if each is not None]

    def texts(self, rows: Longs, encode: Encode) -> list[str | None]:
        """The JSON of all rows, by row, of which these are made if they are not yet."""
        missing = [row for row in np.unique(rows).tolist() if self._texts[row] is None]
        if missing:
            rows = np.array(missing, np.int64)
            notes = self._annotations(rows)
            for row, item, note in zip(missing, self.items(rows), notes, strict=True):
                self._texts[row] = encode(item, note)
        return self._texts

    def _annotations(self, rows: Longs) -> list[str]:
        found = [""] * rows.size
        for chunk, places in self._by_chunk(rows):
            batch, _ = self._chunks[chunk]
            taken = batch.take(pa.array(self._at.array[rows[places]]))
            for place, text in zip(places.tolist(), annotation_texts(taken), strict=True):
                found[place] = text
        return found

    def values(self, attribute: str) -> list[Value | None]:
        """The values of all rows."""
        found: list[Value | None] = [None] * len(self)
        for chunk, places in self._by_chunk(np.arange(len(self))):
            values = column_values(*self._chunks[chunk], attribute)
            for place, at in zip(places.tolist(), self._at.array[places].tolist(), strict=True):
                found[place] = values[at]
        return found

    def keep(self, rows: Longs) -> None:
        """Keep only these rows, renumbered from 0."""
        self._texts = [self._texts[row] for row in rows.tolist()]
        chunk, at = self._chunk.array[rows], self._at.array[rows]
        chunks: list[tuple[pa.RecordBatch, Schema]] = []
        for number in np.unique(chunk).tolist():
            places = np.flatnonzero(chunk == number)
            batch, schema = self._chunks[number]
            if 2 * places.size < batch.num_rows:
                batch = batch.take(pa.array(at[places]))
                at[places] = np.arange(places.size)
            chunk[places] = len(chunks)
            chunks.append((batch, schema))
        self._chunks = chunks
        self._chunk.replace(chunk)
        self._at.replace(at)

    def _by_chunk(self, rows: Longs) -> list[tuple[int, Longs]]:
        """The chunks of these rows, each with the places of its rows in `rows`."""
        chunk = self._chunk.array[rows]
        order = np.argsort(chunk, kind="stable")
        numbers, first = np.unique(chunk[order], return_index=True)
        places = np.split(order, first[1:])
        return list(zip(numbers.tolist(), places, strict=True)) if rows.size else []


class ColumnWindow:
    """The items of one window of time, with their indexes."""

    def __init__(self, size_us: int, *, kept_us: int) -> None:
        self.size_us, self.kept_us = size_us, kept_us
        self.rows = StoredRows()
        self.times = GrowingArray(np.int64)
        self.arrived = GrowingArray(np.int64)
        self.equal: dict[str, EqualityIndex] = {}
        self.similar: dict[str, SimilarIndex] = {}
        self.ordered: dict[str, OrderedWindowIndex] = {}
        self._median_us = NEVER_US

    def prepare(self, path: Path) -> None:
        """Create the index that the path needs; it indexes the rows that are there."""
        match path:
            case EqualTo(_, name) if name not in self.equal:
                self.equal[name] = EqualityIndex(name)
                self.equal[name].insert(self.rows.values(name))
            case OrderedBy(_, _, name) if name not in self.ordered:
                self.ordered[name] = OrderedWindowIndex(name)
                self.ordered[name].insert(self.rows.values(name))
            case SimilarTo(_, name, threshold):
                if name not in self.similar:
                    self.similar[name] = SimilarIndex(name, threshold)
                    self.similar[name].insert(self.rows.values(name))
                self.similar[name].lower_threshold(threshold)

    @property
    def indexes(self) -> Sequence[EqualityIndex | SimilarIndex | OrderedWindowIndex]:
        return [*self.equal.values(), *self.similar.values(), *self.ordered.values()]

    def insert(self, rows: SourceRows) -> None:
        """Add items; those that were too old for every lookup when they arrived are ignored."""
        span_us = self.size_us + self.kept_us
        rows = rows.take(np.flatnonzero(rows.time_us > rows.arrived_us - span_us))
        if len(rows):
            self.rows.append(rows)
            self.times.extend(rows.time_us, len(rows))
            self.arrived.extend(rows.arrived_us, len(rows))
            for index in self.indexes:
                index.insert(rows.values(index.attribute))

    def bounds(self, times_us: Longs, due_us: Longs) -> WindowBounds:
        """What primary items with these times, decided at these instants, see of the window."""
        until_us = np.maximum(times_us, due_us - self.kept_us)
        return WindowBounds(
            until_us - self.size_us, times_us, due_us, self.times.array, self.arrived.array
        )

    def expire(self, instant_us: int) -> None:
        """Drop expired rows, if they are many; everything until this instant is decided."""
        bound_us = instant_us - self.kept_us - self.size_us
        if not len(self.rows) or bound_us < self._median_us:
            return
        alive = np.flatnonzero(self.times.filled > bound_us)
        if 2 * alive.size <= len(self.rows):
            self.times.replace(self.times.array[alive])
            self.arrived.replace(self.arrived.array[alive])
            self.rows.keep(alive)
            for index in self.indexes:
                index.keep(alive)
        times = self.times.filled
        self._median_us = int(np.median(times)) + 1 if times.size else NEVER_US
