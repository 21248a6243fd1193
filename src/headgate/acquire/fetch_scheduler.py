"""The next feed to fetch: the refresh queue, a budget, one fetch per host, a share per address.

    refresh queue ──► next due ──► is its host free, has its address room? ──► a fetch
                                      │ no                                      │
                                      ▼                                         │ its address
                                  held for the address ◄────── postponed ◄──────┘ has no room
                                      └──► … as soon as there is room

A worker that waited for a busy host could fetch no other feed, and a host with a thousand feeds, or
an address with a thousand hosts, would block every worker. So a feed whose host is busy, or whose
address has its share of workers (address_shares.py), is held here, and no worker waits. The budget
is a token bucket.

An address is known when a name has been resolved, which is when the fetch connects. So the network
of a host's last fetch is remembered, and counted when the next one begins. A fetch asks again
before it uses an address (`admit`). If that has no room, the worker is given back at once, and the
feed is held for that address (`postpone`), which is no failure of the feed. A fetch that is
redirected leaves one address and enters another; it keeps the one that it began with.

Held feeds take turns: by address, within an address by host. They, the feeds that wait for a worker
for hosts that are not quick, and the feeds that have just become due take turns too. So an address
with a thousand due feeds delays no other by more than its turn.

Cost: that of refresh_queue.py, and one check per address with held feeds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from headgate.acquire.address_shares import SLOW_S, AddressShares, network_of
from headgate.acquire.inbox_tables import ListedFeed
from headgate.acquire.refresh_queue import RefreshPolicy, RefreshQueue
from headgate.acquire.refresh_state import RefreshState

HELD_PER_CALL_MAX = 1_000
"""The most feeds that one call of `take` holds back."""
POSTPONED_MAX = 20
"""After being postponed so often in a row, a fetch is to be reported as failed."""


@dataclass(slots=True)
class _Host:
    feeds: int = 0
    free_at: float = 0.0
    busy: bool = False
    is_quick: bool = False
    network: str | None = None
    """That of its last fetch."""
    held: deque[str] = field(default_factory=deque)


@dataclass(slots=True)
class _Fetch:
    """A fetch that is under way."""

    host: str
    began: float
    claimed: str | None
    """The network that it was expected to use, and is counted for until it ends."""
    current: str | None = None
    since: float = 0.0
    refused: str | None = None
    took_s: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Place:
    """The hosts with held feeds of one network, quick ones and others; the first is next."""

    quick: dict[str, None] = field(default_factory=dict)
    others: dict[str, None] = field(default_factory=dict)
    quick_first: bool = True


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
        self._shares = AddressShares(at_once)
        self._fetches: dict[str, _Fetch] = {}
        self._postponed: dict[str, int] = {}
        self._places: dict[str, _Place] = {}
        self._backlog: deque[str] = deque()
        """Feeds that wait for a worker for hosts that are not quick."""
        self._held: set[str] = set()
        self._turn = 0
        self._has_more = False

    def __len__(self) -> int:
        return len(self._feeds)

    def put(self, feed: ListedFeed, state: RefreshState) -> None:
        """Add a feed, or change its URL or weight."""
        before = self._feeds.get(feed.name)
        self._feeds[feed.name] = feed
        if before is None or before.url != feed.url:
            self._held.discard(feed.name)
            self._hosts.setdefault(_key(feed), _Host()).feeds += 1
            if before is not None:
                self._release(_key(before))
            self._refresh.put(feed.name, replace(state, weight=feed.weight))
        elif before.weight != feed.weight:
            self._refresh.reweigh(feed.name, feed.weight)

    def retry(self, name: str, now: float) -> None:
        """Fetch a feed as soon as its host, its address and the budget allow, whatever its own
        time is. One that is being fetched, or held already, stays where it is."""
        if name in self._feeds and name not in self._fetches and name not in self._held:
            self._refresh.bring_forward(name, now)

    def remove(self, name: str) -> None:
        self._refresh.remove(name)
        self._postponed.pop(name, None)
        self._held.discard(name)
        if (feed := self._feeds.pop(name, None)) is not None:
            self._release(_key(feed))

    def _release(self, key: str) -> None:
        host = self._hosts[key]
        host.feeds -= 1
        if not host.feeds and not host.busy:
            self._stop_waiting(key)
            del self._hosts[key]

    @property
    def feeds(self) -> Mapping[str, ListedFeed]:
        return self._feeds

    def state(self, name: str) -> RefreshState:
        """The state of a feed; the initial state if it was removed."""
        return self._refresh.state(name) if name in self._feeds else RefreshState()

    def next_at(self, state: RefreshState) -> float:
        """The earliest time of the next fetch of a feed in this state."""
        return self._refresh.earliest(state)

    # --- fetches ----------------------------------------------------------------------------------

    def take(self, now: float) -> ListedFeed | None:
        """The feed to fetch now, if there is one. The caller reports the end with `done` or
        `postpone`."""
        self._fill(now)
        self._has_more = False
        if self._tokens < 1.0:
            return None
        ways = (self._next_held, self._next_of_backlog, self._next_due)
        for number in range(len(ways)):
            name = ways[(self._turn + number) % len(ways)](now)
            if name is not None:
                self._turn += number + 1
                return self._begin(name, now)
        return None

    def _begin(self, name: str, now: float) -> ListedFeed:
        self._tokens -= 1.0
        feed = self._feeds[name]
        key = _key(feed)
        host = self._hosts[key]
        host.busy, host.free_at = True, now + self._host_delay_s
        self._shares.begin(name, is_quick=host.is_quick)
        if host.network is not None:
            has_entered = self._shares.enter(name, host.network, now)
            assert has_entered, f"{host.network} has no room for '{name}'"
        self._fetches[name] = _Fetch(key, now, host.network)
        return feed

    def admit(self, name: str, address: str, now: float) -> bool:
        """Whether the fetch of this feed may use this address now; it is counted then."""
        fetch, network = self._fetches[name], network_of(address)
        if network == fetch.current:
            return True
        if network != fetch.claimed and not self._shares.enter(name, network, now):
            fetch.refused = network
            return False
        self._leave_current(name, fetch, now)
        fetch.current, fetch.since = network, now
        return True

    def _leave_current(self, name: str, fetch: _Fetch, now: float) -> None:
        network = fetch.current
        if network is not None:
            fetch.took_s[network] = fetch.took_s.get(network, 0.0) + now - fetch.since
            if network != fetch.claimed:
                self._shares.leave(name, network, took_s=fetch.took_s[network])

    def done(self, feed: ListedFeed, state: RefreshState, now: float) -> None:
        """The fetch has ended; `state` is the new state of the feed."""
        fetch = self._end(feed.name, now)
        self._postponed.pop(feed.name, None)
        if (host := self._hosts.get(fetch.host)) is not None:
            self._learn(fetch.host, host, fetch, is_quick=now - fetch.began <= SLOW_S)
        current = self._feeds.get(feed.name)
        if current is not None:
            # The URL may have changed during the fetch.
            new_state = state if current.url == feed.url else self._refresh.state(feed.name)
            self._refresh.put(feed.name, replace(new_state, weight=current.weight))

    def postpone(self, feed: ListedFeed, now: float) -> bool:
        """The fetch was refused by `admit`, or by the host that it was redirected to. False if that
        has happened too often: the caller reports the end with `done`."""
        count = self._postponed.get(feed.name, 0) + 1
        if count > POSTPONED_MAX:
            return False
        fetch = self._end(feed.name, now)
        self._tokens = min(self._tokens + 1.0, self._tokens_max)
        host, current = self._hosts.get(fetch.host), self._feeds.get(feed.name)
        if host is None or current is None:
            return True
        if fetch.refused is None:
            host.free_at = max(host.free_at, now + self._host_delay_s + count)
        self._learn(fetch.host, host, fetch, is_quick=host.is_quick)
        if current.url == feed.url:
            self._postponed[feed.name] = count
            host.held.appendleft(feed.name)
            self._held.add(feed.name)
            self._wait(fetch.host, host)
        else:
            self._refresh.put(feed.name, self._refresh.state(feed.name))
        return True

    def _end(self, name: str, now: float) -> _Fetch:
        fetch = self._fetches.pop(name)
        self._leave_current(name, fetch, now)
        if fetch.claimed is not None:
            took_s = fetch.took_s.get(fetch.claimed, 0.0)
            self._shares.leave(name, fetch.claimed, took_s=took_s)
        self._shares.end(name)
        if (host := self._hosts.get(fetch.host)) is not None:
            host.busy = False
            if not host.feeds:
                host.feeds = 1
                self._release(fetch.host)
        return fetch

    def _learn(self, key: str, host: _Host, fetch: _Fetch, *, is_quick: bool) -> None:
        """Remember the network and the pace of a host; it waits elsewhere if they have changed."""
        network = fetch.refused or fetch.current or host.network
        if (host.network, host.is_quick) != (network, is_quick):
            self._stop_waiting(key)
            host.network, host.is_quick = network, is_quick
            self._wait(key, host)

    def wake_at(self, now: float) -> float | None:
        """When `take` may succeed, if no fetch ends before; None if it has to wait for one."""
        if self._tokens < 1.0:
            return now + (1.0 - self._tokens) / self._per_s if self._per_s > 0 else None
        if self._has_more or (self._backlog and self._shares.may_begin(is_quick=False)):
            return now
        times = [
            self._hosts[key].free_at
            for name, place in self._places.items()
            for key in self._ready(name, place, now)
            if not self._hosts[key].busy
        ]
        due = self._refresh.wake_at()
        return min([*times, *([] if due is None else [due])], default=None)

    def _fill(self, now: float) -> None:
        passed_s = max(now - (now if self._filled_at is None else self._filled_at), 0.0)
        self._tokens = min(self._tokens + passed_s * self._per_s, self._tokens_max)
        self._filled_at = now

    # --- held feeds -------------------------------------------------------------------------------

    def _next_held(self, now: float) -> str | None:
        for name in list(self._places):
            if (found := self._next_at(name, now)) is not None:
                if name in self._places:  # the other addresses come first now
                    self._places[name] = self._places.pop(name)
                return found
        return None

    def _next_of_backlog(self, now: float) -> str | None:
        while self._backlog and self._shares.may_begin(is_quick=False):
            name = self._backlog.popleft()
            if name in self._held and (found := self._hold(name, now)) is not None:
                return found
        return None

    def _next_due(self, now: float) -> str | None:
        """The next due feed that may be fetched; the ones before it are held."""
        for _ in range(HELD_PER_CALL_MAX):
            due = self._refresh.next_due(now, 1)
            if not due:
                return None
            name = due[0]
            if name in self._held or name in self._fetches:
                continue  # its lease has ended, but it is still held or fetched
            is_quick = self._hosts[_key(self._feeds[name])].is_quick
            if not self._shares.may_begin(is_quick=is_quick):
                self._backlog.append(name)
                self._held.add(name)
            elif (found := self._hold(name, now)) is not None:
                return found
        self._has_more = True
        return None

    def _hold(self, name: str, now: float) -> str | None:
        """Hold a feed behind those of its host and address. The first of these that may be fetched
        now, which may be this one."""
        key = _key(self._feeds[name])
        host = self._hosts[key]
        host.held.append(name)
        self._held.add(name)
        self._wait(key, host)
        return self._next_at(_place_of(key, host), now)

    def _next_at(self, name: str, now: float) -> str | None:
        """The next held feed of a place, if it has room and one of its hosts is free."""
        place = self._places.get(name)
        for key in [] if place is None else self._ready(name, place, now):
            host = self._hosts[key]
            if host.busy or host.free_at > now:
                continue
            self._stop_waiting(key)
            while host.held:
                feed = host.held.popleft()
                # A feed that was removed, or has another URL now, is not held any more.
                if feed in self._held and _key(self._feeds[feed]) == key:
                    self._held.discard(feed)
                    self._wait(key, host)  # behind the other hosts
                    if place is not None:
                        place.quick_first = not host.is_quick
                    return feed
        return None

    def _ready(self, name: str, place: _Place, now: float) -> list[str]:
        """The hosts of a place for which there is a worker, in their order."""
        network = name.removeprefix(_NETWORK) if name.startswith(_NETWORK) else None
        keys: list[str] = []
        for is_quick in (place.quick_first, not place.quick_first):
            if self._shares.may_begin(is_quick=is_quick) and (
                network is None or self._shares.has_room(network, now, is_quick=is_quick)
            ):
                keys += place.quick if is_quick else place.others
        return keys

    def _wait(self, key: str, host: _Host) -> None:
        if host.held:
            place = self._places.setdefault(_place_of(key, host), _Place())
            (place.quick if host.is_quick else place.others)[key] = None

    def _stop_waiting(self, key: str) -> None:
        host = self._hosts[key]
        place = self._places.get(name := _place_of(key, host))
        if place is not None:
            (place.quick if host.is_quick else place.others).pop(key, None)
            if not place.quick and not place.others:
                del self._places[name]


_NETWORK = "network "


def _place_of(key: str, host: _Host) -> str:
    """Where a host waits: with those of its network, or alone if that is not known."""
    return f"host {key}" if host.network is None else f"{_NETWORK}{host.network}"


def _key(feed: ListedFeed) -> str:
    """The host of a feed, with its port."""
    try:
        return urlsplit(feed.url).netloc.casefold()
    except ValueError:
        return feed.url  # its fetch will say what is wrong with it
