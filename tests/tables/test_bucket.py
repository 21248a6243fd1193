"""Buckets of table joins: whoever runs a lot, and however often, finds the same."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.execute import execute
from tests.tables.table_world import TABLES, TableWorld

from headgate.model.errors import StateError
from headgate.model.items import Item
from headgate.model.values import Value
from headgate.pipeline.table_join_stage import BucketSummary
from headgate.tables import bucket as bucket_module
from headgate.tables.bucket import ServerCache

SYMBOLS = st.sampled_from(["GOOG", "goog", "IBM", "ACME"])
STOCKS = st.fixed_dictionaries(
    {"Symbol": st.sampled_from(["GOOG", "IBM", "ACME"])},
    optional={
        "PER": st.sampled_from([40.0, 50.0, 65.0]),
        "op": st.sampled_from(["insert", "U", "delete", "before"]),
    },
)
REVIEWS = st.fixed_dictionaries(
    {"id": st.integers(0, 3)}, optional={"Symbol": SYMBOLS, "Rating": st.sampled_from([5, 8, 12])}
)
CHANGES = st.lists(
    st.one_of(
        STOCKS.map(lambda each: ("Stocks", each)), REVIEWS.map(lambda each: ("Reviews", each))
    ),
    max_size=10,
)
LOTS = st.lists(CHANGES, min_size=1, max_size=5)
Changes = list[tuple[str, dict[str, Value]]]


class Judge:
    """Rows as a dictionary, and joins by nested loops."""

    def __init__(self, world: TableWorld) -> None:
        self.world = world
        self.rows: dict[tuple[str, Value], Item] = {}

    def take(self, changes: Sequence[Item]) -> dict[str, set[tuple[object, ...]]]:
        """For each feed the results that these changes make: what is there at any time and was not
        before, version by version."""
        found: dict[str, set[tuple[object, ...]]] = {name: set() for name in self.world.plans}
        before = self._ids()
        for item in changes:
            self._change(item)
            after = self._ids()
            for name, ids in after.items():
                found[name] |= {ids[each] for each in ids.keys() - before[name].keys()}
            before = after
        return found

    def _change(self, item: Item) -> None:
        attributes = dict(item.attributes)
        word = str(attributes.pop("op", "insert"))
        key = item.source, attributes["Symbol" if item.source == "Stocks" else "id"]
        if word == "before":
            return
        if word == "delete" or "Symbol" not in attributes:
            self.rows.pop(key, None)
        elif key not in self.rows or self.rows[key].attributes != attributes:
            self.rows[key] = Item(item.id, item.source, item.time, attributes)

    def _ids(self) -> dict[str, dict[str, tuple[object, ...]]]:
        items: dict[str, list[Item]] = {"Stocks": [], "Reviews": []}
        for row in self.rows.values():
            items[row.source].append(row)
        return {
            name: {
                each.id: (each.id, *sorted(self._plain(each.attributes).items()))
                for each in execute(plan, items)
            }
            for name, plan in self.world.plans.items()
        }

    @staticmethod
    def _plain(attributes: object) -> dict[str, object]:
        assert isinstance(attributes, dict)
        names = ("Symbol", "PER", "Name", "id", "Rating")
        return {name: attributes.get(name) for name in names}


def items_of(world: TableWorld, changes: Changes) -> list[Item]:
    return [world.item(table, at, attributes) for at, (table, attributes) in enumerate(changes)]


@settings(max_examples=40)
@given(lots=LOTS, buckets=st.integers(1, 3), remembers=st.booleans())
def test_results_are_those_of_nested_loops(
    lots: list[Changes], buckets: int, remembers: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = TableWorld(Path(folder), buckets=buckets)
        del world.plans["Named"]  # it has more than ranges: see test_result_tests.py
        judge = Judge(world)
        for changes in lots:
            items = items_of(world, changes)
            told = world.take(world.lot(items), held=None if remembers else ServerCache())
            found = world.results([each for each in told if each.results])
            assert {name: found[name] for name in world.plans} == judge.take(items)


def content(told: Sequence[BucketSummary]) -> list[object]:
    """Everything that was told, and what is in the files."""
    return [
        (
            each,
            *(pq.read_table(p).to_pylist() for p in (each.messages_path, each.results_path) if p),
        )
        for each in told
    ]


@settings(max_examples=40)
@given(lots=LOTS, data=st.data())
def test_replays_and_other_workers_find_the_same(lots: list[Changes], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_replays(TableWorld(Path(folder)), lots, data)


def check_replays(world: TableWorld, lots: list[Changes], data: st.DataObject) -> None:
    """A lot is run again from the state before it, by workers that remember other things."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bucket_module, "BASE_MIN", data.draw(st.sampled_from([0, 3_000, 1 << 20])))
        workers = [ServerCache(), ServerCache()]
        for changes in lots:
            lot = world.lot(items_of(world, changes))
            before = [blobs.copy() for blobs in world.blobs]
            expected = content(world.take(lot, held=ServerCache()))
            for _ in range(data.draw(st.integers(0, 2))):
                world.blobs = [type(own)(old) for own, old in zip(world.blobs, before, strict=True)]
                worker = data.draw(st.sampled_from(workers))
                assert content(world.take(lot, held=worker)) == expected


