"""Delivery that follows the log: files, webhooks, pull, and a batch in which nothing is due.

Items are in one of 1,000 feeds each. File subscriptions are spread evenly over the feeds; a round
has new items for every one of them, and its documents have up to 20 entries. Two rounds come before
those that are measured: a document has two files that change places, which are created then.

Webhooks go to a server on loopback in another process, under eight addresses, one call for each
item and subscription. The latency is from the commit of an item to the log until its call is
received, at ten items a second, with the worker in another process.

The look at a batch is the time of a step over a batch of 1,000 items with 13 matches each, none of
which is among the 200,000 feeds that have subscriptions. Those are listed to the worker and not in
the catalog: to register them took minutes, and nothing is read of one for which nothing is due.

"Today" is the outbox: 500 to 618 files/s measured with 10,000 subscriptions.
"""

from __future__ import annotations

import multiprocessing
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench import Result, Row, Say
from headgate.catalog.catalog import Catalog
from headgate.catalog.delivery_catalog import DeliveryCatalog
from headgate.catalog.lookups import SubscriptionEntry
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_worker import DeliveryWorker
from headgate.deliver.output_webhook import WebhookSettings
from headgate.deliver.settings import DeliverySettings
from headgate.language.parse import parse_script
from headgate.language.statements import Output, OutputKind, Subscribe
from headgate.match.item_columns import items_to_arrow
from headgate.model.addresses import LOOPBACK
from headgate.model.items import Item
from headgate.model.schema import FEED_SCHEMA
from headgate.model.values import Link
from headgate.store.log import Sequencer
from headgate.store.log_state import Origin
from headgate.store.log_storage import FolderStorage
from headgate.store.log_writer import write_pair
from headgate.store.segment import SegmentBuilder

FEEDS = 1_000
HOSTS = 8


def run(*, quick: bool, say: Say) -> Result:
    files = 2_000 if quick else 10_000
    hooks = 2_000 if quick else 10_000
    rows = [
        _files_row(files, 1, say=say),
        _files_row(files, 10, say=say),
        _webhooks_row(hooks, say=say),
        _latency_row(30 if quick else 150, say=say),
        Row("pull", "feed URLs, API, live streams", "no row, no work", "0", True),
        _look_row(20_000 if quick else 200_000, say=say),
    ]
    return Result(rows)


class _World:
    """A catalog with feeds F0 … over one source, a log, and a worker."""

    def __init__(self, folder: Path, feeds: int) -> None:
        self.folder = folder
        self.storage = FolderStorage(folder)
        self.sequencer = Sequencer(self.storage)
        self.catalog = Catalog.open(str(folder / "catalog.db"))
        script = "register feed http://a.example/rss as N;"
        script += "".join(
            f"create feed F{n} from N where title contains 'w{n}';" for n in range(feeds)
        )
        self.catalog.apply(parse_script(script))
        self.numbers: dict[int, int] = {}
        self.batch = 0

    def subscribe(self, outputs: list[Output], feeds: int) -> None:
        self.catalog.apply(
            [
                Subscribe(f"F{n % feeds}", output, None, None, None, None)
                for n, output in enumerate(outputs)
            ]
        )
        for entry in DeliveryCatalog(self.catalog).entries(after_id=0):
            self.numbers[int(entry.feed[1:])] = entry.feed_number

    def publish(self, feeds_of_items: list[list[int]]) -> None:
        self.batch += 1
        at = datetime.now(UTC)
        items = [
            Item(
                f"{self.batch}.{n}",
                "N",
                at + timedelta(microseconds=n),
                {
                    "title": f"Item {n} of batch {self.batch}",
                    "link": Link(f"https://a.example/{self.batch}/{n}"),
                    "description": "<p>Some words about <b>what</b> has happened. </p>" * 4,
                },
            )
            for n in range(len(feeds_of_items))
        ]
        table = pa.Table.from_batches([items_to_arrow(items, FEED_SCHEMA)])
        builder = SegmentBuilder()
        lists = pa.array([sorted(each) for each in feeds_of_items], pa.list_(pa.int32()))
        builder.add(table.column("@source").combine_chunks(), {"feeds": lists})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        written = write_pair(self.storage, "feeds-a", sink.getvalue(), builder.build())
        self.sequencer.commit(Origin("feeds-a", "e", self.batch), [written])

    @contextmanager
    def worker(
        self, delivery_catalog: Callable[[Catalog], DeliveryCatalog] = DeliveryCatalog
    ) -> Iterator[DeliveryWorker]:
        try:
            with _worker(self.folder, delivery_catalog) as worker:
                yield worker
        finally:
            self.catalog.close()


