"""Which subscriptions are in the region of a message: found in the tree, not one by one.

In one process this takes the place of the content-driven network ([Select-Joins §2.1]): it knows
regions and bounds, and no joins. Enum-J and Enum-SJ need it in the server, as they address each
subscription. Join results of one tuple (Enum-J, Ref-J) are looked up together: a subscription that
selects the tuple gets those between two bounds, as they are ordered by value.

Results of a join of many tables (`result_join.py`) use the boxes of two tables: the first table is
the left side, all others the right one. A result is looked up as a message that selects its left
part and has its right part as its only pair. During the join some values are still unknown (NaN);
then the query is whether any box contains the known ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.match.bit_rows import first_not_less
from headgate.tables import message_buffer as columns
from headgate.tables.box_tree_kernels import (
    Excluded,
    Floats,
    Longs,
    any_match,
    clear_query,
    collect,
    require_containing,
)
from headgate.tables.changes import Mask
from headgate.tables.message_buffer import EXCLUDED, OF_CHANGE, OWN_SIDE, PAIRS, PARTNER, START
from headgate.tables.messages import JoinRow, JoinSide, MessageBatch, MessageKind
from headgate.tables.schemes import SCHEMES
from headgate.tables.server import SelectJoinServer
from headgate.tables.subscription_index import SubscriptionIndex


class RegionArrays(NamedTuple):
    """Messages as arrays (`message_buffer.py`), and the number of attributes of each side."""

    header: Longs  # [message, HEADER]
    numbers: Floats
    widths: Longs  # [2]


@nb.njit(nogil=True, cache=True)
def is_described(points, point, first, pairs):  # type: ignore[no-untyped-def]
    """Whether the ranges of a point from dimension `first` on fit one of the pairs (x, y) (float64,
    [pair, 2, attribute])."""
    half = points.shape[1] // 2
    for pair in range(pairs.shape[0]):
        fits = True
        for d in range(pairs.shape[2]):
            m = first + d
            fits &= points[point, m] <= pairs[pair, 0, d]
            fits &= points[point, half + m] >= pairs[pair, 1, d]
        if fits:
            return True
    return False


@nb.njit(nogil=True, cache=True)
def find_recipients(line, regions, trees, query):  # type: ignore[no-untyped-def]
    """Write the positions in the tree of the subscriptions in one message's region to `query.hits`;
    return how many."""
    numbers, widths = regions.numbers, regions.widths
    half = query.least.shape[0] // 2
    own_side = line[OWN_SIDE]
    own_width, other_width = widths[own_side], widths[1 - own_side]
    own_first, other_first = (0, own_width) if own_side == 0 else (other_width, 0)
    position = line[START] + own_width
    points = numbers[position : position + line[EXCLUDED] * own_width].reshape(-1, own_width)
    position += line[EXCLUDED] * own_width
    size = 2 * other_width * line[PAIRS]
    pairs = numbers[position : position + size].reshape(-1, 2, other_width)
    clear_query(query)
    require_containing(query, own_first, numbers[line[START] : line[START] + own_width])
    for d in range(other_width):
        query.most[other_first + d] = pairs[:, 0, d].max()
        query.least[half + other_first + d] = pairs[:, 1, d].min()
    excluded = Excluded(points, own_first)
    tree = trees[own_side]
    count = collect(tree, query, excluded)
    if line[PAIRS] == 1:
        return count
    used = 0
    for hit in range(count):
        if is_described(tree.points, query.hits[hit], other_first, pairs):
            query.hits[used] = query.hits[hit]
            used += 1
    return used


@nb.njit(nogil=True, cache=True)
def write_recipients(first, regions, trees, query, out, used):  # type: ignore[no-untyped-def]
    """Write rows (subscription, first, end) to out[used:] (int64), from message `first` on.

    Messages `first` to `end` − 1 are for the subscription. Returns the first message whose
    recipients did not fit, and the number of rows written.
    """
    header, numbers, widths = regions.header, regions.numbers, regions.widths
    message = first
    while message < header.shape[0]:
        line = header[message]
        own_side, end = line[OWN_SIDE], message + 1
        if line[PARTNER] >= 0 and widths[0] == 1 and widths[1] == 1:
            while (
                end < header.shape[0]
                and header[end, PARTNER] >= 0
                and header[end, OF_CHANGE] == line[OF_CHANGE]
            ):
                end += 1
        if end == message + 1:
            count = find_recipients(line, regions, trees, query)
        else:
            values = numbers[line[START] + 1 : header[end - 1, START] + 3 : 3]
            count = find_affected(numbers[line[START]], values, own_side, trees, query)
        if used + count > out.shape[0]:
            return message, used
        tree = trees[own_side]
        for hit in range(count):
            point = query.hits[hit]
            begin, stop = message, end
            if end > message + 1:
                low, high = tree.points[point, 1 - own_side], tree.points[point, 3 - own_side]
                begin = message + first_not_less(values, 0, values.shape[0], low)
                above = np.nextafter(high, np.inf)
                stop = message + first_not_less(values, 0, values.shape[0], above)
            if begin < stop:
                out[used, 0], out[used, 1], out[used, 2] = tree.subscription[point], begin, stop
                used += 1
        message = end
    return message, used


@nb.njit(nogil=True, cache=True)
def find_affected(value, values, own_side, trees, query):  # type: ignore[no-untyped-def]
    """Write to `query.hits` the subscriptions that select a tuple and whose range overlaps the
    values (float64, ascending) that it joins with; for tables with one attribute each."""
    clear_query(query)
    query.most[own_side] = query.least[2 + own_side] = value
    query.most[1 - own_side], query.least[3 - own_side] = values[-1], values[0]
    return collect(trees[own_side], query, query.no_exclusions)


@nb.njit(nogil=True, cache=True)
def mark_selected_points(points, tree, query, out):  # type: ignore[no-untyped-def]
    """Write to `out` (bool, [point]) whether any subscription contains each point (float64, [point,
    attribute]); NaN is in all ranges."""
    half = points.shape[1]
    for row in range(points.shape[0]):
        clear_query(query)
        for d in range(half):
            if not np.isnan(points[row, d]):
                query.most[d] = query.least[half + d] = points[row, d]
        out[row] = any_match(tree, query, query.no_exclusions)


@nb.njit(nogil=True, cache=True)
def selected_rows(tables, joins, low, high, keeps_unjoined, out):  # type: ignore[no-untyped-def]
    """Write the slots of the rows in one subscription's semijoins to `out` (int64, [2, rows of a
    table]), by side; return how many there are of either side (int64, [2])."""
    used = np.zeros(2, np.int64)
    for join in range(joins):
        before = used[0], used[1]
        for side in range(2):
            index = tables[side]
            first = 0 if side == 0 else tables[0].value.shape[1]
            for place in range(index.start[join], index.start[join] + index.size[join]):
                slot, inside = index.pool[place], True
                for d in range(index.value.shape[1]):
                    inside &= low[first + d] <= index.value[slot, d] <= high[first + d]
                if inside:
                    out[side, used[side]] = slot
                    used[side] += 1
        if not keeps_unjoined and (used[0] == before[0] or used[1] == before[1]):
            used[0], used[1] = before
    return used


@dataclass(frozen=True, slots=True, eq=False)
class Recipients:
    """Rows (subscription, first, end): messages `first` to `end` − 1 are for the subscription.

    The rows of one subscription are in the order of its messages.
    """

    lines: Longs

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Every message with each of its subscriptions."""
        for subscription, first, end in self.lines.tolist():
            for message in range(first, end):
                yield subscription, message


