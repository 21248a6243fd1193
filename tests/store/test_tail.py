"""The last items are the last ones, wherever they lie; who follows sees each item once."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.small_log import NOON, SmallLog, news, ticket

from headgate.model.errors import UnknownName
from headgate.model.items import Item
from headgate.store import tail as tail_module
from headgate.store.log_index import LogIndex
from headgate.store.log_state import LogFile
from headgate.store.segment import Segment
from headgate.store.tail import Follower, key_of, tail

Batch = tuple[int, bool, list[int]]
batches = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 30, 3_600, 86_400, 5 * 86_400]),  # seconds since the batch before
        st.booleans(),
        st.lists(st.integers(0, 99), min_size=1, max_size=6),
    ),
    max_size=25,
)
names = st.sampled_from(["Cheap", "Rock", "Tickets", "News", "Paris"])


def put_batch(store: SmallLog, number: int, batch: Batch, arrived: datetime) -> list[Item]:
    _, is_news, prices = batch
    items = [
        news(f"{number}-{n}", f"{'rock' if price < 50 else 'pop'} {price}")
        if is_news
        else ticket(f"{number}-{n}", price, "Rome")
        for n, price in enumerate(prices)
    ]
    store.put(items, arrived=arrived)
    return items


def of(store: SmallLog, name: str, items: list[Item]) -> list[str]:
    """The ids of the items of a feed or source, by the naive evaluator."""
    return [
        item.id
        for item in items
        if item.source == name
        or (name in store.plans and store.number(name) in store.feeds_of(item)[0])
    ]


@settings(max_examples=25)
@given(batches, names, st.integers(1, 12), st.integers(0, 25), st.integers(0, 25))
def test_tail_is_the_end_of_everything(
    drawn: list[Batch], name: str, lines: int, merged_after: int, since: int
) -> None:
    with TemporaryDirectory() as path:
        store, items, arrived = SmallLog(Path(path)), [], NOON - timedelta(days=40)
        recent, first = list[Item](), NOON - timedelta(days=40)
        for number, batch in enumerate(drawn):
            arrived += timedelta(seconds=batch[0], microseconds=1)
            if number == since:
                recent, first = [], arrived
            put = put_batch(store, number, batch, arrived)
            items, recent = items + put, recent + put
            if number == merged_after:
                store.merge()
        view, key = store.view(), key_of(name, store.definitions)
        assert [row.id for row in tail(view, key, lines=lines)] == of(store, name, items)[-lines:]
        found = tail(view, key, lines=lines, since=first)
        assert [row.id for row in found] == of(store, name, recent)[-lines:]


@settings(max_examples=25)
@given(batches, names, st.sets(st.integers(0, 25)), st.sets(st.integers(0, 25)))
def test_following_shows_each_item_once(
    drawn: list[Batch], name: str, polled: set[int], merged: set[int]
) -> None:
    """Whatever is merged and removed between two polls."""
    with TemporaryDirectory() as path:
        store, items = SmallLog(Path(path)), list[Item]()
        follower = Follower(store.view(), key_of(name, store.definitions))
        seen: list[str] = []
        for number, batch in enumerate(drawn):
            items += put_batch(store, number, batch, NOON + timedelta(seconds=number))
            if number in merged:
                store.merge()
            if number in polled:
                seen += [row.id for row in follower.poll()]
        seen += [row.id for row in follower.poll()]
        assert seen == of(store, name, items)
        assert follower.poll() == []


def put_days(store: SmallLog, count: int) -> None:
    for day in range(count):
        arrived = NOON - timedelta(days=count - 1 - day)
        store.put([ticket(f"{day}-{n}", 10, "Rome") for n in range(20)], arrived=arrived)


def test_segments_that_are_not_needed_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SmallLog(tmp_path)
    put_days(store, 30)
    opened: set[str] = set()
    segment = LogIndex.segment

    def noted(index: LogIndex, file: LogFile) -> Segment:
        opened.add(file.segment)
        return segment(index, file)

    monkeypatch.setattr(LogIndex, "segment", noted)
    view, key = store.view(), store.number("Cheap")
    for name, lines, since, count in (
        ("Cheap", 10, None, 1),
        ("Cheap", 50, None, 3),
        ("Paris", 10, NOON - timedelta(days=4), 5),
        ("Paris", 10, None, 30),
    ):
        opened.clear()
        key = key_of(name, store.definitions)
        assert len(tail(view, key, lines=lines, since=since)) == (lines if name == "Cheap" else 0)
        # With `since`, one file before may have later items.
        assert count <= len(opened) <= count + (since is not None)


def test_since(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    put_days(store, 3)
    for _ in range(2):
        view = store.view()
        assert len(tail(view, "Tickets", lines=1_000)) == 60
        assert len(tail(view, "Tickets", lines=1_000, since=NOON)) == 20
        assert not tail(view, "Tickets", lines=1_000, since=NOON + timedelta(seconds=1))
        store.merge(fan_in=3)


def test_earlier_items_take_the_place_of_damaged_ones(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    for second in range(5):
        file = store.put([ticket(str(second), 10, "Rome")], arrived=later(second))
        if second in (1, 4):
            store.damage(file.items)
    view = store.view()
    assert [row.id for row in tail(view, "Tickets", lines=2)] == ["2", "3"]
    assert [row.id for row in tail(view, "Tickets", lines=9)] == ["0", "2", "3"]
    assert len(view.damaged) == 2


def test_what_joins_have_found_is_the_feeds_and_no_further_item(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.put([news("1", "rock")], arrived=NOON)
    store.put_joined(news("1", "rock"), "Pictures", arrived=later(1))
    for name, joined in (("Pictures", 1), ("News", 0), ("Rock", 0)):
        (row,) = tail(store.view(), key_of(name, store.definitions), lines=5)
        assert len(row.annotations) == joined
        assert row.arrived == later(1 if joined else 0)


def test_trimmed_items_are_gone(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    put_days(store, 2)
    store.merge()
    store.sequencer.trim(30)
    view = store.view()
    assert [row.position for row in tail(view, "Tickets", lines=99)] == list(range(30, 40))


def test_unknown_names(tmp_path: Path) -> None:
    store = SmallLog(tmp_path, "register operator big() cost 1 from 'a:b';")
    with pytest.raises(UnknownName, match="did you mean 'big'"):
        key_of("bigg", store.definitions)
    with pytest.raises(UnknownName, match="is an operator"):
        key_of("big", store.definitions)


def test_what_comes_between_tail_and_follow_is_shown_once(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.put([ticket("1", 10, "Rome")], arrived=NOON)
    view = store.view()
    store.put([ticket("2", 10, "Rome")], arrived=later(1))
    before = [row.id for row in tail(view, "Tickets", lines=9)]
    after = [row.id for row in Follower(view, "Tickets").poll()]
    assert (before, after) == (["1"], ["2"])


def test_a_tail_that_had_to_look_again_is_followed_from_there(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.put([ticket("1", 10, "Rome")], arrived=NOON)
    view = store.view()
    store.put([ticket("2", 10, "Rome")], arrived=later(1))
    store.merge()
    before = [row.id for row in tail(view, "Tickets", lines=9)]
    follower = Follower(view, "Tickets")
    store.put([ticket("3", 10, "Rome")], arrived=later(2))
    assert (before, [row.id for row in follower.poll()]) == (["1", "2"], ["3"])


def test_much_at_once_is_followed_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail_module, "ITEMS_AT_ONCE", 3)
    store = SmallLog(tmp_path)
    follower = Follower(store.view(), "Tickets")
    store.put([ticket(str(n), 10, "Rome") for n in range(7)], arrived=NOON)
    store.put([news("x", "rock")], arrived=NOON)
    assert [[row.id for row in follower.poll()] for _ in range(4)] == [
        ["0", "1", "2"],
        ["3", "4", "5"],
        ["6"],
        [],
    ]


def later(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)