@contextmanager
def _worker(
    folder: Path, delivery_catalog: Callable[[Catalog], DeliveryCatalog] = DeliveryCatalog
) -> Iterator[DeliveryWorker]:
    settings = DeliverySettings(
        folder / "out",
        folder,
        webhook=WebhookSettings(key=b"key", allowed=LOOPBACK),
        items_in_file=20,
    )
    with (
        Catalog.open(str(folder / "catalog.db")) as catalog,
        DeliveryDatabase(str(folder / "deliver.db")) as database,
        DeliveryWorker(
            FolderStorage(folder), delivery_catalog(catalog), database, settings
        ) as worker,
    ):
        yield worker


def _now() -> datetime:
    return datetime.now(UTC)


def _files_row(subscriptions: int, items: int, *, say: Say) -> Row:
    say(f"{subscriptions:,} files, {items} new items each")
    with tempfile.TemporaryDirectory() as name:
        world = _World(Path(name), FEEDS)
        outputs = [Output(OutputKind.FILE, f"{n % 100}/{n}.atom") for n in range(subscriptions)]
        world.subscribe(outputs, FEEDS)
        batch = [[world.numbers[n % FEEDS]] for n in range(FEEDS * items)]
        with world.worker() as worker:
            for _ in range(2):
                world.publish(batch)
                worker.step(_now())
            taken, sent = 0.0, 0
            for _ in range(3):
                world.publish(batch)
                began = time.perf_counter()
                sent += sum(worker.step(_now()).sent.values())
                taken += time.perf_counter() - began
    rate = sent / taken
    return Row(
        "files",
        f"{subscriptions:,} subscriptions, {items} new items in each document",
        f"{rate:,.0f} deliveries/s, {rate / items:,.0f} documents/s",
        "≥ 10,000 deliveries/s",
        rate >= 10_000,
        baseline="500-618/s (outbox)",
    )


def _webhooks_row(calls: int, *, say: Say) -> Row:
    say(f"{calls:,} webhook calls")
    ready = multiprocessing.Queue()
    server = multiprocessing.Process(target=_serve, args=[ready], daemon=True)
    server.start()
    port = ready.get()
    try:
        with tempfile.TemporaryDirectory() as name:
            world = _World(Path(name), HOSTS)
            targets = [f"http://127.0.0.{1 + n % HOSTS}:{port}/{n}" for n in range(100)]
            world.subscribe([Output(OutputKind.WEBHOOK, each) for each in targets], HOSTS)
            per_feed = calls // 100
            with world.worker() as worker:
                world.publish([[world.numbers[n % HOSTS]] for n in range(HOSTS * per_feed)])
                began, sent = time.perf_counter(), 0
                while sent < 100 * per_feed:
                    report = worker.step(_now())
                    sent += sum(report.sent.values())
                    if report.is_idle:
                        worker.wait()
                taken = time.perf_counter() - began
    finally:
        server.terminate()
        server.join()
    return Row(
        "webhooks",
        f"{sent:,} calls to loopback, {HOSTS} hosts, a sent row for each",
        f"{sent / taken:,.0f} calls/s",
        "≥ 1,500 calls/s",
        sent / taken >= 1_500,
    )


