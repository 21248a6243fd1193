"""What a configuration yields, as Parquet: each table and each text once.

    News/tuples/3.parquet    document, table, nodes      the tuples of a table, one after the other
    News/nodes/3.parquet     document, node, last, depth, val, cont
    Jobs/items/3.parquet     the items' columns, @tables

Which table a view has is in `views.parquet`: views that are the same share one, and nothing is
written twice. A tuple is as many numbers of nodes as the view's pattern has; `last` and `depth`
decide who is above whom (views/document.py). Texts are there where a view marks them.

A file has its name when it is whole. A task that is tried again replaces it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.match.kernels import Longs
from headgate.model.tree_pattern import Mark
from headgate.store.whole_files import rename_whole
from headgate.views.document import DEPTH, LAST
from headgate.views.run_levels import HeldTuples

TUPLES = pa.schema(
    [
        pa.field("document", pa.string(), nullable=False),
        pa.field("table", pa.int32(), nullable=False),
        pa.field("nodes", pa.list_(pa.int32()), nullable=False),
    ]
)
NODES = pa.schema(
    [
        pa.field("document", pa.string(), nullable=False),
        *(pa.field(name, pa.int32(), nullable=False) for name in ("node", "last", "depth")),
        *(pa.field(name, pa.string()) for name in ("val", "cont")),
    ]
)
TABLES = pa.field("@tables", pa.list_(pa.int32()), nullable=False)
ROWS_AT_ONCE, BYTES_AT_ONCE = 100_000, 64_000_000


class WholeParquet:
    """One file that is there when it is closed. Without rows there is none.

    Only columns in `repeated` have dictionaries: of numbers of nodes these would be twice as large.
    """

    def __init__(self, path: Path, repeated: Sequence[str] = ()) -> None:
        self._path, self._repeated = path, list(repeated)
        self._fresh = path.with_name(f".{path.name}.{os.getpid()}")
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= ROWS_AT_ONCE or self._bytes >= BYTES_AT_ONCE:
            self._flush()

    def close(self) -> None:
        self._flush()
        if self._writer is None:
            self._path.unlink(missing_ok=True)
            return
        self._writer.close()
        with self._fresh.open("rb") as file:
            os.fsync(file.fileno())
        rename_whole(self._fresh, self._path)

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._fresh.unlink(missing_ok=True)

    def _flush(self) -> None:
        if not self._rows:
            return
        table = pa.Table.from_batches(self._waiting)
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(
                self._fresh,
                table.schema,
                compression="zstd",
                use_dictionary=self._repeated or True,
            )
        self._writer.write_table(table)
        self._waiting, self._rows, self._bytes = [], 0, 0


def tuple_rows(document: str, held: HeldTuples) -> pa.RecordBatch:
    """The tables that views have, those with tuples."""
    wanted = np.zeros(len(held.rows), np.bool_)
    wanted[held.program.views.table] = True
    tables = np.flatnonzero(wanted & (held.rows > 0))
    sizes = held.rows[tables] * held.program.width[tables]
    ends = np.cumsum(sizes)
    places = np.arange(sizes.sum()) + np.repeat(held.start[tables] - (ends - sizes), sizes)
    return pa.RecordBatch.from_arrays(
        [
            pa.repeat(pa.scalar(document, pa.string()), len(tables)),
            pa.array(tables.astype(np.int32)),
            _lists(np.concatenate([[0], ends]), held.cells[places]),
        ],
        schema=TUPLES,
    )


def node_rows(document: str, held: HeldTuples, tuples: pa.RecordBatch) -> pa.RecordBatch:
    """The nodes that are in these tuples."""
    is_there = np.zeros(len(held.ids), np.bool_)
    is_there[np.asarray(tuples.column("nodes").values)] = True
    nodes = np.flatnonzero(is_there)
    columns = [held.ids[nodes, at].astype(np.int32) for at in (LAST, DEPTH)]
    texts = [
        pa.array(map(held.texts[mark].get, nodes.tolist()), pa.string(), size=len(nodes))
        for mark in (Mark.VAL, Mark.CONT)
    ]
    names = pa.repeat(pa.scalar(document, pa.string()), len(nodes))
    numbers = [pa.array(each) for each in (nodes.astype(np.int32), *columns)]
    return pa.RecordBatch.from_arrays([names, *numbers, *texts], schema=NODES)


def item_rows(items: pa.RecordBatch, tables: Longs, rows: Longs) -> pa.RecordBatch:
    """The items that some view has: pairs of an item's place, ascending, and a table."""
    wanted, counts = np.unique(rows, return_counts=True)
    lists = _lists(np.concatenate([[0], np.cumsum(counts)]), tables.astype(np.int32))
    kept = items.take(pa.array(wanted))
    return pa.RecordBatch.from_arrays([*kept.columns, lists], schema=kept.schema.append(TABLES))


def _lists(ends: Longs, values: object) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), pa.array(values))
