"""What is in the log of a run, read in the obvious way: all files, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.store.data_folder import DataFolder
from headgate.store.log import LogReader
from headgate.store.log_index import open_placed
from headgate.store.log_storage import FolderStorage


class LoggedRow(NamedTuple):
    group: str
    source: str
    id: str
    feeds: tuple[int, ...]
    inputs: tuple[int, ...]
    position: int
    arrived_us: int
    columns: dict[str, object]


def logged_rows(folder: Path | DataFolder) -> Iterator[LoggedRow]:
    """Every row that an entry of the log names, in the order of positions."""
    storage = folder.storage if isinstance(folder, DataFolder) else FolderStorage(folder)
    reader = LogReader(storage)
    reader.refresh()
    rows: list[LoggedRow] = []
    for file in reader.state.files:
        segment = open_placed(storage, file)
        lists: dict[str, list[list[int]]] = {}
        for kind in ("feeds", "inputs"):
            lists[kind] = [[] for _ in range(file.rows)]
            keys, numbers = segment.postings(kind).pairs()
            for key, row in zip(keys.tolist(), numbers.tolist(), strict=True):
                lists[kind][row].append(key)
        table = pq.read_table(pa.BufferReader(storage.map(file.items)), partitioning=None)
        for number, columns in enumerate(table.to_pylist()):
            run = int((segment.runs.row <= number).sum()) - 1
            rows.append(
                LoggedRow(
                    file.group,
                    columns["@source"],
                    columns["@id"],
                    tuple(lists["feeds"][number]),
                    tuple(lists["inputs"][number]),
                    int(segment.runs.base[run]) + number - int(segment.runs.row[run]),
                    int(segment.runs.arrived_us[run]),
                    columns,
                )
            )
    yield from sorted(rows, key=lambda row: row.position)


def count_ids(folder: Path, source: str) -> Counter[str]:
    """How often each item of a source is in the log, results of joins aside."""
    rows = logged_rows(folder)
    return Counter(
        row.id for row in rows if row.source == source and not row.group.startswith("joined.")
    )
