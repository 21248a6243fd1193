"""Where a job runs: in this process if there is little to do or no Spark, else on Spark.

A Spark session takes seconds to start. In that time one core looks at millions of rows.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headgate.pipeline.jobs.over_files import Job, Note, rows_until, run_in_process
from headgate.store.item_files import StoredFile

ROWS_FOR_SPARK = 200_000
MASTER_DEFAULT = "local[*]"


@dataclass(frozen=True, slots=True)
class Runner:
    name: str
    """Where it runs and why, for people."""
    run: Callable[[Job, Sequence[StoredFile], Note], pa.Table]


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


def _on_spark(master: str) -> Callable[[Job, Sequence[StoredFile], Note], pa.Table]:
    def run(job: Job, files: Sequence[StoredFile], note: Note) -> pa.Table:
        # Late, so that a process which needs no Spark does not load it.
        from headgate.pipeline.jobs.on_spark import run_on_spark  # noqa: PLC0415
        from headgate.pipeline.session import start_session  # noqa: PLC0415

        note("starting Spark")
        session = start_session(master, name="headgate job")
        try:
            return run_on_spark(job, files, note, session=session)
        finally:
            session.stop()

    return run
