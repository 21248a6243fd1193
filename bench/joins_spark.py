"""Select-joins through Spark: changes of tables in, messages out, at 100,000 subscriptions.

Issue "select-joins", Build 5. The workload is that of [Select-Joins §6] (as in `joins`): an event
is an insertion into R and the deletion of its oldest tuple, so two changes; 16,000 tuples of R,
5,100 of S, 100 bytes of payload each, which are random here so that nothing is gained by packing
them. Changes lie in the store as a run's source queries leave them; what is measured is the query
of the joins, on two cores, to the last file of messages, with rows kept in RocksDB after each lot.
Lots are made as a run makes them: the next one when the last is taken.

Beside it: the same query without Spark, in this process, on one core; and the join of new tuples
with S and all subscriptions in Spark SQL and in DuckDB, which is what a naive system computes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench import Plot, Result, Row, Say
from bench.baselines.duckdb_select_join import QUERY, duckdb_join_us
from bench.running.processes import below
from bench.running.scaling import scaling_row
from bench.running.table_mix import MixGround
from bench.workloads import multiway_joins
from bench.workloads import select_joins as work
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.pipeline.session import start_session
from headgate.pipeline.snapshot import Layer, PlanSnapshot, write_snapshot
from headgate.pipeline.sources.change_batch_source import ChangeBatchReader
from headgate.pipeline.table_join_query import TableJoinQuery
from headgate.pipeline.table_join_stage import BucketSummary, PieceRow, run_change_batch
from headgate.store.data_folder import DataFolder
from headgate.tables.boxes import Boxes, BoxGroup
from headgate.tables.bucket import Bucket, ServerCache
from headgate.tables.change_batches import (
    ChangeBatch,
    ChangeFile,
    ChangeProgress,
    write_change_batch,
    write_change_progress,
)
from headgate.tables.join_groups import JoinedTable, JoinGroup
from headgate.tables.recipients import recipients
from headgate.tables.schemes import JoinScheme
from headgate.tables.server import SelectJoinServer
from headgate.tables.spark_partition_keys import partition_keys
from headgate.tables.stored_boxes import write_boxes

TARGET = 50_000
CHANGES = Attribute("op", Type.TEXT)
R = JoinedTable(
    "R",
    Schema(
        (
            Attribute("k", Type.INT, key=True),
            Attribute("b", Type.INT),
            Attribute("a", Type.FLOAT),
            Attribute("note", Type.BYTES, payload=True),
        )
    ),
    "op",
)
S = JoinedTable(
    "S",
    Schema(
        (
            Attribute("k", Type.INT, key=True),
            Attribute("b", Type.INT),
            Attribute("c", Type.FLOAT),
            Attribute("note", Type.BYTES, payload=True),
        )
    ),
)
GROUP = JoinGroup((R, S), ("b",))
START = datetime(2026, 11, 16, tzinfo=UTC)


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """A run's folder with subscriptions and lots of changes, the first of them the database."""

    folder: DataFolder
    snapshot: str
    events: work.JoinEvents
    groups: tuple[str, ...] = (GROUP.name,)

    @classmethod
    def make(cls, path: Path, boxes: Boxes, events: work.JoinEvents) -> Ground:
        folder = DataFolder(path).make()
        feeds = np.arange(len(boxes.numbers), dtype=np.int32)
        group = BoxGroup((("a",), ("c",)), boxes)
        file = write_boxes(folder.plans, group, feeds, np.zeros_like(feeds))
        layer = Layer(feeds, {}, joins=((GROUP, file.name),))
        snapshot = write_snapshot(folder.plans, PlanSnapshot(1, (layer,)))
        write_change_progress(folder.tables, ChangeProgress(0, START))
        return cls(folder, snapshot.name, events)

    def lot(self, number: int, files: Sequence[ChangeFile]) -> ChangeBatch:
        fresh = (GROUP.name,) if number == 1 else ()
        moment = START + timedelta(seconds=number)
        return ChangeBatch(number, self.snapshot, moment, tuple(files), (), fresh, (GROUP.name,))

    def database(self) -> ChangeBatch:
        """S and the first tuples of R."""
        events, size = self.events, self.events.r_size
        s_count = len(events.s_join)
        s = _rows("S", "c", np.arange(s_count), events.s_join, events.s_value)
        r = _rows("R", "a", np.arange(size), events.r_join[:size], events.r_value[:size])
        return self.lot(1, [self._file("s", s), self._file("r", _with_words(r, "insert"))])

    def changes(self, number: int, first: int, count: int) -> ChangeBatch:
        """A lot of events, in two files as the partitions of a source's batch leave them."""
        files = []
        for part, some in enumerate(np.array_split(np.arange(first, first + count), 2)):
            fresh = self.events.r_size + some
            keys = np.stack([fresh, some], axis=1).ravel()
            known = np.repeat(fresh, 2)
            rows = _rows("R", "a", keys, self.events.r_join[known], self.events.r_value[known])
            words = pa.array(["insert", "delete"] * len(some))
            files.append(self._file(f"{number}-{part}", rows.append_column("op", words)))
        return self.lot(number, files)

    def _file(self, name: str, rows: pa.Table) -> ChangeFile:
        path = self.folder.sources / f"{name}.parquet"
        pq.write_table(rows, path, compression="zstd")
        return ChangeFile(str(path), (rows.column("@source")[0].as_py(),))


