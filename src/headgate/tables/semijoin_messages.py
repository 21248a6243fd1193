"""From changes of two joined tables to messages of the semijoins R^S and S^R of one edge
([Select-Joins §4]).

The semijoin R^S holds rows of its base table R only. The effect of a change:

    R changes       the row goes to the subscriptions that it affects, as in a two-way join
    S, new t        rows of R that t exposes go to the subscriptions that t exposes them to
    S, t deleted    rows of R leave that have no partner any more

The last line differs from a two-way join. There a client holds both sides and sees by itself that
one has become empty; here it has no rows of S. But within a join value b all selected rows of R
join with all selected rows of S, so the rows of R with b leave all at once, and one short message
is enough: "b is empty", for subscriptions that select t, none of its remaining neighbours, and some
row of R.

    C    ──c⁻────t────c⁺──       region: ranges that contain t and lie within (c⁻, c⁺)

The two semijoins of an edge share the indexes of both tables; each has its own subscriptions and
messages. "b is empty" is written as a deletion of a row of the filtering table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numba as nb
import numpy as np

from headgate.tables.box_tree_kernels import Longs
from headgate.tables.change_messages import (
    SEMIJOINS,
    event_of,
    has_space,
    neighbours,
    require_exposed,
    update_index,
    write_change,
    write_described,
    write_exposed,
)
from headgate.tables.changes import Mask
from headgate.tables.message_buffer import (
    DELETE,
    INSERT,
    KIND,
    NEW,
    OLD,
    SIDE,
    MessageBuffer,
    MessageHead,
)
from headgate.tables.subscription_index import SubscriptionIndex, message_sink
from headgate.tables.table_kernels import RowIndex


class IndexedRows(Protocol):
    """Rows of a table by join value."""

    @property
    def index(self) -> RowIndex: ...
    def reserve(self, *, joins: int, places: int) -> None: ...


def apply_edge_changes(
    changes: Longs,
    tables: Sequence[IndexedRows],
    subscriptions: Sequence[SubscriptionIndex],
    is_used: Mask,
    buffers: Sequence[MessageBuffer],
) -> None:
    """Apply changes of two tables, and write the messages of each semijoin that is used.

    `subscriptions`, `is_used` and `buffers` are by the side of the semijoin's base table.
    """
    needs, position = np.zeros(5, np.int64), 0
    for buffer in buffers:
        buffer.used[:] = 0
    while True:
        indexes = tuple(table.index for table in tables)
        sinks = tuple(map(message_sink, subscriptions, buffers))
        position = apply_edge(changes, position, indexes, sinks, is_used, needs)
        if position == len(changes):
            return
        buffers[needs[4]].make_space(needs)
        tables[changes[position, SIDE]].reserve(joins=0, places=int(needs[2]))


@nb.njit(nogil=True, cache=True)
def write_emptied(event, slot, sink):  # type: ignore[no-untyped-def]
    """Write "the join value is empty" for the subscriptions that selected a row, which the index no
    longer has, as their last one."""
    own_rows = event.own
    values = own_rows.value[slot]
    near = neighbours(own_rows, event.join, slot)
    for neighbour in range(near.shape[0]):
        if (near[neighbour] == values).all():
            return
    require_exposed(event.query, event.own_first, values, near)
    side = event.side
    head = MessageHead(event.number, DELETE, side, side, slot, -1, own_rows.number[slot], -1)
    write_described(event, head, near, sink.scheme.description, sink.out)


@nb.njit(nogil=True, cache=True)
def apply_edge(changes, first, tables, sinks, is_used, needs):  # type: ignore[no-untyped-def]
    """Apply changes (int64, [change, 5]) from `first` on and write the messages of both semijoins.

    Stops where a change might not have enough space, and returns its position; `needs` (int64, [5])
    says what is needed, and needs[4] for which base.
    """
    for number in range(first, changes.shape[0]):
        change = changes[number]
        side, kind = change[SIDE], change[KIND]
        own_rows, other_rows = tables[side], tables[1 - side]
        for base in range(2):
            needs[4] = base
            is_enough = has_space(sinks[base], change, own_rows, other_rows, needs)
            if not is_enough or own_rows.used[0] + needs[2] > own_rows.pool.shape[0]:
                return number
        if is_used[side]:
            event = event_of(number, change, tables, sinks[side])
            write_change(event, change, sinks[side], True)
        sink = sinks[1 - side]
        event = event_of(number, change, tables, sink)
        if is_used[1 - side] and kind != DELETE:
            write_exposed(event, change[NEW], -1, sink, SEMIJOINS)
        update_index(change, own_rows)
        if is_used[1 - side] and kind != INSERT:
            write_emptied(event, change[OLD], sink)
    return changes.shape[0]
