"""Which feeds to fetch next: how late entries are and how many are lost, against taking turns.

A simulation of 10,000 feeds for three days, minute by minute, at budgets from tight to generous. An
entry is received by the first fetch that finds it in the document, and lost if it has fallen out by
then. Delay and loss are weighted by subscribers. All policies start without any knowledge, but for
the last, which knows the true rates and shows what is to be gained by better estimates.

The law is that of acquire/refresh_queue.py. The baseline takes all feeds in turn.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate

from bench import Plot, Result, Row, Say, seconds
from bench.baselines.refresh_round_robin import RoundRobin
from bench.workloads.feeds import DAY_S, Feed, feeds
from headgate.acquire.refresh_queue import RefreshQueue
from headgate.acquire.refresh_state import Observation, RefreshState

MINUTE_S = 60.0
SHARES = (0.002, 0.005, 0.01, 0.02, 0.05)
"""Budgets: the share of all feeds that can be fetched in a minute."""
KNOWN_S = 1e12
"""A rate that was observed for so long does not move any more."""


@dataclass(slots=True)
class Outcome:
    """Sums over all entries, each as often as its feed has subscribers."""

    delay_s: float = 0.0
    received: float = 0.0
    lost: float = 0.0

    @property
    def mean_delay_min(self) -> float:
        return self.delay_s / max(self.received, 1.0) / 60

    @property
    def loss(self) -> float:
        return self.lost / max(self.received + self.lost, 1.0)


class World:
    """What is really published, and what a fetch at some moment shows of it."""

    def __init__(self, given: list[Feed]) -> None:
        self._feeds = given
        self._sums = [list(accumulate(feed.times, initial=0.0)) for feed in given]
        self._read = [feed.window for feed in given]
        self.outcome = Outcome()

    def fetch(self, number: int, now: float) -> Observation:
        feed, sums = self._feeds[number], self._sums[number]
        published = bisect_right(feed.times, now)
        first_shown = published - feed.window
        begun = self._read[number]
        found = max(begun, first_shown)
        outcome = self.outcome
        outcome.received += feed.weight * (published - found)
        outcome.lost += feed.weight * (found - begun)
        outcome.delay_s += feed.weight * (now * (published - found) - sums[published] + sums[found])
        self._read[number] = published
        # At the first fetch the whole document is new to whoever reads it.
        return Observation(feed.times[found:published], feed.window)

    def first_document(self, number: int, now: float) -> Observation:
        """All that a document shows, as a policy sees it that has never seen the feed before."""
        feed = self._feeds[number]
        published = bisect_right(feed.times, now)
        self.fetch(number, now)
        return Observation(feed.times[published - feed.window : published], feed.window)


def run(*, quick: bool, say: Say) -> Result:
    count, horizon_s = (1_000, 2 * DAY_S) if quick else (10_000, 3 * DAY_S)
    given = feeds(count, horizon_s=horizon_s)
    policies: dict[str, Callable[[World, int, float], None]] = {
        "in turn": lambda world, budget, end: _in_turn(given, world, budget, end),
        "ours": lambda world, budget, end: _ours(given, world, budget, end),
        "true rates": lambda world, budget, end: _known(given, world, budget, end),
    }
    rows: list[Row] = []
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in policies}
    losses: dict[str, list[tuple[float, float]]] = {name: [] for name in policies}
    for share in SHARES:
        budget = round(share * count)
        found: dict[str, Outcome] = {}
        for name, simulate in policies.items():
            say(f"{budget:,} fetches a minute, {name}")
            world = World(given)
            simulate(world, budget, horizon_s)
            for number in range(count):
                world.fetch(number, horizon_s)  # what nobody has fetched has waited until now
            found[name] = world.outcome
            lines[name].append((share * 100, world.outcome.mean_delay_min))
            losses[name].append((share * 100, world.outcome.loss * 100))
        rows += _rows(f"{count:,} feeds, {budget:,} fetches a minute", found)
    say("100,000 feeds")
    rows.append(_speed())
    x = "fetches a minute, per 100 feeds"
    return Result(
        rows,
        Plot("How late an entry is", x, "minutes", lines),
        {"loss": Plot("Entries lost by saturation", x, "%", losses)},
    )


def _in_turn(given: list[Feed], world: World, budget: int, end: float) -> None:
    policy = RoundRobin([str(number) for number in range(len(given))])
    for minute in range(1, int(end / MINUTE_S)):
        now = minute * MINUTE_S
        for feed in policy.next_due(now, budget):
            world.fetch(int(feed), now)


def _ours(given: list[Feed], world: World, budget: int, end: float) -> None:
    policy = RefreshQueue(
        {str(n): RefreshState(weight=feed.weight) for n, feed in enumerate(given)}
    )
    for minute in range(1, int(end / MINUTE_S)):
        now = minute * MINUTE_S
        for feed in policy.next_due(now, budget):
            first = policy.state(feed).fetched_at is None
            look = world.first_document if first else world.fetch
            policy.succeeded(feed, now, look(int(feed), now))


def _known(given: list[Feed], world: World, budget: int, end: float) -> None:
    policy = RefreshQueue(
        {
            str(n): RefreshState(
                weight=feed.weight,
                items=feed.rate_per_s * KNOWN_S,
                exposure_s=KNOWN_S,
                window=feed.window,
                fetched_at=0.0,
            )
            for n, feed in enumerate(given)
        }
    )
    for minute in range(1, int(end / MINUTE_S)):
        now = minute * MINUTE_S
        for feed in policy.next_due(now, budget):
            world.fetch(int(feed), now)
            policy.put(feed, replace(policy.state(feed), fetched_at=now))


def _rows(workload: str, found: dict[str, Outcome]) -> list[Row]:
    ours, turns, known = found["ours"], found["in turn"], found["true rates"]
    return [
        Row(
            "mean delay",
            workload,
            f"{ours.mean_delay_min:.0f} min (with true rates {known.mean_delay_min:.0f})",
            baseline=f"{turns.mean_delay_min:.0f} min",
            target="below the baseline",
            met=ours.mean_delay_min < turns.mean_delay_min,
        ),
        Row(
            "entries lost",
            workload,
            f"{ours.loss:.2%} (with true rates {known.loss:.2%})",
            baseline=f"{turns.loss:.2%}",
            target="no more than the baseline",
            met=ours.loss <= turns.loss,
        ),
    ]


def _speed() -> Row:
    """Deciding and reporting, without any fetching."""
    policy = RefreshQueue({str(number): RefreshState() for number in range(100_000)})
    fetched = 0

    def an_hour() -> None:
        nonlocal fetched
        for minute in range(60):
            now = minute * MINUTE_S
            for feed in policy.next_due(now, 5_000):
                policy.succeeded(feed, now, Observation([now - 10], 20))
                fetched += 1

    took_s = seconds(an_hour)
    each_us = took_s / fetched * 1e6
    return Row(
        "decide",
        "100,000 feeds, 5,000 fetches a minute",
        f"{each_us:.0f} µs for each fetch",
        target="≤ 100 µs",
        met=each_us <= 100,
    )
