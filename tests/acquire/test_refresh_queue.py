"""When feeds are fetched: by rate and weight, within limits, and again after failures."""

from __future__ import annotations

import json
import time
from collections import Counter
from itertools import pairwise

import pytest
from bench.baselines.refresh_round_robin import RoundRobin
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headgate.acquire.refresh_queue import LEASE_S, RefreshPolicy, RefreshQueue, after_skipped_hours
from headgate.acquire.refresh_state import (
    DAY_S,
    GONE_S,
    HOUR_S,
    Observation,
    RefreshState,
    after_failure,
    after_success,
)

START = 1_000 * DAY_S


def known(rate_per_s: float, **values: float) -> RefreshState:
    """A feed whose rate is known for sure."""
    queue = {"window": 1_000_000, "fetched_at": START, **values}
    return RefreshState(items=rate_per_s * 1e12, exposure_s=1e12, **queue)  # type: ignore[arg-type]


def fetches(policy: RefreshQueue, *, budget: int, minutes: int) -> Counter[str]:
    """How often each feed is fetched if nothing is learned."""
    count: Counter[str] = Counter()
    for minute in range(minutes):
        now = START + 60.0 * minute
        for feed in policy.next_due(now, budget):
            count[feed] += 1
            state = policy.state(feed).to_json()
            policy.put(feed, RefreshState.from_json({**state, "fetched_at": now}))
    return count


# --- what is known of a feed --------------------------------------------------------------------


def test_the_rate_is_learned_from_the_first_document() -> None:
    times = [START - hour * HOUR_S for hour in range(1, 25)]
    state = after_success(RefreshState(), START, Observation(times, 24))
    assert state.rate_per_s * HOUR_S == pytest.approx(1, rel=0.3)
    assert state.window == 24
    assert 10 * HOUR_S < state.saturation_s < 24 * HOUR_S


@given(st.floats(0.05, 50), st.integers(1, 40))
def test_the_rate_is_learned_from_new_entries(per_hour: float, every_hours: int) -> None:
    state, now, last = RefreshState(fetched_at=START), START, 0
    for number in range(1, 100):
        now = START + number * every_hours * HOUR_S
        new = int(per_hour * every_hours * number)
        state = after_success(state, now, Observation([now] * (new - last), 10_000))
        last = new
    assert state.rate_per_s * HOUR_S == pytest.approx(per_hour, rel=0.2, abs=0.02)


def test_the_rate_of_a_saturated_feed_is_not_underestimated() -> None:
    # Ten new entries of the last ten minutes, after a day: it was no ten entries a day.
    times = [START + DAY_S - 60 * minute for minute in range(10)]
    before = RefreshState(fetched_at=START, window=10)
    state = after_success(before, START + DAY_S, Observation(times, 10))
    assert state.saturation_s < DAY_S / 2
    for number in range(2, 20):
        now = START + number * DAY_S
        state = after_success(state, now, Observation([now - 60 * m for m in range(10)], 10))
    assert state.rate_per_s * DAY_S > 100


def test_the_rate_follows_a_change() -> None:
    state = known(1 / 60, fetched_at=START)
    state = RefreshState(items=14 * 1440, exposure_s=14 * DAY_S, fetched_at=START)
    for day in range(1, 200):
        state = after_success(state, START + day * DAY_S, Observation((), 20))
    assert state.rate_per_s * DAY_S < 1


def test_failures_double_the_pause_up_to_a_day() -> None:
    state, pauses = RefreshState(), []
    for _ in range(20):
        state = after_failure(state, "a", START, retry_after_s=None, gone=False)
        pauses.append(state.not_before - START)
    assert 150 <= pauses[0] <= 450
    assert all(later < 6.1 * earlier for earlier, later in pairwise(pauses))
    assert DAY_S / 2 <= pauses[-1] <= 1.5 * DAY_S
    spread = {
        after_failure(RefreshState(), str(n), START, retry_after_s=None, gone=False)
        for n in range(20)
    }
    assert len(spread) == 20
    assert (
        after_failure(RefreshState(), "a", START, retry_after_s=9_000, gone=False).not_before
        == START + 9_000
    )
    assert (
        after_failure(RefreshState(), "a", START, retry_after_s=None, gone=True).not_before
        == START + GONE_S
    )
    assert after_success(state, START, Observation()).failures == 0


