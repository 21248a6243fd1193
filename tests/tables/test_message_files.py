"""Message files: clients that read only these hold the join."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from tests.plan.execute import execute
from tests.tables.table_world import TABLES, TableWorld
from tests.tables.test_bucket import BATCHES, Changes, NestedLoopOracle, items_of

from headgate.match.texts import texts_of
from headgate.model.errors import StateError
from headgate.tables.boxes import ANY
from headgate.tables.clients import JoinClient
from headgate.tables.join_groups import split_plan
from headgate.tables.message_files import MessageFile
from headgate.tables.messages import JoinMessage, Point

FEEDS = """
create feed Rated from Stocks as $s join Reviews as $r on Symbol
  where $s[PER between 45 and 70] and $r[Rating between 6 and 10];
create feed Any from Stocks join Reviews on Symbol;
create feed Dear from Stocks as $s join Reviews as $r on Symbol where $s[PER > 60];
"""


@settings(max_examples=40)
@given(batches=BATCHES)
def test_clients_hold_the_join(batches: list[Changes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = TableWorld(Path(folder), script=TABLES + FEEDS)
        oracle = NestedLoopOracle(world)
        clients = {name: JoinClient() for name in world.plans}
        group = next(iter(world.snapshot.groups.values()))
        for changes in batches:
            items = items_of(world, changes)
            oracle.take(items)
            for summary in world.take(world.change_batch(items)):
                for message in messages_in(summary.messages_path):
                    for name, client in clients.items():
                        if message.region.holds(*_bounds(world, name)):
                            assert client.receive(client.expected, message) is None
        for name, client in clients.items():
            held = {
                tuple(
                    group.formats[row.table].columns(texts_of([row.payload]))["@id"][0].as_py()
                    for row in pair
                )
                for pair in client.join()
            }
            by_source = {
                table: [row for row in oracle.rows.values() if row.source == table]
                for table in ("Stocks", "Reviews")
            }
            expected = {tuple(each.id.split("+")) for each in execute(world.plans[name], by_source)}
            assert held == expected, name


def messages_in(path: str) -> list[JoinMessage]:
    return list(MessageFile.open(Path(path)).messages()) if path else []


def _bounds(world: TableWorld, name: str) -> tuple[tuple[Point, Point], tuple[Point, Point]]:
    """The bounds of a feed for PER and Rating, low and high, by table."""
    (join,) = split_plan(world.plans[name]).joins
    per, rating = join.sides[0].ranges.get("PER", ANY), join.sides[1].ranges.get("Rating", ANY)
    return ((per[0],), (rating[0],)), ((per[1],), (rating[1],))


def test_a_file_without_messages_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(StateError, match="has no messages of a join"):
        MessageFile.open(tmp_path / "a.parquet")
