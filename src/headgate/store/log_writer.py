"""The one writer of the log's data: a file of items and its segment, by the same task.

    batches with the feeds of each row ──► data/<group>/<uuid>.parquet    items, without feeds
                                      └──► data/<group>/<uuid>.segment    feeds ──► rows, …

A pair exists for readers only when a log entry names it (log.py). Names are unique, so a task that
is run twice, or one that was declared lost and writes nevertheless, disturbs nobody.

Both are built in memory and written at once, also to storage that has no files that grow. A large
partition is split into several pairs of at most ROWS_MAX rows or BYTES_MAX bytes.

Groups are named after the query or stage that writes them and the schema of their items:

    files-93ab…, feeds-1f0c…           items of sources (pipeline/source_groups.py)
    materialised.1f0c…                 items that materialised feeds have made
    joined.1f0c…, joined.tables.02c4…  results of joins

Results of joins are stored in addition to their items. They belong to feeds and are no items of a
source: their segments have no postings of sources.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.match.item_columns import SOURCE
from headgate.store.log_state import WrittenFile
from headgate.store.log_storage import LogStorage
from headgate.store.segment import Segment, SegmentBuilder, segment_bytes

MATERIALISED = "materialised."
JOINED = "joined."
TABLES = f"{JOINED}tables."

ROWS_MAX = 4_000_000
BYTES_MAX = 256_000_000
ROW_GROUP_ROWS, ROW_GROUP_BYTES = 16_384, 16_000_000
"""Small row groups: a reader of ten items decodes ten of them."""


class LogFileWriter:
    """Writes the rows of one group; `close` returns the pairs. For one thread."""

    def __init__(self, storage: LogStorage, group: str) -> None:
        self._storage, self._group = storage, group
        self._written: list[WrittenFile] = []
        self._pair: _OpenPair | None = None

    def write(self, items: pa.RecordBatch, lists: Mapping[str, pa.ListArray]) -> None:
        """Rows behind those so far; `lists` has the feeds, inputs and identities of each row."""
        if not items.num_rows:
            return
        if self._pair is not None and items.schema != self._pair.schema:
            self._end()
        if self._pair is None:
            self._pair = _OpenPair(items.schema, has_sources=not self._group.startswith(JOINED))
        self._pair.write(items, lists)
        if self._pair.is_full:
            self._end()

    def close(self) -> list[WrittenFile]:
        """Write what is left. Without rows there is no file."""
        self._end()
        return self._written

    def _end(self) -> None:
        if self._pair is not None:
            content, segment = self._pair.close()
            self._written.append(write_pair(self._storage, self._group, content, segment))
            self._pair = None


class _OpenPair:
    """A file of items and its segment, in memory."""

    def __init__(self, schema: pa.Schema, *, has_sources: bool) -> None:
        self.schema = schema
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._sink, schema, compression="zstd")
        self._segment = SegmentBuilder(has_sources=has_sources)
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._waiting_bytes = 0

    @property
    def is_full(self) -> bool:
        return self._segment.row_count >= ROWS_MAX or int(self._sink.tell()) >= BYTES_MAX

    def write(self, items: pa.RecordBatch, lists: Mapping[str, pa.ListArray]) -> None:
        self._segment.add(items.column(SOURCE), lists)
        self._waiting.append(items)
        self._waiting_rows += items.num_rows
        self._waiting_bytes += items.nbytes
        if self._waiting_rows >= ROW_GROUP_ROWS or self._waiting_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> tuple[pa.Buffer, Segment]:
        self._flush()
        self._writer.close()
        return self._sink.getvalue(), self._segment.build()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting))
            self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0


def write_pair(storage: LogStorage, group: str, items: pa.Buffer, segment: Segment) -> WrittenFile:
    """Write a file of items and its segment under names that nobody else has."""
    name = f"data/{group}/{uuid.uuid4().hex}"
    index = segment_bytes(segment)
    storage.write(f"{name}.parquet", items)
    storage.write(f"{name}.segment", index)
    size = items.size + index.size
    return WrittenFile(f"{name}.parquet", f"{name}.segment", group, segment.row_count, size)
