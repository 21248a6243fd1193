"""Counts by source, day and feed are those of the items."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from tests.store.small_store import NOON, SmallStore, news, ticket

from headgate.cli.output import sparkline
from headgate.store.read_store import StoreReader
from headgate.store.stats import stats


def test_counts(tmp_path: Path) -> None:
    store = SmallStore(tmp_path)
    store.put([ticket("1", 10, "Paris"), ticket("2", 90, "Rome")], arrived=NOON)
    store.put([ticket("3", 10, "Rome")], arrived=NOON + timedelta(days=2))
    store.put([news("4", "rock", source="Photos")], arrived=NOON + timedelta(days=1))
    with StoreReader(store.folder) as reader:
        found = stats(reader)
    assert list(found.sources) == ["Tickets", "Photos"]
    tickets = found.sources["Tickets"]
    assert (tickets.items, tickets.unmatched, tickets.matches) == (3, 1, 4)
    assert [tickets.by_day[day] for day in found.days] == [2, 0, 1]
    assert (found.items, found.unmatched, found.matches, found.files) == (4, 1, 5, 3)
    assert found.feeds == {
        store.number("Cheap"): 2,
        store.number("Paris"): 1,
        store.number("CheapParis"): 1,
        store.number("Rock"): 1,
    }
    assert found.rate_per_s(4) == 4 / (2 * 86_400)
    assert found.bytes == sum(each.stat().st_size for each in store.folder.store.rglob("*.parquet"))


def test_what_joins_have_found_is_no_further_item(tmp_path: Path) -> None:
    store = SmallStore(tmp_path)
    store.put([news("1", "pop"), news("2", "pop"), news("3", "rock")], arrived=NOON)
    store.put_joined(news("1", "pop"), "Pictures", arrived=NOON + timedelta(minutes=1))
    with StoreReader(store.folder) as reader:
        found = stats(reader)
    counts = found.sources["News"]
    assert (counts.items, counts.unmatched, counts.matches) == (3, 1, 2)
    assert found.feeds == {store.number("Rock"): 1, store.number("Pictures"): 1}


def test_since(tmp_path: Path) -> None:
    store = SmallStore(tmp_path)
    for hour in range(5):
        store.put([ticket(str(hour), 10, "Rome")], arrived=NOON + timedelta(hours=hour))
    with StoreReader(store.folder) as reader:
        found = stats(reader, since=NOON + timedelta(hours=2))
    assert (found.items, found.feeds) == (3, {store.number("Cheap"): 3})


def test_damaged_files_are_left_out(tmp_path: Path) -> None:
    store = SmallStore(tmp_path)
    store.put([ticket("1", 10, "Rome")], arrived=NOON)
    bad = store.put([ticket("2", 10, "Rome")], arrived=NOON)
    bad.write_bytes(b"rubbish")
    with StoreReader(store.folder) as reader:
        assert stats(reader).items == 1
        assert set(reader.damaged) == {bad}


def test_an_empty_store(tmp_path: Path) -> None:
    with StoreReader(SmallStore(tmp_path).folder) as reader:
        found = stats(reader)
    assert (found.items, found.days, found.span_s, found.rate_per_s(0)) == (0, [], 0.0, None)


def test_something_is_never_shown_as_nothing() -> None:
    assert sparkline([0, 1, 1_000_000]) == " ▁█"
