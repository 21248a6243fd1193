"""What driver, JVM and workers hold in memory together, with a million filters in use."""

from __future__ import annotations

import os
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench import Row, Say
from bench.running.processes import below, resident_mb
from bench.workloads.conjunctions import SCHEMA, batch, workload
from headgate.catalog.catalog import Catalog
from headgate.pipeline.batch_stage import PartitionSummary, batch_stage
from headgate.pipeline.operator_stage import OperatorLedger
from headgate.pipeline.planner import CurrentPlans
from headgate.pipeline.records import ddl
from headgate.pipeline.run_batch import BatchRunner
from headgate.pipeline.run_context import RunContext
from headgate.pipeline.run_log import RunLog
from headgate.pipeline.snapshot import Layer, PlanSnapshot, write_snapshot
from headgate.pipeline.source_plan import source_plan, write_source_plan
from headgate.plan.leaves import FilterUsers
from headgate.store.data_folder import DataFolder

TARGET_MB = 4_096.0


def memory_row(session: SparkSession, *, quick: bool, say: Say) -> Row:
    filters, items = (50_000, 20_000) if quick else (1_000_000, 200_000)
    with tempfile.TemporaryDirectory() as name:
        folder = DataFolder(Path(name)).make()
        say(f"compiling {filters:,} filters")
        planned = _planned(folder, filters)
        say("matching with them on Spark")
        most_mb = _most_mb(session, folder, planned, items)
    return Row(
        "memory of driver, JVM and workers",
        f"{filters:,} filters, batches of {items:,} items, proportional set size",
        f"{most_mb:,.0f} MB",
        f"≤ {TARGET_MB:,.0f} MB",
        most_mb <= TARGET_MB,
    )


def _planned(folder: DataFolder, filters: int) -> CurrentPlans:
    leaves: dict[object, FilterUsers] = {}
    for number, filter_ in enumerate(workload("A", "S", filters).filters()):
        leaves.setdefault(filter_, FilterUsers()).feeds.append(str(number))
    number_of = {str(number): number for number in range(filters)}
    plan = source_plan("S", SCHEMA, leaves, number_of=number_of)
    files = {"S": write_source_plan(folder.plans, plan).name}
    snapshot = PlanSnapshot(0, (Layer(np.arange(filters, dtype=np.int32), files),))
    names = {number: f"Feed{number}" for number in range(filters)}
    return CurrentPlans(snapshot, write_snapshot(folder.plans, snapshot), names, {}, {"S": SCHEMA})


def _most_mb(session: SparkSession, folder: DataFolder, planned: CurrentPlans, items: int) -> float:
    columns = {name: column[0] for name, column in batch(items, seed=1).columns.items()}
    rows = {"@source": ["S"] * items, "@id": [str(n) for n in range(items)], **columns}
    path = folder.path / "rows.parquet"
    _write_rows(path, rows)
    with (
        Catalog.open(str(folder.path / "catalog.db")) as catalog,
    ):
        context = RunContext(
            folder=folder,
            catalog=catalog,
            planner=SimpleNamespace(current=planned),
            log=RunLog(folder.storage),
            ledger=OperatorLedger(folder.operators),
        )
        runner = BatchRunner(context)
        most_mb, stage = 0.0, batch_stage(folder, "S")
        for number in range(3):
            frame = session.read.parquet(str(path)).mapInArrow(stage, ddl(PartitionSummary))
            runner.run("S", frame, number)
            most_mb = max(most_mb, resident_mb(below(os.getpid())))
            time.sleep(0.1)
    return most_mb


def _write_rows(path: Path, rows: dict[str, object]) -> None:
    table = pa.table(rows)
    moment = pa.scalar(datetime(2026, 11, 16, tzinfo=UTC), pa.timestamp("us", tz="UTC"))
    times = pa.repeat(moment, table.num_rows)
    pq.write_table(table.add_column(2, "@time", times), path)
