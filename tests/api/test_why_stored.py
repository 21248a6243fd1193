"""Why a stored item is in a feed or not, and what became of its delivery."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.store.small_log import NOON, SmallLog, news, ticket

from headgate.api.why_stored import WhyStored, found_item, why_stored
from headgate.catalog.catalog import Catalog
from headgate.deliver.delivery_database import DeliveryChange, DeliveryDatabase
from headgate.deliver.delivery_status import dead_letters
from headgate.deliver.delivery_tables import DeadLetter, RetryRow
from headgate.deliver.replay import replay
from headgate.deliver.subscription_table import slot_of
from headgate.language.parse import parse_script
from headgate.model.errors import CatalogError, UnknownName

CHEAP = ticket("1", 10, "Paris")


@pytest.fixture
def store(tmp_path: Path) -> SmallLog:
    made = SmallLog(tmp_path)
    made.put([CHEAP, ticket("2", 90, "Rome")], arrived=NOON)
    made.put([news("2", "rock"), news("3", "rock", source="Photos")], arrived=NOON)
    return made


@pytest.fixture
def catalog(store: SmallLog) -> Iterator[Catalog]:
    with store.catalog() as opened:
        yield opened


def asked(
    store: SmallLog, catalog: Catalog, id_: str, asked_for: str, source: str | None = None
) -> WhyStored:
    view = store.view()
    return why_stored(view, catalog, found_item(view, catalog, id_, source=source), asked_for)


def test_an_item_of_the_feed(store: SmallLog, catalog: Catalog) -> None:
    told = asked(store, catalog, "1", "CheapParis")
    assert told.has
    assert told.verdict() == "CheapParis has it"
    assert told.feeds == ["Cheap", "CheapParis", "Paris"]
    assert told.why is not None
    assert told.why.answer is True
    assert told.delivery() == ""


def test_an_item_that_is_not(store: SmallLog, catalog: Catalog) -> None:
    told = asked(store, catalog, "2", "Cheap", "Tickets")
    assert not told.has
    assert told.why is not None
    assert "price is 90" in told.why.text()


def test_ids_of_several_sources(store: SmallLog, catalog: Catalog) -> None:
    with pytest.raises(CatalogError, match="name its source: News or Tickets"):
        asked(store, catalog, "2", "Cheap")
    assert asked(store, catalog, "2", "Rock", "News").has


def test_unknown_items_feeds_and_subscriptions(store: SmallLog, catalog: Catalog) -> None:
    with pytest.raises(UnknownName, match="no item '17' of 'News'"):
        asked(store, catalog, "17", "Rock", "News")
    with pytest.raises(UnknownName, match="did you mean 'Rock'"):
        asked(store, catalog, "1", "Rok")
    with pytest.raises(UnknownName, match="no active subscription 999"):
        asked(store, catalog, "1", "999")


def test_a_source(store: SmallLog, catalog: Catalog) -> None:
    assert asked(store, catalog, "1", "Tickets").has
    told = asked(store, catalog, "1", "News")
    assert (told.has, told.why) == (False, None)


def test_a_feed_that_came_later(store: SmallLog) -> None:
    path = str(store.path / "headgate.db")
    store.catalog().close()
    with Catalog.open(path, clock=lambda: NOON + timedelta(hours=1)) as catalog:
        catalog.apply(parse_script("create feed New from Tickets;"))
        told = asked(store, catalog, "1", "New")
    assert not told.has
    assert "created at 2026-11-16 13:00:00, after the item had arrived" in told.verdict()


def test_a_feed_that_was_dropped_is_counted(store: SmallLog, catalog: Catalog) -> None:
    catalog.apply(parse_script("drop feed CheapParis;"))
    told = asked(store, catalog, "1", "Cheap")
    assert (told.feeds, told.dropped) == (["Cheap", "Paris"], 1)


def test_what_a_join_has_found(store: SmallLog, catalog: Catalog) -> None:
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
def living(store: SmallLog) -> Iterator[Catalog]:
    """A catalog in which subscriptions still live."""
    with store.catalog() as opened:
        opened.apply(
            parse_script(
                "subscribe to Cheap output webhook 'https://example.org/long' for 90 years;"
            )
        )
        yield opened


def test_deliveries(store: SmallLog, living: Catalog) -> None:
    newest = living.list_subscriptions("Cheap")[-1]
    who, slot = str(newest.id), slot_of(newest.id, newest.output_kind, newest.target)
    assert "nothing was delivered from this folder" in asked(store, living, "1", who).delivery()
    with DeliveryDatabase(store.folder.delivery_database) as database:

        def told() -> str:
            view = store.view()
            found = found_item(view, living, "1")
            return why_stored(view, living, found, who, database).delivery()

        def change(work: Callable[[DeliveryChange], None]) -> None:
            with database.changing() as connection:
                work(DeliveryChange(connection))

        assert "waiting since 2026-11-16 12:00:00" in told()
        database.lease("w", {}, now_s=0.0, lease_s=60.0)
        change(lambda rows: rows.move_cursors([slot], 2, seen_id=newest.id))
        assert "webhook https://example.org/long: sent" in told()
        at_s = NOON.timestamp()
        retry = RetryRow(newest.id, "m", 1, slot, 0, 1, at_s + 60, 1, None, "gone")
        change(lambda rows: rows.put_retries([retry]))
        assert "failed after 1 attempt: gone; again at 2026-11-16 12:01:00" in told()
        letter = DeadLetter(newest.id, 1, "m", 0, 1, 2, "[]", 1, "gone", at_s, slot)
        change(lambda rows: rows.put_dead([letter]))
        assert "dead since 2026-11-16 12:00:00, after 2 attempts: gone" in told()
        assert [each.count for each in dead_letters(database, limit=5)] == [1]
        assert replay(database, newest.id, now_s=at_s).letters == 1
        assert dead_letters(database, limit=5) == []
    assert asked(store, living, "2", who, "Tickets").delivery().endswith("nothing to deliver")
