"""Rows for Spark: the schema of a source's rows, and rows files of the inbox."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from headgate.match.item_columns import batch_of_items, item_columns
from headgate.model.items import Item
from headgate.model.schema import Schema

ROWS_AT_ONCE = 10_000


def spark_columns(schema: Schema) -> StructType:
    return from_arrow_schema(item_columns(schema))


def rows_file(items: Sequence[Item], schema: Schema) -> bytes:
    """The items as the bytes of an Arrow IPC file."""
    sink = pa.BufferOutputStream()
    batch = batch_of_items(items, schema)
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def read_rows_files(paths: Iterable[Path], columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of these files, put together to batches that are worth a call."""
    waiting: list[pa.RecordBatch] = []
    for path in paths:
        with pa.memory_map(str(path)) as file:
            reader = pa.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                waiting.append(reader.get_batch(number))
        if sum(each.num_rows for each in waiting) >= ROWS_AT_ONCE:
            yield from together(waiting, columns)
            waiting = []
    yield from together(waiting, columns)


def together(batches: Sequence[pa.RecordBatch], columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """One batch of several; none of none."""
    rows = pa.Table.from_batches(batches, columns).combine_chunks()
    for batch in rows.to_batches():
        if batch.num_rows:
            yield batch


def chunks(counts: Sequence[tuple[int, int]], parts: int) -> list[tuple[int, ...]]:
    """Numbers in order, cut into so many parts at most of about as many rows; always the same.

    >>> chunks([(1, 5), (2, 5), (3, 10)], 2)
    [(1, 2), (3,)]
    """
    total = sum(rows for _, rows in counts)
    found: list[list[int]] = [[]]
    before = 0
    for number, rows in counts:
        # A number goes to the part in which its middle lies.
        part = min(int((before + rows / 2) * parts / max(total, 1)), parts - 1)
        if part + 1 > len(found) and found[-1]:
            found.append([])
        found[-1].append(number)
        before += rows
    return [tuple(each) for each in found if each]
