"""Writes the source plans of a layer as files, each source separately, here or on Spark's workers.

    filters on a source ──► sample of the log,     ──► factorised program ──► plan file
                            catalog statistics

Filters that share clauses are factorised with the measured selectivities of the source
(factor/factorize.py). Where there are few filters, or nothing is known of the items, sorted
prefixes are used. Every arrangement of the program gives the same matches.

Many sources with many filters are planned in parallel on Spark's workers, which write the files to
the shared folder that they later read. With the log at a URL there need not be such a folder: then
all are planned in the driver, which uploads them (publish_plans.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.catalog.statistics import SourceStatistics
from headgate.factor.factorize import factorize
from headgate.factor.methods import AUTO
from headgate.factor.time_budget import TimeBudgetExceeded
from headgate.language.unparse import unparse_filter
from headgate.match.batch import Batch, batch_of_arrow
from headgate.match.item_columns import group_of, item_columns
from headgate.match.program import Program, compile_program
from headgate.model.atoms import Atom
from headgate.model.filters import Filter
from headgate.model.schema import Schema
from headgate.pipeline.source_plan import source_plan, write_source_plan
from headgate.plan.leaves import Leaves
from headgate.store.data_folder import DataFolder
from headgate.store.log_items import read_rows
from headgate.store.log_state import LogFile
from headgate.store.log_view import LogView

FEW = 100
"""Fewer filters are not factorised."""
SAMPLE = 4_096
SAMPLE_MIN = 256
ON_SPARK_SOURCES = 4
ON_SPARK_FILTERS = 50_000


@dataclass(frozen=True, slots=True)
class PlanTask:
    """The filters on one source, and its statistics."""

    source: str
    schema: Schema
    leaves: Leaves
    number_of: Mapping[str, int]
    statistics: SourceStatistics | None = None
    method: str = AUTO
    """How to factorise the filters (factor/methods.py)."""


@dataclass(frozen=True, slots=True)
class WrittenPlan:
    source: str
    file: str
    informed: bool
    """Whether statistics or a sample of the source's items were available."""
    filters: int
    method: str
    """The factorisation method that was used."""
    reason: str
    """Why this method was used."""

    @property
    def method_text(self) -> str:
        """`1,204 filters by vcb: method vcb was requested`"""
        filters = f"{self.filters:,} filter{'' if self.filters == 1 else 's'}"
        return f"{filters} by {self.method}: {self.reason}"


def write_plans(folder: DataFolder, tasks: Sequence[PlanTask]) -> list[WrittenPlan]:
    return list(_write_plans(folder, tasks))


def write_plans_on(
    session: SparkSession, folder: DataFolder, tasks: Sequence[PlanTask]
) -> list[WrittenPlan]:
    """On Spark if there are many sources and filters; otherwise in this process, which is faster
    than starting a job."""
    filters = sum(len(task.leaves) for task in tasks)
    is_small = len(tasks) < ON_SPARK_SOURCES or filters < ON_SPARK_FILTERS
    if is_small or folder.log:  # with the log at a URL, workers need not have the folder
        return write_plans(folder, tasks)
    largest_first = sorted(tasks, key=lambda task: -len(task.leaves))
    rdd = session.sparkContext.parallelize(largest_first, len(largest_first))
    return list(rdd.mapPartitions(partial(_write_plans, folder)).collect())


def _write_plans(folder: DataFolder, tasks: Iterable[PlanTask]) -> Iterator[WrittenPlan]:
    """One view of the log serves all tasks of a process; it is opened when a sample is needed."""
    log = cache(partial(LogView, folder))
    return (_write_plan(folder.plans, task, log) for task in tasks)


def _write_plan(plans: Path, task: PlanTask, log: Callable[[], LogView]) -> WrittenPlan:
    compiler = _Compiler(task, log)
    plan = source_plan(
        task.source, task.schema, task.leaves, number_of=task.number_of, compiled=compiler.compile
    )
    return WrittenPlan(
        task.source,
        write_source_plan(plans, plan).name,
        compiler.informed,
        plan.program.subscription_count,
        compiler.method,
        compiler.reason,
    )


class _Compiler:
    """Compiles the filters of one source, and remembers which method was used and why."""

    def __init__(self, task: PlanTask, log: Callable[[], LogView]) -> None:
        self._task, self._log = task, log
        self.informed = False
        self.method = self.reason = ""

    def compile(self, filters: Sequence[Filter], schema: Schema) -> Program:
        task, is_small = self._task, len(filters) < FEW
        sample = None if is_small else sample_of(self._log(), task.source, schema)
        is_known = sample is not None or task.statistics is not None
        if task.method == AUTO and (is_small or not is_known):
            self.method = "prefix-by-use"
            self.reason = (
                f"fewer than {FEW} filters" if is_small else "nothing is known of its items yet"
            )
            return compile_program(filters, schema)
        self.informed = is_known
        try:
            factorized = factorize(
                filters, schema, sample=sample, measured=self._measured, method=task.method
            )
            self.reason = factorized.choice.reason
        except TimeBudgetExceeded as error:
            factorized = factorize(filters, schema, sample=sample, measured=self._measured)
            self.reason = f"{error}; {factorized.choice.reason}"
        self.method = factorized.choice.method
        return factorized.program

    def _measured(self, atom: Atom) -> float | None:
        """The measured selectivity of an atom, from the catalog."""
        statistics = self._task.statistics
        return None if statistics is None else statistics.selectivity(unparse_filter(atom))


def sample_of(view: LogView, source: str, schema: Schema) -> Batch | None:
    """A sample of the last items of a source; None if there are fewer than SAMPLE_MIN. Items of an
    earlier schema of the source are left out."""
    group = group_of(schema)
    columns = [field.name for field in item_columns(schema)]

    def last_rows() -> list[pa.Table]:
        rows_of: dict[LogFile, list[int]] = {}
        for place in view.index.last(source, SAMPLE):
            if place.file.group.endswith(group):
                rows_of.setdefault(place.file, []).append(place.row)
        tables: list[pa.Table] = []
        for file, rows in rows_of.items():
            with view.reading(file):
                tables.append(read_rows(view.storage, file, rows, columns=columns))
        return tables

    tables = view.ask(last_rows)
    if sum(table.num_rows for table in tables) < SAMPLE_MIN:
        return None
    (batch,) = pa.concat_tables(tables).combine_chunks().to_batches()
    return batch_of_arrow(batch, schema)