# --- the policy ---------------------------------------------------------------------------------


def test_fetches_follow_the_square_root_of_rate_and_weight() -> None:
    states = {"a": known(1 / 600), "b": known(4 / 600), "c": known(1 / 600, weight=16.0)}
    states |= {f"other{n}": known(1 / 600) for n in range(40)}
    policy = RefreshQueue(states, policy=RefreshPolicy(interval_max_s=10 * DAY_S))
    count = fetches(policy, budget=1, minutes=10_000)
    assert count["b"] / count["a"] == pytest.approx(2, rel=0.1)
    assert count["c"] / count["a"] == pytest.approx(4, rel=0.1)
    # In the first five minutes all wait for the minimum interval; then no fetch is wasted.
    assert sum(count.values()) == 10_000 - 5


def test_saturation_comes_first() -> None:
    # By weight nobody would look at the small feed for long, but its entries fall out in an hour.
    states = {f"heavy{n}": known(1 / 60, weight=1_000.0) for n in range(20)}
    states["small"] = known(1 / 600, window=10)
    count = fetches(RefreshQueue(states), budget=1, minutes=1_440)
    assert count["small"] >= 24
    without = {**states, "small": known(1 / 600)}
    assert fetches(RefreshQueue(without), budget=1, minutes=1_440)["small"] < 12


def test_no_feed_starves_when_all_are_overdue() -> None:
    states = {f"big{n}": known(1.0, window=10, weight=100.0) for n in range(20)}
    states["small"] = known(1 / 3600, window=10)
    count = fetches(RefreshQueue(states), budget=1, minutes=5 * 1_440)
    assert count["small"] >= 1


def test_ttl_and_skip_hours_are_respected() -> None:
    def first(state: RefreshState) -> float:
        policy = RefreshQueue({"a": state})
        moments = (START + 60.0 * minute for minute in range(3 * 1_440))
        return next(now - START for now in moments if policy.next_due(now, 5))

    busy = 1 / 10
    assert first(RefreshState()) == 0
    assert first(known(busy)) == 300
    assert first(known(busy, ttl_s=3_600)) == 3_600
    assert first(known(busy, not_before=START + 7_200)) == 7_200
    skipping = RefreshState.from_json({**known(busy).to_json(), "skip_hours": [0, 1]})
    assert first(skipping) == 2 * HOUR_S
    assert first(known(1 / (30 * DAY_S))) == DAY_S / 2
    policy = RefreshQueue({"a": skipping})
    assert policy.next_due(START + 2.5 * HOUR_S, 0) == []
    assert policy.next_due(START + 24.5 * HOUR_S, 1) == []
    assert policy.next_due(START + 26 * HOUR_S, 1) == ["a"]
    endless = RefreshState.from_json({**known(busy).to_json(), "skip_hours": list(range(24))})
    assert first(endless) == 300


def test_a_broken_feed_is_retried() -> None:
    policy = RefreshQueue({"a": RefreshState()})
    now, tries = START, []
    while len(tries) < 15:
        for feed in policy.next_due(now, 1):
            tries.append(now)
            policy.failed(feed, now)
        now += 60
    assert tries[-1] - tries[-2] < 1.6 * DAY_S
    wake_at = policy.wake_at()
    assert wake_at is not None
    assert policy.next_due(wake_at, 1) == ["a"]
    policy.succeeded("a", wake_at, Observation((), 10))
    assert policy.state("a").failures == 0


def test_an_unreported_lease_ends() -> None:
    policy = RefreshQueue({"a": RefreshState()})
    assert policy.next_due(START, 1) == ["a"]
    assert policy.next_due(START + LEASE_S - 1, 1) == []
    assert policy.next_due(START + LEASE_S, 1) == ["a"]


