"""The HTTP service: posts a second, what survives kill -9, live streams, documents of feeds.

    clients (this process) ──► headgate serve (a process of its own) ──► spool, log, catalog

Posts are answered when their events are on disk. A stream's delay is the time from the beginning of
the commit of an item to its arrival at the client; the items are committed to the log by this
process, as a run does. The cost of a document is the CPU time of the service process.
"""

from __future__ import annotations

import asyncio
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench import Result, Row, Say
from bench.running.http_load import PostLoad, Target, follow, get, post
from headgate.acquire.spool import Spool
from headgate.catalog.catalog import Catalog
from headgate.catalog.principals import Principal, Scope
from headgate.language.parse import parse_script
from headgate.match.item_columns import group_of, items_to_arrow
from headgate.model.items import Item
from headgate.model.schema import FEED_SCHEMA
from headgate.service.caller import PRINCIPAL_S
from headgate.service.feed_documents import LOOK_S
from headgate.store.data_folder import DataFolder
from headgate.store.log import Sequencer
from headgate.store.log_state import Origin
from headgate.store.log_writer import LogFileWriter

BATCH = 1_000
POST_PATH = "/v1/sources/Tickets/items"
ITEMS_PER_S_MIN, POSTS_PER_S_MIN = 20_000, 1_500
P99_MS_MAX, CLIENT_BYTES_MAX = 300.0, 100_000
UNCHANGED_MS_MAX = 1.0
DOCUMENT_ITEMS = 50
LINKS = 100


@dataclass(frozen=True, slots=True)
class Settings:
    post_s: float
    connections: int
    clients: int
    feeds: int
    commits: int
    requests: int


FULL = Settings(10.0, 64, 5_000, 1_000, 60, 5_000)
QUICK = Settings(2.0, 16, 200, 50, 10, 1_000)


def run(*, quick: bool, say: Say) -> Result:
    settings = QUICK if quick else FULL
    _open_many_files()
    with tempfile.TemporaryDirectory() as name:
        world = _World(Path(name), settings.feeds)
        rows = [
            *_post_rows(world, settings, say),
            _kill_row(world, settings, say),
            *_live_rows(world, settings, say),
            *_document_rows(world, settings, say),
        ]
    return Result(rows)


