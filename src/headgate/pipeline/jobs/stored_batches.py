"""The rows of stored files that a job looks at, of many files at once, with their places.

Only the columns that are asked for are read: of twenty attributes a filter looks at two. An
attribute that is not read counts as missing, so all that the filters look at must be asked for
(`columns_read`).

A store has many small files, and matching costs something for each call whatever its size: rows of
files that lie beside each other in a part are put together, up to ROWS_AT_ONCE or BYTES_AT_ONCE.
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
"""Which file of the part a row is from, and its number there."""
ROWS_AT_ONCE = 200_000
BYTES_AT_ONCE = 64_000_000


@dataclass(frozen=True, slots=True)
class Looked:
    """Which rows and columns a job looks at."""

    sources: frozenset[str]
    attributes: frozenset[str]
    since_us: int = 0

    def batches(self, part: Part, damaged: dict[str, str]) -> Iterator[pa.RecordBatch]:
        """Files that cannot be read are told; those that have gone meanwhile were old."""
        waiting = _Waiting()
        for number, path in enumerate(part):
            try:
                for batch in self._rows(path, number):
                    yield from waiting.add(batch)
            except FileNotFoundError:
                continue
            except (OSError, pa.ArrowException) as error:
                damaged[path] = first_line(error)
        yield from waiting.all()

    def _rows(self, path: str, number: int) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(path) as file:
            columns = self.attributes | {SOURCE, ARRIVED.name}
            names = [each for each in file.schema_arrow.names if each in columns]
            first = 0
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=names):
                rows = pa.array(np.arange(first, first + batch.num_rows))
                files = pa.array(np.full(batch.num_rows, number, np.int32))
                placed = batch.append_column(FILE, files).append_column(ROW, rows)
                first += batch.num_rows
                yield placed.filter(self._wanted(batch))

    def _wanted(self, batch: pa.RecordBatch) -> pa.Array:
        own = pc.is_in(batch.column(SOURCE), pa.array(sorted(self.sources), pa.string()))
        return pc.and_(own, pc.greater_equal(arrived_us(batch), self.since_us))


class _Waiting:
    """Batches that are put together once there are enough rows in them."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if self._batches and batch.schema != self._batches[0].schema:
            yield from self.all()
        if batch.num_rows:
            self._batches.append(batch)
            self._rows += batch.num_rows
            self._bytes += batch.nbytes
        if self._rows >= ROWS_AT_ONCE or self._bytes >= BYTES_AT_ONCE:
            yield from self.all()

    def all(self) -> Iterator[pa.RecordBatch]:
        if self._batches:
            yield pa.concat_batches(self._batches)
        self._batches, self._rows, self._bytes = [], 0, 0


def columns_read(filters: Iterable[Filter], schema: Schema) -> set[str]:
    """The attributes that these filters look at; an atom without one looks at all of them."""
    read: set[str] = set()
    for atom in (atom for filter_ in filters for atom in atoms_of(filter_)):
        name = getattr(atom, "attribute", None)
        if name is None:
            return {str(each) for each in schema.names}
        read.add(str(name))
    return read


def arrived_us(batch: pa.RecordBatch) -> pa.Array:
    return batch.column(ARRIVED.name).cast(pa.int64())