def _rows(
    table: str, value: str, keys: np.ndarray, joins: np.ndarray, values: np.ndarray
) -> pa.Table:
    count = len(keys)
    notes = np.random.default_rng(7).bytes(100 * count)
    offsets = pa.py_buffer(np.arange(0, 100 * count + 1, 100, dtype=np.int32))
    note = pa.Array.from_buffers(pa.binary(), count, [None, offsets, pa.py_buffer(notes)])
    moment = pa.scalar(START, pa.timestamp("us", tz="UTC"))
    return pa.table(
        {
            "@source": pa.repeat(pa.scalar(table), count),
            "@id": pa.array(keys).cast(pa.string()),
            "@time": pa.repeat(moment, count),
            "k": pa.array(keys, pa.int64()),
            "b": pa.array(joins, pa.int64()),
            value: pa.array(values, pa.float64()),
            "note": note,
        }
    )


def _with_words(rows: pa.Table, word: str) -> pa.Table:
    return rows.append_column("op", pa.repeat(pa.scalar(word), rows.num_rows))


@dataclass(slots=True)
class Taken:
    """What the query has told, lot by lot, and when."""

    ground: Ground | MixGround
    lots: Sequence[ChangeBatch]
    done: threading.Event
    at_s: list[float]
    cpu_s: list[float]
    """What all processes of the run have used of the cores by then."""
    told: list[Sequence[BucketSummary]]

    def finish(self, told: Sequence[BucketSummary]) -> None:
        number = told[0].batch
        self.at_s.append(time.perf_counter())
        self.cpu_s.append(_cpu_s())
        self.told.append(told)
        lot = self.lots[number - 1]
        progress = ChangeProgress(number, lot.instant, self.ground.groups)
        write_change_progress(self.ground.folder.tables, progress)
        if number < len(self.lots):
            write_change_batch(self.ground.folder.tables, self.lots[number])
        else:
            self.done.set()


