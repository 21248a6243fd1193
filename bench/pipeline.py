"""The pipeline: throughput of the match stage, latency, start, memory, and what kills leave.

200,000 conjunctions (pool A, mix S of bench/workloads/conjunctions.py) and items with 20 integer
columns from Parquet, `local[2]`. The stage gives for each item the list of feeds that have it.

Beside it, in the same run: the same plan in one process with two threads; Spark with a filter
expression for each subscription; and Spark with the subscriptions as a table, joined on ranges and
grouped. The last two cannot do so many: they are measured on fewer and extrapolated in proportion.

Then a whole run (bench/running/): how old items are when they are stored, how long it takes to
start, what it holds in memory, and whether anything is lost or doubled when its processes are
killed.
"""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench import Result, Row, Say
from bench.baselines.range_join import QUERY, bounds_of, event_table, subscription_tables
from bench.running.first_item import first_item_row
from bench.running.into_log import into_log_rows
from bench.running.kills import kills_row
from bench.running.latency import latency_rows
from bench.running.memory import memory_row
from bench.running.scaling import scaling_row
from bench.workloads.conjunctions import SCHEMA, Workload, batch, workload
from headgate.pipeline.match_stage import MatchConfig, match_stage
from headgate.pipeline.session import start_session
from headgate.pipeline.source_plan import source_plan, write_source_plan
from headgate.plan.leaves import FilterUsers

KEPT = ["@source", "@id"]
MATCHED = "`@source` string, `@id` string, `@feeds` array<int>, `@inner` array<int>"
FILTER_COLUMNS = 50
JOINED_ITEMS = 16


def run(*, quick: bool, say: Say) -> Result:
    # Workers unpickle what is defined in bench/, so they must find it.
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
    rows = _match_rows(quick=quick, say=say)
    subscriptions, items = (20_000, 400_000) if quick else (200_000, 4_000_000)
    rows.append(
        scaling_row(
            "match stage, one core → two",
            f"{subscriptions:,} filters, {items:,} items of 20 columns",
            match_rate,
            say=say,
            subscriptions=subscriptions,
            items=items,
        )
    )
    rows.append(first_item_row(quick=quick, say=say))
    say("starting Spark")
    session = start_session("local[2,4]", name="bench", settings={"spark.driver.memory": "1g"})
    rows += into_log_rows(session, quick=quick, say=say)
    rows += latency_rows(session, quick=quick, say=say)
    rows.append(memory_row(session, quick=quick, say=say))
    session.stop()
    rows.append(kills_row(quick=quick, say=say))
    return Result(rows)


def _match_rows(*, quick: bool, say: Say) -> list[Row]:
    subscriptions, items = (20_000, 400_000) if quick else (200_000, 4_000_000)
    work = workload("A", "S", subscriptions)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        say("writing items and the plan")
        plans = {"S": [_write_plan(folder, work)]}
        _write_items(folder / "items", items)
        say("one process, two threads")
        alone_s = _one_process_s(folder / "items", plans)
        say("Spark")
        spark = start_session("local[2]", name="bench", settings={"spark.driver.memory": "2g"})
        frame = spark.read.parquet(str(folder / "items"))
        spark_s, found = _spark_s(frame, plans)
        say("Spark with a filter for each subscription")
        filters_s = _filter_columns_s(frame, work)
        say("Spark with a range join")
        joined_s = _range_join_s(spark, work)
        spark.stop()
    rate, alone = items / spark_s, items / alone_s
    what = f"{subscriptions:,} filters, {items:,} items of 20 columns"
    baseline = (
        f"filter columns {1 / filters_s:,.0f} items/s, range join {1 / joined_s:,.0f} items/s "
        "(extrapolated)"
    )
    return [
        Row(
            "match stage",
            what,
            f"{rate:,.0f} items/s",
            "≥ 300,000",
            rate >= 300_000,
            baseline=baseline,
        ),
        Row(
            "share of one process",
            f"{what}, {found / items:.0f} matches per item",
            f"{rate / alone:.0%}",
            "≥ 40 %",
            rate >= 0.4 * alone,
            baseline=f"{alone:,.0f} items/s with two threads",
        ),
    ]


def match_rate(*, subscriptions: int, items: int, cores: int) -> float:
    """Items per second through the match stage on so many cores."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plans = {"S": [_write_plan(folder, workload("A", "S", subscriptions))]}
        _write_items(folder / "items", items)
        spark = start_session(f"local[{cores}]", settings={"spark.driver.memory": "2g"})
        try:
            seconds, _ = _spark_s(spark.read.parquet(str(folder / "items")), plans)
        finally:
            spark.stop()
    return items / seconds


def _write_plan(folder: Path, work: Workload) -> str:
    leaves = {}
    for number, filter_ in enumerate(work.filters()):
        leaves.setdefault(filter_, FilterUsers()).feeds.append(str(number))
    number_of = {str(number): number for number in range(len(work.chosen))}
    return str(write_source_plan(folder, source_plan("S", SCHEMA, leaves, number_of=number_of)))


def _write_items(folder: Path, count: int) -> None:
    folder.mkdir()
    files = 8
    for at in range(files):
        size = count // files
        columns = {name: column[0] for name, column in batch(size, seed=at).columns.items()}
        ids = pa.array(np.arange(at * size, (at + 1) * size)).cast(pa.string())
        table = pa.table({"@source": pa.array(["S"] * size), "@id": ids, **columns})
        pq.write_table(table, folder / f"{at}.parquet")


def _one_process_s(folder: Path, plans: dict[str, list[str]]) -> float:
    """The same stage over the same files, read by the same two threads."""
    files = sorted(folder.glob("*.parquet"))

    def match_file(file: Path) -> int:
        batches = pq.ParquetFile(file).iter_batches(50_000)
        return sum(found.num_rows for found in match_stage(MatchConfig(plans, keep=KEPT))(batches))

    match_file(files[0])
    began = time.perf_counter()
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(match_file, files))
    return time.perf_counter() - began


def _spark_s(frame: DataFrame, plans: dict[str, list[str]]) -> tuple[float, int]:
    """The best of three, after one that starts the workers; and how many matches there are."""

    def once() -> tuple[float, int]:
        began = time.perf_counter()
        matched = frame.mapInArrow(match_stage(MatchConfig(plans, keep=KEPT)), MATCHED)
        (row,) = matched.select(F.sum(F.size("`@feeds`"))).collect()
        return time.perf_counter() - began, row[0]

    once()
    return min(once() for _ in range(3))


def _filter_columns_s(frame: DataFrame, work: Workload) -> float:
    """Seconds per item for all subscriptions, from a few of them."""
    some = work.chosen[:FILTER_COLUMNS]
    columns = []
    for line in some.tolist():
        condition = F.lit(True)
        for at in line:
            if at >= 0:
                low, high = bounds_of(work.pool[at])
                condition = condition & F.col(work.pool[at].attribute).between(low, high)
        columns.append(F.sum(condition.cast("long")))
    frame.select(*columns[:2]).collect()
    began = time.perf_counter()
    frame.select(*columns).collect()
    took = time.perf_counter() - began
    return took / frame.count() * len(work.chosen) / len(some)


def _range_join_s(spark: SparkSession, work: Workload) -> float:
    """Seconds per item."""
    tables = {"events": event_table(JOINED_ITEMS, seed=1), **subscription_tables(work)}
    for name, table in tables.items():
        spark.createDataFrame(table).cache().createOrReplaceTempView(name)
        spark.table(name).count()
    began = time.perf_counter()
    spark.sql(QUERY).collect()
    return (time.perf_counter() - began) / JOINED_ITEMS
