"""Results of table joins as items: what subscribers get.

    tables/results/17-0-<group>.parquet      lot 17, bucket 0, until the driver has put them
    @source  @id  @time  attributes of all tables …  @feeds  @inner

A result is a row of each table that join, with the numbers of the feeds that have it. `@inner` are
feeds whose filters say more than ranges do: whoever delivers tests them (`result_tests.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.item_columns import (
    FEEDS_FIELD,
    ID,
    INNER_FIELD,
    OWN,
    SOURCE,
    TIME,
    item_columns,
)
from headgate.tables import change_kernels as columns
from headgate.tables.audience import Audience
from headgate.tables.box_tree_kernels import Longs
from headgate.tables.changes import ChangeColumns, Mask
from headgate.tables.dispatch import recipients_of
from headgate.tables.join_groups import JoinGroup
from headgate.tables.messages import Kind, Messages, Table
from headgate.tables.server import SelectJoinServer
from headgate.tables.stored_boxes import OpenBoxes
from headgate.tables.table import TableRows
from headgate.tables.whole_boxes import points_of
from headgate.tables.whole_join import WholeJoin
from headgate.tables.whole_recipients import are_wanted, subscriptions_with


def results_of_pairs(
    messages: Messages,
    audience: Audience,
    boxes: OpenBoxes,
    server: SelectJoinServer,
    group: JoinGroup,
) -> pa.Table | None:
    """The results in messages that hold pairs of rows, with their feeds; None if there are none.

    That a row is gone takes nothing back from whoever gets items.
    """
    header = messages.header
    both = (header[:, columns.MESSAGE_KIND] == Kind.INSERT) & (header[:, columns.PARTNER] >= 0)
    header = header[both]
    found = recipients_of(audience, server.dimensions, replace(messages, header=header)).lines
    counts = found[:, 2] - found[:, 1]
    message = np.repeat(found[:, 1] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    slots = np.column_stack(
        [
            np.where(
                header[:, columns.ROW_SIDE] == table,
                header[:, columns.SLOT],
                header[:, columns.PARTNER],
            )
            for table in Table
        ]
    )
    pairs = message, np.repeat(found[:, 0], counts)
    return _table(slots, pairs, boxes, server.tables, group)


def results_of_whole(
    changes: ChangeColumns,
    audience: Audience,
    boxes: OpenBoxes,
    server: WholeJoin,
    group: JoinGroup,
) -> pa.Table | None:
    """The results that changes make in a join of more than two tables; None if there are none."""
    slots, made_by, results, subscriptions, before = [], [], [], [], 0

    def wanted(some: Longs) -> Mask:
        return are_wanted(points_of(server, some, boxes.attributes), audience)

    for some in server.results(changes, wanted):
        points = points_of(server, some.slots, boxes.attributes)
        result, subscription = subscriptions_with(points, audience, boxes.dimensions)
        kept, place = np.unique(result, return_inverse=True)
        results.append(place + before)
        subscriptions.append(subscription)
        slots.append(some.slots[kept])
        made_by.append(some.change[kept])
        before += kept.size
    if not before:
        return None
    # In an order that does not depend on how the rows are kept: by change, then by the rows.
    every, change = np.concatenate(slots), np.concatenate(made_by)
    numbers = [table.slots.number[every[:, at]] for at, table in enumerate(server.rows.tables)]
    order = np.lexsort((*numbers[::-1], change))
    rank = np.empty(before, np.int64)
    rank[order] = np.arange(before)
    pairs = rank[np.concatenate(results)], np.concatenate(subscriptions)
    return _table(every[order], pairs, boxes, server.rows.tables, group)


def _table(
    slots: Longs,
    pairs: tuple[Longs, Longs],
    boxes: OpenBoxes,
    tables: Sequence[TableRows],
    group: JoinGroup,
) -> pa.Table | None:
    """Results as items, those that some subscription has: `pairs` are of both."""
    result, subscription = pairs
    if not result.size:
        return None
    tested = boxes.tested[subscription]
    # A feed that is a union of joins may have a result twice: by one without a test is enough.
    order = np.lexsort((tested, boxes.feeds[subscription], result))
    result, feed, tested = (
        result[order],
        boxes.feeds[subscription][order],
        tested[order].astype(np.bool_),
    )
    first = np.ones(len(order), np.bool_)
    first[1:] = (result[1:] != result[:-1]) | (feed[1:] != feed[:-1])
    result, feed, tested = result[first], feed[first], tested[first]
    distinct, place = np.unique(result, return_inverse=True)
    items = _items(slots[distinct], tables, group)
    lists = [_lists(place[chosen], feed[chosen], len(distinct)) for chosen in (~tested, tested)]
    for field, each in zip((FEEDS_FIELD, INNER_FIELD), lists, strict=True):
        items = items.append_column(field, each)
    return items


def _lists(places: Longs, feeds: np.ndarray, count: int) -> pa.Array:
    start = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(places, minlength=count), out=start[1:])
    return pa.ListArray.from_arrays(pa.array(start), pa.array(feeds.astype(np.int32)))


def _items(slots: Longs, tables: Sequence[TableRows], group: JoinGroup) -> pa.Table:
    """Rows that join as items: named as the language says, with all ids, and the latest time."""
    merged: dict[str, pa.Array] = {}
    ids: list[pa.Array] = []
    times: list[pa.Array] = []
    for side, table in enumerate(tables):
        distinct, place = np.unique(slots[:, side], return_inverse=True)
        own = group.formats[side].columns(table.payloads_of(distinct))
        taken = pa.array(place)
        ids.append(pa.array([quote(each, safe="") for each in own[ID].to_pylist()]).take(taken))
        times.append(own[TIME].take(taken))
        for name, named in group.names[side].items():
            values = own[name].take(taken)
            merged[named] = pc.coalesce(merged[named], values) if named in merged else values
    source = "+".join(quote(each.name, safe="") for each in group.tables)
    columns_ = {
        SOURCE: pa.repeat(pa.scalar(source, OWN[SOURCE]), len(slots)),
        ID: pc.binary_join_element_wise(*ids, "+"),
        TIME: reduce(_later, times),
        **merged,
    }
    fields = item_columns(group.schema)
    return pa.Table.from_arrays([columns_[each.name] for each in fields], schema=fields)


def _later(one: pa.Array, other: pa.Array) -> pa.Array:
    return pc.if_else(pc.greater(one, other), one, other)
