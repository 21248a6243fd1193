"""All rows with an id are found, with their feeds, in batches and merged files."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.small_log import NOON, SmallLog, news, ticket

from headgate.match.item_columns import group_of
from headgate.model.items import Item
from headgate.store import whole_files
from headgate.store.find_item import find_item
from headgate.store.log_view import LogView

rows = st.tuples(st.sampled_from(["Tickets", "News", "Photos"]), st.integers(0, 6))
batches = st.lists(st.lists(rows, min_size=1, max_size=5), max_size=8)


def item(source: str, number: int) -> Item:
    if source == "Tickets":
        return ticket(str(number), 10 * number, "Rome")
    return news(str(number), "rock" if number % 2 else "pop", source=source)


@settings(max_examples=25)
@given(batches, st.integers(0, 6), st.sampled_from([None, "Tickets", "News"]), st.integers(0, 8))
def test_what_is_found_is_what_was_put(
    drawn: list[list[tuple[str, int]]], number: int, source: str | None, merged_after: int
) -> None:
    with TemporaryDirectory() as path:
        store, put = SmallLog(Path(path)), list[Item]()
        for batch_number, batch in enumerate(drawn):
            for is_ticket in (True, False):
                items = [item(*row) for row in batch if (row[0] == "Tickets") is is_ticket]
                if items:
                    store.put(items, arrived=NOON + timedelta(seconds=batch_number))
                    put += items
            if batch_number == merged_after:
                store.merge()
        schemas = None if source is None else {group_of(store.schema(source))}
        found = find_item(store.view(), str(number), source=source, schemas=schemas)
        expected = [
            each for each in put if each.id == str(number) and source in (None, each.source)
        ]
        assert [(row.item.source, row.item.id) for row in found] == [
            (each.source, each.id) for each in expected
        ]
        assert [(list(row.feeds), list(row.inputs)) for row in found] == [
            store.feeds_of(each) for each in expected
        ]


def test_results_of_joins_are_found_too(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.put([news("1", "pop")], arrived=NOON)
    store.put_joined(news("1", "pop"), "Pictures", arrived=NOON + timedelta(minutes=1))
    own, joined = find_item(store.view(), "1", source="News")
    assert (own.feeds, own.inputs) == ((), (store.number("Pictures"),))
    assert (joined.feeds, len(joined.item.annotations)) == ((store.number("Pictures"),), 1)


def test_groups_and_sources_that_cannot_have_it_are_not_read(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.put([ticket("1", 1, "Rome")], arrived=NOON)
    store.damage(store.put([news("1", "rock")], arrived=NOON).items)
    store.damage(store.put([news("1", "rock", source="Photos")], arrived=NOON).items)
    view = store.view()
    schemas = {group_of(store.schema("Tickets"))}
    assert len(find_item(view, "1", source="Tickets", schemas=schemas)) == 1
    assert not view.damaged
    assert find_item(view, "1", source="News") == []
    assert len(view.damaged) == 1


def test_row_groups_are_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.store.log_writer.ROW_GROUP_ROWS", 2)
    assert whole_files.ROW_GROUP_ROWS > 2
    store = SmallLog(tmp_path)
    for number in range(3):
        store.put([ticket(f"{number}-{n}", n, "Rome") for n in range(3)], arrived=NOON)
    notes: list[str] = []
    (found,) = find_item(store.view(), "1-2", note=notes.append)
    assert found.item.position == 5
    assert notes == ["0 of 3 files", "1 of 3 files", "2 of 3 files"]


def test_it_is_found_after_a_merge(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    for number in range(2):
        store.put([ticket(str(number), 1, "Rome")], arrived=NOON)
    view: LogView = store.view()
    store.merge()
    assert [row.item.position for row in find_item(view, "1")] == [1]
    store.sequencer.trim(1)
    assert find_item(store.view(), "0") == []
