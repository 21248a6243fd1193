"""The rows of stored files that a job reads, with the position of each row in its file.

Only the required columns are read: of twenty attributes a filter uses two. An attribute that is not
read counts as missing, so a job must require all attributes that its filters use (`columns_read`).

A store has many small files, and a call of the matcher has a fixed cost. So rows of adjacent files
of a part are combined into batches, up to ROWS_AT_ONCE or BYTES_AT_ONCE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.match.item_columns import SOURCE
from headgate.model.filters import Filter, atoms_of
from headgate.model.schema import Schema
from headgate.pipeline.jobs.job import Part
from headgate.store.item_files import ARRIVED
from headgate.store.read_store import first_line

FILE, ROW = "@file", "@row"
"""Columns that are added: the index of a row's file in the part, and the row's number there."""
ROWS_AT_ONCE = 200_000
BYTES_AT_ONCE = 64_000_000


@dataclass(frozen=True, slots=True)
class StoredRowReader:
    """Which rows and columns a job reads."""

    sources: frozenset[str]
    attributes: frozenset[str]
    since_us: int = 0
    """Rows that arrived earlier are skipped."""

    def batches(self, part: Part, damaged: dict[str, str]) -> Iterator[pa.RecordBatch]:
        """The rows of a part. Files that cannot be read are added to `damaged`, with the reason.
        Files that no longer exist are skipped: retention has removed them."""
        buffer = _BatchBuffer()
        for number, path in enumerate(part):
            try:
                for batch in self._rows(path, number):
                    yield from buffer.add(batch)
            except FileNotFoundError:
                continue
            except (OSError, pa.ArrowException) as error:
                damaged[path] = first_line(error)
        yield from buffer.flush()

    def _rows(self, path: str, number: int) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(path) as file:
            columns = self.attributes | {SOURCE, ARRIVED.name}
            names = [name for name in file.schema_arrow.names if name in columns]
            first = 0
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=names):
                rows = pa.array(np.arange(first, first + batch.num_rows))
                files = pa.array(np.full(batch.num_rows, number, np.int32))
                located = batch.append_column(FILE, files).append_column(ROW, rows)
                first += batch.num_rows
                yield located.filter(self._mask(batch))

    def _mask(self, batch: pa.RecordBatch) -> pa.Array:
        of_sources = pc.is_in(batch.column(SOURCE), pa.array(sorted(self.sources), pa.string()))
        return pc.and_(of_sources, pc.greater_equal(arrived_us(batch), self.since_us))


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


def arrived_us(batch: pa.RecordBatch) -> pa.Array:
    return batch.column(ARRIVED.name).cast(pa.int64())
