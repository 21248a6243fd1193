"""The next feed to fetch: budgets, hosts, and feeds that are added and removed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.acquire.fetch_scheduler import FetchScheduler
from headgate.acquire.inbox_tables import ListedFeed
from headgate.acquire.refresh_queue import RefreshPolicy
from headgate.acquire.refresh_state import Observation, RefreshState, after_success


def feed(name: str, host: str = "", weight: float = 1.0) -> ListedFeed:
    return ListedFeed(name, f"http://{host or name}.example/{name}", weight)


def turns(
    *feeds: ListedFeed, per_minute: float = 6e6, at_once: int = 100, delay_s: float = 0.0
) -> FetchScheduler:
    scheduler = FetchScheduler(
        RefreshPolicy(10.0, 20.0),
        fetches_per_minute=per_minute,
        at_once=at_once,
        host_delay_s=delay_s,
    )
    for each in feeds:
        scheduler.put(each, RefreshState())
    return scheduler


def taken(scheduler: FetchScheduler, now: float) -> list[str]:
    names = []
    while (feed := scheduler.take(now)) is not None:
        names.append(feed.name)
    return names


def test_feeds_of_a_busy_host_are_held_and_others_are_fetched():
    slow = [feed(f"s{number}", "slow") for number in range(50)]
    scheduler = turns(*slow, feed("other"), delay_s=5.0)
    first = taken(scheduler, 0.0)
    assert len(first) == 2
    assert "other" in first
    (name,) = set(first) - {"other"}
    assert taken(scheduler, 100.0) == []  # it has not come back yet
    scheduler.done(next(each for each in slow if each.name == name), RefreshState(fetched_at=100.0))
    assert len(taken(scheduler, 100.0)) == 1


def test_two_fetches_from_a_host_are_delayed():
    one, two = feed("a", "host"), feed("b", "host")
    scheduler = turns(one, two, delay_s=5.0)
    (first,) = taken(scheduler, 0.0)
    scheduler.done(one if first == "a" else two, RefreshState(fetched_at=0.0))
    assert taken(scheduler, 4.9) == []
    assert scheduler.wake_at(4.9) == 5.0
    assert taken(scheduler, 5.0) == ["b" if first == "a" else "a"]


def test_the_fetch_budget_is_respected():
    scheduler = turns(*(feed(f"f{number}") for number in range(500)), per_minute=60.0, at_once=4)
    counts = [len(taken(scheduler, float(second))) for second in range(100)]
    assert counts[0] == 4
    assert counts[1:] == [1] * 99
    assert scheduler.wake_at(99.0) == 100.0


def test_a_dropped_feed_is_not_fetched_until_it_is_registered_again():
    one, two = feed("a", "host"), feed("b", "host")
    scheduler = turns(one, two)
    (first,) = taken(scheduler, 0.0)
    held = two if first == "a" else one
    scheduler.remove(held.name)
    scheduler.done(one if first == "a" else two, RefreshState(fetched_at=0.0))
    assert taken(scheduler, 1.0) == []
    scheduler.put(held, RefreshState())
    assert taken(scheduler, 1.0) == [held.name]


def test_the_result_of_an_old_url_is_ignored():
    old, new = feed("a", "old"), feed("a", "new")
    scheduler = turns(old)
    assert taken(scheduler, 0.0) == ["a"]
    scheduler.put(new, RefreshState())
    scheduler.done(old, RefreshState(failures=9, not_before=1e9))
    assert scheduler.state("a").failures == 0
    assert scheduler.take(0.0) == new


def test_a_feed_whose_url_changes_during_a_fetch_is_soon_fetched():
    old, new = feed("a", "old"), feed("a", "new")
    scheduler = turns(old)
    assert taken(scheduler, 0.0) == ["a"]
    scheduler.put(new, RefreshState())
    assert taken(scheduler, 1.0) == []  # the old one is still on its way
    scheduler.done(old, RefreshState(failures=9, not_before=1e9))
    assert scheduler.take(2.0) == new


def test_weights_come_from_the_list():
    scheduler = turns(feed("a", weight=3.0))
    assert scheduler.state("a").weight == 3.0
    scheduler.put(feed("a", weight=7.0), RefreshState(weight=1.0))
    assert scheduler.state("a").weight == 7.0
    got = scheduler.take(0.0)
    assert got is not None
    scheduler.done(got, RefreshState(weight=3.0, fetched_at=0.0))
    assert scheduler.state("a").weight == 7.0


@given(
    hosts=st.lists(st.integers(0, 4), min_size=1, max_size=20),
    delays=st.lists(st.floats(0.1, 5.0), min_size=30, max_size=30),
)
def test_no_feed_starves_and_no_host_has_two_fetches_at_once(hosts: list[int], delays: list[float]):
    """Fetches of any length: every feed has its turn again and again."""
    feeds = [feed(f"f{number}", f"h{host}") for number, host in enumerate(hosts)]
    scheduler = turns(*feeds, at_once=3, per_minute=600.0)
    under_way: list[tuple[float, ListedFeed]] = []
    visits = dict.fromkeys((each.name for each in feeds), 0)
    now = 0.0
    for step in range(3_000):
        now += 0.1
        for each in [each for each in under_way if each[0] <= now]:
            under_way.remove(each)
            state = after_success(scheduler.state(each[1].name), now, Observation([], 1))
            scheduler.done(each[1], state)
        while len(under_way) < 3 and (got := scheduler.take(now)) is not None:
            assert got.url.split("/")[2] not in {each.url.split("/")[2] for _, each in under_way}
            under_way.append((now + delays[step % len(delays)], got))
            visits[got.name] += 1
    assert min(visits.values()) >= 2
