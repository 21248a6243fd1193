"""What can be known of a run from its folder, its log and its databases, without the run.

    FolderReader.look() ──► FolderStatus ──► /metrics of a run and of the service, /readyz,
                                             headgate status

Each part is read by itself. One that cannot be read is None, and `unreadable` says why: who looks
is about to find out what is broken, and the other parts help.

Cost: some queries, and once a minute a walk over the folder for the sizes in it. A reader keeps
its connections and its place in the log, so a scrape reads what is new.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from sqlalchemy import func, or_, select

from headgate.acquire.inbox_tables import BrokenFeed, broken_feeds, count_feeds
from headgate.catalog.catalog import Catalog
from headgate.catalog.limits import Suspension
from headgate.deliver import delivery_tables as tables
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_status import NO_DELIVERIES, DeliveryCounts, count_deliveries
from headgate.model.errors import HeadgateError
from headgate.pipeline.heartbeat import Heartbeat, RunState, read_heartbeat, state_of
from headgate.store.data_folder import DataFolder
from headgate.store.log import LogReader
from headgate.store.log_state import LogState

DUE_S = 600.0
"""A web feed that might have been fetched so long ago is late."""
SIZES_S = 60.0
SUBSCRIPTIONS_MAX = 10_000
"""Of so many subscriptions the outputs are looked up; messages of others count as 'other'."""

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class LogFigures:
    items: int
    files: int
    bytes: int
    """Of items and their index."""
    next_position: int
    arrived_s: float
    """The instant of the last entry."""


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """Of web feeds. Other sources have no state of their own but errors (heartbeat.py)."""

    feeds: int
    due: int
    """Those that might have been fetched ten minutes ago, and were not."""
    untried: int
    """Those that were never fetched."""
    broken: tuple[BrokenFeed, ...]


@dataclass(frozen=True, slots=True)
class DeliveryFigures:
    counts: DeliveryCounts
    workers: int
    """Workers that are alive."""
    behind: int = 0
    """Items of the log that the slowest slot has not reached."""
    behind_s: float = 0.0
    """How long ago the first of them arrived."""
    oldest_s: float = 0.0
    """How long ago the oldest item arrived that is due and not delivered; 0: there is none."""
    waiting: Mapping[str, int] = field(default_factory=dict)
    """By output: messages that were refused and are tried again, and receivers that are down."""
    dead: Mapping[str, int] = field(default_factory=dict)
    """By output: messages that were given up."""


@dataclass(frozen=True, slots=True)
class DiskSpace:
    free: int
    total: int


@dataclass(frozen=True, slots=True)
class StorageFigures:
    bytes: Mapping[str, int]
    """By part of the folder: log, state, spool."""
    disks: Mapping[str, DiskSpace]
    """Of the file systems of the folder and of the outputs."""


@dataclass(frozen=True, slots=True)
class FolderStatus:
    at_s: float
    heartbeat: Heartbeat | None
    log: LogFigures | None
    sources: SourceFigures | None
    delivery: DeliveryFigures | None
    storage: StorageFigures | None
    suspended: Mapping[str, Suspension]
    unreadable: Mapping[str, str]

    @property
    def run_state(self) -> RunState:
        return state_of(self.heartbeat, self.at_s)


class FolderReader:
    """Thread-safe: one look at a time."""

    def __init__(
        self,
        folder: DataFolder,
        catalog: Catalog,
        *,
        output: Path | None = None,
        state: Callable[[], LogState] | None = None,
    ) -> None:
        """A run gives the state of the log that it has; others read the log. Without `output` it is
        the folder of which the heartbeat speaks."""
        self._folder, self._catalog, self._output = folder, catalog, output
        self._state = state or self._read_log
        self._log: LogReader | None = None
        self._database: DeliveryDatabase | None = None
        self._sizes: tuple[float, dict[str, int]] = (0.0, {})
        self._lock = threading.Lock()

    def close(self) -> None:
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def __enter__(self) -> FolderReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def look(self) -> FolderStatus:
        with self._lock:
            unreadable: dict[str, str] = {}
            now_s = time.time()

            def part(name: str, read: Callable[[], Part]) -> Part | None:
                try:
                    return read()
                except (HeadgateError, OSError) as error:
                    unreadable[name] = str(error)
                    return None

            heartbeat = read_heartbeat(self._folder)
            state = part("log", self._state)
            return FolderStatus(
                at_s=now_s,
                heartbeat=heartbeat,
                log=None if state is None else log_figures(state),
                sources=part("sources", lambda: self._sources(now_s)),
                delivery=part("delivery", lambda: self._delivery(state or LogState(), now_s)),
                storage=part("storage", lambda: self._storage(heartbeat)),
                suspended=part("catalog", self._catalog.suspended) or {},
                unreadable=unreadable,
            )

    def _read_log(self) -> LogState:
        if self._log is None:
            self._log = LogReader(self._folder.storage)
        self._log.refresh()
        return self._log.state

    def _sources(self, now_s: float) -> SourceFigures:
        folders = sorted(self._folder.sources.glob("feeds-*"))
        counts = [count_feeds(each, due_before=now_s - DUE_S) for each in folders]
        return SourceFigures(
            feeds=sum(each.feeds for each in counts),
            due=sum(each.due for each in counts),
            untried=sum(each.untried for each in counts),
            broken=tuple(feed for folder in folders for feed in broken_feeds(folder)),
        )

    def _delivery(self, state: LogState, now_s: float) -> DeliveryFigures:
        if self._database is None:
            if not self._folder.has_deliveries:
                return DeliveryFigures(NO_DELIVERIES, 0)
            self._database = DeliveryDatabase(self._folder.delivery_database)
        return delivery_figures(self._database, self._catalog, state, now_s)

    def _storage(self, heartbeat: Heartbeat | None) -> StorageFigures:
        until, sizes = self._sizes
        if time.monotonic() >= until:
            sizes = folder_sizes(self._folder)
            self._sizes = (time.monotonic() + SIZES_S, sizes)
        output = self._output or (Path(heartbeat.output) if heartbeat else None)
        places = {"folder": self._folder.path, "output": output}
        disks = {}
        for name, path in places.items():
            with suppress(FileNotFoundError):  # the outputs may be on another machine
                if path is not None:
                    usage = shutil.disk_usage(path)
                    disks[name] = DiskSpace(usage.free, usage.total)
        return StorageFigures(sizes, disks)


def log_figures(state: LogState) -> LogFigures:
    return LogFigures(
        items=sum(each.rows for each in state.files),
        files=len(state.files),
        bytes=sum(each.bytes for each in state.files),
        next_position=state.next_position,
        arrived_s=state.arrived_us / 1e6,
    )


def waiting_s(state: LogState, position: int, now_s: float) -> float:
    """How long ago the first item from a position on arrived; 0 if there is none. Of an item in a
    merged file it is known to the hour only, and then rather too long."""
    for each in state.files:
        if each.end > position:
            return max(now_s - each.arrived_us / 1e6, 0.0)
    return 0.0


def delivery_figures(
    database: DeliveryDatabase, catalog: Catalog, state: LogState, now_s: float
) -> DeliveryFigures:
    counts = count_deliveries(database)
    lags, retries, dead = tables.lags.c, tables.retries.c, tables.dead.c
    is_down = lags.halted.is_(None) & (lags.failures > 0)
    is_due = lags.halted.is_(None) & or_(lags.failures > 0, lags.not_before <= now_s)
    database_now_s = database.now_s()
    with database.reading() as connection:
        alive = tables.workers.c.seen_until > database_now_s
        workers = connection.scalar(select(func.count()).where(alive)) or 0
        oldest = [
            connection.scalar(select(func.min(retries.first))),
            connection.scalar(select(func.min(lags.position)).where(is_due)),
        ]
        refused = select(retries.subscription, func.count()).group_by(retries.subscription)
        waiting = Counter({int(id_): int(n) for id_, n in connection.execute(refused)})
        waiting.update(connection.scalars(select(lags.subscription).where(is_down)).all())
        given_up = select(dead.subscription, func.count()).group_by(dead.subscription)
        letters = Counter({int(id_): int(n) for id_, n in connection.execute(given_up)})
    # Nothing was ever delivered: then delivery begins with the first item of the log.
    cursor = state.first_position if counts.cursor is None else counts.cursor
    behind = max(state.next_position - cursor, 0)
    positions = [int(each) for each in oldest if each is not None] + ([cursor] if behind else [])
    return DeliveryFigures(
        counts=counts,
        workers=workers,
        behind=behind,
        behind_s=waiting_s(state, cursor, now_s) if behind else 0.0,
        oldest_s=waiting_s(state, min(positions), now_s) if positions else 0.0,
        waiting=_by_output(catalog, waiting),
        dead=_by_output(catalog, letters),
    )


def _by_output(catalog: Catalog, counts: Counter[int]) -> dict[str, int]:
    by_output: Counter[str] = Counter()
    known = dict(counts.most_common(SUBSCRIPTIONS_MAX))
    outputs = catalog.outputs_of_ids(list(known)) if known else {}
    for id_, count in counts.items():
        by_output[outputs[id_].output_kind if id_ in outputs else "other"] += count
    return dict(by_output)


def folder_sizes(folder: DataFolder) -> dict[str, int]:
    """Bytes of the parts of a folder. Items are in the figures of the log; a log at a URL is not
    listed."""
    names = os.listdir(folder.path) if folder.path.is_dir() else []
    sizes = {name: _size(folder.path / name) for name in names if name != "data"}
    spool = sum(_size(each) for each in folder.sources.glob("*/spool"))
    log = sizes.pop("log", 0)
    parts = {"state": sum(sizes.values()) - spool, "spool": spool}
    return parts if folder.log else {"log": log, **parts}


def _size(path: Path) -> int:
    with suppress(FileNotFoundError):
        return sum(_sizes_below(path)) if path.is_dir() else path.stat().st_size
    return 0


def _sizes_below(folder: str | Path) -> Iterator[int]:
    try:
        with os.scandir(folder) as entries:
            for each in entries:
                with suppress(FileNotFoundError):  # removed in the meantime
                    if each.is_dir(follow_symlinks=False):
                        yield from _sizes_below(each.path)
                    else:
                        yield each.stat(follow_symlinks=False).st_size
    except (FileNotFoundError, NotADirectoryError):
        return