def _open_many_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class _World:
    """A catalog with a tenant, its token, and the folder of a run."""

    def __init__(self, folder: Path, feeds: int) -> None:
        self.folder = DataFolder(folder / "data").make()
        self.catalog = str(folder / "headgate.db")
        script = "register stream Tickets from post (n int, title text);" + "".join(
            f"create feed F{n} from Tickets where n = {n};" for n in range(feeds)
        )
        with Catalog.open(self.catalog) as catalog:
            catalog.add_tenant("acme")
            acme = catalog.acting_as(Principal("acme", "bench", frozenset(Scope)))
            acme.apply(parse_script(script))
            self.token = acme.issue_token([Scope.READ, Scope.POST]).text
            self.links = [acme.create_link(f"F{n}").token for n in range(min(feeds, LINKS))]
            definitions = catalog.definitions()
            self.numbers = [definitions.number_of(f"acme.F{n}") for n in range(feeds)]
        self.sequencer = Sequencer(self.folder.storage)
        self._commits = 0
        self.commit(0, [])

    @contextmanager
    def serving(self) -> Iterator[tuple[subprocess.Popen[str], Target]]:
        command = [sys.executable, "-m", "headgate", "serve", "--address", "127.0.0.1:0"]
        command += ["--catalog", self.catalog, "--folder", str(self.folder.path)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            port = int(server.stdout.readline().rpartition(":")[2])
            yield server, Target("127.0.0.1", port, self.token)
        finally:
            server.terminate()
            server.wait(60)
            server.stdout.close()

    def commit(self, number: int, feeds: list[int], content: str = "") -> None:
        """An item that these feeds have, as a run commits it."""
        now = datetime.now(UTC)
        attributes = {"title": f"ticket {number}", "content": content}
        items = [Item(str(number), "acme.Tickets", now, attributes)]
        writer = LogFileWriter(self.folder.storage, f"post-{group_of(FEED_SCHEMA)}")
        lists = {"feeds": pa.array([sorted(feeds)], pa.list_(pa.int32()))}
        writer.write(items_to_arrow(items, FEED_SCHEMA), lists)
        self._commits += 1
        self.sequencer.commit(Origin("bench", "e", self._commits), writer.close())


# --- posts ----------------------------------------------------------------------------------------


def _events(number: int, count: int) -> bytes:
    first = number * count
    return b"\n".join(b'{"n": %d, "title": "ticket"}' % n for n in range(first, first + count))


def _post_rows(world: _World, settings: Settings, say: Say) -> list[Row]:
    def posts(size: int, connections: int) -> PostLoad:
        with world.serving() as (_, target):
            return asyncio.run(
                post(
                    target,
                    POST_PATH,
                    lambda number: _events(number, size),
                    connections=connections,
                    for_s=settings.post_s,
                )
            )

    say("posting in batches")
    batches = posts(BATCH, 4)
    items_per_s = len(batches.acknowledged) * BATCH / batches.seconds
    say("posting single events")
    single = posts(1, settings.connections)
    posts_per_s = len(single.acknowledged) / single.seconds
    return [
        Row(
            "events posted in batches",
            f"{BATCH:,} events a request, 4 connections, one service process",
            f"{items_per_s:,.0f} events/s, {batches.refused} refused",
            f"≥ {ITEMS_PER_S_MIN:,} events/s",
            items_per_s >= ITEMS_PER_S_MIN,
        ),
        Row(
            "events posted one by one",
            f"{settings.connections} connections, one service process",
            f"{posts_per_s:,.0f} posts/s, {single.refused} refused",
            f"≥ {POSTS_PER_S_MIN:,} posts/s",
            posts_per_s >= POSTS_PER_S_MIN,
        ),
    ]


def _kill_row(world: _World, settings: Settings, say: Say) -> Row:
    """Events have numbers of their own, so that the spool shows which of them it has."""
    say("kill -9 while events are posted")
    first = 10**9

    def body(number: int) -> bytes:
        return b'{"n": %d}' % (first + number)

    async def post_and_kill(server: subprocess.Popen[str], target: Target) -> PostLoad:
        load = asyncio.create_task(
            post(target, POST_PATH, body, connections=settings.connections, for_s=60.0)
        )
        await asyncio.sleep(settings.post_s / 2)
        server.send_signal(signal.SIGKILL)
        return await load

    with world.serving() as (server, target):
        load = asyncio.run(post_and_kill(server, target))
    (folder,) = world.folder.sources.glob("post-*/spool")
    spool = Spool(folder)
    spool.open()
    spooled = [
        number
        for frame in spool.frames(spool.first(), spool.end())
        for line in frame.lines.splitlines()
        if (number := json.loads(line)["n"] - first) >= 0
    ]
    lost = len(set(load.acknowledged) - set(spooled))
    twice = len(spooled) - len(set(spooled))
    return Row(
        "kill -9 of the service",
        f"{len(load.acknowledged):,} posts were acknowledged before",
        f"{lost} lost, {twice} twice",
        "0 lost, 0 twice",
        lost == twice == 0,
    )


# --- live streams ---------------------------------------------------------------------------------


def _live_rows(world: _World, settings: Settings, say: Say) -> list[Row]:
    say(f"{settings.clients:,} clients of live streams")
    with world.serving() as (server, target):
        before = _resident(server.pid)
        delays_ms, expected, after = asyncio.run(_follow_all(world, settings, server.pid, target))
    each = (after - before) / settings.clients
    p50, p99 = np.percentile(delays_ms, [50, 99]) if delays_ms else (np.inf, np.inf)
    is_complete = len(delays_ms) == expected
    workload = f"{settings.clients:,} clients, {settings.feeds:,} feeds, {expected:,} events"
    return [
        Row(
            "commit → event at the client",
            workload,
            f"p50 {p50:,.0f} ms, p99 {p99:,.0f} ms; {len(delays_ms):,} arrived",
            f"p99 ≤ {P99_MS_MAX:.0f} ms, all arrive",
            bool(p99 <= P99_MS_MAX and is_complete),
        ),
        Row(
            "memory of a client",
            f"{settings.clients:,} clients",
            f"{each / 1e3:,.0f} kB",
            f"≤ {CLIENT_BYTES_MAX / 1e3:.0f} kB",
            each <= CLIENT_BYTES_MAX,
        ),
    ]


async def _follow_all(
    world: _World, settings: Settings, pid: int, target: Target
) -> tuple[list[float], int, int]:
    """The delays, how many events there should be, and the memory of the service at the end."""
    committed: dict[str, float] = {}
    delays_ms: list[float] = []

    def on_item(line: bytes) -> None:
        now = time.perf_counter()
        number = json.loads(line[6:])["id"]
        delays_ms.append(1e3 * (now - committed[number]))

    ready = asyncio.Semaphore(0)
    streams = [
        asyncio.create_task(follow(target, f"/v1/feeds/F{n % settings.feeds}/live", on_item, ready))
        for n in range(settings.clients)
    ]
    for _ in streams:
        await ready.acquire()
    per_commit = max(settings.feeds // 20, 1)
    expected = 0
    for n in range(1, settings.commits + 1):
        feeds = [(n * per_commit + k) % settings.feeds for k in range(per_commit)]
        numbers = [world.numbers[each] for each in feeds]
        committed[str(n)] = time.perf_counter()
        await asyncio.to_thread(world.commit, n, numbers)
        expected += per_commit * (settings.clients // settings.feeds)
        await asyncio.sleep(0.5)
    until = time.perf_counter() + 30
    while len(delays_ms) < expected and time.perf_counter() < until:
        await asyncio.sleep(0.1)
    after = _resident(pid)
    for each in streams:
        each.cancel()
    await asyncio.gather(*streams, return_exceptions=True)
    return delays_ms, expected, after


def _resident(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    line = next(each for each in text.splitlines() if each.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


# --- documents ------------------------------------------------------------------------------------


def _document_rows(world: _World, settings: Settings, say: Say) -> list[Row]:
    say("documents of a feed")
    content = (
        "<p>Rome and back, <b>three nights</b>, <a href='https://a.example/'>here</a>.</p>" * 12
    )
    for n in range(DOCUMENT_ITEMS):
        world.commit(10**6 + n, world.numbers[:1], content)
    paths, times = [f"/f/{each}.atom" for each in world.links], settings.requests
    path = paths[0]
    with world.serving() as (server, target):

        def cost_ms(path: str, header: str = "", count: int = times) -> tuple[float, int, bytes]:
            before = _cpu_s(server.pid)
            status, head = asyncio.run(get(target, path, header=header, times=count))
            return 1e3 * (_cpu_s(server.pid) - before) / count, status, head

        _, _, head = cost_ms(path, count=1)
        etag = next(line for line in head.decode().split("\r\n") if line.startswith("etag:"))
        known = etag.replace("etag:", "if-none-match:")
        unchanged_ms, status, _ = cost_ms(path, known)

        def visits_ms() -> float:
            """A client of its own for each link."""
            return float(np.mean([cost_ms(each, "if-none-match: *", 1)[0] for each in paths[1:]]))

        first_ms = visits_ms()
        time.sleep(2 * max(LOOK_S, PRINCIPAL_S))  # until nothing is remembered
        forgotten_ms = visits_ms()
        whole_ms, _, head = cost_ms(path)
        rendered_ms = np.mean([cost_ms(f"{path}?n={n}", count=1)[0] for n in range(40, 51)])
    size = int(head.lower().partition(b"content-length:")[2].split()[0])
    return [
        Row(
            "a document that is not new",
            f"If-None-Match, {times:,} requests over one connection",
            f"{unchanged_ms:.2f} ms of CPU",
            f"≤ {UNCHANGED_MS_MAX:.0f} ms of CPU",
            status == 304 and unchanged_ms <= UNCHANGED_MS_MAX,
        ),
        Row(
            "the same by a link that is not remembered",
            f"{len(paths) - 1} links, a connection for each",
            f"{forgotten_ms:.2f} ms of CPU; {first_ms:.2f} ms when it is used for the first time, "
            "which is noted in the catalog",
            f"≤ {UNCHANGED_MS_MAX:.0f} ms of CPU",
            forgotten_ms <= UNCHANGED_MS_MAX,
        ),
        Row(
            "a whole document",
            f"Atom, {DOCUMENT_ITEMS} items, {size / 1e3:,.0f} kB",
            f"{whole_ms:.2f} ms of CPU, {rendered_ms:.0f} ms if it is new to the service",
        ),
    ]


def _cpu_s(pid: int) -> float:
    """What a process has used so far, by its threads."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in threads) / 1e9
