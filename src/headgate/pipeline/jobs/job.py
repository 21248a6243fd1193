"""A job over stored files: cut into parts, each of which tells its result in a few rows.

    files ──► parts of about as many bytes ──► job.run(part) ──► rows ──► one table
                                               here, or on Spark's workers (on_spark.py)

A job adds nothing up over parts: whoever reads the table does. So the result is the same wherever
it runs and however the files are cut, but for the order of rows.
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
Note = Callable[[str], None]
Part = tuple[str, ...]


class FileJob(Protocol):
    """It goes to other processes, so it holds plain data."""

    @property
    def result(self) -> pa.Schema:
        """The columns of its rows."""
        ...

    def run(self, part: Part) -> Iterator[pa.RecordBatch]: ...


def parts_of(files: Sequence[StoredFile], *, least: int = 1) -> list[Part]:
    """At least so many parts if there are as many files; the largest files are dealt out first.
    Within a part, files of one group lie beside each other: they have the same columns."""
    sizes = sorted(((_size(each.path), str(each.path)) for each in files), reverse=True)
    total = sum(size for size, _ in sizes)
    count = min(len(sizes), max(least, -(-total // PART_BYTES)))
    return [tuple(sorted(path for _, path in sizes[at::count])) for at in range(count)]


def run_in_process(job: FileJob, files: Sequence[StoredFile], note: Note) -> pa.Table:
    return run_parts_in_process(job, parts_of(files), note)


def run_parts_in_process(job: FileJob, parts: Sequence[Part], note: Note) -> pa.Table:
    rows: list[pa.RecordBatch] = []
    for done, part in enumerate(parts):
        note(f"{done:,} of {len(parts):,} parts")
        rows += job.run(part)
    return pa.Table.from_batches(rows, job.result)


def rows_until(files: Sequence[StoredFile], limit: int) -> int:
    """How many rows these files have, or that it is more than the limit."""
    rows = 0
    for each in files:
        try:
            rows += pq.read_metadata(each.path).num_rows
        except (OSError, pa.ArrowException):
            continue  # gone meanwhile or damaged: the job will say so
        if rows > limit:
            break
    return rows


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


# === part: headgate.pipeline.jobs.job
# A job over stored files on Spark: each part is a task.
#
# Workers open the files by themselves, with the code that also runs without Spark.
#
# Rejected: Spark's own Parquet reader in front of `mapInArrow`. One damaged file would end the
# whole
# job, and every column would go through the JVM's rows and into Arrow again.

TASKS_PER_CORE = 4
PROGRESS_S = 0.5


def run_on_spark(
    job: FileJob, files: Sequence[StoredFile], note: Note, *, session: SparkSession
) -> pa.Table:
    return run_parts_on_spark(job, parts_of(files, least=tasks_of(session)), note, session=session)


def tasks_of(session: SparkSession) -> int:
    """Into how many parts a job is cut at least, so that no core waits for the last one long."""
    return TASKS_PER_CORE * session.sparkContext.defaultParallelism


def run_parts_on_spark(
    job: FileJob, parts: Sequence[Part], note: Note, *, session: SparkSession
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


def _stage(job: FileJob, parts: Sequence[Part]) -> Stage:
    """The function for `mapInArrow`: rows are numbers of parts."""

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_garbage()
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


# === part: headgate.pipeline.jobs.job
# Where a job runs: in this process if there is little to do or no Spark, else on Spark.
#
# A Spark session takes seconds to start. In that time one core looks at millions of rows.

ROWS_FOR_SPARK = 200_000
MASTER_DEFAULT = "local[*]"


@dataclass(frozen=True, slots=True)
class Runner:
    name: str
    """Where it runs and why, for people."""
    run: Callable[[FileJob, Sequence[StoredFile], Note], pa.Table]


def choose_runner(
    files: Sequence[StoredFile], *, master: str | None = None, local: bool = False
) -> Runner:
    """`master` asks for Spark, `local` for this process; without either, it depends on the rows."""
    if local:
        return Runner("in this process", run_in_process)
    if importlib.util.find_spec("pyspark") is None:
        return Runner("in this process, as Spark is not installed", run_in_process)
    if master is None and rows_until(files, ROWS_FOR_SPARK) < ROWS_FOR_SPARK:
        few = f"in this process, as there are fewer than {ROWS_FOR_SPARK:,} rows"
        return Runner(few, run_in_process)
    return Runner(f"on Spark, {master or MASTER_DEFAULT}", _on_spark(master or MASTER_DEFAULT))


def _on_spark(master: str) -> Callable[[FileJob, Sequence[StoredFile], Note], pa.Table]:
    def run(job: FileJob, files: Sequence[StoredFile], note: Note) -> pa.Table:
        # Late, so that a process which needs no Spark does not load it.
        from headgate.pipeline.jobs.job import run_on_spark  # noqa: PLC0415
        from headgate.pipeline.session import start_session  # noqa: PLC0415

        note("starting Spark")
        session = start_session(master, name="headgate job")
        try:
            return run_on_spark(job, files, note, session=session)
        finally:
            session.stop()

    return run
