"""The next feed to fetch: budgets, hosts, and feeds that are added and removed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.acquire.address_shares import SLOW_S
from headgate.acquire.fetch_scheduler import POSTPONED_MAX, FetchScheduler
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
    scheduler.done(
        next(each for each in slow if each.name == name), RefreshState(fetched_at=100.0), 100.0
    )
    assert len(taken(scheduler, 100.0)) == 1


def test_two_fetches_from_a_host_are_delayed():
    one, two = feed("a", "host"), feed("b", "host")
    scheduler = turns(one, two, delay_s=5.0)
    (first,) = taken(scheduler, 0.0)
    scheduler.done(one if first == "a" else two, RefreshState(fetched_at=0.0), 0.0)
    assert taken(scheduler, 4.9) == []
    assert scheduler.wake_at(4.9) == 5.0
    assert taken(scheduler, 5.0) == ["b" if first == "a" else "a"]


def test_the_fetch_budget_is_respected():
    scheduler = turns(*(feed(f"f{number}") for number in range(500)), per_minute=60.0, at_once=4)
    counts = []
    for second in map(float, range(100)):
        counts.append(0)
        while (got := scheduler.take(second)) is not None:
            counts[-1] += 1
            scheduler.done(got, RefreshState(fetched_at=second), second)
    assert counts[0] == 4
    assert counts[1:] == [1] * 99
    assert scheduler.wake_at(99.0) == 100.0


def test_a_dropped_feed_is_not_fetched_until_it_is_registered_again():
    one, two = feed("a", "host"), feed("b", "host")
    scheduler = turns(one, two)
    (first,) = taken(scheduler, 0.0)
    held = two if first == "a" else one
    scheduler.remove(held.name)
    scheduler.done(one if first == "a" else two, RefreshState(fetched_at=0.0), 0.0)
    assert taken(scheduler, 1.0) == []
    scheduler.put(held, RefreshState())
    assert taken(scheduler, 1.0) == [held.name]


def test_the_result_of_an_old_url_is_ignored():
    old, new = feed("a", "old"), feed("a", "new")
    scheduler = turns(old)
    assert taken(scheduler, 0.0) == ["a"]
    scheduler.put(new, RefreshState())
    scheduler.done(old, RefreshState(failures=9, not_before=1e9), 1.0)
    assert scheduler.state("a").failures == 0
    assert scheduler.take(0.0) == new


def test_a_feed_whose_url_changes_during_a_fetch_is_soon_fetched():
    old, new = feed("a", "old"), feed("a", "new")
    scheduler = turns(old)
    assert taken(scheduler, 0.0) == ["a"]
    scheduler.put(new, RefreshState())
    assert taken(scheduler, 1.0) == []  # the old one is still on its way
    scheduler.done(old, RefreshState(failures=9, not_before=1e9), 1.0)
    assert scheduler.take(2.0) == new


def test_weights_come_from_the_list():
    scheduler = turns(feed("a", weight=3.0))
    assert scheduler.state("a").weight == 3.0
    scheduler.put(feed("a", weight=7.0), RefreshState(weight=1.0))
    assert scheduler.state("a").weight == 7.0
    got = scheduler.take(0.0)
    assert got is not None
    scheduler.done(got, RefreshState(weight=3.0, fetched_at=0.0), 0.0)
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
            scheduler.done(each[1], state, now)
        while len(under_way) < 3 and (got := scheduler.take(now)) is not None:
            assert got.url.split("/")[2] not in {each.url.split("/")[2] for _, each in under_way}
            under_way.append((now + delays[step % len(delays)], got))
            visits[got.name] += 1
    assert min(visits.values()) >= 2


# --- addresses ------------------------------------------------------------------------------------

WORKERS = 16


def of_one_address(count: int, *others: ListedFeed, workers: int = WORKERS) -> FetchScheduler:
    return turns(*(feed(f"s{n}") for n in range(count)), *others, at_once=workers)


def admitted(scheduler: FetchScheduler, now: float, address: str = "192.88.0.1") -> list[str]:
    """Take what is to be taken; feeds whose names begin with 's' are at the address, the others
    each at their own. What is not admitted is postponed."""
    begun = []
    while (got := scheduler.take(now)) is not None:
        own = address if got.name.startswith("s") else f"192.89.0.{got.name[1:]}"
        if scheduler.admit(got.name, own, now):
            begun.append(got.name)
        else:
            assert scheduler.postpone(got, now)
    return begun


def end(scheduler: FetchScheduler, names: list[str], now: float) -> None:
    for name in names:
        state = after_success(scheduler.state(name), now, Observation([], 1))
        scheduler.done(scheduler.feeds[name], state, now)


def test_new_names_of_one_address_get_three_workers_and_one_when_they_are_slow():
    scheduler = of_one_address(1_000)
    begun = admitted(scheduler, 0.0)
    assert len(begun) == 3
    assert admitted(scheduler, 1.0) == []
    assert scheduler.wake_at(1.0) > 1.0
    end(scheduler, begun, 30.0)
    assert len(admitted(scheduler, 30.0)) == 1
    assert admitted(scheduler, 31.0) == []


def test_a_fetch_that_is_not_over_makes_its_address_slow():
    scheduler = of_one_address(1_000)
    first, second, third = admitted(scheduler, 0.0)
    end(scheduler, [first, second], 1.0)
    assert len(admitted(scheduler, 1.0)) == 2
    end(scheduler, [third], 1.0)
    assert len(admitted(scheduler, 2.0)) == 1
    assert admitted(scheduler, 2.0 + SLOW_S) == []


def test_others_are_taken_at_once_however_many_names_a_slow_address_has():
    scheduler = of_one_address(3_000)
    assert len(admitted(scheduler, 0.0)) == 3
    for n in range(9):
        scheduler.put(feed(f"f{n}"), RefreshState())
    assert scheduler.wake_at(0.0) == 0.0  # a call holds a thousand
    begun = [each for _ in range(4) for each in admitted(scheduler, 0.0)]
    assert sorted(begun) == [f"f{n}" for n in range(9)]


def test_quick_hosts_of_a_slow_address_are_fetched():
    scheduler = of_one_address(1)
    end(scheduler, admitted(scheduler, 0.0), 0.1)  # s0 is quick
    for n in range(1, 200):
        scheduler.put(feed(f"s{n}"), RefreshState())
    slow = admitted(scheduler, 1.0)
    assert "s0" not in slow
    assert admitted(scheduler, 12.0) == ["s0"]


def test_quick_hosts_find_a_worker_when_all_others_are_slow():
    scheduler = turns(feed("f0"), at_once=WORKERS)
    end(scheduler, admitted(scheduler, 0.0), 0.1)
    for n in range(1, 200):
        scheduler.put(feed(f"f{n}"), RefreshState())
    assert len(admitted(scheduler, 1.0)) == 12
    assert admitted(scheduler, 12.0) == ["f0"]


def test_quick_names_of_one_address_have_a_quarter_of_the_workers():
    scheduler = of_one_address(8)
    for _ in range(8):
        end(scheduler, admitted(scheduler, 0.0), 0.1)
    assert len(admitted(scheduler, 20.0)) == 4


def test_a_redirect_to_a_full_address_is_postponed_and_a_way_back_is_no_new_fetch():
    scheduler = of_one_address(3, feed("f1"))
    assert len(admitted(scheduler, 0.0)) == 4
    assert not scheduler.admit("f1", "192.88.0.1", 1.0)
    assert scheduler.admit("f1", "192.89.0.2", 1.0)
    assert scheduler.admit("f1", "192.89.0.1", 1.0)
    assert not scheduler.admit("f1", "192.88.0.1", 1.0)
    assert scheduler.postpone(scheduler.feeds["f1"], 1.0)
    assert scheduler.take(1.0) is None  # it waits for the address that was full
    end(scheduler, ["s0"], 2.0)
    got = scheduler.take(2.0)
    assert got is not None
    assert got.name == "f1"


def test_a_feed_that_is_always_postponed_is_reported():
    scheduler = turns(feed("f1"))
    for _ in range(POSTPONED_MAX):
        got = scheduler.take(0.0)
        assert got is not None
        scheduler._fetches[got.name].refused = "192.88.0.9"
        assert scheduler.postpone(got, 0.0)
    got = scheduler.take(0.0)
    assert got is not None
    assert not scheduler.postpone(got, 0.0)
    scheduler.done(got, RefreshState(failures=1, not_before=300.0), 0.0)
    assert scheduler.take(299.0) is None
    assert scheduler.take(301.0) is not None


@dataclass
class World:
    """Feeds with hosts, hosts with addresses, fetches with durations; and the bounds."""

    scheduler: FetchScheduler
    workers: int
    addresses: dict[str, list[str]]
    under_way: dict[str, tuple[float, ListedFeed, str]] = field(default_factory=dict)
    quick: set[str] = field(default_factory=set)
    began: dict[str, float] = field(default_factory=dict)
    kinds: dict[str, bool] = field(default_factory=dict)
    visits: Counter[str] = field(default_factory=Counter)

    def finish(self, now: float) -> None:
        for name, (ends, each, _) in list(self.under_way.items()):
            if ends <= now:
                del self.under_way[name]
                host = each.url.split("/")[2]
                took_s = now - self.began.pop(name)
                (self.quick.add if took_s <= SLOW_S else self.quick.discard)(host)
                state = after_success(self.scheduler.state(name), now, Observation([], 1))
                self.scheduler.done(each, state, now)

    def start(self, now: float, duration_s: float) -> bool:
        if len(self.under_way) >= self.workers or (got := self.scheduler.take(now)) is None:
            return False
        host = got.url.split("/")[2]
        for address in self.addresses[host]:
            if self.scheduler.admit(got.name, address, now):
                self.kinds[got.name] = host in self.quick
                self.under_way[got.name] = now + duration_s, got, address
                self.began[got.name] = now
                self.visits[got.name] += 1
                return True
        assert self.scheduler.postpone(got, now)
        return True

    def check(self) -> None:
        share = max(self.workers // 4, 1)
        by_address = Counter(address for _, _, address in self.under_way.values())
        assert max(by_address.values(), default=0) <= share
        others = [name for name in self.under_way if not self.kinds[name]]
        assert len(others) <= self.workers - self.workers // 4
        by_address = Counter(self.under_way[name][2] for name in others)
        assert max(by_address.values(), default=0) <= share - share // 4
        hosts = Counter(each.url.split("/")[2] for _, each, _ in self.under_way.values())
        assert max(hosts.values(), default=0) <= 1


@settings(max_examples=60, deadline=None)
@given(
    workers=st.integers(1, 16),
    hosts=st.lists(st.integers(0, 11), min_size=1, max_size=30),
    addresses=st.lists(
        st.lists(st.integers(0, 4), min_size=1, max_size=3), min_size=12, max_size=12
    ),
    durations=st.lists(st.sampled_from([0.1, 0.5, 2.0, 6.0, 12.0]), min_size=7, max_size=40),
)
def test_no_address_has_more_than_its_share_and_no_feed_starves(
    workers: int, hosts: list[int], addresses: list[list[int]], durations: list[float]
):
    """Any names, addresses and durations: the bounds of address_shares.py hold at any time, and
    every feed has its turn again and again."""
    feeds = [feed(f"f{number}", f"h{host}") for number, host in enumerate(hosts)]
    world = World(
        turns(*feeds, at_once=workers),
        workers,
        {f"h{n}.example": [f"192.88.0.{each}" for each in own] for n, own in enumerate(addresses)},
    )
    now, step = 0.0, 0
    while now < 3_000.0:
        now += 0.5
        world.finish(now)
        for _ in range(200):
            if not world.start(now, durations[step % len(durations)]):
                break
            step += 1
            world.check()
        else:
            raise AssertionError("a scheduling step does not end")
    assert min(world.visits[each.name] for each in feeds) >= 2


@given(
    names=st.integers(1, 300),
    slow_s=st.floats(0.0, 60.0),
    others=st.integers(1, 8),
)
def test_a_due_feed_of_an_idle_address_is_taken_in_one_step(names: int, slow_s: float, others: int):
    """However many names are at a slow address, and for however long it has been slow."""
    scheduler = of_one_address(names)
    begun = admitted(scheduler, 0.0)
    for n in range(others):
        scheduler.put(feed(f"f{n}"), RefreshState())
    assert {f"f{n}" for n in range(others)} <= set(admitted(scheduler, slow_s))
    assert len(begun) <= 3
