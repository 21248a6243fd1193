"""A job over stored files: split into parts, each of which gives a few rows.

    files ──► parts of about equal size ──► job.run(part) ──► rows ──► one table
                                            in this process, or on Spark's workers

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
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.pipeline.match_stage import Stage, freeze_garbage
from headgate.store.item_files import StoredFile

PART_BYTES = 16_000_000
TASKS_PER_CORE = 4
PROGRESS_S = 0.5
ROWS_FOR_SPARK = 200_000
MASTER_DEFAULT = "local[*]"

Note = Callable[[str], None]
"""Called with a line of progress."""
Part = tuple[str, ...]
"""The paths of some files."""


class FileJob(Protocol):
    """A job is sent to other processes, so it holds plain data."""

    @property
    def result(self) -> pa.Schema:
        """The columns of its rows."""
        ...

    def run(self, part: Part) -> Iterator[pa.RecordBatch]: ...


def parts_of(files: Sequence[StoredFile], *, least: int = 1) -> list[Part]:
    """At least `least` parts, if there are as many files. The largest files are distributed first.
    Within a part, files of one group are adjacent, as they have the same columns."""
    sizes = sorted(((_size(file.path), str(file.path)) for file in files), reverse=True)
    total = sum(size for size, _ in sizes)
    count = min(len(sizes), max(least, -(-total // PART_BYTES)))
    return [tuple(sorted(path for _, path in sizes[first::count])) for first in range(count)]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


# In this process


def run_in_process(job: FileJob, files: Sequence[StoredFile], note: Note) -> pa.Table:
    return run_parts_in_process(job, parts_of(files), note)


def run_parts_in_process(job: FileJob, parts: Sequence[Part], note: Note) -> pa.Table:
    rows: list[pa.RecordBatch] = []
    for done, part in enumerate(parts):
        note(f"{done:,} of {len(parts):,} parts")
        rows += job.run(part)
    return pa.Table.from_batches(rows, job.result)


# On Spark


def run_on_spark(
    job: FileJob, files: Sequence[StoredFile], note: Note, *, session: SparkSession
) -> pa.Table:
    return run_parts_on_spark(job, parts_of(files, least=tasks_of(session)), note, session=session)


def tasks_of(session: SparkSession) -> int:
    """The least number of parts of a job: several per core, so that all cores end together."""
    return TASKS_PER_CORE * session.sparkContext.defaultParallelism


def run_parts_on_spark(
    job: FileJob, parts: Sequence[Part], note: Note, *, session: SparkSession
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


def _stage(job: FileJob, parts: Sequence[Part]) -> Stage:
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
    run: Callable[[FileJob, Sequence[StoredFile], Note], pa.Table]


def choose_runner(
    files: Sequence[StoredFile], *, master: str | None = None, local: bool = False
) -> Runner:
    """`master` demands Spark, `local` this process. Without either the number of rows decides."""
    if local:
        return Runner("in this process", run_in_process)
    if importlib.util.find_spec("pyspark") is None:
        return Runner("in this process, as Spark is not installed", run_in_process)
    if master is None and rows_until(files, ROWS_FOR_SPARK) < ROWS_FOR_SPARK:
        reason = f"in this process, as there are fewer than {ROWS_FOR_SPARK:,} rows"
        return Runner(reason, run_in_process)
    return Runner(f"on Spark, {master or MASTER_DEFAULT}", _on_spark(master or MASTER_DEFAULT))


def rows_until(files: Sequence[StoredFile], limit: int) -> int:
    """The number of rows of these files; the count stops once it exceeds the limit."""
    rows = 0
    for file in files:
        try:
            rows += pq.read_metadata(file.path).num_rows
        except (OSError, pa.ArrowException):
            continue  # removed meanwhile or damaged: the job will report it
        if rows > limit:
            break
    return rows


def _on_spark(master: str) -> Callable[[FileJob, Sequence[StoredFile], Note], pa.Table]:
    def run(job: FileJob, files: Sequence[StoredFile], note: Note) -> pa.Table:
        # Imported here, as a job in this process needs no session.
        from headgate.pipeline.session import start_session  # noqa: PLC0415

        note("starting Spark")
        session = start_session(master, name="headgate job")
        try:
            return run_on_spark(job, files, note, session=session)
        finally:
            session.stop()

    return run