def _cpu_s() -> float:
    """Of this process and all below it: the JVM and Python's workers."""
    found = 0.0
    for pid in below(os.getpid()):
        with suppress(OSError):
            after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            found += (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")
    return found


def through_spark(
    session: SparkSession, ground: Ground | MixGround, lots: Sequence[ChangeBatch]
) -> Taken:
    taken = Taken(ground, lots, threading.Event(), [], [], [])
    write_change_batch(ground.folder.tables, lots[0])
    query = TableJoinQuery(session, ground.folder, taken.finish)
    try:
        query.reconcile()
        while not taken.done.wait(1.0):
            query.reconcile()
            if query.error:
                raise RuntimeError(query.error)
    finally:
        query.stop()
    return taken


def in_process(ground: Ground | MixGround, lots: Sequence[ChangeBatch]) -> tuple[float, int]:
    """Seconds for all lots but the first two, and how many messages there are in them."""
    reader = ChangeBatchReader(ground.folder, 2, 2)
    held, blobs = ServerCache(), [_Blobs(), _Blobs()]
    took_s, messages = 0.0, 0
    for lot in lots:
        write_change_batch(ground.folder.tables, lot)
        began = time.perf_counter()
        rows = [
            row
            for part in reader.partitions({"lot": lot.number - 1}, {"lot": lot.number})
            for batch in reader.read(part)
            for row in batch.to_pylist()
        ]
        told: list[BucketSummary] = []
        for number, lane in enumerate(partition_keys(2)):
            pieces = [
                PieceRow(each["group"], each["file"], each["part"], each["content"])
                for each in rows
                if each["lane"] == lane and each["group"]
            ]
            bucket = Bucket(number, 2, str(number), blobs[number], held)
            told += run_change_batch(bucket, lot, pieces, ground.folder)
        if lot.number > 2:
            took_s += time.perf_counter() - began
            messages += sum(each.messages for each in told)
    return took_s, messages


class _Blobs(dict[str, bytes]):
    def put(self, name: str, content: bytes) -> None:
        self[name] = content

    def remove(self, name: str) -> None:
        self.pop(name, None)


def run(*, quick: bool, say: Say) -> Result:
    subscriptions = 100_000
    count, lots_count = (25_000, 4) if quick else (100_000, 10)
    boxes = work.subscriptions(subscriptions)
    events = work.events(count * (lots_count - 1))
    session = start_session("local[2]", name="joins-spark", settings={"spark.driver.memory": "2g"})
    folder = Path(tempfile.mkdtemp(prefix="headgate-joins-spark-"))
    try:
        say(f"{subscriptions:,} subscriptions, lots of {2 * count:,} changes")
        spark = Ground.make(folder / "spark", boxes, events)
        plain = Ground.make(folder / "plain", boxes, events)
        made = [
            [ground.database()]
            + [ground.changes(at + 2, at * count, count) for at in range(lots_count - 1)]
            for ground in (spark, plain)
        ]
        say("in this process")
        plain_s, plain_messages = in_process(plain, made[1])
        say("through Spark")
        taken = through_spark(session, spark, made[0])
        rows = _rates(taken, (plain_s, plain_messages), 2 * count)
        say("two, three and four tables")
        wanted = (100,) if quick else (0, 100)
        rows += [_mix(session, folder, each, quick=quick) for each in wanted]
        rows.append(
            scaling_row(
                "changes of tables, one core → two",
                f"{subscriptions:,} subscriptions, lots of {2 * count:,} changes",
                changes_rate,
                say=say,
                subscriptions=subscriptions,
                count=count,
                lots=min(lots_count, 6),
            )
        )
        say("Spark SQL and DuckDB")
        rows += _naive(session, boxes, events, 20 if quick else 50, _rate(taken, 2 * count))
        return Result(rows, _plot(taken, 2 * count))
    finally:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)


def changes_rate(*, subscriptions: int, count: int, lots: int, cores: int) -> float:
    """Changes per second through Spark on so many cores."""
    boxes, events = work.subscriptions(subscriptions), work.events(count * (lots - 1))
    session = start_session(f"local[{cores}]", settings={"spark.driver.memory": "2g"})
    folder = Path(tempfile.mkdtemp(prefix="headgate-joins-spark-"))
    try:
        ground = Ground.make(folder, boxes, events)
        made = [ground.database()]
        made += [ground.changes(at + 2, at * count, count) for at in range(lots - 1)]
        return _rate(through_spark(session, ground, made), 2 * count)
    finally:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _mix(session: SparkSession, folder: Path, wanted: int, *, quick: bool) -> Row:
    """Joins of two to four tables, with results for some of them."""
    count, lots_count = (500, 3) if quick else (10_000, 6)
    workload = multiway_joins.general(count * (lots_count - 1), share=0.1 if quick else 1.0)
    events, size = workload.events, len(workload.rows)
    made: list[tuple[MixGround, list[ChangeBatch]]] = []
    for name in (f"mix-{wanted}", f"mix-{wanted}-plain"):
        ground = MixGround.make(folder / name, workload, wanted=wanted)
        lots = [ground.lot(1, workload.rows)]
        for at in range(lots_count - 1):
            some = events[at * count : (at + 1) * count]
            lots.append(ground.lot(at + 2, [change for event in some for change in event]))
        made.append((ground, lots))
    plain_s, messages = in_process(*made[1])
    taken = through_spark(session, *made[0])
    told = [each for some in taken.told[2:] for each in some]
    found = sum(each.messages for each in told), sum(each.results for each in told)
    assert found[0] == messages, f"Spark has {found[0]} messages, one process {messages}"
    changes, lots_taken = 2 * count, len(_seconds(taken))
    total = sum(len(each.boxes.numbers) for each in workload.subscriptions)
    return Row(
        "two, three and four tables through Spark",
        f"{total:,} subscriptions of the mix of Fig. 13, {len(made[0][0].groups)} groups, "
        f"{size:,} rows; results for {wanted} feeds; {lots_taken} lots of {changes:,} changes",
        f"{_rate(taken, changes):,.0f} changes/s; "
        f"{found[0] / lots_taken / changes:.2f} messages and "
        f"{found[1] / lots_taken / changes:.2f} results for each change",
        baseline=f"{changes * lots_taken / plain_s:,.0f} changes/s in one process, one core",
    )


