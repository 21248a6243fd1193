"""Who is over the budget, against sums over the last minute."""

from __future__ import annotations

from math import exp
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.feed_budget import BudgetRules, FeedBudget, read_costs


class Time:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def budget(share: float = 0.2, cores: int = 2) -> tuple[FeedBudget, Time]:
    clock = Time()
    return FeedBudget(BudgetRules(share, cpu_us_min=50.0), cores=cores, clock=clock), clock


def test_a_feed_that_takes_a_whole_core_is_suspended_once() -> None:
    meter, clock = budget()
    for second in range(60):
        clock.now_s += 1
        meter.add({"7": 1_000_000, "8": 10_000}, items=10)
        over = meter.overspent()
        if over:
            assert 20 < second < 40  # 24 s of the 120 s of two cores in a minute
            break
    assert [each.feed for each in over] == [7]
    assert "% of the cores" in over[0].reason
    assert meter.overspent() == []


def test_a_feed_that_is_cheap_for_each_item_is_not_suspended() -> None:
    meter, clock = budget()
    for _ in range(100):
        clock.now_s += 1
        meter.add({"7": 1_000_000}, items=100_000)
        assert meter.overspent() == []


def test_no_share_no_suspension() -> None:
    meter, _ = budget(share=0.0)
    meter.add({"7": 10**9}, items=1)
    assert meter.overspent() == []


def test_above_the_quota_of_all_the_costliest_goes_first() -> None:
    meter, _ = budget(share=0.9)
    meter.add({"1": 10_000_000, "2": 30_000_000}, items=10)
    assert meter.overspent({"": 50}) == []
    assert [each.feed for each in meter.overspent({"": 20})] == [2]
    assert meter.overspent({"": 20}) == []  # one is enough


Spent = st.tuples(st.floats(0, 30), st.integers(1, 3), st.integers(0, 20_000_000))


@given(st.lists(Spent, max_size=30), st.floats(0, 0.5))
def test_the_last_minute_is_a_decaying_sum(
    history: list[tuple[float, int, int]], share: float
) -> None:
    meter, clock = budget(share=share, cores=1)
    entries: list[tuple[float, int, int]] = []
    for wait_s, feed, cpu_us in history:
        clock.now_s += wait_s
        meter.add({str(feed): cpu_us}, items=1)
        entries.append((clock.now_s, feed, cpu_us))
    weights = {at: exp(-(clock.now_s - at) / 60) for at, _, _ in entries}
    items = max(sum(weights[at] for at, _, _ in entries), 1.0)
    sums = {
        feed: sum(weights[at] * us / 1e6 for at, each, us in entries if each == feed)
        for feed in {each for _, each, _ in entries}
    }
    close = {feed for feed, cpu_s in sums.items() if abs(cpu_s - share * 60) < 1e-6}
    expected = {
        feed
        for feed, cpu_s in sums.items()
        if share and cpu_s > share * 60 and 1e6 * cpu_s / items > 50
    }
    found = {each.feed for each in meter.overspent()}
    assert found - close == expected - close


def test_totals_are_written_by_name(tmp_path: Path) -> None:
    meter, _ = budget()
    meter.add({"1": 2_500_000, "2": 1_000_000, "3": 9_000_000})
    meter.write(tmp_path / "costs.json", {1: "A", 2: "B"})
    assert read_costs(tmp_path / "costs.json") == {"A": 2.5, "B": 1.0}
    assert read_costs(tmp_path / "none.json") == {}


def test_each_tenant_has_its_own_quota() -> None:
    meter = FeedBudget(BudgetRules(share=0), cores=1, clock=Time())
    meter.add({"1": 20_000_000, "2": 21_000_000, "11": 30_000_000}, items=10)

    def tenant_of(feed: int) -> str:
        return "acme" if feed > 10 else "local"

    over = meter.overspent({"acme": 60, "local": 50}, tenant_of)
    assert [each.feed for each in over] == [2]
    assert "all feeds took 68 % of the cores" in over[0].reason
    assert meter.overspent({"acme": 60, "globex": 0}, tenant_of) == []
