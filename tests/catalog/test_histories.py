"""Any history of scripts has the same effect on the catalog and on a dictionary."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from tests.catalog.conftest import ManualClock

from headgate.catalog.catalog import Catalog
from headgate.language.parse import parse_script
from headgate.language.statements import Renew, Unsubscribe
from headgate.model.duration import Duration, Unit
from headgate.model.errors import BadTicket, FeedCycle, HeadgateError

NAMES = ["A", "B", "C", "D", "E"]
names = st.sampled_from(NAMES)
inputs = st.lists(st.sampled_from([*NAMES, "S"]), min_size=1, max_size=3)
several_feeds = st.lists(
    st.tuples(names, inputs), min_size=2, max_size=4, unique_by=lambda feed: feed[0]
)
days = st.integers(1, 5)


class Refused(Exception):
    """The model refuses what the catalog must refuse."""


@dataclass
class Model:
    """What the catalog promises, in the simplest form."""

    feeds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    living_until: dict[int, tuple[str, datetime]] = field(default_factory=dict)
    version: int = 1
    next_id: int = 1

    def create(self, name: str, over: tuple[str, ...]) -> bool:
        """Whether that is new."""
        if name in over or any(each != "S" and each not in self.feeds for each in over):
            raise Refused
        if self.feeds.get(name, over) != over:
            raise Refused
        is_new = name not in self.feeds
        self.feeds[name] = over
        return is_new

    def drop(self, name: str, now: datetime) -> None:
        used = any(name in over for over in self.feeds.values())
        if name not in self.feeds or used or name in self.subscribed(now).values():
            raise Refused
        del self.feeds[name]
        self.living_until = {
            id_: each for id_, each in self.living_until.items() if each[0] != name
        }

    def subscribe(self, name: str, until: datetime) -> None:
        if name not in self.feeds:
            raise Refused
        self.living_until[self.next_id] = (name, until)
        self.next_id += 1

    def subscribed(self, now: datetime) -> dict[int, str]:
        return {id_: name for id_, (name, until) in self.living_until.items() if until > now}


class Histories(RuleBasedStateMachine):
    new_url: Callable[[], str]

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.catalog = Catalog.open(type(self).new_url(), clock=self.clock)
        self.catalog.apply(parse_script("register feed https://a.b/c as S;"))
        self.model = Model()
        self.tickets: dict[int, str] = {}

    def teardown(self) -> None:
        self.catalog.close()

    def apply(self, script: str) -> bool:
        """Whether the catalog accepts the script."""
        try:
            outcomes = self.catalog.apply(parse_script(script))
        except HeadgateError:
            return False
        self.tickets.update(
            (each.subscription_id, each.ticket) for each in outcomes if each.ticket is not None
        )
        return True

    @rule(name=names, over=inputs)
    def create(self, name: str, over: list[str]) -> None:
        accepted = self.apply(f"create feed {name} from ({' | '.join(over)});")
        try:
            self.model.version += self.model.create(name, tuple(over))
        except Refused:
            assert not accepted
        else:
            assert accepted

    @rule(
        feeds=st.lists(st.tuples(names, inputs), min_size=2, max_size=4, unique_by=lambda f: f[0])
    )
    def create_in_any_order(self, feeds: list[tuple[str, list[str]]]) -> None:
        script = "".join(f"create feed {name} from ({' | '.join(over)});" for name, over in feeds)
        accepted = self.apply(script)
        before, waiting, changed = dict(self.model.feeds), dict(feeds), False
        try:
            while waiting:
                ready = [name for name, over in waiting.items() if not waiting.keys() & set(over)]
                if not ready:
                    raise Refused  # a cycle
                for name in ready:
                    changed |= self.model.create(name, tuple(waiting.pop(name)))
        except Refused:
            self.model.feeds = before
            assert not accepted
        else:
            self.model.version += changed
            assert accepted

    @rule(name=names)
    def drop(self, name: str) -> None:
        accepted = self.apply(f"drop feed {name};")
        try:
            self.model.drop(name, self.clock.now)
        except Refused:
            assert not accepted
        else:
            self.model.version += 1
            assert accepted

    @rule(name=names, days=days, count=st.integers(1, 3))
    def subscribe(self, name: str, days: int, count: int) -> None:
        accepted = self.apply(f"subscribe to {name} output console for {days} days;" * count)
        try:
            for _ in range(count):
                self.model.subscribe(name, self.clock.now + timedelta(days=days))
        except Refused:
            assert not accepted
        else:
            self.model.version += 1
            assert accepted

    @rule(choice=st.integers(0, 100), days=days, cancel=st.booleans())
    def renew_or_cancel(self, choice: int, days: int, cancel: bool) -> None:
        if not self.tickets:
            return
        id_, ticket = list(self.tickets.items())[choice % len(self.tickets)]
        statement = Unsubscribe(ticket) if cancel else Renew(ticket, Duration(days, Unit.DAY))
        name = self.model.subscribed(self.clock.now).get(id_)
        if name is None:
            with pytest.raises(BadTicket):
                self.catalog.apply([statement])
            return
        self.catalog.apply([statement])
        self.model.version += 1
        if cancel:
            del self.model.living_until[id_]
        else:
            self.model.living_until[id_] = (name, self.clock.now + timedelta(days=days))

    @rule(hours=st.integers(1, 48))
    def pass_time(self, hours: int) -> None:
        self.clock.advance(hours=hours)

    @rule()
    def expire(self) -> None:
        living = self.model.subscribed(self.clock.now)
        dead = self.model.living_until.keys() - living
        assert self.catalog.expire() == len(dead)
        for id_ in dead:
            del self.model.living_until[id_]
        self.model.version += bool(dead)

    @rule(name=names)
    def fail_in_the_middle(self, name: str) -> None:
        assert not self.apply(f"subscribe to S output console; create feed {name} from Nowhere;")
        with pytest.raises(FeedCycle):
            self.catalog.apply(
                parse_script(f"create feed Z from {name}; create feed {name} from Z;")
            )

    @invariant()
    def same(self) -> None:
        assert self.catalog.version() == self.model.version
        found = {each.name: each.definition for each in self.catalog.list_definitions()}
        assert found.pop("S")
        assert found.keys() == self.model.feeds.keys()
        for name, over in self.model.feeds.items():
            clause = over[0] if len(over) == 1 else f"({' | '.join(over)})"
            assert found[name] == f"create feed {name}\n  from {clause};"
        subscribed = {each.id: each.feed for each in self.catalog.list_subscriptions()}
        assert subscribed == self.model.subscribed(self.clock.now)


def test_any_history_in_memory() -> None:
    class InMemory(Histories):
        new_url = staticmethod(lambda: "sqlite://")

    run_state_machine_as_test(InMemory, settings=settings(max_examples=40, stateful_step_count=30))


@pytest.mark.postgres
def test_any_history_in_postgresql(postgres_server) -> None:
    class InPostgresql(Histories):
        new_url = staticmethod(postgres_server.new_url)

    # What fails here is made small where that is fast: in memory.
    few = settings(
        max_examples=10,
        stateful_step_count=30,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )
    run_state_machine_as_test(InPostgresql, settings=few)
