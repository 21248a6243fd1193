"""Items are read from the log in any order, from any row group, from merged files too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.match.item_columns import items_to_arrow
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.store.log import Sequencer
from headgate.store.log_index import LogIndex
from headgate.store.log_items import read_items
from headgate.store.log_merge import merge_due
from headgate.store.log_state import Origin
from headgate.store.log_storage import FolderStorage
from headgate.store.log_writer import write_pair
from headgate.store.segment import SegmentBuilder

SCHEMA = Schema((Attribute("price", Type.INT), Attribute("seen", Type.TIMESTAMP)))
START = datetime(2026, 1, 1, tzinfo=UTC)


def item(number: int) -> Item:
    seen = {} if number % 3 else {"seen": START}
    return Item(
        str(number), "Tickets", START + timedelta(seconds=number), {"price": number, **seen}
    )


@pytest.mark.parametrize("merged", [False, True])
def test_items_in_any_order_from_batches_and_merged_files(tmp_path: Path, *, merged: bool) -> None:
    storage = FolderStorage(tmp_path)
    clock = iter(START + timedelta(hours=hour) for hour in range(100))
    sequencer = Sequencer(storage, now=lambda: next(clock))
    for batch in range(4):
        items = [item(10 * batch + number) for number in range(10)]
        table = pa.Table.from_batches([items_to_arrow(items, SCHEMA)])
        builder = SegmentBuilder()
        builder.add(table.column("@source").combine_chunks(), {})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, row_group_size=3)
        written = write_pair(storage, "files-1", sink.getvalue(), builder.build())
        sequencer.commit(Origin("files-1", "epoch", batch), [written])
    if merged:
        assert merge_due(sequencer, storage, fan_in=4)
    index = LogIndex(storage)
    places = [index.since("Tickets", 0)[position] for position in (17, 3, 39, 3, 4, 20)]
    logged = read_items(storage, places)
    assert [each.position for each in logged] == [17, 3, 39, 3, 4, 20]
    assert [each.item(SCHEMA) for each in logged] == [item(each.position) for each in logged]
    assert logged[1].attributes == {"price": 3, "seen": START}
    arrived = [each.arrived_us // 3_600_000_000 for each in logged]
    assert [hour - arrived[1] for hour in arrived] == [1, 0, 3, 0, 0, 2]
