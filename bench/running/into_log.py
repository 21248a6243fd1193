"""Items from files into the log: read, match, write with the index of matches. What a feed with
subscribers who pull costs: nothing more.

A streaming query of the product (queries.py, run_batch.py) reads files of items that lie there
already; the time is from the first commit to the last, without the first batch, in which workers
start. The plan is made by hand: planning 200,000 statements is another matter.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench import Row, Say
from bench.running.processes import below, cpu_s
from bench.workloads.conjunctions import SCHEMA, batch, workload
from bench.workloads.keywords import SCHEMA as TEXT_SCHEMA
from bench.workloads.keywords import keyword_filters, keyword_items
from headgate.acquire.source_list import ListedSource
from headgate.catalog.catalog import Catalog
from headgate.model.filters import Filter
from headgate.model.schema import Schema
from headgate.pipeline.operator_stage import OperatorLedger
from headgate.pipeline.planner import CurrentPlans
from headgate.pipeline.queries import Queries
from headgate.pipeline.run_batch import BatchRunner
from headgate.pipeline.run_context import RunContext
from headgate.pipeline.run_log import RunLog
from headgate.pipeline.snapshot import Layer, PlanSnapshot, write_snapshot
from headgate.pipeline.source_groups import GroupKind, SourceGroup
from headgate.pipeline.source_plan import source_plan, write_source_plan
from headgate.plan.leaves import FilterUsers
from headgate.store.data_folder import DataFolder

FILES, BATCHES = 40, 10
TODAY = "1,081 items/s (one row of the outbox for each match)"


@dataclass(frozen=True, slots=True)
class Load:
    """Files of items, and filters for them."""

    name: str
    schema: Schema
    filters: Callable[[int], Iterable[Filter]]
    rows: Callable[[int, int], pa.Table]
    """So many items of a seed."""
    format: str
    target_per_s: int | None
    share: float = 1.0
    """Of the filters that the others have."""


def _numbers(count: int, seed: int) -> pa.Table:
    return pa.table({name: column[0] for name, column in batch(count, seed=seed).columns.items()})


def _texts(count: int, seed: int) -> pa.Table:
    return pa.Table.from_batches([keyword_items(count, seed=seed)])


def _conjunctions(count: int) -> Iterable[Filter]:
    return workload("A", "S", count).filters()


LOADS = (
    Load("from Parquet", SCHEMA, _conjunctions, _numbers, "parquet", 80_000),
    Load("from JSON lines", SCHEMA, _conjunctions, _numbers, "json", 50_000),
    Load("keywords, from JSON lines", TEXT_SCHEMA, keyword_filters, _texts, "json", 2_000, 0.5),
    Load("keywords, from JSON lines", TEXT_SCHEMA, keyword_filters, _texts, "json", None),
)


def into_log_rows(session: SparkSession, *, quick: bool, say: Say) -> list[Row]:
    filters = 20_000 if quick else 200_000
    rows: list[Row] = []
    for load in LOADS:
        items = 40_000 if load.schema is TEXT_SCHEMA else 2_000_000
        count = round(filters * load.share)
        rows.append(_row(session, load, count, items // 10 if quick else items, say))
    return rows


def _row(session: SparkSession, load: Load, filters: int, items: int, say: Say) -> Row:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        folder = DataFolder(home / "data").make()
        say(f"{load.name}: writing {items:,} items and {filters:,} filters")
        _write_files(home / "items", load, items)
        plans = _planned(folder, load, filters)
        say(f"{load.name}: reading, matching and writing")
        measured = _measure(session, home, folder, load, plans, items)
    rate = measured.items / measured.wall_s
    return Row(
        f"source → match → log, {load.name}",
        f"{filters:,} feeds, {measured.matches / items:,.1f} matches an item",
        f"{rate:,.0f} items/s, {1e6 * measured.cpu_s / measured.items:,.1f} µs of CPU an item",
        "" if load.target_per_s is None else f"≥ {load.target_per_s:,} items/s",
        None if load.target_per_s is None else rate >= load.target_per_s,
        baseline="about 1 item/s" if load.schema is TEXT_SCHEMA else TODAY,
    )


def _write_files(folder: Path, load: Load, items: int) -> None:
    folder.mkdir()
    for number in range(FILES):
        table = load.rows(items // FILES, number)
        path = folder / f"{number:03}.{load.format}"
        if load.format == "parquet":
            pq.write_table(table, path)
        else:
            lines = (json.dumps(row) for row in table.to_pylist())
            path.write_text("\n".join(lines) + "\n")


def _planned(folder: DataFolder, load: Load, filters: int) -> CurrentPlans:
    leaves: dict[Filter, FilterUsers] = {}
    for number, filter_ in enumerate(load.filters(filters)):
        leaves.setdefault(filter_, FilterUsers()).feeds.append(str(number))
    number_of = {str(number): number for number in range(filters)}
    plan = source_plan("S", load.schema, leaves, number_of=number_of)
    files = {"S": write_source_plan(folder.plans, plan).name}
    snapshot = PlanSnapshot(0, (Layer(np.arange(filters, dtype=np.int32), files),))
    path = write_snapshot(folder.plans, snapshot)
    return CurrentPlans(snapshot, path, schemas={"S": load.schema})


@dataclass(frozen=True, slots=True)
class Measured:
    items: int
    wall_s: float
    cpu_s: float
    matches: int


def _measure(
    session: SparkSession,
    home: Path,
    folder: DataFolder,
    load: Load,
    plans: CurrentPlans,
    items: int,
) -> Measured:
    """What comes after the first batch."""
    log = RunLog(folder.storage)
    context = RunContext(
        folder=folder,
        catalog=Catalog.open("sqlite://"),
        planner=SimpleNamespace(current=plans),  # type: ignore[arg-type]
        log=log,
        ledger=OperatorLedger(folder.operators),
    )
    source = ListedSource("S", f"items/*.{load.format}", format=load.format)
    group = SourceGroup(GroupKind.FILES, load.schema, (source,))
    options = {"settle_s": "0", "rows_max": str(items // BATCHES)}
    queries = Queries(session, folder, home, options, BatchRunner(context).run, log)
    queries.reconcile({group.name: group})
    until = time.monotonic() + 600.0
    while log.state.next_position == 0 and time.monotonic() < until:
        log.wait(log.state.seq, 0.1)
    began, first, cpu_before_s = time.perf_counter(), log.state.next_position, _all_cpu_s()
    while log.state.next_position < items and time.monotonic() < until:
        log.wait(log.state.seq, 0.1)
    wall_s, cpu_used_s = time.perf_counter() - began, _all_cpu_s() - cpu_before_s
    assert log.state.next_position == items, queries.errors()
    queries.stop()
    return Measured(items - first, wall_s, cpu_used_s, context.meters.tally().matches)


def _all_cpu_s() -> float:
    return sum(map(cpu_s, below(os.getpid())))
