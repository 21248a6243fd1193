"""Every process of a run on a cluster is killed in turn, and its servers: what is lost, what twice?

    files ──┐                                          ┌──► a file
    Kafka ──┴──► headgate run, spark://, two workers ──┤
                 catalog and deliveries in PostgreSQL  └──► the log

A standalone master with two Spark workers, a Kafka broker and a PostgreSQL server run on this
machine. Numbered tickets come from files and, as many, from a topic; half of them are delivered
into a file. After each kill something must have been committed before the next victim is chosen:

    driver              headgate run with its JVM; started again
    JVM                 the driver's JVM; the run says so and ends; started again
    executor            an executor of the cluster; the Spark worker starts another
    Python worker       the processes below an executor that match items
    Spark worker        a worker of the cluster with its executor; started again
    delivery            the process that delivers; the run starts another
    PostgreSQL          kill -9 of the server, durable settings; started again
    Kafka               kill -9 of the broker; started again
    all                 all of the run and both executors

At the end every ticket must be once in the log and counted once as a delivery. The servers are
those of the tests; where one of them cannot be had, there is a row that says why.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.catalog.postgres_server import CannotRun, PostgresServer
from tests.pipeline.sources.kafka_broker import KafkaBroker
from tests.pipeline.standalone_cluster import StandaloneCluster

from bench import Result, Row, Say
from bench.running.kills import kills_row
from bench.running.logged import logged_rows
from bench.running.processes import below, end, end_run, is_delivery, is_java, is_worker
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_status import count_deliveries
from headgate.store.data_folder import find_folder
from headgate.store.log import LogReader

SCRIPT = """
register stream Tickets from json 'tickets/*.json' (n int, price int);
register stream Orders from kafka '{topic}' (n int, price int);
create feed Cheap from (Tickets | Orders) as $all where $all[price < 50];
subscribe to Cheap output file 'cheap.json' for 30 days;
"""
VICTIMS = (
    "driver",
    "executor",
    "PostgreSQL",
    "Python worker",
    "Kafka",
    "delivery",
    "Spark worker",
    "JVM",
    "all",
)
PARTS = 500
"""Several for each kill, or there would be nothing to commit between two of them."""
PATIENCE_S = 300.0


def run(*, quick: bool, say: Say) -> Result:
    items, kills = (4_000, 9) if quick else (100_000, 100)
    try:
        rows = [_cluster_row(items, kills, say)]
    except (CannotRun, pytest.skip.Exception) as error:
        rows = [Row("kills on a cluster", "", f"not measured: {error}")]
    if not quick:
        rows.append(kills_row(quick=False, say=say))
    return Result(rows)


def _cluster_row(items: int, kills: int, say: Say) -> Row:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name, ExitStack() as opened:
        world = _World(Path(name), items, opened)
        done = world.run_and_kill(kills, say)
        lost, twice = world.compare()
    killed = ", ".join(f"{who} {count}" for who, count in done.items())
    return Row(
        "kill -9 on a standalone cluster",
        f"{sum(done.values())} kills ({killed}), {items:,} items from files and Kafka "
        f"({time.perf_counter() - began:,.0f} s)",
        f"{lost} lost, {twice} twice",
        "0 lost, 0 twice",
        lost == twice == 0 and sum(done.values()) == kills,
    )


class _World:
    """The servers, the run, and how many parts of the items were written."""

    def __init__(self, folder: Path, items: int, opened: ExitStack) -> None:
        self.folder, self.items, self.written = folder, items, 0
        self.reader: LogReader | None = None
        self.done: Counter[str] = Counter()
        self.postgres = PostgresServer(durable=True)
        opened.callback(self.postgres.stop)
        self.broker = opened.enter_context(KafkaBroker(folder / "kafka"))
        self.broker.create("orders", partitions=2)
        self.cluster = opened.enter_context(StandaloneCluster(folder / "cluster"))
        self._tickets = folder / "input" / "tickets"
        self._tickets.mkdir(parents=True)
        topic = self.broker.path("orders")
        (folder / "script.feeds").write_text(SCRIPT.format(topic=topic))
        self._catalog, self._state = self.postgres.new_url(), self.postgres.new_url()
        self._start()
        opened.callback(lambda: end_run(self.process, patience_s=60))

    def _start(self) -> None:
        command = [sys.executable, "-m", "headgate", "run", "script.feeds", "--metrics", "off"]
        command += ["--catalog", self._catalog, "--state", self._state, "--data", "input"]
        command += ["--master", self.cluster.url, "--brokers", self.broker.address]
        with (self.folder / "run.log").open("ab") as log:
            environment = {**os.environ, **self.cluster.environment}
            self.process = subprocess.Popen(
                command, cwd=self.folder, stdout=log, stderr=log, env=environment
            )

    def run_and_kill(self, kills: int, say: Say) -> Counter[str]:
        chance = random.Random(1)
        for number in range(kills):
            who = VICTIMS[number % len(VICTIMS)]
            say(f"kill {number + 1} of {kills}: {who}")
            before = self._position()
            self._write_up_to((number + 1) * PARTS // (kills + 1))
            self._wait(lambda before=before: self._position() > before)
            time.sleep(chance.uniform(0.0, 1.0))  # within a batch, a commit, a delivery
            self._kill(who)
            self.done[who] += 1
        self._write_up_to(PARTS)
        say("waiting for what is left")
        self._wait(lambda: self._position() >= self.items and self._sent() >= self.items // 2)
        end_run(self.process, patience_s=60)
        return self.done

    def _kill(self, who: str) -> None:
        family = below(self.process.pid)
        executors = self.cluster.executors()
        if who == "executor":
            end(executors[0], signal.SIGKILL)
        elif who == "Python worker":
            for executor in executors:
                for pid in filter(is_worker, below(executor)):
                    end(pid, signal.SIGKILL)
        elif who == "Spark worker":
            self.cluster.kill_worker()
        elif who == "delivery":
            for pid in filter(is_delivery, family):
                end(pid, signal.SIGKILL)
        elif who == "PostgreSQL":
            self.postgres.kill()
            self.postgres.start_again()
        elif who == "Kafka":
            self.broker.kill()
            self.broker.start()
        else:
            if who == "JVM":
                end(next(filter(is_java, family)), signal.SIGKILL)
                self.process.wait(PATIENCE_S)  # it says what has happened, and ends
            victims = [*family, *(executors if who == "all" else [])]
            for pid in victims:
                end(pid, signal.SIGKILL)
            self.process.wait()
            self._start()

    def _write_up_to(self, parts: int) -> None:
        """Each part goes half to a file and half to the topic."""
        size = self.items // PARTS
        for part in range(self.written, parts):
            rows = [
                json.dumps({"n": n, "price": n % 100})
                for n in range(part * size, (part + 1) * size)
            ]
            half = size // 2
            fresh = self._tickets / f".{part}"
            fresh.write_text("".join(f"{row}\n" for row in rows[:half]))
            fresh.rename(self._tickets / f"{part:05}.json")
            values: list[bytes | None] = [row.encode() for row in rows[half:]]
            self.broker.send("orders", values, partition=part % 2)
        self.written = max(self.written, parts)

    def _position(self) -> int:
        """How many items the log has."""
        folder = find_folder(self.folder / "headgate-data")
        if not (folder.path / "log").is_dir():
            return 0
        if self.reader is None:
            self.reader = LogReader(folder.storage)
        self.reader.refresh()
        return self.reader.state.next_position

    def _sent(self) -> int:
        with DeliveryDatabase(self._state) as database:
            return count_deliveries(database).total

    def _wait(self, is_done: Callable[[], bool]) -> None:
        """A run that has ended is started again, as whatever watches over it would do."""
        until = time.monotonic() + PATIENCE_S
        while not is_done():
            if time.monotonic() > until:
                log = (self.folder / "run.log").read_text()[-2_000:]
                raise RuntimeError(f"nothing happens any more: {log}")
            if self.process.poll() is not None:
                self._start()
            time.sleep(0.05)

    def compare(self) -> tuple[int, int]:
        """How many tickets or deliveries are missing, and how many there are once too often."""
        stored = Counter(row.columns["n"] for row in logged_rows(self.folder / "headgate-data"))
        sent, expected = self._sent(), self.items // 2
        document = json.loads((self.folder / "feeds" / "cheap.json").read_bytes())
        shown = [each["id"] for each in document["items"]]
        lost = sum(n not in stored for n in range(self.items)) + max(expected - sent, 0)
        twice = sum(count - 1 for count in stored.values()) + max(sent - expected, 0)
        return lost, twice + len(shown) - len(set(shown))
