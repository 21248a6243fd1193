"""The stage of table joins as Spark calls it, without Spark and with it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.tws_tester import TwsTester
from tests.pipeline.spark_session import spark
from tests.pipeline.waiting import until
from tests.tables.table_world import TableWorld

from headgate.pipeline import table_join_stage
from headgate.pipeline.table_join_query import TableJoinQuery
from headgate.pipeline.table_join_stage import (
    SERVERS,
    BucketProcessor,
    BucketSummary,
    costs_of_results,
)
from headgate.tables.change_batches import ChangeBatch, ChangeProgress, write_change_progress
from headgate.tables.schemes import DEFAULT_SCHEME, JoinScheme
from headgate.tables.spark_partition_keys import partition_keys, partition_of

STOCKS = [
    ("Stocks", {"Symbol": "IBM", "PER": 65.0}),
    ("Stocks", {"Symbol": "GOOG", "PER": 51.7}),
]
REVIEWS = [("Reviews", {"id": n, "Symbol": ["ibm", "goog"][n % 2], "Rating": n}) for n in range(12)]
DELETED = [("Stocks", {"Symbol": "IBM", "op": "delete"}), ("Reviews", {"id": 20, "Symbol": "IBM"})]
EXPECTED = {"Rated": 5, "Any": 12, "Dear": 6, "Named": 0}


def lots_of(world: TableWorld) -> list[ChangeBatch]:
    return [
        world.change_batch(
            [world.item(table, at, values) for at, (table, values) in enumerate(changes)]
        )
        for changes in (STOCKS, REVIEWS, DELETED)
    ]


def found_in(world: TableWorld, told: list[BucketSummary]) -> dict[str, int]:
    return {name: len(own) for name, own in world.results(told).items()}


def test_a_processor_keeps_its_rows_in_spark_s_state(tmp_path: Path) -> None:
    world = TableWorld(tmp_path)
    lots = lots_of(world)
    testers = {
        lane: TwsTester(BucketProcessor(world.folder, 2), timeMode="None", outputMode="Update")
        for lane in partition_keys(2)
    }
    for number, lot in enumerate(lots):
        SERVERS.servers.clear()  # as if another worker had been called
        told: list[BucketSummary] = []
        for lane, tester in testers.items():
            rows = [Row(**row) for row in world.pieces(lot) if row["lane"] == lane]
            told += [BucketSummary(**row.asDict()) for row in tester.test(lane, rows)]
        assert {each.bucket for each in told} == {0, 1}
        if number == 1:
            assert found_in(world, told) == EXPECTED
    assert found_in(world, told) == dict.fromkeys(EXPECTED, 0)
    assert sum(each.rows for each in told) == 1 + 13


def test_the_time_of_a_group_is_charged_by_results() -> None:
    results = pa.table(
        {
            "@feeds": pa.array([[1, 2], [1], [1]], pa.list_(pa.int32())),
            "@inner": pa.array([[], [3], []], pa.list_(pa.int32())),
        }
    )
    assert costs_of_results([results], 50_000_000) == {"1": 30_000, "2": 10_000, "3": 10_000}
    assert costs_of_results([results], 400_000) == {"1": 240}  # too little of the others
    assert costs_of_results([results.slice(3)], 400_000) == {}


def test_a_bucket_reports_what_its_feeds_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_join_stage, "COST_US_MIN", 0)
    world = TableWorld(tmp_path)
    for batch in lots_of(world)[:2]:
        summaries = world.take(batch)
    charged = {feed for each in summaries for feed in json.loads(each.costs or "{}")}
    with_results = {name for name, count in EXPECTED.items() if count}
    assert charged >= {str(world.numbers[name]) for name in with_results}


def test_messages_have_the_regions_of_the_default_scheme(tmp_path: Path) -> None:
    """Six reviews of IBM, and no subscription lies between two of them. Ref-SJ-Clu+ describes a new
    stock by one run; Ref-SJ-Tup would need a pair for each rating, Ref-SJ-Sub a selected range."""
    assert DEFAULT_SCHEME is JoinScheme.REF_SJ_CLU_PLUS
    world = TableWorld(tmp_path)
    world.take(
        world.change_batch([world.item(table, at, own) for at, (table, own) in enumerate(REVIEWS)])
    )
    told = world.take(world.change_batch([world.item(*STOCKS[0][:1], 0, STOCKS[0][1])]))
    (path,) = {each.messages_path for each in told if each.messages}
    messages = pq.read_table(path).to_pylist()
    (stock,) = [row for row in messages if row["table"] == 0]
    assert (stock["pairs"], stock["excluded"]) == (1, 0)
    assert stock["numbers"] == [65.0, 10.0, 0.0], "PER, and the run of ratings from 0 to 10"
    assert len(messages) == 1 + 6, "and the reviews that the stock exposes"


def messages_of(told: list[BucketSummary]) -> list[dict[str, Any]]:
    return [
        row
        for path in {each.messages_path for each in told if each.messages}
        for row in pq.read_table(path).to_pylist()
    ]


@pytest.mark.parametrize(
    ("scheme", "pairs", "numbers"),
    [
        (JoinScheme.REF_SJ_CLU_PLUS, 1, [65.0, 10.0, 0.0]),
        (
            JoinScheme.REF_SJ_TUP,
            6,
            [65.0, *(n for n in (0.0, 2.0, 4.0, 6.0, 8.0, 10.0) for _ in "xx")],
        ),
        (JoinScheme.REF_SJ_SUB, 1, [65.0, 6.0, 10.0]),
    ],
)
def test_the_processor_of_a_query_writes_messages_of_its_scheme(
    tmp_path: Path, scheme: JoinScheme, pairs: int, numbers: list[float]
) -> None:
    """The worker is the same for all schemes: what it remembers of one is not used for another."""
    world = TableWorld(tmp_path)
    query = TableJoinQuery(cast(SparkSession, None), world.folder, lambda _: None, scheme=scheme)
    testers = {
        lane: TwsTester(query.processor(2), timeMode="None", outputMode="Update")
        for lane in partition_keys(2)
    }
    for changes in (REVIEWS, STOCKS[:1]):
        lot = world.change_batch(
            [world.item(table, at, own) for at, (table, own) in enumerate(changes)]
        )
        told: list[BucketSummary] = []
        for lane, tester in testers.items():
            rows = [Row(**row) for row in world.pieces(lot) if row["lane"] == lane]
            told += [BucketSummary(**row.asDict()) for row in tester.test(lane, rows)]
    (stock,) = [row for row in messages_of(told) if row["table"] == 0]
    assert (stock["pairs"], stock["numbers"]) == (pairs, numbers)


def test_another_scheme_is_used_at_once_by_the_same_worker(tmp_path: Path) -> None:
    """The subscriptions that a worker keeps open are those of one scheme."""
    world = TableWorld(tmp_path)
    world.take(
        world.change_batch([world.item(table, at, own) for at, (table, own) in enumerate(REVIEWS)])
    )
    pairs = []
    for scheme in (JoinScheme.REF_SJ_CLU_PLUS, JoinScheme.REF_SJ_TUP):
        told = world.take(
            world.change_batch([world.item("Stocks", 0, STOCKS[0][1])]), scheme=scheme
        )
        pairs.append([row["pairs"] for row in messages_of(told) if row["table"] == 0])
        world.take(world.change_batch([world.item("Stocks", 0, {"Symbol": "IBM", "op": "delete"})]))
    assert pairs == [[1], [6]]


def test_a_lane_is_where_spark_puts_it() -> None:
    frame = spark().sql("select id, pmod(hash(cast(id as int)), 3) as place from range(-50, 500)")
    rows = frame.collect()
    assert [partition_of(row.id, 3) for row in rows] == [row.place for row in rows]


@pytest.mark.integration
def test_the_query_takes_lots_one_by_one_and_after_a_restart_goes_on(tmp_path: Path) -> None:
    """It is stopped after the second lot, whose end it has not noted: that lot is run again."""
    world = TableWorld(tmp_path)
    lots = lots_of(world)
    for lot in lots[1:]:
        path = world.folder.tables / "lots" / f"{lot.number}.json"
        path.rename(path.with_suffix(".later"))
    write_change_progress(world.folder.tables, ChangeProgress())
    told: dict[int, list[dict[str, int]]] = {}
    failing = threading.Event()

    def finish(some: list[BucketSummary]) -> None:
        number = some[0].batch
        told.setdefault(number, []).append(found_in(world, [t for t in some if t.results]))
        if number == 2 and not failing.is_set():
            failing.set()
            raise RuntimeError("it is cut off here")
        later = world.folder.tables / "lots" / f"{number + 1}.later"
        if later.exists():
            later.rename(later.with_suffix(".json"))

    query = TableJoinQuery(spark(), world.folder, finish)
    query.reconcile()
    until(failing.is_set)
    query.stop()
    again = TableJoinQuery(spark(), world.folder, finish)
    again.reconcile()
    until(lambda: 3 in told)
    again.stop()
    assert told == {
        1: [dict.fromkeys(EXPECTED, 0)],
        2: [EXPECTED, EXPECTED],
        3: [dict.fromkeys(EXPECTED, 0)],
    }
    (path,) = world.folder.messages.glob("*/day=*/3-*.parquet")
    kinds = {(row["kind"], row["table"]) for row in pq.read_table(path).to_pylist()}
    assert kinds == {(1, 0)}, "clients hear that the stock is gone"
