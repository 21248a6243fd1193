"""Items of the log as the window joins read them: columns, by source, with times and arrivals.

    files of a range of positions ──► segment: rows of each source ──► SourceRows, source by source

Only files that may hold a needed source are opened. Results of joins are no items of a source
(log_writer.py), so they are never read. A merged file has positions of its own for each row; a row
is read if its position is in the range, whatever file it is in by now.

To rebuild windows, only items after some time are needed. The greatest time of each row group is in
the metadata of the Parquet file, so most old files are skipped without being read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.match.bit_rows import Longs
from headgate.match.item_columns import (
    TIME,
    group_of,
    item_columns,
    items_from_arrow,
    may_hold,
    timestamps_of,
)
from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.model.values import Link, Type, Value, Xml
from headgate.store.log_index import open_placed
from headgate.store.log_items import ANNOTATIONS
from headgate.store.log_state import LogFile, LogState
from headgate.store.log_storage import LogStorage
from headgate.store.log_writer import JOINED

_WRAP = {Type.LINK: Link, Type.XML: Xml}


@dataclass(frozen=True, slots=True, eq=False)
class SourceRows:
    """Some items of one source."""

    source: str
    schema: Schema
    batch: pa.RecordBatch
    positions: Longs
    """In the log: they say in which bucket a primary item is."""
    time_us: Longs
    arrived_us: Longs

    def __len__(self) -> int:
        return int(self.time_us.size)

    def take(self, rows: Longs) -> SourceRows:
        """Only these rows; the same object if these are all."""
        if rows.size == len(self):
            return self
        return SourceRows(
            self.source,
            self.schema,
            self.batch.take(pa.array(rows)),
            self.positions[rows],
            self.time_us[rows],
            self.arrived_us[rows],
        )

    def values(self, attribute: str) -> list[Value | None]:
        return column_values(self.batch, self.schema, attribute)

    def items(self) -> list[Item]:
        """Without the annotations."""
        return items_from_arrow(self.batch, self.schema)

    def annotations(self) -> list[str]:
        """The annotations that items of materialised feeds have brought along, as JSON; empty for
        all others."""
        return annotation_texts(self.batch)


def column_values(batch: pa.RecordBatch, schema: Schema, attribute: str) -> list[Value | None]:
    """The values of an attribute as items have them; none if the schema lacks it."""
    declared = schema.get(attribute)
    if declared is None:
        return [None] * int(batch.num_rows)
    column = batch.column(attribute)
    if declared.type is Type.TIMESTAMP:
        return list(timestamps_of(column))
    values: list[Value | None] = column.to_pylist()
    wrap = _WRAP.get(declared.type)
    return values if wrap is None else [None if each is None else wrap(each) for each in values]


def annotation_texts(batch: pa.RecordBatch) -> list[str]:
    if ANNOTATIONS not in batch.schema.names:
        return [""] * int(batch.num_rows)
    return ["" if text in (None, "[]") else text for text in batch.column(ANNOTATIONS).to_pylist()]


@dataclass(frozen=True, slots=True)
class PositionRange:
    """Positions from `first` to before `end`."""

    first: int
    end: int


def rows_in_range(
    storage: LogStorage,
    state: LogState,
    positions: PositionRange,
    schemas: Mapping[str, Schema],
    *,
    since_us: Mapping[str, int] | None = None,
) -> Iterator[SourceRows]:
    """The items of these sources in the range, file by file in the order of the log; with
    `since_us` only those with a later time than given for their source."""
    groups = {group_of(schema) for schema in schemas.values()}
    for file in state.files:
        is_within = file.first < positions.end and file.end > positions.first
        if is_within and not file.group.startswith(JOINED) and may_hold(file.group, groups):
            yield from _rows_of_file(storage, file, positions, schemas, since_us)


def _rows_of_file(
    storage: LogStorage,
    file: LogFile,
    positions: PositionRange,
    schemas: Mapping[str, Schema],
    since_us: Mapping[str, int] | None,
) -> Iterator[SourceRows]:
    segment = open_placed(storage, file)
    wanted = {number: name for number, name in enumerate(segment.source_names) if name in schemas}
    if not wanted:
        return
    earliest = None if since_us is None else min(since_us[name] for name in wanted.values())
    table = _table(storage, file, earliest)
    if table is None:
        return
    keys, rows = segment.sources.pairs()
    placed = segment.runs.positions(rows)
    within = (placed >= positions.first) & (placed < positions.end)
    arrived_us = segment.runs.arrivals(rows)
    for number, name in wanted.items():
        own = np.flatnonzero(within & (keys == number))
        if own.size:
            batch = _batch_of(table, schemas[name], rows[own])
            # A copy: kernels are compiled for arrays that can be written to, those of Arrow cannot.
            time_us = np.array(batch.column(TIME).cast(pa.int64()))
            found = SourceRows(name, schemas[name], batch, placed[own], time_us, arrived_us[own])
            if since_us is not None:
                found = found.take(np.flatnonzero(found.time_us > since_us[name]))
            if len(found):
                yield found


def _table(storage: LogStorage, file: LogFile, earliest_us: int | None) -> pa.Table | None:
    """All rows of a file; None if none of them has a later time."""
    with pq.ParquetFile(pa.BufferReader(storage.map(file.items))) as parquet:
        if earliest_us is not None and _greatest_time_us(parquet) <= earliest_us:
            return None
        return parquet.read().combine_chunks()


def _greatest_time_us(parquet: pq.ParquetFile) -> int:
    column = parquet.schema_arrow.get_field_index(TIME)
    greatest = -(2**62)
    for group in range(parquet.num_row_groups):
        statistics = parquet.metadata.row_group(group).column(column).statistics
        if statistics is None or not statistics.has_min_max:
            return 2**62
        greatest = max(greatest, int(statistics.max_raw))
    return greatest


def _batch_of(table: pa.Table, schema: Schema, rows: Longs) -> pa.RecordBatch:
    fields = item_columns(schema)
    if ANNOTATIONS in table.schema.names:
        fields = fields.append(pa.field(ANNOTATIONS, pa.string()))
    chosen = table.select(fields.names)
    if rows.size < table.num_rows:
        chosen = chosen.take(pa.array(rows))
    (batch,) = chosen.combine_chunks().to_batches()
    return batch.cast(fields)