def _latency_row(items: int, *, say: Say) -> Row:
    say(f"{items} items, ten a second")
    server = _TimingServer()
    processes = multiprocessing.get_context("spawn")
    stop = processes.Event()
    with tempfile.TemporaryDirectory() as name:
        world = _World(Path(name), 1)
        target = f"http://127.0.0.1:{server.port}/"
        world.subscribe([Output(OutputKind.WEBHOOK, target)], 1)
        process = processes.Process(target=_work, args=[name, stop], daemon=True)
        process.start()
        try:
            world.publish([[world.numbers[0]]])
            server.wait(1)  # the worker has started
            committed = []
            for n in range(items):
                world.publish([[world.numbers[0]]])
                committed.append(time.monotonic())
                time.sleep(max(0.0, committed[0] + (n + 1) / 10 - time.monotonic()))
            server.wait(items + 1)
        finally:
            stop.set()
            process.join(10)
            world.catalog.close()
    waits = np.asarray(server.received[1:]) - committed
    middle, high = np.percentile(waits * 1e3, [50, 99])
    return Row(
        "latency",
        f"{items} items, ten a second, from the log to a webhook",
        f"p50 {middle:.0f} ms, p99 {high:.0f} ms",
        "p50 ≤ 150 ms",
        bool(middle <= 150),
    )


def _work(folder: str, stop: Event) -> None:
    """A worker as a run starts it, in a process of its own."""
    with _worker(Path(folder)) as worker:
        while not stop.is_set():
            if worker.step(_now()).is_idle:
                worker.wait()


class _TimingServer:
    """Notes when each call has arrived; one connection at a time is enough for one receiver."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.received: list[float] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def wait(self, count: int) -> None:
        until = time.monotonic() + 30
        while len(self.received) < count and time.monotonic() < until:
            time.sleep(0.01)

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            note = self.received.append
            args = [connection, lambda note=note: note(time.monotonic())]
            threading.Thread(target=_answer, args=args, daemon=True).start()


class _ListedSubscriptions(DeliveryCatalog):
    """One file subscription for each of the feeds 2, 3, …, besides those of the catalog."""

    def __init__(self, catalog: Catalog, feeds: int) -> None:
        super().__init__(catalog)
        self._feeds = feeds

    def entries(self, *, after_id: int) -> Iterator[SubscriptionEntry]:
        made, ended = _now() - timedelta(days=1), _now() + timedelta(days=1)
        for n in range(after_id + 1, self._feeds + 1):
            place = (f"F{n}", n + 1, "feed", "file", f"{n}.atom")
            yield SubscriptionEntry(n, 1, *place, None, made, ended, made, "local")


def _look_row(feeds: int, *, say: Say) -> Row:
    say(f"a batch with {feeds:,} subscribed feeds")
    with tempfile.TemporaryDirectory() as name:
        world = _World(Path(name), 0)
        rng, last = np.random.default_rng(1), feeds + 1
        with world.worker(lambda catalog: _ListedSubscriptions(catalog, feeds)) as worker:
            worker.step(_now())
            assert worker.table.feeds.size == feeds
            taken = []
            for _ in range(5):
                others = rng.integers(last + 1, last + 200_000, (1_000, 13)).tolist()
                world.publish([sorted(set(each)) for each in others])
                began = time.perf_counter()
                worker.step(_now())
                taken.append((time.perf_counter() - began) * 1e3)
    return Row(
        "look at a batch",
        f"{feeds:,} subscribed feeds, 1,000 items with 13 matches, none due",
        f"{min(taken):.1f} ms, with the commit of the cursors",
        "≤ 100 ms",
        min(taken) <= 100,
    )


def _serve(ready: multiprocessing.Queue[int]) -> None:
    """Answers 204 to every call, as fast as Python can: what is measured is the caller."""
    listener = socket.create_server(("0.0.0.0", 0), backlog=128)
    ready.put(listener.getsockname()[1])
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_answer, args=[connection, lambda: None], daemon=True).start()


def _answer(connection: socket.socket, note: Callable[[], None]) -> None:
    data = b""
    while part := connection.recv(65_536):
        data += part
        while (head := data.find(b"\r\n\r\n")) >= 0:
            start = data.lower().index(b"content-length:") + 15
            length = int(data[start : data.index(b"\r\n", start)])
            if len(data) < head + 4 + length:
                break
            data = data[head + 4 + length :]
            note()
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
