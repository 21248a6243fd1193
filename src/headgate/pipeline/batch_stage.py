"""What a task does with its partition of a micro-batch: match, store, summarise.

    items ──► match_stage ──► store/…/17-0.parquet
                                   └──► PartitionSummary: file, items, matches, distinct feeds

Only the summary goes to the driver. From its feeds the driver knows which subscriptions are
affected, and it reads the file only if there are any.

The stage is part of the streaming query and the same for all batches. Spark gives a task its batch
number; the snapshot that the batch uses is in its record (journal.py), written before it runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from headgate.match.bit_rows import Ints
from headgate.match.item_columns import FEEDS, INNER, SOURCE
from headgate.operators.statistics import Report
from headgate.pipeline.journal import BatchRecord, read_record
from headgate.pipeline.match_stage import MatchConfig, freeze_garbage, match_batch
from headgate.pipeline.operator_stage import RULES, OperatorRules, OperatorSetup, take_report
from headgate.pipeline.records import to_batch
from headgate.pipeline.snapshot import open_snapshot
from headgate.store.data_folder import DataFolder
from headgate.store.item_files import path_of, with_arrival
from headgate.store.whole_files import WholeParquet

BATCH_ID = "streaming.sql.batchId"
"""The task property in which Spark passes the number of the micro-batch."""


@dataclass(frozen=True, slots=True)
class BatchTask:
    """What all partitions of a micro-batch have in common."""

    store: str
    group: str
    number: int
    arrived: datetime
    snapshot: str
    operators: OperatorRules = RULES
    learned: str = ""
    """The file with what is known of operators: costs, selectivities, failures."""


@dataclass(frozen=True, slots=True)
class PartitionSummary:
    """What one partition of a batch has stored."""

    path: Path
    items: int
    matched: int
    """Items that are in at least one feed."""
    matches: int
    sources: dict[str, int]
    """Items by source."""
    feeds: Ints
    """Distinct numbers of the feeds that have items here."""
    join_inputs: Ints
    """Distinct numbers of the feeds whose joins or patterns read items from here."""
    report: Report = field(default_factory=dict)
    """What operators have cost, answered and failed."""


def batch_task(
    folder: DataFolder, record: BatchRecord, operators: OperatorRules = RULES
) -> BatchTask:
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
    """The function for `mapInArrow` on the stream of a group; its rows are PartitionSummary."""

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_garbage()
        context = TaskContext.get()
        assert context is not None, "on a worker"
        number = int(context.getLocalProperty(BATCH_ID) or -1)
        task = batch_task(folder, read_record(folder.batches, group, number), operators)
        summary = match_and_store(batches, task, str(context.partitionId()))
        if summary is not None:
            yield to_batch([summary])

    return stage


def match_and_store(
    batches: Iterable[pa.RecordBatch], task: BatchTask, partition: str
) -> PartitionSummary | None:
    """Match and store these batches in this process; None if there were no items."""
    opened = open_snapshot(task.snapshot)
    setup = None
    if opened.operators:
        setup = OperatorSetup(opened.operators, task.operators, task.learned)
    config = MatchConfig(opened.plans, opened.dropped, every=True, operators=setup)
    path = path_of(Path(task.store), task.group, task.arrived, task.number, partition)
    writer, counts = WholeParquet(path), _Counts()
    try:
        for batch in batches:
            for matched in match_batch(batch, config):
                writer.write(with_arrival(matched, task.arrived))
                counts.add(matched)
        return counts.summary(path) if writer.close() else None
    except BaseException:
        writer.abandon()
        raise


class _Counts:
    def __init__(self) -> None:
        self.items = self.matched = self.matches = 0
        self.sources: Counter[str] = Counter()
        self.feeds: list[Ints] = []
        self.join_inputs: list[Ints] = []

    def add(self, matched: pa.RecordBatch) -> None:
        """All rows of a batch from the match stage are of one source."""
        feeds = matched.column(FEEDS)
        self.items += matched.num_rows
        self.matched += int(np.count_nonzero(np.diff(np.asarray(feeds.offsets))))
        self.matches += len(feeds.flatten())
        self.sources[matched.column(SOURCE)[0].as_py()] += matched.num_rows
        self.feeds.append(np.unique(np.asarray(feeds.flatten())))
        self.join_inputs.append(np.unique(np.asarray(matched.column(INNER).flatten())))

    def summary(self, path: Path) -> PartitionSummary:
        return PartitionSummary(
            path=path,
            items=self.items,
            matched=self.matched,
            matches=self.matches,
            sources=dict(self.sources),
            feeds=np.unique(np.concatenate(self.feeds)),
            join_inputs=np.unique(np.concatenate(self.join_inputs)),
            report=take_report(),
        )
