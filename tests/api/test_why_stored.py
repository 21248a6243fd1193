"""Why a stored item is in a feed or not, and what became of its delivery."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.store.small_store import NOON, SmallStore, news, ticket

from headgate.api.why_stored import WhyStored, found_item, why_stored
from headgate.catalog.catalog import Catalog
from headgate.deliver.item_deliveries import count_deliveries, dead_letters
from headgate.deliver.outbox import Outbox
from headgate.deliver.records import ItemDelivery
from headgate.language import parse_script
from headgate.model.errors import CatalogError, UnknownName
from headgate.store.read_store import StoreReader

CHEAP = ticket("1", 10, "Paris")


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    made = SmallStore(tmp_path)
    made.put([CHEAP, ticket("2", 90, "Rome")], arrived=NOON)
    made.put([news("2", "rock"), news("3", "rock", source="Photos")], arrived=NOON)
    return made


@pytest.fixture
def catalog(store: SmallStore) -> Iterator[Catalog]:
    with store.catalog() as opened:
        yield opened


def asked(
    store: SmallStore, catalog: Catalog, id_: str, asked_for: str, source: str | None = None
) -> WhyStored:
    with StoreReader(store.folder) as reader:
        return why_stored(reader, catalog, found_item(reader, id_, source), asked_for)


def test_an_item_of_the_feed(store: SmallStore, catalog: Catalog) -> None:
    told = asked(store, catalog, "1", "CheapParis")
    assert told.has
    assert told.verdict() == "CheapParis has it"
    assert told.feeds == ["Cheap", "CheapParis", "Paris"]
    assert told.why is not None
    assert told.why.answer is True
    assert told.delivery() == ""


def test_an_item_that_is_not(store: SmallStore, catalog: Catalog) -> None:
    told = asked(store, catalog, "2", "Cheap", "Tickets")
    assert not told.has
    assert told.why is not None
    assert "price is 90" in told.why.text()


def test_ids_of_several_sources(store: SmallStore, catalog: Catalog) -> None:
    with pytest.raises(CatalogError, match="--source which: News or Tickets"):
        asked(store, catalog, "2", "Cheap")
    assert asked(store, catalog, "2", "Rock", "News").has


def test_unknown_items_feeds_and_subscriptions(store: SmallStore, catalog: Catalog) -> None:
    with pytest.raises(UnknownName, match="no item '17' of 'News'"):
        asked(store, catalog, "17", "Rock", "News")
    with pytest.raises(UnknownName, match="did you mean 'Rock'"):
        asked(store, catalog, "1", "Rok")
    with pytest.raises(UnknownName, match="no active subscription 999"):
        asked(store, catalog, "1", "999")


def test_a_source(store: SmallStore, catalog: Catalog) -> None:
    assert asked(store, catalog, "1", "Tickets").has
    told = asked(store, catalog, "1", "News")
    assert (told.has, told.why) == (False, None)


def test_a_feed_that_came_later(store: SmallStore) -> None:
    path = str(store.path / "headgate.db")
    store.catalog().close()
    with Catalog.open(path, clock=lambda: NOON + timedelta(hours=1)) as catalog:
        catalog.apply(parse_script("create feed New from Tickets;"))
        told = asked(store, catalog, "1", "New")
    assert not told.has
    assert "created at 2026-11-16 13:00:00, after the item had arrived" in told.verdict()


def test_a_feed_that_was_dropped_is_counted(store: SmallStore, catalog: Catalog) -> None:
    catalog.apply(parse_script("drop feed CheapParis;"))
    told = asked(store, catalog, "1", "Cheap")
    assert (told.feeds, told.dropped) == (["Cheap", "Paris"], 1)


def test_what_a_join_has_found(store: SmallStore, catalog: Catalog) -> None:
    told = asked(store, catalog, "2", "Pictures", "News")
    assert not told.has
    assert told.further == ["Pictures"]
    assert "its leaves let it through" in told.verdict()
    store.put_joined(news("2", "rock"), "Pictures", arrived=NOON + timedelta(minutes=1))
    told = asked(store, catalog, "2", "Pictures", "News")
    assert told.has
    assert told.feeds == ["Pictures", "Rock"]
    assert [each["join"] for each in told.joined] == ["j"]


@pytest.fixture
def living(store: SmallStore) -> Iterator[Catalog]:
    """A catalog in which subscriptions still live."""
    with store.catalog() as opened:
        opened.apply(
            parse_script(
                "subscribe to Cheap output webhook 'https://example.org/long' for 90 years;"
            )
        )
        yield opened


def test_deliveries(store: SmallStore, living: Catalog) -> None:
    newest = living.list_subscriptions("Cheap")[-1]
    who = str(newest.id)
    assert "not in the outbox" in asked(store, living, "1", who).delivery()
    now_s = NOON.timestamp()
    with Outbox.open(store.folder.outbox) as outbox:
        outbox.put([ItemDelivery(newest.id, newest.version, "Cheap", CHEAP)], now_s=now_s)
        assert "waiting since 2026-11-16 12:00:00" in asked(store, living, "1", who).delivery()
        (message,) = outbox.messages(newest.id, together=False, limit=1, now_s=now_s + 1)
        outbox.mark_sending(message)
        assert asked(store, living, "1", who).delivery().endswith("being sent")
        outbox.mark_failed(
            message.numbers, "gone\x1b[31m", attempts_max=2, now_s=now_s, retry_at_s=now_s + 60
        )
        told = asked(store, living, "1", who).delivery()
        assert "failed after 1 attempt: gone [31m; again at 2026-11-16 12:01:00" in told
        outbox.mark_failed(message.numbers, "gone", attempts_max=2, now_s=now_s)
        assert "dead since 2026-11-16 12:00:00, after 2 attempts: gone" in (
            asked(store, living, "1", who).delivery()
        )
        assert [
            (each.subscription, each.count) for each in dead_letters(store.folder.outbox, limit=5)
        ] == [(newest.id, 1)]
        outbox.replay(newest.id, now_s=now_s)
        outbox.mark_sent(message.numbers, now_s=now_s + 5)
    told = asked(store, living, "1", who).delivery()
    assert told.endswith(": sent at 2026-11-16 12:00:05")
    assert "webhook https://example.org/long" in told
    assert count_deliveries(store.folder.outbox)["sent"] == 1
    assert asked(store, living, "2", who, "Tickets").delivery().endswith("nothing to deliver")


def test_without_an_outbox(tmp_path: Path) -> None:
    assert set(count_deliveries(tmp_path / "outbox.db").values()) == {0}
    assert dead_letters(tmp_path / "outbox.db", limit=5) == []
