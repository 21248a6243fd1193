"""What a worker does with its part of a micro-batch: match, store, and tell in one row.

    items ──► match_stage ──► store/…/17-0.parquet
                                   └──► file, items, matches, distinct feeds, distinct inner feeds

Only this row goes to the driver, not the items: it knows from it which subscriptions are concerned,
and reads from the file what is to be delivered, if anything is.

The stage is part of the streaming query, and the same for all batches. Which batch it is, Spark
tells; what that batch uses is in its record (journal.py), which is there before the batch runs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from headgate.match.item_columns import FEEDS, INNER, SOURCE
from headgate.match.kernels import Ints
from headgate.operators.statistics import Report
from headgate.pipeline.journal import BatchRecord, read_record
from headgate.pipeline.match_stage import Asked, match_batch, settle_once
from headgate.pipeline.operator_stage import RULES, OperatorRules, OperatorSetup, take_report
from headgate.pipeline.snapshot import open_snapshot
from headgate.store.data_folder import DataFolder
from headgate.store.item_files import ItemsWriter, path_of

BATCH_ID = "streaming.sql.batchId"
"""The property by which Spark tells tasks of which micro-batch they are."""
SUMMARY = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("items", pa.int64()),
        pa.field("matched", pa.int64()),
        pa.field("matches", pa.int64()),
        pa.field("sources", pa.list_(pa.string())),
        pa.field("counts", pa.list_(pa.int64())),
        pa.field("feeds", pa.list_(pa.int32())),
        pa.field("inner", pa.list_(pa.int32())),
        pa.field("report", pa.string()),
    ]
)
SUMMARY_DDL = (
    "path string, items bigint, matched bigint, matches bigint, sources array<string>, "
    "counts array<bigint>, feeds array<int>, inner array<int>, report string"
)


@dataclass(frozen=True, slots=True)
class BatchTask:
    """What all parts of a micro-batch have in common."""

    store: str
    group: str
    number: int
    arrived: datetime
    snapshot: str
    operators: OperatorRules = RULES
    learned: str = ""
    """The file of what is known of operators."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What one part of a batch has come to."""

    path: Path
    items: int
    matched: int
    """Items that some feed has."""
    matches: int
    sources: dict[str, int]
    feeds: Ints
    inner: Ints
    report: Report = field(default_factory=dict)
    """What operators have cost, answered and failed."""


def task_of(folder: DataFolder, record: BatchRecord, operators: OperatorRules = RULES) -> BatchTask:
    return BatchTask(
        store=str(folder.store),
        group=record.group,
        number=record.number,
        arrived=record.arrived,
        snapshot=str(folder.plans / record.snapshot),
        operators=operators,
        learned=str(folder.operators),
    )


def batch_stage(
    folder: DataFolder, group: str, operators: OperatorRules = RULES
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow` on the stream of a group."""

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_once()
        context = TaskContext.get()
        assert context is not None, "on a worker"
        number = int(context.getLocalProperty(BATCH_ID) or -1)
        task = task_of(folder, read_record(folder.batches, group, number), operators)
        stored = match_and_store(batches, task, str(context.partitionId()))
        if stored is not None:
            yield _row(stored)

    return stage


def match_and_store(batches: Iterable[pa.RecordBatch], task: BatchTask, part: str) -> Stored | None:
    """In this process; nothing where there were no items."""
    opened = open_snapshot(task.snapshot)
    setup = None
    if opened.operators:
        setup = OperatorSetup(opened.operators, task.operators, task.learned)
    asked = Asked(opened.plans, opened.dropped, every=True, operators=setup)
    path = path_of(Path(task.store), task.group, task.arrived, task.number, part)
    writer, tally = ItemsWriter(path), _Tally()
    try:
        for batch in batches:
            for matched in match_batch(batch, asked):
                writer.write(matched, task.arrived)
                tally.add(matched)
        return tally.stored(path) if writer.close() else None
    except BaseException:
        writer.abandon()
        raise


class _Tally:
    def __init__(self) -> None:
        self.items = self.matched = self.matches = 0
        self.sources: Counter[str] = Counter()
        self.feeds: list[Ints] = []
        self.inner: list[Ints] = []

    def add(self, matched: pa.RecordBatch) -> None:
        """All rows of a batch that comes from the match stage are of one source."""
        feeds = matched.column(FEEDS)
        self.items += matched.num_rows
        self.matched += int(np.count_nonzero(np.diff(np.asarray(feeds.offsets))))
        self.matches += len(feeds.flatten())
        self.sources[matched.column(SOURCE)[0].as_py()] += matched.num_rows
        self.feeds.append(np.unique(np.asarray(feeds.flatten())))
        self.inner.append(np.unique(np.asarray(matched.column(INNER).flatten())))

    def stored(self, path: Path) -> Stored:
        feeds, inner = (np.unique(np.concatenate(each)) for each in (self.feeds, self.inner))
        return Stored(
            path=path,
            items=self.items,
            matched=self.matched,
            matches=self.matches,
            sources=dict(self.sources),
            feeds=feeds,
            inner=inner,
            report=take_report(),
        )


def _row(stored: Stored) -> pa.RecordBatch:
    columns = {
        "path": str(stored.path),
        "items": stored.items,
        "matched": stored.matched,
        "matches": stored.matches,
        "sources": list(stored.sources),
        "counts": list(stored.sources.values()),
        "feeds": stored.feeds,
        "inner": stored.inner,
        "report": json.dumps(stored.report),
    }
    return pa.RecordBatch.from_pydict({name: [each] for name, each in columns.items()}, SUMMARY)


def stored_parts(table: pa.Table) -> list[Stored]:
    """The rows of all parts, as the driver reads them."""
    return [
        Stored(
            path=Path(row["path"]),
            items=row["items"],
            matched=row["matched"],
            matches=row["matches"],
            sources=dict(zip(row["sources"], row["counts"], strict=True)),
            feeds=np.array(row["feeds"], np.int32),
            inner=np.array(row["inner"], np.int32),
            report=json.loads(row["report"]),
        )
        for row in table.to_pylist()
    ]
