"""Joins of more than two tables in buckets: results and semijoins, compared with nested loops."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.execute import execute
from tests.tables.table_world import TableWorld
from tests.tables.test_bucket import Changes, check_replays, items_of

from headgate.match.texts import texts_of
from headgate.model.errors import StateError
from headgate.model.items import Item
from headgate.tables.boxes import ANY
from headgate.tables.bucket import BucketServer, GroupUpdate, ServerCache
from headgate.tables.change_pieces import unpack_piece
from headgate.tables.clients import MultiwayClient
from headgate.tables.decompose import choose_semijoins, signature_of
from headgate.tables.group_joins import split_payloads
from headgate.tables.join_groups import JoinGroup, split_plan
from headgate.tables.message_files import MessageFile
from headgate.tables.messages import Point
from headgate.tables.row_format import RowFormat

TABLES = """
register table Stocks (Symbol text key, PER float, op text) from json 'stocks/*.json' changes in op;
register table Reviews (id int key, Symbol text, Author int, Rating int) from json 'reviews/*.json';
register table Authors (Author float key, Age int) from json 'authors/*.json';
register table Prices (Symbol text key, Price float, Chart text payload)
  from json 'prices/*.json';
"""
FEEDS = """
create feed Written from Stocks as $s join Reviews as $r on Symbol join Authors as $a on Author
  where $s[PER between 45 and 70] and $r[Rating >= 6] and $a[Age < 40];
create feed Any from Stocks join Reviews on Symbol join Authors on Author;
create feed Priced from Stocks as $s join Reviews on Symbol join Prices as $p on Symbol
  where $p[Price > 2];
create feed Charts from Reviews join Prices as $p on Symbol where $p[Price > 2];
create feed Drawn from Reviews join Prices as $p on Symbol where $p[contains 'up'];
create feed Four from Stocks join Reviews as $r on Symbol join Prices on Symbol join Authors
  on Author where $r[Rating < 10];
