"""Which feeds to fetch next, if only so many can be fetched in a minute.

An entry of feed i waits until the feed is fetched again: T/2 on average, if it is fetched every T
seconds. Among all ways to spend a budget of fetches, the waiting of all entries, each counted with
the weight w of its feed, is least if (with λ for the rate of entries)

    fetches of i  ∝  √(wᵢ λᵢ)            minimise Σ wᵢ λᵢ Tᵢ / 2   where   Σ 1/Tᵢ = budget

and a feed that is fetched in this rhythm has w λ T² / 2 the same as all others. To spread fetches
so needs no solver and no clock: it is *stride scheduling*. Each feed has a place on a virtual time;
who is first is fetched and goes on by its stride 1/√(wλ). When the budget changes, or feeds come
and go, virtual time passes faster or slower by itself, and no place has to be computed anew.

**Saturation comes first.** A document holds so many entries and no more; what falls out of it
unseen is not late but lost. So each feed has a deadline (feed_state.py), and feeds whose deadline
has come are fetched before all others. If there are more of them than can be fetched, those that
save most entries come first, w · min(λ t, window), but each fifth time the one whose deadline is
oldest, so that no feed starves.

    waiting ──► ready ──────────────► handed out ──► waiting …
     until its   by its place on                        a heap each
     earliest    the virtual time
     time          └──► deadline ──► overdue
                         by time      by what is at stake, and by deadline

A feed waits at least for the minimum interval, for its own `ttl`, for `Retry-After`, through its
skip hours (UTC), through the pause after a failure, and until a fiftieth of an entry is to be
expected: asking more often is a burden to the server and of use to nobody. It is asked once a day
anyway, as it may have changed its habits.

A feed that was handed out comes back by itself if nobody reports on it within ten minutes.

Cost: O(log n) for each feed that is fetched. Entries of heaps that are out of date are skipped when
they come up, and swept out when they are the majority.

Rejected: fetching in proportion to the rate, which is what one would guess: the busiest feeds then
take the whole budget, and an entry of a quiet feed waits for days.
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
USEFUL_ITEMS = 0.02
OLDEST_EVERY = 5


@dataclass(frozen=True, slots=True)
class RefreshPolicy:
    """How often a feed may be fetched at most, and must be at least."""

    interval_min_s: float = 300.0
    interval_max_s: float = DAY_S
    backoff_first_s: float = BACKOFF_FIRST_S
    """How long a feed is left alone after its first failure; it doubles with each further one."""


DEFAULT_POLICY = RefreshPolicy()

_Place = tuple[float, str, int]
"""A feed in a heap: its key there, its name, and its turn; another turn is out of date."""


class RefreshQueue:
    """The feeds and when each is due. Not thread-safe: one thread decides, others fetch."""

    def __init__(
        self,
        states: Mapping[str, RefreshState] | None = None,
        *,
        policy: RefreshPolicy = DEFAULT_POLICY,
    ) -> None:
        self._policy = policy
        self._states: dict[str, RefreshState] = {}
        self._turn = 0
        self._turns: dict[str, int] = {}
        self._places: dict[str, float] = {}
        self._virtual = 0.0
        self._waiting: list[_Place] = []
        self._ready: list[_Place] = []
        self._deadlines: list[_Place] = []
        self._overdue: list[_Place] = []
        self._oldest: list[_Place] = []
        self._handed_out = 0
        for feed, state in (states or {}).items():
            self.put(feed, state)

    def __len__(self) -> int:
        return len(self._states)

    def put(self, feed: str, state: RefreshState) -> None:
        """A new feed, or one of which all is known anew; if it was handed out, no longer."""
        self._states[feed] = state
        if feed not in self._places:
            ahead = 0.0 if state.fetched_at is None else jitter(feed, 0) * self._stride(feed)
            self._places[feed] = self._virtual + ahead
        self._wait(feed, self.earliest(state))

    def reweigh(self, feed: str, weight: float) -> None:
        """Its subscribers have become more or fewer; it counts from the next turn on."""
        self._states[feed] = replace(self._states[feed], weight=weight)

    def remove(self, feed: str) -> None:
        for each in (self._states, self._turns, self._places):
            each.pop(feed, None)

    def state(self, feed: str) -> RefreshState:
        return self._states[feed]

    def succeeded(self, feed: str, now: float, seen: Observation) -> None:
        if feed in self._states:
            self.put(feed, after_success(self._states[feed], now, seen))

    def failed(
        self, feed: str, now: float, *, retry_after_s: float | None = None, gone: bool = False
    ) -> None:
        """The fetch failed; the feed is backed off, and comes back by itself."""
        if feed in self._states:
            state = self._states[feed]
            first_s = self._policy.backoff_first_s
            state = after_failure(
                state, feed, now, retry_after_s=retry_after_s, gone=gone, first_s=first_s
            )
            self.put(feed, state)

    def next_due(self, now: float, budget: int) -> list[str]:
        """The feeds to fetch now, at most so many, the most urgent first."""
        self._wake(now)
        due: list[str] = []
        while len(due) < budget and (feed := self._next()) is not None:
            allowed_at = after_skipped_hours(now, self._states[feed].skip_hours)
            if allowed_at > now:  # its turn came so late that its quiet hours have begun
                self._wait(feed, allowed_at)
                continue
            due.append(feed)
            self._hand_out(feed, now)
        return due

    def wake_at(self) -> float | None:
        """When a feed may be due at the earliest, if none is now; nothing where there is none."""
        while self._waiting and self._turns.get(self._waiting[0][1]) != self._waiting[0][2]:
            heapq.heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else None

    def _next(self) -> str | None:
        """Who is overdue comes first: by what is at stake, or, each fifth time, by its deadline."""
        self._handed_out += 1
        overdue = self._overdue if self._handed_out % OLDEST_EVERY else self._oldest
        for heap in (overdue, self._ready):
            while heap:
                key, feed, turn = heapq.heappop(heap)
                if self._turns.get(feed) == turn:
                    if heap is self._ready:
                        self._virtual = max(self._virtual, key)
                    return feed
        return None

    def _wake(self, now: float) -> None:
        """Let in whose earliest time has come, and see whose deadline has."""
        while self._waiting and self._waiting[0][0] <= now:
            _, feed, turn = heapq.heappop(self._waiting)
            if self._turns.get(feed) == turn:
                heapq.heappush(self._ready, (self._places[feed], feed, turn))
                heapq.heappush(self._deadlines, (self._deadline(feed), feed, turn))
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, feed, turn = heapq.heappop(self._deadlines)
            if self._turns.get(feed) == turn:
                heapq.heappush(self._overdue, (-self._at_stake(feed, now), feed, turn))
                heapq.heappush(self._oldest, (deadline, feed, turn))

    def _hand_out(self, feed: str, now: float) -> None:
        """It goes on by its stride, and waits for a report, or until nobody believes in one."""
        stride = self._stride(feed)
        # Who had to wait beyond its place, for its own earliest time, goes on from its place; but
        # nobody saves up turns, and nobody pays for having been fetched early.
        place = min(self._places[feed], self._virtual) + stride
        self._places[feed] = max(place, self._virtual)
        self._wait(feed, now + LEASE_S)

    def _stride(self, feed: str) -> float:
        """How far a feed goes; the first time any part of it, so that they do not go in step."""
        state = self._states[feed]
        stride = 1.0 / math.sqrt(max(state.weight, 1e-9) * state.rate_per_s)
        return stride if state.fetched_at is not None else stride * jitter(feed, 0)

    def _wait(self, feed: str, until: float) -> None:
        # Turns are counted for all feeds together: one that is removed and comes back has others.
        self._turn += 1
        self._turns[feed] = self._turn
        heapq.heappush(self._waiting, (until, feed, self._turn))
        self._sweep()

    def _deadline(self, feed: str) -> float:
        state = self._states[feed]
        if state.fetched_at is None:
            return math.inf  # nothing is known to be lost yet; its place is the first anyway
        return state.fetched_at + min(state.saturation_s, self._policy.interval_max_s)

    def _at_stake(self, feed: str, now: float) -> float:
        """How much a fetch would save: entries that are expected in the document, by weight."""
        state = self._states[feed]
        waited_s = now - (state.fetched_at or now)
        return state.weight * min(state.rate_per_s * waited_s, float(state.window))

    def earliest(self, state: RefreshState) -> float:
        """Before this time the feed is not fetched, whatever the budget."""
        at = state.not_before
        if state.fetched_at is not None:
            useful_s = min(USEFUL_ITEMS / state.rate_per_s, self._policy.interval_max_s / 2)
            pause_s = max(self._policy.interval_min_s, useful_s, min(state.ttl_s, DAY_S))
            at = max(at, state.fetched_at + pause_s)
        return after_skipped_hours(at, state.skip_hours)

    def _sweep(self) -> None:
        """Leave out what is out of date, when it is the majority."""
        most = 2 * len(self._states) + 1_000
        heaps = self._waiting, self._ready, self._deadlines, self._overdue, self._oldest
        for heap in heaps:
            if len(heap) > most:
                heap[:] = [each for each in heap if self._turns.get(each[1]) == each[2]]
                heapq.heapify(heap)

    def to_json(self) -> dict[str, Json]:
        """All states; what is on the heaps follows from them."""
        return {feed: state.to_json() for feed, state in self._states.items()}

    @classmethod
    def from_json(
        cls, stored: Mapping[str, Mapping[str, object]], *, policy: RefreshPolicy = DEFAULT_POLICY
    ) -> RefreshQueue:
        states = {feed: RefreshState.from_json(each) for feed, each in stored.items()}
        return cls(states, policy=policy)


def after_skipped_hours(at: float, hours: Iterable[int]) -> float:
    """The first moment from then on that is not in one of these hours of the day (UTC).

    >>> after_skipped_hours(3 * HOUR_S + 60, [3, 4]) / HOUR_S
    5.0
    """
    skipped = frozenset(hours)
    if not skipped or at <= 0 or len(skipped) >= 24:
        return at  # who skips all hours has not understood what they are for
    for moment in _hours_from(at):
        if int(moment // HOUR_S) % 24 not in skipped:
            return moment
    return at


def _hours_from(at: float) -> Iterator[float]:
    yield at
    for number in range(1, 25):
        yield (at // HOUR_S + number) * HOUR_S
