"""Counts by source, day and feed are those of the items."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.small_log import NOON, SmallLog, news, ticket

from headgate.cli.output import sparkline
from headgate.model.items import Item
from headgate.store.stats import stats

texts = st.lists(st.sampled_from(["rock", "pop", "concert"]), max_size=3).map(" ".join)
batches = st.lists(st.lists(texts, min_size=1, max_size=5), max_size=12)


def test_counts(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.put([ticket("1", 10, "Paris"), ticket("2", 90, "Rome")], arrived=NOON)
    store.put([news("4", "rock", source="Photos")], arrived=NOON + timedelta(days=1))
    store.put([ticket("3", 10, "Rome")], arrived=NOON + timedelta(days=2))
    found = stats(store.view())
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
    files = (each for each in (store.folder.path / "data").rglob("*") if each.is_file())
    assert found.bytes == sum(each.stat().st_size for each in files)
    store.merge()
    assert replace(stats(store.view()), files=3, bytes=0) == replace(found, bytes=0)


def test_what_joins_have_found_is_no_further_item(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.put([news("1", "pop"), news("2", "pop"), news("3", "rock")], arrived=NOON)
    store.put_joined(news("1", "pop"), "Pictures", arrived=NOON + timedelta(minutes=1))
    found = stats(store.view())
    counts = found.sources["News"]
    assert (counts.items, counts.unmatched, counts.matches) == (3, 1, 2)
    assert found.feeds == {store.number("Rock"): 1, store.number("Pictures"): 1}


def test_since(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    for hour in range(5):
        store.put([ticket(str(hour), 10, "Rome")], arrived=NOON + timedelta(hours=hour))
    found = stats(store.view(), since=NOON + timedelta(hours=2))
    assert (found.items, found.feeds) == (3, {store.number("Cheap"): 3})


def test_damaged_files_are_left_out(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.put([ticket("1", 10, "Rome")], arrived=NOON)
    bad = store.put([ticket("2", 10, "Rome")], arrived=NOON)
    store.damage(bad.items)
    assert stats(store.view()).items == 2, "segments have what is needed"
    store.damage(bad.segment)
    view = store.view()
    found = stats(view)
    assert (found.items, found.files) == (1, 1)
    assert set(view.damaged) == {bad.items}


def test_files_that_were_merged_meanwhile(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    for number in range(4):
        store.put([ticket(str(number), 10, "Rome")], arrived=NOON)
    view = store.view()
    store.merge(fan_in=4)
    assert (stats(view).items, stats(view).files) == (4, 1)


def test_trimmed_items_are_not_counted(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.put([ticket("1", 10, "Rome"), ticket("2", 10, "Rome")], arrived=NOON)
    store.sequencer.trim(1)
    found = stats(store.view())
    assert (found.items, found.feeds) == (1, {store.number("Cheap"): 1})


@settings(max_examples=20)
@given(drawn=batches, since=st.integers(0, 12), joined=st.integers(0, 12), merged=st.booleans())
def test_counts_are_those_of_a_loop(
    drawn: list[list[str]], since: int, joined: int, *, merged: bool
) -> None:
    with TemporaryDirectory() as path:
        store, rows = SmallLog(Path(path)), list[tuple[Item, datetime, list[int]]]()
        results: list[tuple[Item, datetime, list[int]]] = []
        for number, batch in enumerate(drawn):
            arrived = NOON + timedelta(hours=5 * number)
            items = [news(f"{number}-{n}", text) for n, text in enumerate(batch)]
            store.put(items, arrived=arrived)
            rows += [(item, arrived, store.feeds_of(item)[0]) for item in items]
            if number < joined:
                arrived += timedelta(hours=1)
                store.put_joined(items[0], "Pictures", arrived=arrived)
                results.append((items[0], arrived, [store.number("Pictures")]))
        if merged:
            store.merge()
        first = NOON + timedelta(hours=5 * since)
        rows, results = ([each for each in some if each[1] >= first] for some in (rows, results))
        found = stats(store.view(), since=first)
        feeds = Counter(feed for _, _, feeds in (*rows, *results) for feed in feeds)
        assert found.feeds == feeds
        assert found.items == len(rows)
        assert found.matches == (feeds.total() if rows else 0)
        with_result = {item.id for item, _, _ in results}
        unmatched = [item for item, _, feeds in rows if not feeds and item.id not in with_result]
        assert found.unmatched == len(unmatched)
        if rows:
            counts = found.sources["News"]
            assert counts.by_day == Counter(arrived.date() for _, arrived, _ in rows)
            assert (counts.first, counts.last) == (rows[0][1], rows[-1][1])


def test_an_empty_store(tmp_path: Path) -> None:
    found = stats(SmallLog(tmp_path).view())
    assert (found.items, found.days, found.span_s, found.rate_per_s(0)) == (0, [], 0.0, None)


def test_something_is_never_shown_as_nothing() -> None:
    assert sparkline([0, 1, 1_000_000]) == " ▁█"