def test_a_feed_that_selects_by_another_attribute_finds_old_rows(tmp_path: Path) -> None:
    world = TableWorld(tmp_path)
    world.publish(["Any"])
    rows: Changes = [("Stocks", {"Symbol": "IBM", "PER": 65.0})]
    world.take(world.lot(items_of(world, rows)))
    world.publish(["Any", "Rated", "Dear"])
    review: Changes = [("Reviews", {"id": 1, "Symbol": "ibm", "Rating": 8})]
    found = world.results(world.take(world.lot(items_of(world, review))))
    assert {name: len(own) for name, own in found.items()} == {
        "Rated": 1,
        "Any": 1,
        "Dear": 1,
        "Named": 0,
    }


def test_a_group_that_comes_back_begins_with_what_is_stored(tmp_path: Path) -> None:
    world = TableWorld(tmp_path)
    world.publish(["Any"])
    stock: Changes = [("Stocks", {"Symbol": "IBM", "PER": 65.0})]
    world.take(world.lot(items_of(world, stock)))
    assert any(world.blobs)
    world.publish([])
    world.take(world.lot([]))
    assert not any(world.blobs), "what nobody joins is forgotten"
    world.publish(["Any"])
    history = [*items_of(world, stock), *items_of(world, [("Reviews", {"id": 1, "Symbol": "IBM"})])]
    changes = items_of(world, [("Reviews", {"id": 2, "Symbol": "IBM"})])
    told = world.take(world.lot(changes, history=history))
    assert len(world.results(told)["Any"]) == 1
    assert sum(each.results for each in told) == 1, "what was there before is not told"
    assert sum(each.rows for each in told) == 3


def test_rows_leave_when_their_time_is_over(tmp_path: Path) -> None:
    script = TABLES.replace("changes in op", "changes in op keep 2 hours") + (
        "create feed Any from Stocks join Reviews on Symbol;"
    )
    world = TableWorld(tmp_path, script=script)
    first: Changes = [
        ("Stocks", {"Symbol": "IBM", "PER": 65.0}),
        ("Reviews", {"id": 1, "Symbol": "IBM"}),
    ]
    world.take(world.lot(items_of(world, first)))
    told = world.take(world.lot([], hours=1.5))
    assert sum(each.rows for each in told) == 2
    told = world.take(world.lot([], hours=2.5), held=ServerCache())
    assert sum(each.rows for each in told) == 1
    (path,) = [each.messages_path for each in told if each.messages]
    (message,) = pq.read_table(path).to_pylist()
    assert (message["kind"], message["table"], message["payload"]) == (1, 0, None)
    told = world.take(
        world.lot(items_of(world, [("Reviews", {"id": 2, "Symbol": "IBM"})]), hours=3)
    )
    assert sum(each.results for each in told) == 0


def test_a_state_that_has_lost_a_part_is_refused(tmp_path: Path) -> None:
    world = TableWorld(tmp_path, buckets=1)
    world.take(world.lot(items_of(world, [("Stocks", {"Symbol": "IBM", "PER": 65.0})])))
    (name,) = [each for each in world.blobs[0] if "/log/" in each]
    del world.blobs[0][name]
    lot = world.lot(items_of(world, [("Stocks", {"Symbol": "IBM", "PER": 66.0})]))
    with pytest.raises(StateError, match="log is missing"):
        world.take(lot, held=ServerCache())