@given(st.floats(1, 1e9), st.sets(st.integers(0, 23), max_size=23))
def test_skipped_hours_are_skipped(at: float, hours: set[int]) -> None:
    actual = after_skipped_hours(at, hours)
    assert int(actual // HOUR_S) % 24 not in hours
    assert at <= actual <= at + DAY_S


def test_a_hundred_thousand_feeds_take_microseconds_each() -> None:
    policy = RefreshQueue({str(number): RefreshState() for number in range(100_000)})
    began, count = time.process_time(), 0
    for minute in range(20):
        now = START + 60 * minute
        for feed in policy.next_due(now, 1_000):
            policy.succeeded(feed, now, Observation([now - 10], 20))
            count += 1
    assert count == 20_000
    assert (time.process_time() - began) / count < 300e-6


def test_feeds_are_fetched_in_turn() -> None:
    policy = RoundRobin("abcd")
    assert policy.next_due(0, 3) == ["a", "b", "c"]
    assert policy.next_due(60, 3) == ["d"]
    assert policy.next_due(301, 2) == ["a", "b"]


class Histories(RuleBasedStateMachine):
    """No feed is handed out twice, too early, or beyond the budget, and none is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = RefreshQueue()
        self.now = START
        self.out: dict[str, float] = {}

    @rule(number=st.integers(0, 8), weight=st.floats(0, 1e6))
    def add(self, number: int, weight: float) -> None:
        feed = f"f{number}"
        if feed in self.policy.to_json():
            self.policy.reweigh(feed, weight)
        else:
            self.policy.put(feed, RefreshState(weight=weight))

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if len(self.policy):
            feed = data.draw(st.sampled_from(sorted(self.policy.to_json())))
            self.policy.remove(feed)
            self.out.pop(feed, None)

    @rule(minutes=st.integers(0, 3_000), budget=st.integers(0, 4))
    def fetch(self, minutes: int, budget: int) -> None:
        self.now += 60 * minutes
        due = self.policy.next_due(self.now, budget)
        assert len(due) == len(set(due)) <= budget
        for feed in due:
            assert self.out.get(feed, -LEASE_S) + LEASE_S <= self.now
            assert self.policy.earliest(self.policy.state(feed)) <= self.now
            self.out[feed] = self.now

    @rule(data=st.data(), new=st.integers(0, 30), works=st.booleans())
    def report(self, data: st.DataObject, new: int, works: bool) -> None:
        if self.out:
            feed = data.draw(st.sampled_from(sorted(self.out)))
            del self.out[feed]
            if works:
                times = [self.now - 60 * n for n in range(new)]
                self.policy.succeeded(feed, self.now, Observation(times, 20))
            else:
                self.policy.failed(feed, self.now, retry_after_s=float(new))

    @rule()
    def store_and_load(self) -> None:
        self.policy = RefreshQueue.from_json(json.loads(json.dumps(self.policy.to_json())))
        self.out.clear()

    @invariant()
    def nobody_is_lost(self) -> None:
        copy = RefreshQueue.from_json(self.policy.to_json())
        assert set(copy.next_due(self.now + 30 * DAY_S, 10_000)) == set(self.policy.to_json())


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=40, stateful_step_count=30)


def test_a_new_feed_is_fetched_although_the_budget_is_too_small_for_the_others() -> None:
    queue = RefreshQueue(policy=RefreshPolicy(1.0, 10.0))
    now = 0.0
    for number in range(20):
        queue.put(f"f{number}", RefreshState(fetched_at=0.0))
    queue.put("new", RefreshState())
    fetched = []
    for now in map(float, range(20, 400, 2)):  # twenty feeds every ten seconds would need 40
        fetched += queue.next_due(now, 1)
        queue.succeeded(fetched[-1], now, Observation([], 1))
    assert "new" in fetched
