"""What arrives in the log, read once for all clients that follow it.

    the log ──► _advance: the items of all followed feeds since the last time ──► recent batches
                                                                              ──► their clients wake

Batches are kept while they have at most RECENT_MAX items. What is older, or came before a feed was
followed, clients read from the log. A client whose feed has nothing new is not woken, and looks at
no batch: from `quiet_from` on there is nothing for it. Who wants to know only that something has
arrived, whatever it is, is a watcher (reading_live.py).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.service.feed_items import item_of
from headgate.service.log_access import LogAccess
from headgate.service.shared_looks import SharedLooks
from headgate.store.log_items import LoggedItem
from headgate.store.tail import key_of

POLL_S = 0.1
AGAIN_S = 1.0
VERSION_S = 1.0
KEYS_MAX = 100_000
RECENT_MAX = 20_000
log = logging.getLogger("headgate.service")
LiveKey = tuple[str, int | str]
"""A tenant, and the key of a feed or source in the log: what is shown of an item differs from
tenant to tenant."""


@dataclass(frozen=True, slots=True)
class LiveItem:
    position: int
    json: bytes


@dataclass(frozen=True, slots=True)
class LiveBatch:
    """What has arrived between two positions for the feeds that were followed then."""

    start: int
    end: int
    items: dict[LiveKey, list[LiveItem]]
    """Of those that have any."""

    @property
    def size(self) -> int:
        return 1 + sum(map(len, self.items.values()))


@dataclass(slots=True)
class Followed:
    """A feed that clients follow."""

    catalog: TenantCatalog
    clients: int = 0
    since: int | None = None
    """The batches from this position on have its items; None: none has."""
    quiet_from: int = 0
    """From this position on none has any."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)


