"""A job over the log: its files are split into parts, each of which gives a few rows.

    files ──► ranges ──► parts of about equal size ──► job.run(part) ──► rows ──► one table
                                                       in this process, or on Spark's workers

A part is a list of `FileRange`: files and the positions that are read of them. A merged file is cut
into several ranges, so that all cores have something to do.

A job does not aggregate over parts; the reader of the table does. So the result is the same
wherever the job runs and however the files are split, except for the order of rows.

A job runs in this process if there are few rows or Spark is not installed, and on Spark otherwise.
A Spark session takes seconds to start; in that time one core reads millions of rows.

On Spark each part is a task, whose worker opens the files itself. Rejected: Spark's Parquet reader
before `mapInArrow`. One damaged file would fail the whole job, and every column would be converted
to the JVM's rows and back to Arrow.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.pipeline.match_stage import Stage, freeze_garbage
from headgate.store.file_ranges import FileRange

PART_BYTES = 16_000_000
TASKS_PER_CORE = 4
PROGRESS_S = 0.5
ROWS_FOR_SPARK = 200_000
MASTER_DEFAULT = "local[*]"

Note = Callable[[str], None]
"""Called with a line of progress."""
LogPart = tuple[FileRange, ...]
"""Some rows of some files of the log."""
Task = tuple[str, ...]
"""The paths of some files, for jobs that read other files."""
TaskPart = TypeVar("TaskPart")
JobPart_contra = TypeVar("JobPart_contra", contravariant=True)


class FileJob(Protocol[JobPart_contra]):
    """A job is sent to other processes, so it holds plain data, and so does a part."""

    @property
    def result(self) -> pa.Schema:
        """The columns of its rows."""
        ...

    def run(self, part: JobPart_contra) -> Iterator[pa.RecordBatch]: ...


LogJob = FileJob[LogPart]


def parts_of(ranges: Sequence[FileRange], *, least: int = 1) -> list[LogPart]:
    """At least `least` parts, if there are as many ranges. The largest are distributed first.
    Within a part, ranges of one group are adjacent, as their files have the same columns."""
    cut = [piece for each in ranges for piece in each.pieces(PART_BYTES)]
    cut.sort(key=lambda each: (-each.bytes, each.file.items, each.first))
    count = min(len(cut), max(least, -(-sum(each.bytes for each in cut) // PART_BYTES)))
    by_group = (sorted(cut[first::count], key=_by_group) for first in range(count))
    return [tuple(each) for each in by_group]


def _by_group(part: FileRange) -> tuple[str, int]:
    return part.file.group, part.first


# In this process


def run_in_process(job: LogJob, ranges: Sequence[FileRange], note: Note) -> pa.Table:
    return run_parts_in_process(job, parts_of(ranges), note)


def run_parts_in_process(job: FileJob[TaskPart], parts: Sequence[TaskPart], note: Note) -> pa.Table:
    rows: list[pa.RecordBatch] = []
    for done, part in enumerate(parts):
        note(f"{done:,} of {len(parts):,} parts")
        rows += job.run(part)
    return pa.Table.from_batches(rows, job.result)


# On Spark


def run_on_spark(
    job: LogJob, ranges: Sequence[FileRange], note: Note, *, session: SparkSession
) -> pa.Table:
    return run_parts_on_spark(job, parts_of(ranges, least=tasks_of(session)), note, session=session)


def tasks_of(session: SparkSession) -> int:
    """The least number of parts of a job: several per core, so that all cores end together."""
    return TASKS_PER_CORE * session.sparkContext.defaultParallelism


def run_parts_on_spark(
    job: FileJob[TaskPart], parts: Sequence[TaskPart], note: Note, *, session: SparkSession
) -> pa.Table:
    if not parts:
        return pa.Table.from_batches([], job.result)
    numbers = session.range(0, len(parts), 1, len(parts))
    ended = threading.Event()
    progress = threading.Thread(
        target=_report_progress, args=(session, len(parts), note, ended), daemon=True
    )
    progress.start()
    try:
        table = numbers.mapInArrow(_stage(job, parts), from_arrow_schema(job.result)).toArrow()
    finally:
        ended.set()
        progress.join()
    return table.cast(job.result)


def _stage(job: FileJob[TaskPart], parts: Sequence[TaskPart]) -> Stage:
    """The function for `mapInArrow`: a row is the number of a part."""

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_garbage()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from job.run(parts[number])

    return stage


def _report_progress(session: SparkSession, parts: int, note: Note, ended: threading.Event) -> None:
    tracker = session.sparkContext.statusTracker()
    while not ended.wait(PROGRESS_S):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        done = max((stage.numCompletedTasks for stage in stages if stage is not None), default=0)
        note(f"{done:,} of {parts:,} parts")


# Where a job runs


@dataclass(frozen=True, slots=True)
class Runner:
    name: str
    """Where the job runs and why, for display."""
    run: Callable[[LogJob, Sequence[FileRange], Note], pa.Table]


def choose_runner(
    ranges: Sequence[FileRange], *, master: str | None = None, local: bool = False
) -> Runner:
    """`master` demands Spark, `local` this process. Without either the number of rows decides."""
    if local:
        return Runner("in this process", run_in_process)
    if importlib.util.find_spec("pyspark") is None:
        return Runner("in this process, as Spark is not installed", run_in_process)
    if master is None and sum(each.file.rows for each in ranges) < ROWS_FOR_SPARK:
        reason = f"in this process, as there are fewer than {ROWS_FOR_SPARK:,} rows"
        return Runner(reason, run_in_process)
    return Runner(f"on Spark, {master or MASTER_DEFAULT}", _on_spark(master or MASTER_DEFAULT))


def _on_spark(master: str) -> Callable[[LogJob, Sequence[FileRange], Note], pa.Table]:
    def run(job: LogJob, ranges: Sequence[FileRange], note: Note) -> pa.Table:
        # Imported here, as a job in this process needs no session.
        from headgate.pipeline.session import start_session  # noqa: PLC0415

        note("starting Spark")
        session = start_session(master, name="headgate job")
        try:
            return run_on_spark(job, ranges, note, session=session)
        finally:
            session.stop()

    return run
