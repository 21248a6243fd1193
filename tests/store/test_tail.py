"""The last items are the last ones, wherever they lie; who follows sees each item once."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.small_store import NOON, SmallStore, news, ticket

from headgate.model.errors import UnknownName
from headgate.model.items import Item
from headgate.store import tail as tail_file
from headgate.store.item_files import finished_batches
from headgate.store.read_store import StoreReader
from headgate.store.tail import Follower, ItemSelection, selection_of, tail

ids = st.integers(0, 10**6)
batches = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 30, 3_600, 86_400, 5 * 86_400]),  # seconds since the batch before
        st.booleans(),
        st.lists(st.integers(0, 99), min_size=1, max_size=6),
    ),
    max_size=25,
)


def filled(path: Path, drawn: list[tuple[int, bool, list[int]]]) -> tuple[SmallStore, list[Item]]:
    """A store, and its items in the order in which they arrived."""
    store, items, arrived = SmallStore(path), [], NOON - timedelta(days=40)
    for number, (later_s, is_news, prices) in enumerate(drawn):
        arrived += timedelta(seconds=later_s, microseconds=1)
        batch = [
            news(f"{number}-{n}", f"{'rock' if price < 50 else 'pop'} {price}")
            if is_news
            else ticket(f"{number}-{n}", price, "Rome")
            for n, price in enumerate(prices)
        ]
        store.put(batch, arrived=arrived)
        items += batch
    return store, items


@settings(max_examples=25)
@given(batches, st.sampled_from(["Cheap", "Rock", "Tickets", "News", "Paris"]), st.integers(1, 12))
def test_tail_is_the_end_of_everything(
    drawn: list[tuple[int, bool, list[int]]], name: str, lines: int
) -> None:
    with TemporaryDirectory() as path:
        store, items = filled(Path(path), drawn)
        plans = store.plans
        own = [
            item.id
            for item in items
            if item.source == name or (name in plans and store.number(name) in feeds(store, item))
        ]
        with StoreReader(store.folder) as reader:
            found = tail(reader, selection_of(name, store.definitions), lines=lines)
        assert [row.id for row in found] == own[-lines:]


def feeds(store: SmallStore, item: Item) -> list[int]:
    return store.feeds_of(item)[0]


def put_days(store: SmallStore, count: int) -> None:
    for day in range(count):
        arrived = NOON - timedelta(days=count - 1 - day)
        store.put([ticket(f"{day}-{n}", 10, "Rome") for n in range(20)], arrived=arrived)


def test_days_that_are_not_needed_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SmallStore(tmp_path)
    put_days(store, 30)
    looked: list[object] = []
    listed = tail_file.stored_files
    monkeypatch.setattr(
        tail_file,
        "stored_files",
        lambda store, on: looked.append(on) or listed(store, on=on),
    )
    with StoreReader(store.folder) as reader:
        wanted = selection_of("Cheap", store.definitions)
        assert len(tail(reader, wanted, lines=10)) == 10
        assert looked == [NOON.date()]
        assert len(tail(reader, wanted, lines=50)) == 50
        assert len(looked) == 1 + 3


def test_of_a_long_day_only_the_last_files_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SmallStore(tmp_path)
    for second in range(60):
        store.put([ticket(str(second), 10, "Rome")], arrived=NOON + timedelta(seconds=second))
    asked: list[int] = []
    ask = StoreReader.query
    monkeypatch.setattr(
        StoreReader,
        "query",
        lambda self, question, files, parameters: (
            asked.append(len(files)) or ask(self, question, files, parameters)
        ),
    )
    with StoreReader(store.folder) as reader:
        found = tail(reader, selection_of("Cheap", store.definitions), lines=10)
    assert [row.id for row in found] == [str(n) for n in range(50, 60)]
    assert asked == [8, 32]


def test_since(tmp_path: Path) -> None:
    store = SmallStore(tmp_path)
    put_days(store, 3)
    wanted = selection_of("Tickets", store.definitions)
    with StoreReader(store.folder) as reader:
        assert len(tail(reader, wanted, lines=1_000)) == 60
        assert len(tail(reader, wanted, lines=1_000, since=NOON)) == 20
        assert not tail(reader, wanted, lines=1_000, since=NOON + timedelta(seconds=1))


def test_groups_of_other_schemas_are_not_asked(tmp_path: Path) -> None:
    store = SmallStore(tmp_path)
    path = store.put([news("1", "rock")], arrived=NOON)
    store.put([ticket("1", 10, "Rome")], arrived=NOON)
    path.write_bytes(b"damaged")
    with StoreReader(store.folder) as reader:
        assert len(tail(reader, selection_of("Cheap", store.definitions), lines=5)) == 1
        assert not reader.damaged
        assert not tail(reader, selection_of("Rock", store.definitions), lines=5)
        assert set(reader.damaged) == {path}


def test_what_joins_have_found_is_the_feeds_and_no_further_item(tmp_path: Path) -> None:
    store = SmallStore(tmp_path)
    store.put([news("1", "rock")], arrived=NOON)
    store.put_joined(news("1", "rock"), "Pictures", arrived=later(1))
    with StoreReader(store.folder) as reader:
        for name, joined in (("Pictures", 1), ("News", 0), ("Rock", 0)):
            (row,) = tail(reader, selection_of(name, store.definitions), lines=5)
            assert len(row.annotations) == joined


def test_unknown_names(tmp_path: Path) -> None:
    store = SmallStore(tmp_path, "register operator big() cost 1 from 'a:b';")
    with pytest.raises(UnknownName, match="did you mean 'big'"):
        selection_of("bigg", store.definitions)
    with pytest.raises(UnknownName, match="is an operator"):
        selection_of("big", store.definitions)


class Following:
    """A follower beside a store that grows."""

    def __init__(self, store: SmallStore, reader: StoreReader) -> None:
        certain = finished_batches(store.folder.batches)
        wanted = selection_of("Tickets", store.definitions)
        self.before = [row.id for row in tail(reader, wanted, lines=100, finished=certain)]
        self._follower = Follower(reader, wanted, certain)

    def look(self) -> list[str]:
        return [row.id for row in self._follower.poll()]


def test_following(tmp_path: Path) -> None:
    store = SmallStore(tmp_path)
    store.put([ticket("1", 10, "Rome")], arrived=NOON)
    with StoreReader(store.folder) as reader:
        following = Following(store, reader)
        assert following.before == ["1"]
        assert following.look() == []
        store.put([ticket("2", 10, "Rome"), ticket("3", 90, "Rome")], arrived=later(1))
        store.put([news("x", "rock")], arrived=later(2))
        assert following.look() == ["2", "3"]
        assert following.look() == []
        store.put([ticket("4", 10, "Rome")], arrived=NOON + timedelta(days=1))
        assert following.look() == ["4"]


def test_a_batch_that_runs_is_shown_when_it_has_ended(tmp_path: Path) -> None:
    store = SmallStore(tmp_path)
    store.put([ticket("1", 10, "Rome")], arrived=NOON)
    with StoreReader(store.folder) as reader:
        following = Following(store, reader)
        store.put([ticket("2", 10, "Rome")], arrived=later(1))
        (done,) = store.folder.batches.glob("*/1.done.json")
        running = done.rename(done.with_name("1.json"))
        assert following.look() == []
        assert tail(reader, ItemSelection(source="Tickets"), lines=5)[-1].id == "1"
        running.rename(done)
        assert following.look() == ["2"]
        assert following.look() == []


def test_what_comes_between_tail_and_follow_is_shown_once(tmp_path: Path) -> None:
    store = SmallStore(tmp_path)
    store.put([ticket("1", 10, "Rome")], arrived=NOON)
    wanted = selection_of("Tickets", store.definitions)
    with StoreReader(store.folder) as reader:
        certain = finished_batches(store.folder.batches)
        store.put([ticket("2", 10, "Rome")], arrived=later(1))
        before = [row.id for row in tail(reader, wanted, lines=9, finished=certain)]
        after = [row.id for row in Follower(reader, wanted, certain).poll()]
    assert (before, after) == (["1"], ["2"])


def later(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)
