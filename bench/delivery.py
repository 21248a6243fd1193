"""Delivery that follows the log: files, webhooks, pull, and a batch in which nothing is due.

Items are in one of 1,000 feeds each. File subscriptions are spread evenly over the feeds; a round
has new items for every one of them, and its documents have up to 20 entries. Webhooks go to a
server on loopback in another process, under eight addresses, one call for each item and
subscription. The look at a batch is the time of a step over a batch of 1,000 items with 13 matches
each, none of which is among the 200,000 feeds that have subscriptions.

"Today" is the outbox: 500 to 618 files/s measured with 10,000 subscriptions.
"""

from __future__ import annotations

import multiprocessing
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench import Result, Row, Say
from headgate.catalog.catalog import Catalog
from headgate.catalog.delivery_catalog import DeliveryCatalog
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
        with self.catalog.looking_up() as known:
            for n in range(feeds):
                entry = known.entry(f"F{n}")
                assert entry is not None
                self.numbers[n] = entry.number

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
    def worker(self, **changes: object) -> Iterator[DeliveryWorker]:
        settings = DeliverySettings(
            self.folder / "out",
            self.folder,
            webhook=WebhookSettings(key=b"key", allowed=LOOPBACK),
            items_in_file=20,
            **changes,  # type: ignore[arg-type]
        )
        database = DeliveryDatabase(str(self.folder / "deliver.db"))
        catalog = DeliveryCatalog(self.catalog)
        try:
            with DeliveryWorker(self.storage, catalog, database, settings) as worker:
                yield worker
        finally:
            database.close()
            self.catalog.close()


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
            world.publish(batch)
            worker.step(_now())  # the first round compares with what is there
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
                    sent += sum(worker.step(_now()).sent.values())
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


def _look_row(feeds: int, *, say: Say) -> Row:
    say(f"a batch with {feeds:,} subscribed feeds")
    with tempfile.TemporaryDirectory() as name:
        world = _World(Path(name), feeds)
        world.subscribe([Output(OutputKind.FILE, f"{n}.atom") for n in range(feeds)], feeds)
        last, rng = max(world.numbers.values()), np.random.default_rng(1)
        with world.worker() as worker:
            worker.step(_now())
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
    answer = b"HTTP/1.1 204 No Content\r\n\r\n"

    def serve(connection: socket.socket) -> None:
        data = b""
        while part := connection.recv(65_536):
            data += part
            while (head := data.find(b"\r\n\r\n")) >= 0:
                start = data.lower().index(b"content-length:") + 15
                length = int(data[start : data.index(b"\r\n", start)])
                if len(data) < head + 4 + length:
                    break
                data = data[head + 4 + length :]
                connection.sendall(answer)

    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve, args=[connection], daemon=True).start()
