"""Writes the source plans of a layer as files, each source separately, here or on Spark's workers.

    filters on a source ──► sample of the store,   ──► factorised program ──► plan file
                            catalog statistics

Filters that share clauses are factorised with the measured selectivities of the source
(factor/factorize.py). Where there are few filters, or nothing is known of the items, sorted
prefixes are used. Every arrangement of the program gives the same matches.

Many sources with many filters are planned in parallel on Spark's workers, which write the files to
the shared folder that they later read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from headgate.catalog.statistics import SourceStatistics
from headgate.factor.factorize import factorize
from headgate.factor.methods import AUTO
from headgate.factor.time_budget import TimeBudgetExceeded
from headgate.language.unparse import unparse_filter
from headgate.match.batch import Batch, batch_of_arrow
from headgate.match.item_columns import SOURCE, group_of, item_columns
from headgate.match.program import Program, compile_program
from headgate.model.atoms import Atom
from headgate.model.filters import Filter
from headgate.model.schema import Schema
from headgate.pipeline.source_plan import source_plan, write_source_plan
from headgate.plan.leaves import Leaves
from headgate.store.item_files import stored_files

FEW = 100
"""Fewer filters are not factorised."""
SAMPLE = 4_096
SAMPLE_MIN = 256
SAMPLE_FILES = 50
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


def write_plans(plans: Path, store: Path, tasks: Sequence[PlanTask]) -> list[WrittenPlan]:
    return [write_plan(plans, store, task) for task in tasks]


def write_plans_on(
    session: SparkSession, plans: Path, store: Path, tasks: Sequence[PlanTask]
) -> list[WrittenPlan]:
    """On Spark if there are many sources and filters; otherwise in this process, which is faster
    than starting a job."""
    filters = sum(len(task.leaves) for task in tasks)
    if len(tasks) < ON_SPARK_SOURCES or filters < ON_SPARK_FILTERS:
        return write_plans(plans, store, tasks)
    largest_first = sorted(tasks, key=lambda task: -len(task.leaves))
    rdd = session.sparkContext.parallelize(largest_first, len(largest_first))
    return list(rdd.map(partial(write_plan, plans, store)).collect())


def write_plan(plans: Path, store: Path, task: PlanTask) -> WrittenPlan:
    compiler = _Compiler(store, task)
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

    def __init__(self, store: Path, task: PlanTask) -> None:
        self._store, self._task = store, task
        self.informed = False
        self.method = self.reason = ""

    def compile(self, filters: Sequence[Filter], schema: Schema) -> Program:
        task, is_small = self._task, len(filters) < FEW
        sample = None if is_small else sample_of(self._store, task.source, schema)
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


def sample_of(store: Path, source: str, schema: Schema) -> Batch | None:
    """A sample of the last stored items of a source; None if there are fewer than SAMPLE_MIN."""
    group, tables, count = group_of(schema), [], 0
    columns = [field.name for field in item_columns(schema)]
    files = [file for file in stored_files(store) if file.group.endswith(group)]
    for file in files[::-1][:SAMPLE_FILES]:
        table = pq.read_table(
            file.path, columns=columns, partitioning=None, filters=pc.field(SOURCE) == source
        )
        tables.append(table)
        count += table.num_rows
        if count >= SAMPLE:
            break
    if count < SAMPLE_MIN:
        return None
    rows = pa.concat_tables(tables).slice(0, SAMPLE).combine_chunks().to_batches()
    return batch_of_arrow(rows[0], schema)
