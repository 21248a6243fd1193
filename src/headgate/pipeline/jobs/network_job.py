"""One task of running a configuration: parts of a source's files through all levels.

    parts of files ──► items (acquire/read_part.py) ──► levels ──► Parquet (network_output.py)
                       rejected/17.jsonl              rejected/17-documents.jsonl

A malformed document is rejected where it is read. If a view has too many tuples in a document, the
other views keep their answers, and the view is listed with its reason among the rejected documents.
Nothing stops the run.

With `direct`, every view is also evaluated over the document itself, and the answers are compared.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from headgate.acquire.file_parts import FilePart
from headgate.acquire.read_part import read_part
from headgate.acquire.rejected import Rejects
from headgate.match.batch import batch_of_arrow
from headgate.match.item_columns import ID
from headgate.model.errors import HeadgateError
from headgate.model.schema import Schema
from headgate.network.flat_levels import empty_rows, run_flat_levels
from headgate.pipeline.jobs.job import Task
from headgate.pipeline.jobs.level_files import opened_flat_levels, opened_runner
from headgate.pipeline.jobs.network_output import item_rows, node_rows, tuple_rows
from headgate.store.whole_files import WholeParquet
from headgate.views.document import Document
from headgate.views.run_levels import HeldTuples, differing_views

DOCUMENT = "document"
ITEMS_AT_ONCE, ANSWERS_AT_ONCE = 4_096, 40_000_000
"""Items of a batch, and how many answers of feeds they may have: fewer items if feeds are many."""
TOLD_MAX = 5

RESULT = pa.schema(
    [
        pa.field("asked", pa.string()),
        *(pa.field(name, pa.int64()) for name in ("items", "incomplete", "differing")),
        *(pa.field(name, pa.float64()) for name in ("taken_s", "texts_s", "direct_s", "cpu_s")),
        *(pa.field(name, pa.list_(pa.int64())) for name in ("tuples", "bytes")),
        pa.field("level_s", pa.list_(pa.float64())),
    ]
)


@dataclass(frozen=True, slots=True)
class SourceLevels:
    """What is asked of one source: the file of its levels, and where the names of its views are."""

    schema: Schema
    path: str
    names: str
    direct: str = ""
    """The file of all views as level 1, if they are to be compared."""
    is_documents: bool = False


@dataclass(slots=True)
class Counted:
    """What a task tells. Lists have a place for each level; times are of all tasks together."""

    tuples: list[int]
    bytes: list[int]
    """How much the views hold, as it would be sent to their sites."""
    level_s: list[float]
    items: int = 0
    incomplete: int = 0
    """Documents in which some view has no answer; `rejected/` says which and why."""
    differing: int = 0
    """Answers of views, for a document or a batch of items, that are not those of `direct`."""
    taken_s: float = 0.0
    """Parsing documents, and finding their labels and values."""
    texts_s: float = 0.0
    direct_s: float = 0.0
    cpu_s: float = 0.0
    """All that tasks did, reading and writing included, without waiting."""

    @classmethod
    def nothing(cls, levels: int) -> Counted:
        return cls([0] * levels, [0] * levels, [0.0] * levels)

    def add(self, other: Mapping[str, object]) -> None:
        """Add what a task has told, as a row of RESULT."""
        for name, value in other.items():
            if isinstance(value, list):
                own = getattr(self, name)
                setattr(self, name, [a + b for a, b in zip(own, value, strict=True)])
            elif isinstance(value, int | float):
                setattr(self, name, getattr(self, name) + value)


@dataclass(frozen=True, slots=True)
class NetworkJob:
    """It goes to other processes, so it holds plain data. A task is the path of a file: the key of
    what is asked, and a part of a file on each further line."""

    asked: Mapping[str, SourceLevels]
    base: str
    folder: str

    @property
    def result(self) -> pa.Schema:
        return RESULT

    def run(self, part: Task) -> Iterator[pa.RecordBatch]:
        for path in part:
            key, *lines = Path(path).read_text(encoding="utf-8").splitlines()
            parts = [_part(json.loads(line)) for line in lines]
            counted = self._run(self.asked[key], parts, Path(path).stem)
            row = {"asked": key, **{name: getattr(counted, name) for name in RESULT.names[1:]}}
            yield pa.RecordBatch.from_pylist([row], RESULT)

    def _run(self, levels: SourceLevels, parts: list[FilePart], name: str) -> Counted:
        running = (_Documents if levels.is_documents else _Items)(self, levels, parts[0], name)
        began = time.process_time()
        try:
            for part in parts:
                self._run_part(part, levels, running)
            running.close()
        except BaseException:
            running.abandon()
            raise
        running.counted.cpu_s = time.process_time() - began
        return running.counted

    def _run_part(self, part: FilePart, levels: SourceLevels, running: _Documents | _Items) -> None:
        rejects = Rejects(part.source, part.path)
        folder = Path(self.folder)
        for batch in read_part(part, Path(self.base), folder, levels.schema):
            running.take(batch, rejects)
        kind = "documents" if levels.is_documents else "items"
        rejects.write(folder, f"{part.number}-{kind}")


def _part(found: dict[str, object]) -> FilePart:
    header = found.pop("header")
    assert isinstance(header, list)
    return FilePart(**found, header=tuple(header))  # type: ignore[arg-type]


class _Documents:
    def __init__(self, job: NetworkJob, levels: SourceLevels, first: FilePart, name: str) -> None:
        self.runner = opened_runner(levels.path)
        self.direct = opened_runner(levels.direct) if levels.direct else None
        self.names = levels.names
        own = Path(job.folder, first.source)
        self.tuples = WholeParquet(
            own / "tuples" / f"{name}.parquet", dictionary_columns=["document", "table"]
        )
        self.nodes = WholeParquet(
            own / "nodes" / f"{name}.parquet", dictionary_columns=["document"]
        )
        self.counted = Counted.nothing(len(self.runner.program.level_start) - 1)

    def take(self, batch: pa.RecordBatch, rejects: Rejects) -> None:
        ids, texts = (batch.column(each).to_pylist() for each in (ID, DOCUMENT))
        for id_, text in zip(ids, texts, strict=True):
            self.counted.items += 1
            try:
                self._take(id_, text, rejects)
            except (HeadgateError, MemoryError) as error:
                self.counted.incomplete += 1
                rejects.add(None, f"{type(error).__name__}: {error}", text)

    def _take(self, id_: str, text: str, rejects: Rejects) -> None:
        began = time.perf_counter()
        document = Document.read(text)
        if document is None:
            self.counted.incomplete += 1
            rejects.add(None, "no well-formed XML", text)
            return
        self.counted.taken_s += time.perf_counter() - began
        held = self.runner.run(document)
        self._count(held)
        if refused := held.refused():
            self.counted.incomplete += 1
            rejects.add(None, self._told(held, refused), text)
        rows = tuple_rows(id_, held)
        self.tuples.write(rows)
        self.nodes.write(node_rows(id_, held, rows))
        if self.direct is not None:
            began = time.perf_counter()
            judge = self.direct.run(document)
            self.counted.direct_s += time.perf_counter() - began
            self.counted.differing += len(differing_views(held, judge))

    def _count(self, held: HeldTuples) -> None:
        counted, level = self.counted, held.program.views.level - 1
        count = len(counted.tuples)
        for name in ("tuples", "bytes"):
            own = np.bincount(level, getattr(held, name), count).astype(np.int64)
            setattr(counted, name, (own + getattr(counted, name)).tolist())
        counted.taken_s += held.times.document_s
        counted.texts_s += held.times.texts_s
        counted.level_s = (np.array(counted.level_s) + held.times.level_s).tolist()

    def _told(self, held: HeldTuples, refused: list[int]) -> str:
        names = json.loads(Path(self.names).read_text(encoding="utf-8"))
        told = [f"{names[view]}: {held.reason(view)}" for view in refused[:TOLD_MAX]]
        more = len(refused) - len(told)
        return "; ".join([*told, *([f"and {more:,} more views"] if more else [])])

    def close(self) -> None:
        self.tuples.close()
        self.nodes.close()

    def abandon(self) -> None:
        self.tuples.abandon()
        self.nodes.abandon()


class _Items:
    def __init__(self, job: NetworkJob, levels: SourceLevels, first: FilePart, name: str) -> None:
        self.schema = levels.schema
        self.levels = opened_flat_levels(levels.path)
        self.direct = opened_flat_levels(levels.direct) if levels.direct else None
        self.at_once = min(ITEMS_AT_ONCE, 64 + ANSWERS_AT_ONCE // max(self.levels.filter.size, 1))
        self.items = WholeParquet(Path(job.folder, first.source, "items", f"{name}.parquet"))
        self.counted = Counted.nothing(len(self.levels.programs))

    def take(self, batch: pa.RecordBatch, rejects: Rejects) -> None:
        for first in range(0, batch.num_rows, self.at_once):
            items = batch.slice(first, self.at_once)
            try:
                self._take(items)
            except HeadgateError as error:
                self.counted.incomplete += items.num_rows
                rejects.add(None, error)
            self.counted.items += items.num_rows

    def _take(self, items: pa.RecordBatch) -> None:
        if not self.counted.items:  # kernels are loaded before time is taken
            run_flat_levels(self.levels, batch_of_arrow(items.slice(0, 1), self.schema))
        counted, levels, began = self.counted, self.levels, time.perf_counter()
        batch = batch_of_arrow(items, self.schema)
        rows = empty_rows(levels, batch)
        moments = [time.perf_counter()]
        counted.taken_s += moments[0] - began
        for level in range(len(levels.programs)):
            levels.run_level(level, batch, rows)
            moments.append(time.perf_counter())
        counted.level_s = (np.array(counted.level_s) + np.diff(moments)).tolist()
        bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")[:, : items.num_rows]
        held = bits.sum(axis=1, dtype=np.int64)[levels.view_row]
        own = np.bincount(levels.view_level - 1, held, len(counted.tuples)).astype(np.int64)
        counted.tuples = (own + counted.tuples).tolist()
        mean_bytes = items.nbytes / max(items.num_rows, 1)
        counted.bytes = ((own * mean_bytes).astype(np.int64) + counted.bytes).tolist()
        places, tables = np.nonzero(bits.T)
        if len(places):
            self.items.write(item_rows(items, tables, places))
        if self.direct is not None:
            began = time.perf_counter()
            judged = run_flat_levels(self.direct, batch)
            counted.direct_s += time.perf_counter() - began
            same = (rows[levels.view_row] == judged[self.direct.view_row]).all(axis=1)
            counted.differing += int((~same).sum())

    def close(self) -> None:
        self.items.close()

    def abandon(self) -> None:
        self.items.abandon()