def _seconds(taken: Taken) -> list[float]:
    """Of each lot but the first two: those fill the tables and compile the kernels."""
    return np.diff(taken.at_s)[1:].tolist()


def _rate(taken: Taken, changes: int) -> float:
    seconds = _seconds(taken)
    return changes * len(seconds) / sum(seconds)


def _rates(taken: Taken, plain: tuple[float, int], changes: int) -> list[Row]:
    seconds = _seconds(taken)
    rate, plain_rate = _rate(taken, changes), changes * len(seconds) / plain[0]
    messages = sum(each.messages for told in taken.told[2:] for each in told)
    assert messages == plain[1], f"Spark has {messages} messages, one process {plain[1]}"
    workload = f"100,000 subscriptions, {len(seconds)} lots of {changes:,} changes"
    cpu_s = taken.cpu_s[-1] - taken.cpu_s[1]
    share = cpu_s / sum(seconds)
    return [
        Row(
            "through Spark, two cores",
            workload,
            f"{rate:,.0f} changes/s; {min(seconds):.2f} to {max(seconds):.2f} s for each lot; "
            f"{messages / len(seconds) / changes:.2f} messages for each change; it had {share:.1f} "
            f"of {os.cpu_count()} cores: {changes * len(seconds) / cpu_s:,.0f} changes/s for each",
            target=f"≥ {TARGET:,} changes/s",
            met=rate >= TARGET,
            baseline=f"{plain_rate:,.0f} changes/s in one process, one core",
        )
    ]


def _naive(
    session: SparkSession, boxes: Boxes, events: work.JoinEvents, count: int, rate: float
) -> list[Row]:
    """The join of new tuples with S and all subscriptions, found anew for each lot of events."""
    server = SelectJoinServer(scheme=JoinScheme.ENUM_J)
    server.subscribe(boxes)
    server.apply(events.filling())
    inserted = [each for each in events.batch(0, count) if each.values is not None]
    lines = recipients(server, server.apply(inserted)).lines
    results = int((lines[:, 2] - lines[:, 1]).sum())
    duckdb_us, theirs = duckdb_join_us(server, inserted)
    assert theirs == results, f"DuckDB finds {theirs} join results, Enum-J {results}"
    spark_us, theirs = spark_sql_join_us(session, boxes, events, count)
    assert theirs == results, f"Spark SQL finds {theirs} join results, Enum-J {results}"
    ours_us = 2e6 / rate
    return [
        Row(
            f"the same join results in {name}",
            f"100,000 subscriptions, {count} insertions, {results:,} join results",
            f"{us / ours_us:,.0f} × faster: {ours_us:,.0f} µs for each event",
            baseline=f"{us / 1e3:,.1f} ms for each event",
        )
        for name, us in (("Spark SQL, two cores", spark_us), ("DuckDB, one thread", duckdb_us))
    ]


def spark_sql_join_us(
    session: SparkSession, boxes: Boxes, events: work.JoinEvents, count: int
) -> tuple[float, int]:
    low, high = boxes.low, boxes.high
    fresh = slice(events.r_size, events.r_size + count)
    tables = {
        "subscription": pa.table(
            {"a_low": low[:, 0], "a_high": high[:, 0], "c_low": low[:, 1], "c_high": high[:, 1]}
        ),
        "s": pa.table({"b": events.s_join, "c": events.s_value}),
        "new": pa.table({"b": events.r_join[fresh], "a": events.r_value[fresh]}),
    }
    for name, table in tables.items():
        session.createDataFrame(table).cache().createOrReplaceTempView(name)
        session.table(name).count()
    session.conf.set("spark.sql.shuffle.partitions", "2")
    session.sql(QUERY).collect()  # compiles the query
    began = time.perf_counter()
    ((found,),) = session.sql(QUERY).collect()
    return (time.perf_counter() - began) / count * 1e6, int(found)


def _plot(taken: Taken, changes: int) -> Plot:
    rates = [(float(at), changes / each) for at, each in enumerate(_seconds(taken), 1)]
    return Plot("Select-joins through Spark", "lot", "changes/s", {"Ref-SJ-Clu+": rates})
