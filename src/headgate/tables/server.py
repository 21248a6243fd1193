"""The server of one group: changes of two tables in, messages out ([Select-Joins §3]).

A group is all subscriptions with the same two tables and join attributes. The server is a plain
object without clock, network or Spark. Each bucket of join values has a server of its own, as rows
of different buckets never join; each has all subscriptions.

    changes ──► TableRows (2)      rows by key and by join value
            ──► apply_changes      the messages of each change, from
                  BoxTree          the subscriptions as points
                  StabbingSets (2) clusters and anchors, for Ref-SJ-Clu
            ──► MessageBatch

Invariant: if every message reaches the subscriptions in its region, each client holds the join of
the rows that its subscription selects; and no client gets a row that it already holds (all schemes
but Ref-J, Enum-J and Rel-Sel)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from headgate.model.errors import InvalidValue
from headgate.tables.box_tree import BoxTree
from headgate.tables.box_tree_kernels import Longs, Tree
from headgate.tables.boxes import Boxes
from headgate.tables.change_messages import apply_changes, apply_silently
from headgate.tables.changes import ChangeColumns, JoinChange, columns_of
from headgate.tables.message_buffer import JOIN, SIDE, MessageBuffer
from headgate.tables.messages import JoinSide, MessageBatch
from headgate.tables.schemes import JoinScheme
from headgate.tables.semijoin_messages import apply_edge_changes
from headgate.tables.stabbing_sets import StabbingSets
from headgate.tables.subscription_index import SubscriptionIndex, message_sink
from headgate.tables.table_kernels import space_to_insert
from headgate.tables.table_rows import JoinedRows, TableRows


class SelectJoinServer:
    def __init__(
        self,
        dimensions: tuple[int, int] = (1, 1),
        *,
        scheme: JoinScheme = JoinScheme.REF_SJ_CLU_PLUS,
        join_attributes: int = 1,
        numbers: tuple[int, int] = (0, 1),
    ) -> None:
        """`numbers` are the first version number and the step to the next, so that the servers of
        several buckets never give the same number."""
        self.scheme = scheme
        self.dimensions = dimensions
        self.rows = JoinedRows(dimensions, [join_attributes] * len(JoinSide), numbers)
        self.trees = tuple(
            BoxTree(sum(dimensions), near=self._columns[side.other]) for side in JoinSide
        )
        """The subscriptions, ordered for queries about changes of either table."""
        self.clusters = tuple(StabbingSets(width) for width in dimensions)
        self._buffers = [MessageBuffer()]
        self._stored: SubscriptionIndex | None = None

    def subscribe(self, boxes: Boxes) -> None:
        """Add subscriptions; `recipients.content` gives the rows that they start with."""
        low, high = boxes.low, boxes.high
        if low.shape[1] != sum(self.dimensions):
            raise InvalidValue(
                f"subscriptions have {low.shape[1]} ranges: expected {sum(self.dimensions)}"
            )
        taken = boxes.numbers[self.tree.holds(boxes.numbers)]
        if len(taken):
            raise InvalidValue(f"subscription {taken[0]} exists already")
        for tree in self.trees:
            tree.add(boxes.numbers, low, high)
        for side, columns in zip(JoinSide, self._columns, strict=True):
            clusters = self.clusters[side]
            if 2 * len(boxes.numbers) < len(self.tree):
                clusters.add(boxes.numbers, low[:, columns], high[:, columns])
            if 2 * len(boxes.numbers) >= len(self.tree) or clusters.is_crowded:
                numbers = self.tree.numbers()
                all_low, all_high = self.tree.bounds(numbers)
                clusters.partition(numbers, all_low[:, columns], all_high[:, columns])

    def use(self, subscriptions: SubscriptionIndex) -> None:
        """Serve the subscriptions of a file, which never change, and no others."""
        assert not len(self.tree), "it has subscriptions of its own"
        self._stored = subscriptions

    def unsubscribe(self, numbers: Longs) -> None:
        unknown = numbers[~self.tree.holds(numbers)]
        if len(unknown):
            raise InvalidValue(f"there is no subscription {unknown[0]}")
        for tree in self.trees:
            tree.remove(numbers)
        for clusters in self.clusters:
            clusters.remove(numbers)

    def apply(self, changes: Iterable[JoinChange]) -> MessageBatch:
        """Apply a few changes in their order."""
        return self.apply_columns(columns_of(list(changes), self.dimensions))

    def apply_columns(self, changes: ChangeColumns) -> MessageBatch:
        """Apply changes in their order. Messages are in the order in which clients apply them.

        If one change is refused, none is applied.
        """
        (messages,) = self._write(self._to_lines(changes), (self.subscriptions,))
        return messages

    def apply_for_both(
        self, changes: ChangeColumns, others: SubscriptionIndex
    ) -> tuple[MessageBatch, MessageBatch]:
        """Apply changes; return the messages for the server's subscriptions, and for `others`."""
        own_messages, other_messages = self._write(
            self._to_lines(changes), (self.subscriptions, others)
        )
        return own_messages, other_messages

    def apply_for_base(self, changes: ChangeColumns, base: JoinSide) -> MessageBatch:
        """The messages of one semijoin of a larger join: clients hold rows of the base table only
        (`semijoin_messages.py`)."""
        is_used = np.arange(len(JoinSide)) == base
        lines, buffers = self._to_lines(changes), [self._buffers[0]] * 2
        apply_edge_changes(lines, self.tables, (self.subscriptions,) * 2, is_used, buffers)
        left, right = self.tables
        return MessageBatch(*buffers[base].written(), (left, right))

    def apply_silently(self, changes: ChangeColumns) -> None:
        """Apply changes to the rows without messages."""
        lines, position = self._to_lines(changes), 0
        while position < len(lines):
            position = apply_silently(lines, position, tuple(table.index for table in self.tables))
            if position < len(lines):
                table = self.tables[lines[position, SIDE]]
                table.reserve(joins=0, places=space_to_insert(table.index, lines[position, JOIN]))

    def expired(self, now_s: float) -> ChangeColumns:
        """The deletions of rows that have expired by `now_s`."""
        return self.rows.expired(now_s)

    def expire(self, now_s: float) -> MessageBatch:
        """Delete the rows that have expired by `now_s`."""
        return self.apply_columns(self.expired(now_s))

    @property
    def tree(self) -> BoxTree:
        """The subscriptions; the order of the tree does not matter to the caller."""
        return self.trees[0]

    @property
    def tree_arrays(self) -> tuple[Tree, ...]:
        return tuple(tree.arrays for tree in self.trees)

    @property
    def subscriptions(self) -> SubscriptionIndex:
        """All subscriptions, with the server's scheme."""
        if self._stored is not None:
            return self._stored
        return SubscriptionIndex.of(
            self.dimensions,
            self.tree_arrays,
            tuple(clusters.anchors for clusters in self.clusters),
            self.scheme,
        )

    @property
    def tables(self) -> tuple[TableRows, ...]:
        return self.rows.tables

    @property
    def join_values(self) -> int:
        """The number of join values that rows have, or have had since they were loaded."""
        return self.rows.join_values

    @property
    def _columns(self) -> tuple[slice, slice]:
        left, right = self.dimensions
        return slice(0, left), slice(left, left + right)

    def _to_lines(self, changes: ChangeColumns) -> Longs:
        """Apply changes to the rows; return them as kernels take them (`message_buffer.py`)."""
        self.rows.tidy()
        return self.rows.apply(changes)

    def _write(self, changes: Longs, indexes: Sequence[SubscriptionIndex]) -> list[MessageBatch]:
        """Update the index by join value; return the messages for each of `indexes`."""
        needs, position = np.zeros(4, np.int64), 0
        while len(self._buffers) < len(indexes):
            self._buffers.append(MessageBuffer())
        buffers = self._buffers[: len(indexes)]
        for buffer in buffers:
            buffer.used[:] = 0
        while position < len(changes):
            tables = tuple(table.index for table in self.tables)
            sinks = tuple(map(message_sink, indexes, buffers))
            position, short = apply_changes(changes, position, tables, sinks, needs)
            if position < len(changes) and short >= 0:
                buffers[short].make_space(needs)
            elif position < len(changes):
                self.tables[changes[position, SIDE]].reserve(joins=0, places=int(needs[2]))
        left, right = self.tables
        return [MessageBatch(*buffer.written(), (left, right)) for buffer in buffers]