class LiveHub:
    """For one event loop."""

    def __init__(self, log: LogAccess) -> None:
        self._log = log
        self._followed: dict[LiveKey, Followed] = {}
        self._recent: deque[LiveBatch] = deque()
        self._size = 0
        self._position: int | None = None  # what is below it was read; None: not begun
        self._task: asyncio.Task[None] | None = None
        self.watchers = 0
        self.arrived = asyncio.Event()
        """What arrives next sets it, and puts another one in its place."""
        # Its own: thousands of requests may wait for the threads that they share.
        self._thread = ThreadPoolExecutor(1, "live")
        self._keys: dict[tuple[str, str], tuple[LiveKey, int]] = {}
        self._looks: SharedLooks[tuple[LiveKey, int]] = SharedLooks()
        self.version = -1
        """Of the catalog, as it was at most VERSION_S and a look ago."""
        self._version_at = 0.0

    @contextmanager
    def following(self, key: LiveKey, catalog: TenantCatalog) -> Iterator[Followed]:
        followed = self._followed.setdefault(key, Followed(catalog))
        followed.clients += 1
        self._start()
        try:
            yield followed
        finally:
            followed.clients -= 1
            if not followed.clients:
                del self._followed[key]

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While it lasts, `arrived` is set."""
        self.watchers += 1
        self._start()
        try:
            yield
        finally:
            self.watchers -= 1

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._forget()
            self._task = asyncio.create_task(self._follow())

    @property
    def position(self) -> int | None:
        """What is below it was read; None: the hub does not run."""
        return self._position if self._followed else None

    async def key_of(self, name: str, catalog: TenantCatalog) -> LiveKey:
        """The key of a feed or source as a tenant calls it. It is remembered with the version of
        the catalog at which that was so; many that ask at a time wait for one look."""
        place = catalog.principal.tenant, name
        known = self._keys.get(place)
        if known is not None and known[1] == self.version and self._followed:
            return known[0]
        found = await self._looks.look(place, lambda: _look_up(name, catalog))
        if len(self._keys) >= KEYS_MAX:
            self._keys.clear()
        self._keys[place] = found
        return found[0]

    def _forget(self) -> None:
        self._recent.clear()
        self._size, self._position = 0, None
        for each in self._followed.values():
            each.since = None

    @property
    def clients(self) -> int:
        return sum(each.clients for each in self._followed.values())

    def after(self, key: LiveKey, position: int) -> tuple[list[LiveItem], int] | None:
        """What has arrived for a followed feed from a position on, and the position behind it; None
        if that has to be read from the log. The first batch wakes all."""
        if self._position is None:
            return [], position
        if position >= self._position:
            return [], position
        followed = self._followed[key]
        if followed.since is None or position < followed.since:
            return None
        if position >= followed.quiet_from:
            return [], self._position
        if self._recent[0].start > position:
            return None
        items: list[LiveItem] = []
        for batch in reversed(self._recent):
            if batch.end <= position:
                break
            found = batch.items.get(key, ())
            items[:0] = [each for each in found if each.position >= position]
        return items, self._position

    async def _follow(self) -> None:
        """As long as there are clients."""
        while self._followed or self.watchers:
            batch = None
            catalogs = {key: each.catalog for key, each in self._followed.items()}
            try:
                batch = await asyncio.get_running_loop().run_in_executor(
                    self._thread, self._advance, catalogs
                )
            except Exception as error:  # clients wait, and the next look may succeed
                log.warning("what has arrived cannot be read: %s", error, exc_info=error)
                await asyncio.sleep(AGAIN_S)
            if batch is None:
                await asyncio.sleep(POLL_S)
            else:
                self._add(batch, catalogs.keys())

    def _advance(self, catalogs: Mapping[LiveKey, TenantCatalog]) -> LiveBatch | None:
        """What has arrived since the last time, at first nothing; None if nothing has. An item is
        encoded once for a tenant, however many of its feeds have it."""
        if catalogs and time.monotonic() > self._version_at + VERSION_S:
            self._version_at = time.monotonic()
            self.version = next(iter(catalogs.values())).version()
        end = self._log.end()
        start = end if self._position is None else self._position
        if self._position == end:
            return None
        found = self._log.between({key for _, key in catalogs}, start, end)
        keys = [each for each in catalogs if each[1] in found]
        items: dict[LiveKey, list[LiveItem]] = {}
        for tenant in {tenant for tenant, _ in keys}:
            own = [each for each in keys if each[0] == tenant]
            rows = {row.position: row for each in own for row in found[each[1]]}
            json = {each.position: each for each in encoded(rows.values(), catalogs[own[0]])}
            for each in own:
                items[each] = [json[row.position] for row in found[each[1]]]
        return LiveBatch(start, end, items)

    def _add(self, batch: LiveBatch, read: Collection[LiveKey]) -> None:
        """A batch with the items of these feeds."""
        self._recent.append(batch)
        self._size += batch.size
        while len(self._recent) > 1 and self._size > RECENT_MAX:
            self._size -= self._recent.popleft().size
        is_first, self._position = self._position is None, batch.end
        watched, self.arrived = self.arrived, asyncio.Event()
        watched.set()
        for key, followed in self._followed.items():
            if key not in read:
                followed.since = None
            elif followed.since is None:
                followed.since, followed.quiet_from = batch.start, batch.start
            if key in batch.items:
                followed.quiet_from = batch.end
            if is_first or key in batch.items or followed.since is None:
                arrived, followed.arrived = followed.arrived, asyncio.Event()
                arrived.set()


def _look_up(name: str, catalog: TenantCatalog) -> tuple[LiveKey, int]:
    with catalog.looking_up() as definitions:
        return (catalog.principal.tenant, key_of(name, definitions)), definitions.version


def encoded(rows: Iterable[LoggedItem], catalog: TenantCatalog) -> list[LiveItem]:
    rows = list(rows)
    if not rows:
        return []
    with catalog.looking_up() as definitions:
        return [
            LiveItem(row.position, item_of(row, definitions).model_dump_json().encode())
            for row in rows
        ]
