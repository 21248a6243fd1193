"""Subscriptions: their validity and their tickets."""

import hashlib
import logging
from datetime import timedelta

import pytest
from sqlalchemy import select
from tests.catalog.conftest import ManualClock

from headgate.catalog import tables
from headgate.catalog.catalog import Catalog
from headgate.catalog.subscribe import claimed_subscription, new_ticket
from headgate.catalog.transaction import Outcome
from headgate.language.parse import parse_script
from headgate.language.statements import Renew, Unsubscribe
from headgate.model.duration import Duration, Unit
from headgate.model.errors import BadTicket, UnknownName

SOURCE = "register feed https://example.org/news as News;"


@pytest.fixture
def subscribed(catalog: Catalog) -> Outcome:
    script = SOURCE + "subscribe to News apply 'a.xsl' output mail 'me@a.org' every 3 hours"
    return catalog.apply(parse_script(script + " at site Paris;"))[-1]


def bad_ticket_message(catalog: Catalog, ticket: str) -> str:
    version = catalog.version()
    messages = set()
    for statement in (Renew(ticket), Unsubscribe(ticket)):
        with pytest.raises(BadTicket) as caught:
            catalog.apply([statement])
        assert len(ticket) < 5 or ticket not in str(caught.value)
        messages.add(str(caught.value))
    assert catalog.version() == version
    return messages.pop()


def test_a_subscription_has_the_given_fields(catalog, subscribed, clock):
    found = catalog.get_subscription(subscribed.subscription_id)
    assert found == catalog.list_subscriptions()[0]
    assert (found.feed, found.target, found.stylesheet) == ("News", "me@a.org", "a.xsl")
    assert (found.period_s, found.site, found.version) == (3 * 3600, "Paris", 1)
    assert found.created_at == clock.now
    assert found.created_at.utcoffset() == timedelta(0)
    assert found.expires_at == subscribed.expires_at == clock.now + timedelta(days=1)


def test_validity_can_be_stated(catalog: Catalog, clock: ManualClock):
    script = SOURCE + "subscribe to News output console for 30 days;"
    assert catalog.apply(parse_script(script))[1].expires_at == clock.now + timedelta(days=30)


def test_subscribing_twice_makes_two(catalog: Catalog):
    script = SOURCE + "subscribe to News output console;" * 2
    one, two = catalog.apply(parse_script(script))[1:]
    assert (one.subscription_id, two.subscription_id) == (1, 2)
    assert one.ticket != two.ticket
    catalog.apply([Unsubscribe(two.ticket)])
    assert [each.id for each in catalog.list_subscriptions()] == [1]


def test_an_id_is_never_used_again(catalog: Catalog, subscribed: Outcome):
    catalog.apply([Unsubscribe(subscribed.ticket)])
    with pytest.raises(BadTicket):
        catalog.apply([*parse_script("subscribe to News output console;"), Renew("x")])
    outcome = catalog.apply(parse_script("subscribe to News output console;"))[0]
    assert outcome.subscription_id == subscribed.subscription_id + 1


def test_renewing_counts_from_now(catalog, subscribed, clock):
    clock.advance(hours=20)
    renewed = catalog.apply([Renew(subscribed.ticket)])[0]
    assert renewed.expires_at == clock.now + timedelta(days=1)
    assert renewed.action == "renewed subscription 1 to News"
    for days in (30, 2):
        catalog.apply([Renew(subscribed.ticket, Duration(days, Unit.DAY))])
        expires_at = catalog.get_subscription(1).expires_at
        assert expires_at == clock.now + timedelta(days=days)


def test_a_subscription_expires_at_its_end(catalog, subscribed, clock):
    clock.now = subscribed.expires_at - timedelta(microseconds=1)
    assert catalog.count_subscriptions() == len(catalog.list_subscriptions()) == 1
    clock.now = subscribed.expires_at
    assert catalog.count_subscriptions() == len(catalog.list_subscriptions()) == 0
    with pytest.raises(UnknownName, match="no active subscription 1"):
        catalog.get_subscription(1)
    bad_ticket_message(catalog, subscribed.ticket)


def test_expired_subscriptions_are_removed(catalog, subscribed, clock):
    catalog.apply(parse_script("subscribe to News output console for 3 days;"))
    version = catalog.version()
    assert (catalog.expire(), catalog.version()) == (0, version)
    clock.advance(days=2)
    assert (catalog.expire(), catalog.version()) == (1, version + 1)
    assert [each.id for each in catalog.list_subscriptions()] == [subscribed.subscription_id + 1]
    assert catalog.expire(clock.now + timedelta(days=1)) == 1


def test_whatever_is_wrong_with_a_ticket_the_answer_is_the_same(catalog, subscribed, clock):
    right = subscribed.ticket
    secret = right.partition("-")[2]
    wrong = [
        "",
        "x",
        "1",
        secret,
        f"1-{secret}x",
        f"01-{secret}",
        f"-1-{secret}",
        f"١-{secret}",
        f"2-{secret}",
        f"99999999999999999999999-{secret}",
        right[:-1] + ("A" if right[-1] != "A" else "B"),
        right.swapcase(),
        right + "\n",
        " " + right,
        new_ticket(1),
        "1-" + "é" * 43,
        "9" * 10_000_000,
    ]
    messages = {bad_ticket_message(catalog, ticket) for ticket in wrong}
    clock.advance(days=1)
    messages.add(bad_ticket_message(catalog, right))
    catalog.expire()
    messages.add(bad_ticket_message(catalog, right))
    assert len(messages) == 1
    assert "mistyped, expired or cancelled" in messages.pop()


def test_a_cancelled_subscription_is_gone(catalog: Catalog, subscribed: Outcome):
    outcome = catalog.apply([Unsubscribe(subscribed.ticket)])[0]
    assert outcome.action == "removed subscription 1 to News"
    assert catalog.list_subscriptions() == []
    bad_ticket_message(catalog, subscribed.ticket)


def test_a_ticket_is_returned_once_and_not_stored(catalog_url, clock, caplog):
    with caplog.at_level(logging.DEBUG), Catalog.open(catalog_url, clock=clock) as catalog:
        script = SOURCE + "subscribe to News output console;"
        outcome = catalog.apply(parse_script(script))[-1]
        catalog.apply([Renew(outcome.ticket)])
        with catalog._database.reading() as connection:
            rows = connection.execute(select(tables.subscriptions)).all()
            assert rows[0].ticket_hash == hashlib.sha256(outcome.ticket.encode()).hexdigest()
    for text in (repr(outcome), repr(rows), repr(Renew(outcome.ticket)), caplog.text):
        assert outcome.ticket not in text
    assert claimed_subscription(outcome.ticket) == 1
    assert len(outcome.ticket.partition("-")[2]) == 43
