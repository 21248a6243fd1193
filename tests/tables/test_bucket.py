"""Buckets of table joins: replays, and any worker, give the same output."""

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
BATCHES = st.lists(CHANGES, min_size=1, max_size=5)
Changes = list[tuple[str, dict[str, Value]]]


class NestedLoopOracle:
    """Rows as a dictionary, and joins by nested loops."""

    def __init__(self, world: TableWorld) -> None:
        self.world = world
        self.rows: dict[tuple[str, Value], Item] = {}

    def take(self, changes: Sequence[Item]) -> dict[str, set[tuple[object, ...]]]:
        """The new results of each feed after each of these changes."""
        new_results: dict[str, set[tuple[object, ...]]] = {name: set() for name in self.world.plans}
        before = self._ids()
        for item in changes:
            self._change(item)
            after = self._ids()
            for name, ids in after.items():
                new_results[name] |= {ids[each] for each in ids.keys() - before[name].keys()}
            before = after
        return new_results

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
                result.id: (result.id, *sorted(self._plain(result.attributes).items()))
                for result in execute(plan, items)
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
@given(batches=BATCHES, buckets=st.integers(1, 3), keeps_servers=st.booleans())
def test_results_are_those_of_nested_loops(
    batches: list[Changes], buckets: int, keeps_servers: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = TableWorld(Path(folder), buckets=buckets)
        del world.plans["Named"]  # it has a residual filter: see test_results.py
        oracle = NestedLoopOracle(world)
        for changes in batches:
            items = items_of(world, changes)
            summaries = world.take(
                world.change_batch(items), cache=None if keeps_servers else ServerCache()
            )
            actual = world.results([each for each in summaries if each.results])
            assert {name: actual[name] for name in world.plans} == oracle.take(items)


def content(summaries: Sequence[BucketSummary]) -> list[object]:
    """Summaries with the content of their files."""
    return [
        (
            summary,
            *(
                pq.read_table(p).to_pylist()
                for p in (summary.messages_path, summary.results_path)
                if p
            ),
        )
        for summary in summaries
    ]


@settings(max_examples=40)
@given(batches=BATCHES, data=st.data())
def test_replays_by_any_worker_give_the_same_output(
    batches: list[Changes], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_replays(TableWorld(Path(folder)), batches, data)


def check_replays(world: TableWorld, batches: list[Changes], data: st.DataObject) -> None:
    """Replay each batch from the state before it, with workers that have cached other servers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bucket_module, "BASE_MIN", data.draw(st.sampled_from([0, 3_000, 1 << 20])))
        workers = [ServerCache(), ServerCache()]
        for changes in batches:
            batch = world.change_batch(items_of(world, changes))
            before = [blobs.copy() for blobs in world.blobs]
            expected = content(world.take(batch, cache=ServerCache()))
            for _ in range(data.draw(st.integers(0, 2))):
                world.blobs = [type(own)(old) for own, old in zip(world.blobs, before, strict=True)]
                worker = data.draw(st.sampled_from(workers))
                assert content(world.take(batch, cache=worker)) == expected


def test_a_feed_that_restricts_a_new_attribute_joins_earlier_rows(tmp_path: Path) -> None:
    world = TableWorld(tmp_path)
    world.publish(["Any"])
    rows: Changes = [("Stocks", {"Symbol": "IBM", "PER": 65.0})]
    world.take(world.change_batch(items_of(world, rows)))
    world.publish(["Any", "Rated", "Dear"])
    review: Changes = [("Reviews", {"id": 1, "Symbol": "ibm", "Rating": 8})]
    actual = world.results(world.take(world.change_batch(items_of(world, review))))
    assert {name: len(own) for name, own in actual.items()} == {
        "Rated": 1,
        "Any": 1,
        "Dear": 1,
        "Named": 0,
    }


def test_a_group_that_comes_back_loads_its_history(tmp_path: Path) -> None:
    world = TableWorld(tmp_path)
    world.publish(["Any"])
    stock: Changes = [("Stocks", {"Symbol": "IBM", "PER": 65.0})]
    world.take(world.change_batch(items_of(world, stock)))
    assert any(world.blobs)
    world.publish([])
    world.take(world.change_batch([]))
    assert not any(world.blobs), "groups without joins have no state"
    world.publish(["Any"])
    history = [*items_of(world, stock), *items_of(world, [("Reviews", {"id": 1, "Symbol": "IBM"})])]
    changes = items_of(world, [("Reviews", {"id": 2, "Symbol": "IBM"})])
    summaries = world.take(world.change_batch(changes, history=history))
    assert len(world.results(summaries)["Any"]) == 1
    assert sum(each.results for each in summaries) == 1, "results of the history are not delivered"
    assert sum(each.rows for each in summaries) == 3


def test_rows_expire_after_their_retention_window(tmp_path: Path) -> None:
    script = TABLES.replace("changes in op", "changes in op keep 2 hours") + (
        "create feed Any from Stocks join Reviews on Symbol;"
    )
    world = TableWorld(tmp_path, script=script)
    first: Changes = [
        ("Stocks", {"Symbol": "IBM", "PER": 65.0}),
        ("Reviews", {"id": 1, "Symbol": "IBM"}),
    ]
    world.take(world.change_batch(items_of(world, first)))
    summaries = world.take(world.change_batch([], hours=1.5))
    assert sum(each.rows for each in summaries) == 2
    summaries = world.take(world.change_batch([], hours=2.5), cache=ServerCache())
    assert sum(each.rows for each in summaries) == 1
    (path,) = [each.messages_path for each in summaries if each.messages]
    (message,) = pq.read_table(path).to_pylist()
    assert (message["kind"], message["table"], message["payload"]) == (1, 0, None)
    summaries = world.take(
        world.change_batch(items_of(world, [("Reviews", {"id": 2, "Symbol": "IBM"})]), hours=3)
    )
    assert sum(each.results for each in summaries) == 0


def test_a_state_with_a_missing_log_entry_is_refused(tmp_path: Path) -> None:
    world = TableWorld(tmp_path, buckets=1)
    world.take(world.change_batch(items_of(world, [("Stocks", {"Symbol": "IBM", "PER": 65.0})])))
    (name,) = [each for each in world.blobs[0] if "/log/" in each]
    del world.blobs[0][name]
    batch = world.change_batch(items_of(world, [("Stocks", {"Symbol": "IBM", "PER": 66.0})]))
    with pytest.raises(StateError, match="log is missing"):
        world.take(batch, cache=ServerCache())
