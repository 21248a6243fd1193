"""What a task does with its partition of a micro-batch: match, write to the log's data, summarise.

    items ──► match_stage ──► data/<group>/<uuid>.parquet, .segment
                                   └──► PartitionSummary: the files, items, matches

Only the summary goes to the driver, and no feed is in it: matches are in the segment. The files
exist for readers when the driver has committed them (run_batch.py).

The stage is part of the streaming query and the same for all batches. The snapshot that a batch
uses is named by the driver in a property of the batch's job, so all its tasks use the same.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from headgate.acquire.identify import keys_of
from headgate.match.item_columns import FEEDS, INNER, SOURCE, items_from_arrow
from headgate.model.schema import FEED_SCHEMA
from headgate.operators.statistics import Report
from headgate.pipeline.feed_costs import FeedCosts, costs_of_plans
from headgate.pipeline.match_stage import MatchConfig, freeze_garbage, match_batch
from headgate.pipeline.operator_stage import RULES, OperatorRules, OperatorSetup, take_report
from headgate.pipeline.records import to_batch
from headgate.pipeline.snapshot import open_snapshot
from headgate.pipeline.source_groups import GroupKind
from headgate.store.data_folder import DataFolder
from headgate.store.log_state import WrittenFile
from headgate.store.log_writer import LogFileWriter

SNAPSHOT = "headgate.snapshot"
"""The property of a job with the file name of the snapshot that its tasks use."""


@dataclass(frozen=True, slots=True)
class BatchTask:
    """What all partitions of a batch have in common."""

    folder: DataFolder
    group: str
    snapshot: str
    """The file name of the snapshot."""
    operators: OperatorRules = RULES


@dataclass(frozen=True, slots=True)
class PartitionSummary:
    """What one partition of a batch has written."""

    files: tuple[WrittenFile, ...]
    items: int = 0
    matched: int = 0
    """Items that are in at least one feed."""
    matches: int = 0
    sources: dict[str, int] = field(default_factory=dict)
    """Items by source."""
    report: Report = field(default_factory=dict)
    """What operators have cost, answered and failed."""
    costs: FeedCosts = field(default_factory=dict)
    """What expensive feeds have cost (feed_costs.py)."""
    failed: int = 0
    """Items that a stylesheet has failed on (materialise.py)."""
    errors: dict[str, str] = field(default_factory=dict)
    """The last error of each materialised feed."""


def batch_stage(
    folder: DataFolder, group: str, operators: OperatorRules = RULES
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow` on the stream of a group; its rows are PartitionSummary."""

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_garbage()
        context = TaskContext.get()
        assert context is not None, "on a worker"
        snapshot = context.getLocalProperty(SNAPSHOT)
        assert snapshot, "the driver has named a snapshot"
        summary = match_and_write(batches, BatchTask(folder, group, snapshot, operators))
        if summary is not None:
            yield to_batch([summary])

    return stage


def match_and_write(batches: Iterable[pa.RecordBatch], task: BatchTask) -> PartitionSummary | None:
    """Match these items and write them, in this process; None if there were none."""
    opened = open_snapshot(task.folder, task.snapshot)
    setup = None
    if opened.operators:
        setup = OperatorSetup(opened.operators, task.operators, str(task.folder.operators))
    config = MatchConfig(
        opened.plans, opened.dropped, every=True, operators=setup, muted=opened.muted
    )
    writer = LogFileWriter(task.folder.storage, task.group)
    has_identities = task.group.startswith(f"{GroupKind.FEEDS}-")
    counts = _Counts()
    for batch in batches:
        for matched in match_batch(batch, config):
            items = matched.drop_columns([FEEDS, INNER])
            lists = {"feeds": matched.column(FEEDS), "inputs": matched.column(INNER)}
            if has_identities:
                lists["identities"] = identities_of(items)
            writer.write(items, lists)
            counts.add(matched)
    if not counts.items:
        return None
    return PartitionSummary(
        files=tuple(writer.close()),
        items=counts.items,
        matched=counts.matched,
        matches=counts.matches,
        sources=dict(counts.sources),
        report=take_report(),
        costs=costs_of_plans(
            (path for name in counts.sources for path in opened.plans.get(name, ())),
            opened.dropped,
            setup,
        ),
    )


def identities_of(items: pa.RecordBatch) -> pa.ListArray:
    """The identity keys of items of web feeds, as numbers."""
    keys = [
        sorted({identity_number(f"{key.kind}:{key.digest}") for key in keys_of(item)})
        for item in items_from_arrow(items, FEED_SCHEMA)
    ]
    return pa.array(keys, pa.list_(pa.int64()))


def identity_number(key: str) -> int:
    """64 bits of a hash: what two items with the same number share is looked at again."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big", signed=True)


class _Counts:
    def __init__(self) -> None:
        self.items = self.matched = self.matches = 0
        self.sources: Counter[str] = Counter()

    def add(self, matched: pa.RecordBatch) -> None:
        """All rows of a batch from the match stage are of one source."""
        feeds = matched.column(FEEDS)
        self.items += matched.num_rows
        self.matched += int(np.count_nonzero(np.diff(np.asarray(feeds.offsets))))
        self.matches += len(feeds.flatten())
        self.sources[matched.column(SOURCE)[0].as_py()] += matched.num_rows
