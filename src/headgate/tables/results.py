"""Results of table joins as items, and the filters that ranges cannot express.

    tables/results/17-0-<group>.parquet      change batch 17, bucket 0, until the driver stores them
    @source  @id  @time  attributes of all tables …  @feeds  @inner

A result is one row of each table that join, with the numbers of the feeds that have it. `@inner`
are feeds whose filters have a residual that ranges cannot express:

    $s[PER > 45 and Name contains 'x'] and $r[Rating > 6]    ranges: PER, Rating   residual: Name

The driver evaluates residuals before delivery (`ResidualFilters`). They are not in the files that
workers map: a residual is planned when the first result of its feed arrives, and cached. Most joins
have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.item_columns import (
    FEEDS,
    FEEDS_FIELD,
    ID,
    INNER,
    INNER_FIELD,
    OWN,
    SOURCE,
    TIME,
    item_columns,
    items_from_arrow,
)
from headgate.model.evaluate import matches
from headgate.model.items import Item
from headgate.plan.algebra import Plan
from headgate.tables import message_buffer as columns
from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.boxes import MISSING, SelectJoin, number_of
from headgate.tables.changes import ChangeColumns, Mask
from headgate.tables.group_joins import attributes_by_table, columns_of_boxes
from headgate.tables.join_groups import JoinGroup, split_plan
from headgate.tables.messages import JoinSide, MessageBatch, MessageKind
from headgate.tables.recipients import may_be_selected, recipients_of, subscriptions_of_results
from headgate.tables.result_join import ResultJoin
from headgate.tables.server import SelectJoinServer
from headgate.tables.stored_boxes import Names, OpenBoxes
from headgate.tables.subscription_index import SubscriptionIndex
from headgate.tables.table_rows import TableRows


def results_of_pairs(
    messages: MessageBatch,
    index: SubscriptionIndex,
    boxes: OpenBoxes,
    server: SelectJoinServer,
    group: JoinGroup,
) -> pa.Table | None:
    """The results in messages that hold pairs of rows, with their feeds; None if there are none.

    Deletions of rows do not withdraw items that were delivered.
    """
    header = messages.header
    both = (header[:, columns.MESSAGE_KIND] == MessageKind.INSERT) & (
        header[:, columns.PARTNER] >= 0
    )
    header = header[both]
    lines = recipients_of(index, server.dimensions, replace(messages, header=header)).lines
    counts = lines[:, 2] - lines[:, 1]
    message = np.repeat(lines[:, 1] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    slots = np.column_stack(
        [
            np.where(
                header[:, columns.ROW_SIDE] == table,
                header[:, columns.SLOT],
                header[:, columns.PARTNER],
            )
            for table in JoinSide
        ]
    )
    pairs = message, np.repeat(lines[:, 0], counts)
    return _result_table(slots, pairs, boxes, server.tables, group)


def results_of_changes(
    changes: ChangeColumns,
    index: SubscriptionIndex,
    boxes: OpenBoxes,
    server: ResultJoin,
    group: JoinGroup,
) -> pa.Table | None:
    """The results that changes make in a join of more than two tables; None if there are none."""
    slots, made_by, results, subscriptions, before = [], [], [], [], 0

    def may_select(slots: Longs) -> Mask:
        return may_be_selected(points_of(server, slots, boxes.attributes), index)

    for batch in server.results(changes, may_select):
        points = points_of(server, batch.slots, boxes.attributes)
        result, subscription = subscriptions_of_results(points, index, boxes.dimensions)
        kept, place = np.unique(result, return_inverse=True)
        results.append(place + before)
        subscriptions.append(subscription)
        slots.append(batch.slots[kept])
        made_by.append(batch.change[kept])
        before += kept.size
    if not before:
        return None
    # An order that does not depend on the layout of rows: by change, then by version numbers.
    every, change = np.concatenate(slots), np.concatenate(made_by)
    numbers = [table.slots.number[every[:, at]] for at, table in enumerate(server.rows.tables)]
    order = np.lexsort((*numbers[::-1], change))
    rank = np.empty(before, np.int64)
    rank[order] = np.arange(before)
    pairs = rank[np.concatenate(results)], np.concatenate(subscriptions)
    return _result_table(every[order], pairs, boxes, server.rows.tables, group)


def points_of(server: ResultJoin, slots: Longs, attributes: tuple[Names, Names]) -> Floats:
    """The values of results in the order of the boxes' attributes; NaN where a table is not joined
    yet."""
    columns_ = columns_of_boxes(attributes)
    by_table = attributes_by_table(attributes, len(server.dimensions))
    points = np.zeros((len(slots), len(columns_)))
    for position, column in enumerate(columns_):
        if column is not None:
            table, name = column
            rows = slots[:, table]
            values = server.values(table, rows)[:, by_table[table].index(name)]
            points[:, position] = np.where(rows >= 0, values, np.nan)
    return points


def _result_table(
    slots: Longs,
    pairs: tuple[Longs, Longs],
    boxes: OpenBoxes,
    tables: Sequence[TableRows],
    group: JoinGroup,
) -> pa.Table | None:
    """The results that some subscription has, as items; `pairs` are result and subscription."""
    result, subscription = pairs
    if not result.size:
        return None
    tested = boxes.tested[subscription]
    # A feed that is a union of joins may have a result twice; one without a residual is enough.
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
    lists = [
        _list_array(place[chosen], feed[chosen], len(distinct)) for chosen in (~tested, tested)
    ]
    for column, values in zip((FEEDS_FIELD, INNER_FIELD), lists, strict=True):
        items = items.append_column(column, values)
    return items


def _list_array(places: Longs, feeds: np.ndarray, count: int) -> pa.Array:
    start = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(places, minlength=count), out=start[1:])
    return pa.ListArray.from_arrays(pa.array(start), pa.array(feeds.astype(np.int32)))


def _items(slots: Longs, tables: Sequence[TableRows], group: JoinGroup) -> pa.Table:
    """Joined rows as items: attributes named as in the language, all ids, the latest time."""
    merged: dict[str, pa.Array] = {}
    ids: list[pa.Array] = []
    times: list[pa.Array] = []
    for side, table in enumerate(tables):
        distinct, place = np.unique(slots[:, side], return_inverse=True)
        values_by_name = group.formats[side].columns(table.payloads_of(distinct))
        order = pa.array(place)
        ids.append(
            pa.array([quote(each, safe="") for each in values_by_name[ID].to_pylist()]).take(order)
        )
        times.append(values_by_name[TIME].take(order))
        for name, result_name in group.names[side].items():
            column = values_by_name[name].take(order)
            merged[result_name] = (
                pc.coalesce(merged[result_name], column) if result_name in merged else column
            )
    source = "+".join(quote(each.name, safe="") for each in group.tables)
    columns_ = {
        SOURCE: pa.repeat(pa.scalar(source, OWN[SOURCE]), len(slots)),
        ID: pc.binary_join_element_wise(*ids, "+"),
        TIME: reduce(_later, times),
        **merged,
    }
    fields = item_columns(group.schema)
    return pa.Table.from_arrays([columns_[each.name] for each in fields], schema=fields)


def _later(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.if_else(pc.greater(left, right), left, right)


KEPT_MAX = 100_000
"""The most feeds whose joins are cached."""


@dataclass(slots=True)
class ResidualFilters:
    """Evaluates residual filters; for one thread. `plans` returns the plans of those feeds that
    exist, by number."""

    plans: Callable[[Sequence[int]], Mapping[int, Plan]]
    _joins: dict[int, Sequence[SelectJoin]] = field(default_factory=dict)

    def tested(self, results: pa.Table, group: JoinGroup) -> pa.Table:
        """The results with the feeds whose residuals they satisfy, without results of no feed."""
        inner = results.column(INNER).to_pylist()
        if not any(inner):
            return results
        self._load_joins({feed for own in inner for feed in own})
        feeds = results.column(FEEDS).to_pylist()
        items = [
            item
            for batch in results.combine_chunks().to_batches()
            for item in items_from_arrow(batch, group.schema)
        ]
        for item, decided, undecided in zip(items, feeds, inner, strict=True):
            decided += [feed for feed in undecided if self._has(feed, item, group)]
            decided.sort()
        undecided_lists: list[list[int]] = [[] for _ in feeds]
        for column, values in ((FEEDS_FIELD, feeds), (INNER_FIELD, undecided_lists)):
            position = results.schema.get_field_index(column.name)
            results = results.set_column(position, column, pa.array(values, column.type))
        return results.filter(pa.array([bool(each) for each in feeds]))

    def _has(self, feed: int, item: Item, group: JoinGroup) -> bool:
        tables = tuple(table.name for table in group.tables)
        joins = (each for each in self._joins.get(feed, ()) if each.signature == (tables, group.on))
        return any(_satisfies(join, item, group) for join in joins)

    def _load_joins(self, feeds: set[int]) -> None:
        missing = sorted(feeds - self._joins.keys())
        if missing and len(self._joins) > KEPT_MAX:
            self._joins.clear()
        if missing:
            plans = self.plans(missing)
            self._joins |= {feed: split_plan(plan).joins for feed, plan in plans.items()}


def _satisfies(join: SelectJoin, item: Item, group: JoinGroup) -> bool:
    """Whether an item satisfies a join: its residuals, and its ranges too, since it is not known
    which of a feed's joins found the item."""
    if not matches(join.rest, item):
        return False
    for side, names in zip(join.sides, group.names, strict=True):
        attributes = {
            name: item.attributes[result_name]
            for name, result_name in names.items()
            if result_name in item.attributes
        }
        if not matches(side.rest, replace(item, attributes=attributes)):
            return False
        for name, (low, high) in side.ranges.items():
            number = number_of(attributes.get(name))
            if not low <= (MISSING if number is None else number) <= high:
                return False
    return True