"""
SYMBOLS = st.sampled_from(["GOOG", "IBM"])
ROWS = st.one_of(
    st.tuples(
        st.just("Stocks"),
        st.fixed_dictionaries(
            {"Symbol": SYMBOLS},
            optional={
                "PER": st.sampled_from([40.0, 50.0, 65.0]),
                "op": st.sampled_from(["U", "U", "delete"]),
            },
        ),
    ),
    st.tuples(
        st.just("Reviews"),
        st.fixed_dictionaries(
            {"id": st.integers(0, 3)},
            optional={
                "Symbol": st.sampled_from(["goog", "IBM"]),
                "Author": st.integers(1, 2),
                "Rating": st.sampled_from([5, 8, 12]),
            },
        ),
    ),
    st.tuples(
        st.just("Authors"),
        st.fixed_dictionaries(
            {"Author": st.sampled_from([1.0, 2.0])}, optional={"Age": st.sampled_from([30, 50])}
        ),
    ),
    st.tuples(
        st.just("Prices"),
        st.fixed_dictionaries(
            {"Symbol": SYMBOLS},
            optional={"Price": st.sampled_from([1.0, 3.0, 4.0]), "Chart": st.just("up")},
        ),
    ),
)
BATCHES = st.lists(st.lists(ROWS, max_size=12), min_size=1, max_size=4)
OTHERS = ("id", "PER", "Rating", "Age", "Price", "Chart")
KEYS = {"Stocks": "Symbol", "Reviews": "id", "Authors": "Author", "Prices": "Symbol"}


class ManyTablesOracle:
    """Rows as a dictionary, and joins by nested loops."""

    def __init__(self, world: TableWorld) -> None:
        self.world = world
        self.rows: dict[tuple[str, object], Item] = {}

    def take(self, changes: Sequence[Item]) -> dict[str, set[str]]:
        """The ids of the new results of each feed."""
        new_results: dict[str, set[str]] = {name: set() for name in self.world.plans}
        before = self.results()
        for item in changes:
            self._change(item)
            after = self.results()
            for name, ids in after.items():
                new_results[name] |= ids - before[name]
            before = after
        return new_results

    def _change(self, item: Item) -> None:
        attributes = dict(item.attributes)
        word = attributes.pop("op", "insert")
        key = item.source, attributes[KEYS[item.source]]
        if word == "delete":
            self.rows.pop(key, None)
        elif key not in self.rows or self.rows[key].attributes != attributes:
            self.rows[key] = Item(item.id, item.source, item.time, attributes)

    def results(self) -> dict[str, set[str]]:
        return {name: {each.id for each in own} for name, own in self.joined().items()}

    def joined(self) -> dict[str, list[Item]]:
        items: dict[str, list[Item]] = {name: [] for name in KEYS}
        for row in self.rows.values():
            items[row.source].append(row)
        return {name: list(execute(plan, items)) for name, plan in self.world.plans.items()}


def ids_of(results: dict[str, set[tuple[object, ...]]]) -> dict[str, set[object]]:
    return {name: {each[0] for each in own} for name, own in results.items()}


@settings(max_examples=25)
@given(batches=BATCHES, buckets=st.integers(1, 3), keeps_servers=st.booleans())
def test_results_are_those_of_nested_loops(
    batches: list[Changes], buckets: int, keeps_servers: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = TableWorld(Path(folder), script=TABLES + FEEDS, buckets=buckets)
        oracle = ManyTablesOracle(world)
        for changes in batches:
            items = items_of(world, changes)
            summaries = world.take(
                world.change_batch(items), cache=None if keeps_servers else ServerCache()
            )
            actual, expected = ids_of(world.results(summaries)), oracle.take(items)
            for results in (actual, expected):
                del results["Drawn"]  # it has a residual filter: see test_results.py
            assert actual == expected


@settings(max_examples=12)
@given(batches=BATCHES, data=st.data())
def test_replays_by_any_worker_give_the_same_output(
    batches: list[Changes], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_replays(TableWorld(Path(folder), script=TABLES + FEEDS), batches, data)


class Reader:
    """The client of one feed: reads message files and applies the messages that are for it."""

    def __init__(self, world: TableWorld, name: str) -> None:
        (self.join,) = split_plan(world.plans[name]).joins
        split = split_payloads(self.join, world.tables)
        self.join, self.choice = split.join, choose_semijoins(split.join, split.tables)
        self.attributes = {side.table: side.on for side in self.join.sides}
        self.client = MultiwayClient(signature_of(self.join), self.choice, self.attributes)

    def read(self, path: Path) -> None:
        file = MessageFile.open(path)
        form = file.group.form
        if form is None or form not in self.choice.values():
            return
        for message in file.semijoins(self.attributes[form.base]):
            if message.region.holds(*self._bounds(file)):
                assert self.client.receive(self.client.expected, message) is None

    def _bounds(self, file: MessageFile) -> list[tuple[Point, ...]]:
        """Low and high, by table."""
        sides = {side.table: side for side in self.join.sides}
        ranges = [
            [sides[table.name].ranges.get(name, ANY) for name in names or ("",)]
            for table, names in zip(file.group.tables, file.attributes, strict=True)
        ]
        return [tuple(tuple(each[at] for each in own) for own in ranges) for at in range(2)]

    def content(self, formats: Mapping[str, RowFormat]) -> set[tuple[object, ...]]:
        """The rows of its join, without join attributes, which tables may write differently."""
        content: set[tuple[object, ...]] = set()
        for rows in self.client.join():
            attributes: dict[str, object] = {}
            for row in rows:
                columns = formats[row.table].columns(texts_of([row.payload]))
                attributes |= {name: column[0].as_py() for name, column in columns.items()}
            content.add(tuple(attributes.get(name) for name in OTHERS))
        return content


@settings(max_examples=25)
@given(batches=BATCHES)
def test_clients_hold_the_join(batches: list[Changes]) -> None:
    """Clients read only the messages of their semijoins."""
    with tempfile.TemporaryDirectory() as folder:
        world = TableWorld(Path(folder), script=TABLES + FEEDS)
        oracle = ManyTablesOracle(world)
        del world.plans["Drawn"]
        readers = {name: Reader(world, name) for name in world.plans}
        for changes in batches:
            items = items_of(world, changes)
            oracle.take(items)
            for summary in world.take(world.change_batch(items)):
                for reader in readers.values() if summary.messages else ():
                    reader.read(Path(summary.messages_path))
        formats = {
            table.name: row_format
            for group in world.snapshot.groups.values()
            for table, row_format in zip(group.tables, group.formats, strict=True)
        }
        for name, items in oracle.joined().items():
            expected = {tuple(each.attributes.get(other) for other in OTHERS) for each in items}
            assert readers[name].content(formats) == expected, name


def test_rows_are_partitioned_by_the_join_attributes_of_all_tables(tmp_path: Path) -> None:
    groups = TableWorld(tmp_path, script=TABLES + FEEDS).snapshot.groups.values()
    whole = {len(group.tables): group for group in groups if group.is_for_results}
    shared = {tuple(t.name for t in g.tables): g.shared for g in groups if g.is_for_results}
    assert shared == {
        ("Reviews", "Prices"): ("Symbol",),
        ("Stocks", "Reviews", "Authors"): (),
        ("Stocks", "Reviews", "Prices"): ("Symbol",),
        ("Stocks", "Reviews", "Prices", "Authors"): (),
    }
    assert JoinGroup.from_json(whole[4].to_json()) == whole[4]


def test_changes_of_an_unknown_table_are_refused(tmp_path: Path) -> None:
    world = TableWorld(tmp_path, script=TABLES + FEEDS, buckets=1)
    batch = world.change_batch(items_of(world, [("Prices", {"Symbol": "IBM", "Price": 3.0})]))
    (piece,) = {
        bytes(row["content"])
        for row in world.pieces(batch)
        if row["group"] and len(world.snapshot.groups[row["group"]].tables) == 4
    }
    unknown = replace(unpack_piece(piece), side=4)
    (group,) = [each for each in world.snapshot.groups.values() if len(each.tables) == 4]
    with pytest.raises(StateError, match="there is no table 4"):
        BucketServer(group, (0, 1)).run(GroupUpdate(0.0, announced=[unknown.packed()]))


def test_a_payload_is_sent_once_per_client(tmp_path: Path) -> None:
    """Also if the row changes; a filter on the payload prevents the split."""
    world = TableWorld(tmp_path, script=TABLES + FEEDS, buckets=1)
    review = ("Reviews", {"id": 1, "Symbol": "IBM"})
    prices = [("Prices", {"Symbol": "IBM", "Price": p, "Chart": "up"}) for p in (3.0, 4.0, 5.0)]
    message_counts: dict[str, int] = {}
    for summary in world.take(world.change_batch(items_of(world, [review, *prices]))):
        for form in [world.snapshot.groups[summary.group].form] if summary.messages else []:
            message_counts[str(form)] = summary.messages
    assert message_counts["Prices(Symbol, Chart)^Prices(Symbol, Price)"] == 1
    assert message_counts["Prices(Symbol, Price)^Reviews"] == 3
    (drawn,) = split_plan(world.plans["Drawn"]).joins
    assert split_payloads(drawn, world.tables).join == drawn
