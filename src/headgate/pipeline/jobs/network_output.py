"""The input and output files of a network run: parts of sources for tasks, and tuples as Parquet.

    sources ──► files below the base folder ──► parts (acquire/file_parts.py) ──► .tasks/7.jsonl

A task reads its parts from a file, so a hundred thousand paths are not sent with every task. The
parts of a task belong to one source and have about the same number of bytes.

    News/tuples/3.parquet    document, table, nodes      the tuples of a table, one after the other
    News/nodes/3.parquet     document, node, last, depth, val, cont
    Jobs/items/3.parquet     the items' columns, @tables

`views.parquet` says which table a view has: equal views share one, and nothing is written twice. A
tuple has a node number for each node of the view's pattern; `last` and `depth` decide which node is
above which (views/document.py). Texts are written where a view marks them.

A file gets its name when it is complete. A task that is retried replaces it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from headgate.acquire.file_parts import FilePart, cut_parts, shape_of
from headgate.acquire.scan_files import files_of
from headgate.acquire.source_list import ListedSource
from headgate.match.bit_rows import Longs
from headgate.model.errors import HeadgateError
from headgate.model.tree_pattern import Mark
from headgate.store.whole_files import write_whole
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


# Parts of sources, and tasks.

TASK_BYTES = 8_000_000


def cut_sources(
    sources: Iterable[ListedSource], base: Path
) -> tuple[dict[str, list[FilePart]], dict[str, str]]:
    """The parts of each source, numbered, and what was wrong with some."""
    found: dict[str, list[FilePart]] = {}
    problems: dict[str, str] = {}
    number = 0
    for source in sources:
        own = found[source.name] = list[FilePart]()
        try:
            paths = files_of(base.resolve(), source, problems)
        except (HeadgateError, OSError) as error:
            problems[source.name] = str(error)
            continue
        for path in paths:
            try:
                own += _cut(source, base, path)
            except (HeadgateError, OSError) as error:
                problems[source.name] = f"{path}: {error}"
        found[source.name] = [replace(each, number=number + at) for at, each in enumerate(own)]
        number += len(own)
    return found, problems


def _cut(source: ListedSource, base: Path, path: str) -> Sequence[FilePart]:
    where = base / path
    with where.open("rb") as file:
        shape = shape_of(file, source.format)
        taken_us = int(time.time() * 1e6)
        before = FilePart(
            source.name, source.kind, source.format, path, shape, 0, 0, 1, taken_us, 0, 0
        )
        return cut_parts(file, before, where.stat().st_size, whole=True).parts


def write_tasks(folder: Path, parts: Mapping[str, Sequence[FilePart]], *, least: int) -> list[str]:
    """A file for each task; at least so many of each source, if it has as many parts."""
    paths: list[str] = []
    for key, own in parts.items():
        sizes = sorted(own, key=lambda each: each.begin - each.end)
        total = sum(each.end - each.begin for each in own)
        count = min(len(own), max(least, -(-total // TASK_BYTES)))
        for at in range(count):
            path = folder / f"{len(paths)}.jsonl"
            lines = [key, *(json.dumps(asdict(each)) for each in sizes[at::count])]
            write_whole(path, "\n".join(lines).encode())
            paths.append(str(path.absolute()))
    return paths