def recipients(server: SelectJoinServer, messages: MessageBatch) -> Recipients:
    """The recipients of messages among the server's subscriptions."""
    return recipients_of(server.subscriptions, server.dimensions, messages)


def recipients_of(
    subscriptions: SubscriptionIndex, dimensions: tuple[int, int], messages: MessageBatch
) -> Recipients:
    """The recipients of messages among these subscriptions."""
    return Recipients(recipient_lines(subscriptions, dimensions, messages.header, messages.numbers))


def recipient_lines(
    subscriptions: SubscriptionIndex, dimensions: tuple[int, int], header: Longs, numbers: Floats
) -> Longs:
    """The same for messages as arrays (`message_buffer.py`)."""
    trees, query = subscriptions.trees, subscriptions.queries[JoinSide.LEFT]
    regions = RegionArrays(header, numbers, np.array(dimensions, np.int64))
    message, used, out = 0, 0, np.empty((1_024, 3), np.int64)
    while True:
        message, used = write_recipients(message, regions, trees, query, out, used)
        if message == len(header):
            return out[:used]
        larger = np.empty((2 * len(out) + len(trees[0].points), 3), np.int64)
        larger[:used] = out[:used]
        out = larger


def content(server: SelectJoinServer, subscription: int) -> list[JoinRow]:
    """The rows that the client of a subscription should hold now; for a new client or after a
    gap."""
    low, high = server.tree.bounds(np.array([subscription]))
    tables = server.tables
    out = np.empty((2, max(map(len, tables))), np.int64)
    counts = selected_rows(
        tuple(table.index for table in tables),
        server.join_values,
        low[0],
        high[0],
        SCHEMES[server.scheme].keeps_unjoined,
        out,
    )
    return [
        table.row(slot)
        for table, slots, count in zip(tables, out.tolist(), counts, strict=True)
        for slot in slots[:count]
    ]


def may_be_selected(points: Floats, subscriptions: SubscriptionIndex) -> Mask:
    """For each point, whether any subscription contains its known values."""
    is_selected = np.empty(len(points), np.bool_)
    mark_selected_points(points, subscriptions.trees[0], subscriptions.queries[0], is_selected)
    return is_selected


def subscriptions_of_results(
    points: Floats, subscriptions: SubscriptionIndex, dimensions: tuple[int, int]
) -> tuple[Longs, Longs]:
    """Pairs of a result and a subscription that selects it; points are [result, attribute]."""
    left, right = dimensions
    numbers = np.hstack([points, points[:, left:]])
    header = np.zeros((len(points), columns.HEADER), np.int64)
    header[:, columns.MESSAGE_KIND] = MessageKind.INSERT
    header[:, columns.OWN_SIDE] = header[:, columns.ROW_SIDE] = JoinSide.LEFT
    header[:, columns.PARTNER] = -1
    header[:, columns.START] = np.arange(len(points)) * (left + 2 * right)
    header[:, columns.PAIRS] = 1
    lines = recipient_lines(
        subscriptions, dimensions, header, np.ascontiguousarray(numbers).ravel()
    )
    return lines[:, 1], lines[:, 0]
