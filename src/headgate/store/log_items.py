"""The items at places of the log: rows of Parquet files, in the order asked for.

    places (position, file, row) ──► by file, by row group ──► LoggedItem, in the order of places

Only the row groups that hold a row are read, each once per call. A row of a source that is no
longer registered can be read too: the file has the names of its attributes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.match.batch import instant_at
from headgate.match.bit_rows import Longs
from headgate.match.item_columns import ID, SOURCE, TIME, items_from_arrow, timestamps_of, utc
from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.store.log_index import ItemPlace
from headgate.store.log_state import LogFile
from headgate.store.log_storage import LogStorage

ANNOTATIONS = "@annotations"
"""The joined items as JSON; only results of joins have this column."""
_OWN = {SOURCE, ID, TIME, ANNOTATIONS}


@dataclass(frozen=True, slots=True, eq=False)
class LoggedItem:
    """An item of the log; `attributes` has the values that are not null."""

    position: int
    arrived_us: int
    source: str
    id: str
    time: datetime
    attributes: Mapping[str, object]
    annotations: Sequence[Mapping[str, object]]
    """The items that joins have added, as JSON values."""
    batch: pa.RecordBatch
    """The row with all its columns."""

    @property
    def arrived(self) -> datetime:
        return instant_at(self.arrived_us)

    def item(self, schema: Schema) -> Item:
        """Without the annotations."""
        (item,) = items_from_arrow(self.batch, schema)
        return item


def read_items(storage: LogStorage, places: Sequence[ItemPlace]) -> list[LoggedItem]:
    """The items at these places, in this order. FileNotFoundError if a file was removed meanwhile:
    then the reader's state is too old."""
    by_file: dict[str, list[ItemPlace]] = {}
    for place in places:
        by_file.setdefault(place.file.items, []).append(place)
    items: dict[int, LoggedItem] = {}
    for in_file in by_file.values():
        distinct = sorted({place.row: place for place in in_file}.values(), key=_row)
        rows = read_rows(storage, in_file[0].file, [place.row for place in distinct])
        for place, batch in zip(distinct, _single_rows(rows), strict=True):
            items[place.position] = logged_item(place.position, place.arrived_us, batch)
    return [items[place.position] for place in places]


def read_rows(
    storage: LogStorage,
    file: LogFile,
    rows: Sequence[int] | Longs | None,
    *,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """These rows of a file, which are ascending, in order; None: all of them. With `columns`, only
    these of its columns."""
    with pq.ParquetFile(pa.BufferReader(storage.map(file.items))) as parquet:
        if rows is None:
            return parquet.read(columns)
        tables: list[pa.Table] = []
        wanted, start = np.asarray(rows, np.int64), 0
        for group in range(parquet.num_row_groups):
            end = start + parquet.metadata.row_group(group).num_rows
            first, last = np.searchsorted(wanted, [start, end])
            if last > first:
                part = parquet.read_row_group(group, columns)
                tables.append(part.take(wanted[first:last] - start))
            start = end
        if not tables:
            empty = parquet.schema_arrow.empty_table()
            return empty if columns is None else empty.select(columns)
        return pa.concat_tables(tables)


def _row(place: ItemPlace) -> int:
    return place.row


def _single_rows(table: pa.Table) -> Iterator[pa.RecordBatch]:
    for batch in table.combine_chunks().to_batches():
        yield from (batch.slice(row, 1) for row in range(batch.num_rows))


def logged_item(position: int, arrived_us: int, batch: pa.RecordBatch) -> LoggedItem:
    """The item of a row with all its columns."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    (time,) = timestamps_of(columns[TIME])
    assert time is not None, "items have a time"
    annotations = columns.get(ANNOTATIONS)
    return LoggedItem(
        position=position,
        arrived_us=arrived_us,
        source=columns[SOURCE][0].as_py(),
        id=columns[ID][0].as_py(),
        time=time,
        attributes=dict(_attributes(columns)),
        annotations=json.loads((annotations and annotations[0].as_py()) or "[]"),
        batch=batch,
    )


def _attributes(columns: Mapping[str, pa.Array]) -> Iterator[tuple[str, object]]:
    for name, column in columns.items():
        if name not in _OWN and column.null_count == 0:
            value = column[0].as_py()
            yield name, utc(value) if isinstance(value, datetime) else value
