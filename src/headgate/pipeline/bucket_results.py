"""Results of table joins as items: what subscribers get.

    tables/results/17-0-<group>.parquet      lot 17, bucket 0, until the driver has put them
    @source  @id  @time  attributes of both tables …  @feeds  @inner

A result is a pair of rows that join, with the numbers of the feeds that have it. `@inner` are feeds
whose filters say more than ranges do: whoever delivers tests them (`result_tests.py`).
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.durable.whole_files import rename_whole
from headgate.join.select import change_kernels as columns
from headgate.join.select.audience import Audience
from headgate.join.select.box_tree_kernels import Longs
from headgate.join.select.dispatch import recipients_of
from headgate.join.select.messages import Kind, Messages, Table
from headgate.join.select.server import SelectJoinServer
from headgate.join.select.stored_boxes import OpenBoxes
from headgate.pipeline.join_groups import JoinGroup
from headgate.store.columns import FEEDS_FIELD, ID, INNER_FIELD, OWN, SOURCE, TIME, item_columns


def results_table(
    messages: Messages,
    audience: Audience,
    boxes: OpenBoxes,
    *,
    server: SelectJoinServer,
    group: JoinGroup,
) -> pa.Table | None:
    """The results in messages that hold pairs of rows, with their feeds; None if there are none.

    That a row is gone takes nothing back from whoever gets items.
    """
    header = messages.header
    pairs = (header[:, columns.MESSAGE_KIND] == Kind.INSERT) & (header[:, columns.PARTNER] >= 0)
    messages = replace(messages, header=header[pairs])
    found = recipients_of(audience, server.dimensions, messages).lines
    counts = found[:, 2] - found[:, 1]
    if not counts.sum():
        return None
    message = np.repeat(found[:, 1] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    subscription = np.repeat(found[:, 0], counts)
    tested = boxes.tested[subscription]
    # A feed that is a union of joins may have a result twice: by one without a test is enough.
    order = np.lexsort((tested, boxes.feeds[subscription], message))
    message, feed, tested = (
        message[order],
        boxes.feeds[subscription][order],
        tested[order].astype(np.bool_),
    )
    first = np.ones(len(order), np.bool_)
    first[1:] = (message[1:] != message[:-1]) | (feed[1:] != feed[:-1])
    message, feed, tested = message[first], feed[first], tested[first]
    distinct, place = np.unique(message, return_inverse=True)
    items = _items(messages.header[distinct], server, group)
    lists = [_lists(place[chosen], feed[chosen], len(distinct)) for chosen in (~tested, tested)]
    for field, each in zip((FEEDS_FIELD, INNER_FIELD), lists, strict=True):
        items = items.append_column(field, each)
    return items


def _lists(places: Longs, feeds: np.ndarray, count: int) -> pa.Array:
    start = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(places, minlength=count), out=start[1:])
    return pa.ListArray.from_arrays(pa.array(start), pa.array(feeds.astype(np.int32)))


def _items(header: Longs, server: SelectJoinServer, group: JoinGroup) -> pa.Table:
    """Pairs of rows as items: named as the language says, with both ids, and the later time."""
    row_side = header[:, columns.ROW_SIDE]
    merged: dict[str, pa.Array] = {}
    ids: list[pa.Array] = []
    times: list[pa.Array] = []
    for table in Table:
        slots = np.where(row_side == table, header[:, columns.SLOT], header[:, columns.PARTNER])
        distinct, place = np.unique(slots, return_inverse=True)
        own = group.formats[table].columns(server.tables[table].payloads_of(distinct))
        taken = pa.array(place)
        ids.append(pa.array([quote(each, safe="") for each in own[ID].to_pylist()]).take(taken))
        times.append(own[TIME].take(taken))
        for name, named in group.names[table].items():
            values = own[name].take(taken)
            merged[named] = pc.coalesce(merged[named], values) if named in merged else values
    source = "+".join(quote(each.name, safe="") for each in group.tables)
    later = pc.if_else(pc.greater(times[0], times[1]), times[0], times[1])
    columns_ = {
        SOURCE: pa.repeat(pa.scalar(source, OWN[SOURCE]), len(header)),
        ID: pc.binary_join_element_wise(*ids, "+"),
        TIME: later,
        **merged,
    }
    fields = item_columns(group.schema)
    return pa.Table.from_arrays([columns_[each.name] for each in fields], schema=fields)


def write_parquet(table: pa.Table, path: Path) -> None:
    """The whole file at once under its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    pq.write_table(table, fresh, compression="lz4")
    with fresh.open("rb") as file:
        os.fsync(file.fileno())
    rename_whole(fresh, path)
