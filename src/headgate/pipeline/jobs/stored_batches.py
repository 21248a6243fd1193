"""The rows of the log that a job reads, with the position and the arrival of each.

    part ──► of each range: rows [first, end) ──► columns that are needed, @position, @arrived
             segment: runs                        of the sources that are asked for

Only the required columns are read: of twenty attributes a filter uses two. An attribute that is not
read counts as missing, so a job must require all attributes that its filters use (`columns_read`).

Rows of a file are in order of arrival, so those since an instant are a slice of it; when they
arrived is in the segment.

A log has many small files, and a call of the matcher has a fixed cost. So rows of adjacent files of
a part are combined into batches, up to ROWS_AT_ONCE or BYTES_AT_ONCE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.match.bit_rows import Longs
from headgate.match.item_columns import SOURCE
from headgate.model.errors import LogUnavailable
from headgate.model.filters import Filter, atoms_of
from headgate.model.schema import Schema
from headgate.pipeline.jobs.job import LogPart
from headgate.store.file_ranges import FileRange, current_ranges
from headgate.store.log_index import open_placed
from headgate.store.log_storage import LogStorage
from headgate.store.log_view import UNREADABLE, first_line, first_row_since
from headgate.store.segment import Runs

POSITION, ARRIVED = "@position", "@arrived"
"""Columns that are added, int64: the position of a row, and when it arrived, in microseconds."""
ROWS_AT_ONCE = 200_000
BYTES_AT_ONCE = 64_000_000


@dataclass(frozen=True, slots=True)
class StoredRowReader:
    """Which rows and columns a job reads."""

    storage: LogStorage
    sources: frozenset[str]
    attributes: frozenset[str]
    since_us: int = 0
    """Rows that arrived earlier are skipped."""

    def batches(self, part: LogPart, damaged: dict[str, str]) -> Iterator[pa.RecordBatch]:
        """The rows of a part. Files that cannot be read are added to `damaged`, with the reason."""
        buffer = _BatchBuffer()
        for file_range in part:
            yield from self._read(file_range, buffer, damaged)
        yield from buffer.flush()

    def _read(
        self, file_range: FileRange, buffer: _BatchBuffer, damaged: dict[str, str]
    ) -> Iterator[pa.RecordBatch]:
        try:
            opened = self._open(file_range)
            for batch in opened.batches(self):
                yield from buffer.add(batch)
        except FileNotFoundError:
            yield from self._read_elsewhere(file_range, buffer, damaged)
        except LogUnavailable:
            raise
        except UNREADABLE as error:
            damaged[file_range.file.items] = first_line(error)

    def _read_elsewhere(
        self, gone: FileRange, buffer: _BatchBuffer, damaged: dict[str, str]
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a file that is gone, from the files that have them now."""
        try:
            ranges = current_ranges(self.storage, gone)
        except FileNotFoundError as error:
            damaged[gone.file.items] = first_line(error)
            return
        for file_range in ranges:
            yield from self._read(file_range, buffer, damaged)

    def _open(self, file_range: FileRange) -> _OpenRange:
        """Both files, which stay readable when they are removed from now on."""
        file = file_range.file
        segment = open_placed(self.storage, file)
        content = self.storage.map(file.items)
        first, end = file_range.rows(segment.runs)
        first = max(first, first_row_since(segment.runs, self.since_us, file.rows))
        return _OpenRange(content, segment.runs, first, end)


@dataclass(frozen=True, slots=True, eq=False)
class _OpenRange:
    content: pa.Buffer
    runs: Runs
    first: int
    end: int

    def batches(self, reader: StoredRowReader) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(pa.BufferReader(self.content)) as parquet:
            columns = reader.attributes | {SOURCE}
            names = [name for name in parquet.schema_arrow.names if name in columns]
            sources = pa.array(sorted(reader.sources), pa.string())
            groups, row = self._row_groups(parquet.metadata)
            for batch in parquet.iter_batches(ROWS_AT_ONCE, row_groups=groups, columns=names):
                rows = np.arange(row, row + batch.num_rows)
                row += batch.num_rows
                is_inside = (rows >= self.first) & (rows < self.end)
                of_sources = pc.is_in(batch.column(SOURCE), sources)
                mask = pc.and_(of_sources, pa.array(is_inside))
                yield self._placed(batch, rows).filter(mask)

    def _row_groups(self, metadata: pq.FileMetaData) -> tuple[list[int], int]:
        """The row groups that have rows of the range, and the first row in them."""
        counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        starts = np.cumsum([0, *counts]).tolist()
        groups = [
            group
            for group, start in enumerate(starts[:-1])
            if start < self.end and starts[group + 1] > self.first
        ]
        return groups, starts[groups[0]] if groups else 0

    def _placed(self, batch: pa.RecordBatch, rows: Longs) -> pa.RecordBatch:
        positions, arrivals = self.runs.positions(rows), self.runs.arrivals(rows)
        with_position = batch.append_column(POSITION, pa.array(positions))
        return with_position.append_column(ARRIVED, pa.array(arrivals))


class _BatchBuffer:
    """Collects batches of the same columns until there are enough rows for one large batch."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if self._batches and batch.schema != self._batches[0].schema:
            yield from self.flush()
        if batch.num_rows:
            self._batches.append(batch)
            self._rows += batch.num_rows
            self._bytes += batch.nbytes
        if self._rows >= ROWS_AT_ONCE or self._bytes >= BYTES_AT_ONCE:
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        if self._batches:
            yield pa.concat_batches(self._batches)
        self._batches, self._rows, self._bytes = [], 0, 0


def columns_read(filters: Iterable[Filter], schema: Schema) -> set[str]:
    """The attributes that these filters use; an atom without an attribute uses all of them."""
    attributes: set[str] = set()
    for atom in (atom for filter_ in filters for atom in atoms_of(filter_)):
        name = getattr(atom, "attribute", None)
        if name is None:
            return {str(each) for each in schema.names}
        attributes.add(str(name))
    return attributes
