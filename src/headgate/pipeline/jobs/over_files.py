"""A job over stored files: cut into parts, each of which tells its result in a few rows.

    files ──► parts of about as many bytes ──► job.run(part) ──► rows ──► one table
                                               here, or on Spark's workers (on_spark.py)

A job adds nothing up over parts: whoever reads the table does. So the result is the same wherever
it runs and however the files are cut, but for the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.store.item_files import StoredFile

PART_BYTES = 16_000_000
Note = Callable[[str], None]
Part = tuple[str, ...]


class Job(Protocol):
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


def run_in_process(job: Job, files: Sequence[StoredFile], note: Note) -> pa.Table:
    return run_parts_in_process(job, parts_of(files), note)


def run_parts_in_process(job: Job, parts: Sequence[Part], note: Note) -> pa.Table:
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
