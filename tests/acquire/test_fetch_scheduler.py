"""Whose turn it is: budgets, hosts, and feeds that come and go."""

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
    made = FetchScheduler(
        RefreshPolicy(10.0, 20.0),
        fetches_per_minute=per_minute,
        at_once=at_once,
        host_delay_s=delay_s,
    )
    for each in feeds:
        made.put(each, RefreshState())
    return made


def taken(made: FetchScheduler, now: float) -> list[str]:
    found = []
    while (each := made.take(now)) is not None:
        found.append(each.name)
    return found


def test_feeds_of_a_busy_host_are_put_aside_and_the_others_go_on():
    slow = [feed(f"s{number}", "slow") for number in range(50)]
    made = turns(*slow, feed("other"), delay_s=5.0)
    first = taken(made, 0.0)
    assert len(first) == 2
    assert "other" in first
    (name,) = set(first) - {"other"}
    assert taken(made, 100.0) == []  # it has not come back yet
    made.done(next(each for each in slow if each.name == name), RefreshState(fetched_at=100.0))
    assert len(taken(made, 100.0)) == 1


def test_a_host_has_its_pause():
    one, two = feed("a", "host"), feed("b", "host")
    made = turns(one, two, delay_s=5.0)
    (first,) = taken(made, 0.0)
    made.done(one if first == "a" else two, RefreshState(fetched_at=0.0))
    assert taken(made, 4.9) == []
    assert made.wake_at(4.9) == 5.0
    assert taken(made, 5.0) == ["b" if first == "a" else "a"]


def test_the_budget_is_kept():
    made = turns(*(feed(f"f{number}") for number in range(500)), per_minute=60.0, at_once=4)
    counts = [len(taken(made, float(second))) for second in range(100)]
    assert counts[0] == 4
    assert counts[1:] == [1] * 99
    assert made.wake_at(99.0) == 100.0


def test_a_feed_that_is_dropped_has_no_turn_and_may_come_back():
    one, two = feed("a", "host"), feed("b", "host")
    made = turns(one, two)
    (first,) = taken(made, 0.0)
    held = two if first == "a" else one
    made.remove(held.name)
    made.done(one if first == "a" else two, RefreshState(fetched_at=0.0))
    assert taken(made, 1.0) == []
    made.put(held, RefreshState())
    assert taken(made, 1.0) == [held.name]


def test_what_comes_back_for_another_url_is_not_believed():
    old, new = feed("a", "old"), feed("a", "new")
    made = turns(old)
    assert taken(made, 0.0) == ["a"]
    made.put(new, RefreshState())
    made.done(old, RefreshState(failures=9, not_before=1e9))
    assert made.state("a").failures == 0
    assert made.take(0.0) == new


def test_a_feed_that_moves_while_it_is_fetched_does_not_wait_for_long():
    old, new = feed("a", "old"), feed("a", "new")
    made = turns(old)
    assert taken(made, 0.0) == ["a"]
    made.put(new, RefreshState())
    assert taken(made, 1.0) == []  # the old one is still on its way
    made.done(old, RefreshState(failures=9, not_before=1e9))
    assert made.take(2.0) == new


def test_the_weight_is_that_of_the_list():
    made = turns(feed("a", weight=3.0))
    assert made.state("a").weight == 3.0
    made.put(feed("a", weight=7.0), RefreshState(weight=1.0))
    assert made.state("a").weight == 7.0
    got = made.take(0.0)
    assert got is not None
    made.done(got, RefreshState(weight=3.0, fetched_at=0.0))
    assert made.state("a").weight == 7.0


@given(
    hosts=st.lists(st.integers(0, 4), min_size=1, max_size=20),
    delays=st.lists(st.floats(0.1, 5.0), min_size=30, max_size=30),
)
def test_nobody_starves_and_no_host_is_asked_twice_at_once(hosts: list[int], delays: list[float]):
    """Fetches of any length: every feed has its turn again and again."""
    feeds = [feed(f"f{number}", f"h{host}") for number, host in enumerate(hosts)]
    made = turns(*feeds, at_once=3, per_minute=600.0)
    under_way: list[tuple[float, ListedFeed]] = []
    visits = dict.fromkeys((each.name for each in feeds), 0)
    now = 0.0
    for step in range(3_000):
        now += 0.1
        for each in [each for each in under_way if each[0] <= now]:
            under_way.remove(each)
            state = after_success(made.state(each[1].name), now, Observation([], 1))
            made.done(each[1], state)
        while len(under_way) < 3 and (got := made.take(now)) is not None:
            assert got.url.split("/")[2] not in {each.url.split("/")[2] for _, each in under_way}
            under_way.append((now + delays[step % len(delays)], got))
            visits[got.name] += 1
    assert min(visits.values()) >= 2
