"""Which feeds to fetch next, within a budget of fetches per minute.

An entry of feed i waits until the feed is fetched again: T/2 on average, if it is fetched every T
seconds. Let λ be the rate of entries and w the weight of a feed. The weighted waiting time of all
entries is minimal if

    fetches of i  ∝  √(wᵢ λᵢ)            minimise Σ wᵢ λᵢ Tᵢ / 2   where   Σ 1/Tᵢ = budget

This needs no solver: it is *stride scheduling*. Each feed has a position in virtual time. The
first feed is fetched, and its position advances by its stride 1/√(wλ). If the budget changes, or
feeds are added or removed, no position has to be recomputed.

**Saturation comes first.** A document holds a limited number of entries; entries that drop out
unseen are lost. So each feed has a deadline (refresh_state.py), and feeds past their deadline are
fetched before all others: those that save most entries first, w · min(λ t, window), but every fifth
time the one with the oldest deadline, so that no feed starves. A feed that was never fetched has a
deadline of an hour.

    waiting ──► ready ──────────────► leased ──► waiting …
     until its   by position on                     each state is a heap
     earliest    virtual time
     time          └──► deadline ──► overdue
                         by time      by entries at stake, and by deadline

A feed waits at least for the minimum interval, its own `ttl`, `Retry-After`, its skip hours (UTC),
the pause after a failure, and until 0.02 entries are expected; but at most a day. A leased feed
that is not reported within ten minutes is due again.

Cost: O(log n) per fetch. Outdated heap entries are skipped when they come up, and removed when they
are the majority.

Rejected: fetching in proportion to the rate. The busiest feeds would take the whole budget, and
entries of quiet feeds would wait for days.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from headgate.acquire.refresh_state import (
    BACKOFF_FIRST_S,
    DAY_S,
    HOUR_S,
    Json,
    Observation,
    RefreshState,
    after_failure,
    after_success,
    jitter,
)

LEASE_S = 600.0
"""A leased feed that is not reported within this time is due again."""
USEFUL_ITEMS = 0.02
"""A feed waits until at least so many entries are expected."""
OLDEST_EVERY = 5
"""Every so many leases the overdue feed with the oldest deadline is taken."""


@dataclass(frozen=True, slots=True)
class RefreshPolicy:
    """The least and the greatest interval between two fetches of a feed."""

    interval_min_s: float = 300.0
    interval_max_s: float = DAY_S
    backoff_first_s: float = BACKOFF_FIRST_S
    """The wait after the first failure; it doubles with each further one."""


DEFAULT_POLICY = RefreshPolicy()

_HeapEntry = tuple[float, str, int]
"""A feed in a heap: sort key, name, ticket; it is outdated if the feed has another ticket."""


class RefreshQueue:
    """The feeds and when each is due. Not thread-safe."""

    def __init__(
        self,
        states: Mapping[str, RefreshState] | None = None,
        *,
        policy: RefreshPolicy = DEFAULT_POLICY,
    ) -> None:
        self._policy = policy
        self._states: dict[str, RefreshState] = {}
        self._last_ticket = 0
        self._tickets: dict[str, int] = {}
        self._positions: dict[str, float] = {}
        self._virtual = 0.0
        self._waiting: list[_HeapEntry] = []
        self._ready: list[_HeapEntry] = []
        self._deadlines: list[_HeapEntry] = []
        self._overdue: list[_HeapEntry] = []
        self._oldest: list[_HeapEntry] = []
        self._leases = 0
        for feed, state in (states or {}).items():
            self.put(feed, state)

    def __len__(self) -> int:
        return len(self._states)

    def put(self, feed: str, state: RefreshState) -> None:
        """Add a feed, or replace its state; a lease ends."""
        self._states[feed] = state
        if feed not in self._positions:
            ahead = 0.0 if state.fetched_at is None else jitter(feed, 0) * self._stride(feed)
            self._positions[feed] = self._virtual + ahead
        self._wait(feed, self.earliest(state))

    def reweigh(self, feed: str, weight: float) -> None:
        """Change the weight; it counts from the next fetch on."""
        self._states[feed] = replace(self._states[feed], weight=weight)

    def bring_forward(self, feed: str, now: float) -> None:
        """Let a feed be due now, before others that are not overdue; its skip hours hold."""
        self._positions[feed] = min(self._positions[feed], self._virtual)
        self._wait(feed, after_skipped_hours(now, self._states[feed].skip_hours))

    def remove(self, feed: str) -> None:
        for table in (self._states, self._tickets, self._positions):
            table.pop(feed, None)

    def state(self, feed: str) -> RefreshState:
        return self._states[feed]

    def succeeded(self, feed: str, now: float, seen: Observation) -> None:
        if feed in self._states:
            self.put(feed, after_success(self._states[feed], now, seen))

    def failed(
        self, feed: str, now: float, *, retry_after_s: float | None = None, gone: bool = False
    ) -> None:
        """Record a failed fetch: the feed waits for its backoff."""
        if feed in self._states:
            state = self._states[feed]
            first_s = self._policy.backoff_first_s
            state = after_failure(
                state, feed, now, retry_after_s=retry_after_s, gone=gone, first_s=first_s
            )
            self.put(feed, state)

    def next_due(self, now: float, budget: int) -> list[str]:
        """Lease at most `budget` feeds that are due, the most urgent first."""
        self._wake(now)
        due: list[str] = []
        while len(due) < budget and (feed := self._next()) is not None:
            allowed_at = after_skipped_hours(now, self._states[feed].skip_hours)
            if allowed_at > now:  # its skip hours have begun while it waited
                self._wait(feed, allowed_at)
                continue
            due.append(feed)
            self._lease(feed, now)
        return due

    def wake_at(self) -> float | None:
        """The earliest time at which a feed may become due; None without feeds."""
        while self._waiting and self._tickets.get(self._waiting[0][1]) != self._waiting[0][2]:
            heapq.heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else None

    def _next(self) -> str | None:
        """Overdue feeds come first: by entries at stake, or every fifth time by deadline."""
        self._leases += 1
        overdue = self._overdue if self._leases % OLDEST_EVERY else self._oldest
        for heap in (overdue, self._ready):
            while heap:
                key, feed, ticket = heapq.heappop(heap)
                if self._tickets.get(feed) == ticket:
                    if heap is self._ready:
                        self._virtual = max(self._virtual, key)
                    return feed
        return None

    def _wake(self, now: float) -> None:
        """Move feeds whose earliest time, or whose deadline, has come."""
        while self._waiting and self._waiting[0][0] <= now:
            _, feed, ticket = heapq.heappop(self._waiting)
            if self._tickets.get(feed) == ticket:
                heapq.heappush(self._ready, (self._positions[feed], feed, ticket))
                heapq.heappush(self._deadlines, (self._deadline(feed, now), feed, ticket))
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, feed, ticket = heapq.heappop(self._deadlines)
            if self._tickets.get(feed) == ticket:
                heapq.heappush(self._overdue, (-self._at_stake(feed, now), feed, ticket))
                heapq.heappush(self._oldest, (deadline, feed, ticket))

    def _lease(self, feed: str, now: float) -> None:
        """Advance its position by its stride, and wait for the report or the end of the lease."""
        stride = self._stride(feed)
        # A feed that had to wait for its earliest time advances from its own position, but never
        # behind the virtual time: no feed saves up fetches, or pays for an early one.
        place = min(self._positions[feed], self._virtual) + stride
        self._positions[feed] = max(place, self._virtual)
        self._wait(feed, now + LEASE_S)

    def _stride(self, feed: str) -> float:
        """1/√(wλ); a random part of it before the first fetch, so that new feeds are spread."""
        state = self._states[feed]
        stride = 1.0 / math.sqrt(max(state.weight, 1e-9) * state.rate_per_s)
        return stride if state.fetched_at is not None else stride * jitter(feed, 0)

    def _wait(self, feed: str, until: float) -> None:
        # Tickets are counted for all feeds together, so a feed that was removed gets a new one.
        self._last_ticket += 1
        self._tickets[feed] = self._last_ticket
        heapq.heappush(self._waiting, (until, feed, self._last_ticket))
        self._sweep()

    def _deadline(self, feed: str, now: float) -> float:
        state = self._states[feed]
        if state.fetched_at is None:
            # Its position is among the first, but where the budget is too small, feeds that are
            # overdue would be before it for ever.
            return now + min(HOUR_S, self._policy.interval_max_s)
        return state.fetched_at + min(state.saturation_s, self._policy.interval_max_s)

    def _at_stake(self, feed: str, now: float) -> float:
        """The weighted number of entries that a fetch is expected to find."""
        state = self._states[feed]
        waited_s = now - (state.fetched_at or now)
        return state.weight * min(state.rate_per_s * waited_s, float(state.window))

    def earliest(self, state: RefreshState) -> float:
        """The time before which the feed is not fetched, whatever the budget."""
        earliest = state.not_before
        if state.fetched_at is not None:
            useful_s = min(USEFUL_ITEMS / state.rate_per_s, self._policy.interval_max_s / 2)
            pause_s = max(self._policy.interval_min_s, useful_s, min(state.ttl_s, DAY_S))
            earliest = max(earliest, state.fetched_at + pause_s)
        return after_skipped_hours(earliest, state.skip_hours)

    def _sweep(self) -> None:
        """Remove outdated heap entries where they are the majority."""
        most = 2 * len(self._states) + 1_000
        heaps = self._waiting, self._ready, self._deadlines, self._overdue, self._oldest
        for heap in heaps:
            if len(heap) > most:
                heap[:] = [each for each in heap if self._tickets.get(each[1]) == each[2]]
                heapq.heapify(heap)

    def to_json(self) -> dict[str, Json]:
        """All states; the heaps are rebuilt from them."""
        return {feed: state.to_json() for feed, state in self._states.items()}

    @classmethod
    def from_json(
        cls, stored: Mapping[str, Mapping[str, object]], *, policy: RefreshPolicy = DEFAULT_POLICY
    ) -> RefreshQueue:
        states = {feed: RefreshState.from_json(each) for feed, each in stored.items()}
        return cls(states, policy=policy)


def after_skipped_hours(start: float, hours: Iterable[int]) -> float:
    """The first instant from `start` on that is not in one of these hours of the day (UTC).

    >>> after_skipped_hours(3 * HOUR_S + 60, [3, 4]) / HOUR_S
    5.0
    """
    skipped = frozenset(hours)
    if not skipped or start <= 0 or len(skipped) >= 24:
        return start  # skipping all hours is an error of the feed
    for instant in _hours_from(start):
        if int(instant // HOUR_S) % 24 not in skipped:
            return instant
    return start


def _hours_from(start: float) -> Iterator[float]:
    yield start
    for number in range(1, 25):
        yield (start // HOUR_S + number) * HOUR_S
