"""The next feed to fetch: the refresh queue, a budget, and at most one fetch per host at a time.

    refresh queue ──► next due ──► is its host free? ──► a fetch
                                      │ no
                                      ▼
                                  held for the host ──► … as soon as the host is free

A worker that waited for a busy host (connections.py) could fetch no other feed, and a host with a
thousand feeds would block every worker. So a feed whose host is busy is held here, and no
worker waits. The budget is a token bucket.

Cost: that of refresh_queue.py, and one check per host.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from headgate.acquire.inbox_tables import ListedFeed
from headgate.acquire.refresh_queue import RefreshPolicy, RefreshQueue
from headgate.acquire.refresh_state import RefreshState

HELD_PER_CALL_MAX = 64
"""The most feeds that one call of `take` holds back."""
HOSTS_MAX = 10_000


@dataclass(slots=True)
class _Host:
    free_at: float = 0.0
    busy: bool = False
    held: deque[str] = field(default_factory=deque)


class FetchScheduler:
    """Not thread-safe: the acquirer has a lock around it."""

    def __init__(
        self, policy: RefreshPolicy, *, fetches_per_minute: float, at_once: int, host_delay_s: float
    ) -> None:
        self._refresh = RefreshQueue(policy=policy)
        self._per_s = fetches_per_minute / 60.0
        self._tokens_max = max(float(at_once), self._per_s)
        self._tokens = self._tokens_max
        self._filled_at: float | None = None
        self._host_delay_s = host_delay_s
        self._feeds: dict[str, ListedFeed] = {}
        self._hosts: dict[str, _Host] = {}
        self._held: set[str] = set()
        self._active: set[str] = set()

    def __len__(self) -> int:
        return len(self._feeds)

    def put(self, feed: ListedFeed, state: RefreshState) -> None:
        """Add a feed, or change its URL or weight."""
        before = self._feeds.get(feed.name)
        self._feeds[feed.name] = feed
        if before is None or before.url != feed.url:
            self._refresh.put(feed.name, replace(state, weight=feed.weight))
        elif before.weight != feed.weight:
            self._refresh.reweigh(feed.name, feed.weight)

    def remove(self, name: str) -> None:
        self._refresh.remove(name)
        self._feeds.pop(name, None)

    @property
    def feeds(self) -> Mapping[str, ListedFeed]:
        return self._feeds

    def state(self, name: str) -> RefreshState:
        """The state of a feed; the initial state if it was removed."""
        return self._refresh.state(name) if name in self._feeds else RefreshState()

    def next_at(self, state: RefreshState) -> float:
        """The earliest time of the next fetch of a feed in this state."""
        return self._refresh.earliest(state)

    def take(self, now: float) -> ListedFeed | None:
        """The feed to fetch now, if there is one. The caller reports the end with `done`."""
        self._fill(now)
        if self._tokens < 1.0:
            return None
        name = self._next_held(now) or self._next_due(now)
        if name is None:
            return None
        self._tokens -= 1.0
        feed = self._feeds[name]
        host = self._host(feed.url)
        host.busy, host.free_at = True, now + self._host_delay_s
        self._active.add(name)
        return feed

    def done(self, feed: ListedFeed, state: RefreshState) -> None:
        """The fetch has ended; `state` is the new state of the feed."""
        self._active.discard(feed.name)
        self._host(feed.url).busy = False
        current = self._feeds.get(feed.name)
        if current is not None:
            # The URL may have changed during the fetch.
            new_state = state if current.url == feed.url else self._refresh.state(feed.name)
            self._refresh.put(feed.name, replace(new_state, weight=current.weight))

    def wake_at(self, now: float) -> float | None:
        """When `take` may succeed, if no fetch ends before; None if it has to wait for one."""
        if self._tokens < 1.0:
            return now + (1.0 - self._tokens) / self._per_s if self._per_s > 0 else None
        times = [each.free_at for each in self._hosts.values() if each.held and not each.busy]
        due = self._refresh.wake_at()
        return min([*times, *([] if due is None else [due])], default=None)

    def _fill(self, now: float) -> None:
        passed_s = max(now - (now if self._filled_at is None else self._filled_at), 0.0)
        self._tokens = min(self._tokens + passed_s * self._per_s, self._tokens_max)
        self._filled_at = now

    def _next_held(self, now: float) -> str | None:
        for host in self._hosts.values():
            while host.held and not host.busy and host.free_at <= now:
                name = host.held.popleft()
                self._held.discard(name)
                if name in self._feeds:
                    return name
        return None

    def _next_due(self, now: float) -> str | None:
        """The next due feed whose host is free; the others are held."""
        for _ in range(HELD_PER_CALL_MAX):
            due = self._refresh.next_due(now, 1)
            if not due:
                return None
            name = due[0]
            if name in self._held or name in self._active:
                continue  # its lease has ended, but the fetch has not
            host = self._host(self._feeds[name].url)
            if not host.busy and host.free_at <= now and not host.held:
                return name
            host.held.append(name)
            self._held.add(name)
        return None

    def _host(self, url: str) -> _Host:
        if len(self._hosts) > HOSTS_MAX:
            self._hosts = {
                name: host for name, host in self._hosts.items() if host.busy or host.held
            }
        return self._hosts.setdefault(urlsplit(url).netloc.casefold(), _Host())
