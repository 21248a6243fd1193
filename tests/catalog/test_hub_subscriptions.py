"""Subscriptions of the hub against a model that is a dictionary; limits, seals, leases."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sqlalchemy import text
from tests.catalog.conftest import ManualClock
from tests.catalog.test_tenants import acting, execute

from headgate.catalog import hub_subscriptions
from headgate.catalog.catalog import Catalog
from headgate.catalog.hub_subscriptions import (
    REQUEST_VALIDITY,
    HubMode,
    HubRequest,
    HubSubscription,
    UnconfirmedRequest,
)
from headgate.model.errors import QuotaExceeded, UnknownName

SCRIPT = "register stream S from post (n int); create feed F from S where n > 3;"
SUBSCRIBE, UNSUBSCRIBE = HubMode.SUBSCRIBE, HubMode.UNSUBSCRIBE


def link_in(catalog: Catalog, tenant: str = "acme") -> str:
    return acting(catalog, tenant).create_link("F").link.id


def subscribed(catalog: Catalog, request: HubRequest, position: int = 0) -> HubSubscription:
    assert catalog.hub.request(request)
    (asked,) = [each for each in catalog.hub.due_requests(1_000) if each.request == request]
    found = catalog.hub.confirm(asked, position)
    assert found is not None
    return found


@pytest.fixture
def acme(catalog: Catalog) -> str:
    """The id of a link of acme, in SQLite and in PostgreSQL."""
    for tenant in ("acme", "globex"):
        catalog.add_tenant(tenant)
        execute(acting(catalog, tenant), SCRIPT)
    return link_in(catalog)


def test_a_subscription_begins_when_its_callback_confirms_it(
    catalog: Catalog, acme: str, clock: ManualClock
) -> None:
    request = HubRequest(SUBSCRIBE, acme, "topic", "callback", "secret ü\0", 600)
    assert catalog.hub.is_empty()
    assert catalog.hub.request(request)
    assert not catalog.hub.is_empty()
    assert catalog.hub.active() == []
    (asked,) = catalog.hub.due_requests(10)
    assert asked.request == request
    begun = catalog.hub.confirm(asked, 17)
    assert catalog.hub.active() == [begun]
    assert begun is not None
    assert (begun.topic, begun.callback, begun.secret) == ("topic", "callback", "secret ü\0")
    assert (begun.position, begun.expires_at) == (17, clock.now + timedelta(seconds=600))
    assert catalog.hub.due_requests(10) == []
    assert catalog.hub.confirm(asked, 99) is None, "it was confirmed before"
    clock.advance(seconds=600)
    assert catalog.hub.active() == []
    catalog.hub.sweep()
    assert catalog.hub.is_empty()


def test_a_renewal_keeps_the_position_and_takes_the_new_secret(catalog: Catalog, acme: str) -> None:
    first = subscribed(catalog, HubRequest(SUBSCRIBE, acme, "t", "c", "old", 600), 5)
    catalog.hub.has_taken(first.id, 9)
    renewal = HubRequest(SUBSCRIBE, acme, "t", "c", "new", 900)
    catalog.hub.request(renewal)
    assert [each.secret for each in catalog.hub.active()] == ["old"], "not confirmed yet"
    (asked,) = catalog.hub.due_requests(10)
    renewed = catalog.hub.confirm(asked, 1_000)
    assert renewed is not None
    assert (renewed.secret, renewed.position, renewed.id) == ("new", 9, first.id)


def test_nothing_can_be_read_from_the_table(catalog: Catalog, acme: str) -> None:
    subscribed(catalog, HubRequest(SUBSCRIBE, acme, "the-topic", "the-callback", "the-secret", 60))
    catalog.hub.request(HubRequest(UNSUBSCRIBE, acme, "the-topic", "the-callback"))
    with catalog._database.reading() as connection:
        row = connection.execute(text("SELECT * FROM hub_subscriptions")).one()
    for each in row:
        shown = bytes(each) if isinstance(each, bytes | memoryview) else str(each).encode()
        assert b"the-" not in shown
    assert "the-" not in repr(catalog.hub.active())


def test_a_row_that_was_put_in_place_of_another_is_not_used(catalog: Catalog, acme: str) -> None:
    for name in ("a", "b"):
        subscribed(catalog, HubRequest(SUBSCRIBE, acme, "t", name, "s", 60))
    with catalog._database.writing() as connection:
        connection.execute(
            text(
                "UPDATE hub_subscriptions SET details = (SELECT other.details FROM "
                "hub_subscriptions other ORDER BY other.id LIMIT 1)"
            )
        )
    assert len(catalog.hub.active()) == 1


def test_limits_of_a_link_a_tenant_and_all(
    catalog: Catalog, acme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_subscriptions, "LINK_MAX", 2)
    monkeypatch.setattr(hub_subscriptions, "TENANT_MAX", 3)
    monkeypatch.setattr(hub_subscriptions, "TOTAL_MAX", 4)
    other, globex = link_in(catalog), link_in(catalog, "globex")

    def ask(link: str, callback: str) -> None:
        catalog.hub.request(HubRequest(SUBSCRIBE, link, "t", callback, "", 60))

    ask(acme, "1")
    ask(acme, "2")
    ask(acme, "2")
    with pytest.raises(QuotaExceeded, match="this link has 2 subscriptions"):
        ask(acme, "3")
    ask(other, "4")
    with pytest.raises(QuotaExceeded, match="its tenant has 3"):
        ask(other, "5")
    ask(globex, "6")
    with pytest.raises(QuotaExceeded, match="this hub has 4"):
        ask(globex, "7")
    with pytest.raises(UnknownName):
        ask("nolink", "8")


def test_a_subscription_goes_with_its_link_and_with_its_tenant(catalog: Catalog, acme: str) -> None:
    globex = link_in(catalog, "globex")
    for link in (acme, globex):
        subscribed(catalog, HubRequest(SUBSCRIBE, link, link, "c", "", 60))
    acting(catalog, "acme").revoke_link(acme)
    (left,) = catalog.hub.active()
    assert left.topic == globex
    assert not catalog.hub.has_taken("x", 3)
    execute(acting(catalog, "globex"), "drop feed F;")
    assert catalog.hub.is_empty()


def test_one_process_at_a_time_has_the_lease(catalog: Catalog, clock: ManualClock) -> None:
    assert catalog.hub.take_lease("a", 20)
    assert not catalog.hub.take_lease("b", 20)
    clock.advance(seconds=15)
    assert catalog.hub.take_lease("a", 20)
    clock.advance(seconds=15)
    assert not catalog.hub.take_lease("b", 20)
    clock.advance(seconds=6)
    assert catalog.hub.take_lease("b", 20)
    catalog.hub.end_lease("a")
    assert not catalog.hub.take_lease("a", 20)
    catalog.hub.end_lease("b")
    assert catalog.hub.take_lease("a", 20)


# --- against a model ------------------------------------------------------------------------------


@dataclass
class Expected:
    """A subscription as the model has it."""

    secret: str | None = None
    until: datetime | None = None
    position: int = 0
    asked: tuple[HubMode, str, int] | None = None
    asked_until: datetime | None = None


class HubHistory(RuleBasedStateMachine):
    """Any history of requests, confirmations, refusals, acknowledgements and time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = datetime(2026, 11, 18, tzinfo=UTC)
        self.catalog = Catalog.open("sqlite://", clock=lambda: self.now)
        self.catalog.add_tenant("acme")
        execute(acting(self.catalog, "acme"), SCRIPT)
        self.links = {name: link_in(self.catalog) for name in ("one", "two")}
        self.model: dict[tuple[str, str], Expected] = {}
        self.old: list[UnconfirmedRequest] = []

    def teardown(self) -> None:
        self.catalog.close()

    names = st.sampled_from(["one", "two"])
    callbacks = st.sampled_from(["x", "y"])

    @rule(link=names, callback=callbacks, secret=st.text(max_size=3), lease_s=st.integers(60, 900))
    def ask_to_subscribe(self, link: str, callback: str, secret: str, lease_s: int) -> None:
        if link not in self.links:
            return
        request = HubRequest(SUBSCRIBE, self.links[link], link, callback, secret, lease_s)
        assert self.catalog.hub.request(request)
        found = self.model.setdefault((link, callback), Expected())
        found.asked, found.asked_until = (SUBSCRIBE, secret, lease_s), self.now + REQUEST_VALIDITY

    @rule(link=names, callback=callbacks)
    def ask_to_unsubscribe(self, link: str, callback: str) -> None:
        if link not in self.links:
            return
        request = HubRequest(UNSUBSCRIBE, self.links[link], link, callback)
        found = self.model.get((link, callback))
        assert self.catalog.hub.request(request) == (found is not None)
        if found is not None:
            found.asked, found.asked_until = (UNSUBSCRIBE, "", 0), self.now + REQUEST_VALIDITY

    def due(self) -> list[UnconfirmedRequest]:
        return self.catalog.hub.due_requests(100)

    @precondition(lambda self: self.due())
    @rule(data=st.data(), position=st.integers(0, 50), answer=st.sampled_from(["yes", "no"]))
    def callback_answers(self, data: st.DataObject, position: int, answer: str) -> None:
        asked = data.draw(st.sampled_from(self.due()))
        self.old.append(asked)
        key = asked.request.topic, asked.request.callback
        found = self.model[key]
        assert found.asked is not None
        mode, secret, lease_s = found.asked
        found.asked = None
        if answer == "no":
            self.catalog.hub.refuse(asked)
            if found.until is None:
                del self.model[key]
            return
        self.catalog.hub.confirm(asked, position)
        if mode is UNSUBSCRIBE:
            del self.model[key]
            return
        if found.until is None or found.until <= self.now:
            found.position = position
        found.secret, found.until = secret, self.now + timedelta(seconds=lease_s)

    @precondition(lambda self: self.old)
    @rule(data=st.data())
    def a_late_answer_changes_nothing(self, data: st.DataObject) -> None:
        asked = data.draw(st.sampled_from(self.old))
        self.catalog.hub.confirm(asked, 40)
        self.catalog.hub.refuse(asked)

    @rule(link=names, callback=callbacks, position=st.integers(0, 60))
    def take(self, link: str, callback: str, position: int) -> None:
        id_ = HubRequest(SUBSCRIBE, "", link, callback).id
        found = self.model.get((link, callback))
        assert self.catalog.hub.has_taken(id_, position) == (found is not None)
        if found is not None:
            found.position = max(found.position, position)

    @rule(seconds=st.integers(1, 400))
    def pass_time(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        for each in self.model.values():
            if each.asked is not None and each.asked_until is not None:
                each.asked = each.asked if each.asked_until > self.now else None

    @rule()
    def sweep(self) -> None:
        self.catalog.hub.sweep()
        self.model = {
            key: each
            for key, each in self.model.items()
            if each.asked or (each.until is not None and each.until > self.now)
        }

    @rule(link=names)
    def revoke(self, link: str) -> None:
        if link in self.links:
            acting(self.catalog, "acme").revoke_link(self.links.pop(link))
            self.model = {key: each for key, each in self.model.items() if key[0] != link}

    @invariant()
    def it_is_as_the_model_says(self) -> None:
        active = {
            (each.topic, each.callback): (each.secret, each.expires_at, each.position)
            for each in self.catalog.hub.active()
        }
        assert active == {
            key: (each.secret, each.until, each.position)
            for key, each in self.model.items()
            if each.until is not None and each.until > self.now
        }
        due = {
            (each.request.topic, each.request.callback): (
                each.request.mode,
                each.request.secret,
                each.request.lease_s,
            )
            for each in self.due()
        }
        assert due == {key: each.asked for key, each in self.model.items() if each.asked}


TestHubHistory = HubHistory.TestCase
TestHubHistory.settings = settings(deadline=None, max_examples=40, stateful_step_count=30)
