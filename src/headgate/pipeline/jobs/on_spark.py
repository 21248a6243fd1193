"""A job over stored files on Spark: each part is a task.

Workers open the files by themselves, with the code that also runs without Spark.

Rejected: Spark's own Parquet reader in front of `mapInArrow`. One damaged file would end the whole
job, and every column would go through the JVM's rows and into Arrow again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.pipeline.jobs.over_files import Job, Note, Part, parts_of
from headgate.pipeline.match_stage import Stage, settle_once
from headgate.store.item_files import StoredFile

TASKS_PER_CORE = 4
PROGRESS_S = 0.5


def run_on_spark(
    job: Job, files: Sequence[StoredFile], note: Note, *, session: SparkSession
) -> pa.Table:
    return run_parts_on_spark(job, parts_of(files, least=tasks_of(session)), note, session=session)


def tasks_of(session: SparkSession) -> int:
    """Into how many parts a job is cut at least, so that no core waits for the last one long."""
    return TASKS_PER_CORE * session.sparkContext.defaultParallelism


def run_parts_on_spark(
    job: Job, parts: Sequence[Part], note: Note, *, session: SparkSession
) -> pa.Table:
    if not parts:
        return pa.Table.from_batches([], job.result)
    numbers = session.range(0, len(parts), 1, len(parts))
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(session, len(parts), note, ended), daemon=True)
    watch.start()
    try:
        found = numbers.mapInArrow(_stage(job, parts), from_arrow_schema(job.result)).toArrow()
    finally:
        ended.set()
        watch.join()
    return found.cast(job.result)


def _stage(job: Job, parts: Sequence[Part]) -> Stage:
    """The function for `mapInArrow`: rows are numbers of parts."""

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_once()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from job.run(parts[number])

    return stage


def _watch(session: SparkSession, parts: int, note: Note, ended: threading.Event) -> None:
    tracker = session.sparkContext.statusTracker()
    while not ended.wait(PROGRESS_S):
        infos = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
        done = max((each.numCompletedTasks for each in infos if each is not None), default=0)
        note(f"{done:,} of {parts:,} parts")
