"""One micro-batch: what `foreachBatch` calls in the driver.

    name a snapshot ──► match and write, on workers ──► commit to the log ──► Spark commits
                        batch_stage.py                  run_log.py

Before the commit nothing is visible: a batch that is interrupted is run again with new files, and
perhaps with a newer snapshot. After it a replay is recognised, whatever Spark's checkpoint says,
and writes nothing. The driver sees counts and names of files, never an item.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from headgate.pipeline.batch_stage import SNAPSHOT, PartitionSummary
from headgate.pipeline.records import from_table
from headgate.pipeline.run_context import RunContext
from headgate.store.log_state import Origin, WrittenFile

QUERY_ID = "sql.streaming.queryId"
"""The property in which Spark keeps the id of a query: it stays the same as long as the query has
its checkpoint."""


class BatchRunner:
    """Serves all groups of a run. The batches of one group come one after the other; those of
    different groups run in different threads."""

    def __init__(self, context: RunContext) -> None:
        self.context = context

    def run(self, group: str, frame: DataFrame, number: int) -> None:
        """`frame` is a micro-batch of a stream with the batch stage on it (queries.py)."""
        context, began = self.context, time.monotonic()
        epoch = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID) or ""
        origin = Origin(group, epoch, number)
        if context.log.state.has(origin):
            return  # Spark was stopped before it recorded its commit
        snapshot = context.plans.path.name
        with using_snapshot(frame.sparkSession, snapshot):
            parts = from_table(PartitionSummary, frame.toArrow())
        if parts:
            context.log.commit(origin, files_of(parts), snapshot=snapshot)
        count_parts(context, parts)
        context.meters.add_batch(
            (pair for part in parts for pair in part.sources.items()),
            seconds=time.monotonic() - began,
            query=group,
        )


@contextmanager
def using_snapshot(session: SparkSession, snapshot: str) -> Iterator[None]:
    """Jobs of this thread use the snapshot of this name."""
    session.sparkContext.setLocalProperty(SNAPSHOT, snapshot)
    try:
        yield
    finally:
        session.sparkContext.setLocalProperty(SNAPSHOT, "")


def files_of(parts: Sequence[PartitionSummary]) -> list[WrittenFile]:
    return [file for part in parts for file in part.files]


def count_parts(context: RunContext, parts: Sequence[PartitionSummary]) -> None:
    for part in parts:
        context.ledger.add(part.report)
        context.budget.add(part.costs, items=part.items)
        context.meters.add(matched=part.matched, matches=part.matches)
