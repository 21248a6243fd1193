"""The server of one group of select-joins: changes of two tables in, messages out (§3, §4).

A group is all subscriptions of the same two tables and join attributes. The server is a plain
object: it knows no clock, no network and no Spark. A bucket of join values is a server of its own,
as rows of different buckets never meet; each has all subscriptions.

    changes ──► TableRows (2)      rows by key and by join value
            ──► process            what each change means, against
                  BoxTree          the subscriptions as points
                  StabbingSets (2) clusters and anchors, for Ref-SJ-Clu
            ──► Messages

Law: if every message is given to those in its region, each client holds the join of the rows that
its subscription selects; and each gets nothing that it holds already (all but Ref-J, Enum-J and
Rel-Sel).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from headgate.model.errors import InvalidValue
from headgate.tables import change_kernels as kernels
from headgate.tables.audience import Audience, question
from headgate.tables.box_tree import BoxTree
from headgate.tables.box_tree_kernels import Longs, Tree
from headgate.tables.boxes import Boxes
from headgate.tables.changes import Change, ChangeColumns, columns_of
from headgate.tables.desk import Desk, teller
from headgate.tables.joined_rows import JoinedRows
from headgate.tables.messages import Messages, Table
from headgate.tables.question_kernels import Question
from headgate.tables.schemes import JoinScheme
from headgate.tables.semijoins import tell_edge
from headgate.tables.stabbing_sets import StabbingSets
from headgate.tables.table import TableRows
from headgate.tables.table_kernels import room_needed

__all__ = ["Change", "SelectJoinServer"]


class SelectJoinServer:
    def __init__(
        self,
        dimensions: tuple[int, int] = (1, 1),
        *,
        scheme: JoinScheme = JoinScheme.REF_SJ_CLU_PLUS,
        join_attributes: int = 1,
        numbers: tuple[int, int] = (0, 1),
    ) -> None:
        """`numbers` are those that it gives to versions of rows: the first, and the step from one
        to the next; so servers of several buckets never give the same."""
        self.scheme = scheme
        self.dimensions = dimensions
        self.rows = JoinedRows(dimensions, [join_attributes] * len(Table), numbers)
        self.trees = tuple(
            BoxTree(sum(dimensions), near=self._parts[table.other]) for table in Table
        )
        """The subscriptions, ordered for questions about changes of either table."""
        self.clusters = tuple(StabbingSets(each) for each in dimensions)
        self._desks = [Desk()]
        self._used: Audience | None = None

    def subscribe(self, boxes: Boxes) -> None:
        """Add subscriptions; what they are to hold already is for `content` to say."""
        low, high = boxes.low, boxes.high
        if low.shape[1] != sum(self.dimensions):
            raise InvalidValue(
                f"subscriptions have {low.shape[1]} ranges: expected {sum(self.dimensions)}"
            )
        taken = boxes.numbers[self.tree.holds(boxes.numbers)]
        if len(taken):
            raise InvalidValue(f"subscription {taken[0]} is there already")
        for tree in self.trees:
            tree.add(boxes.numbers, low, high)
        for table, own in zip(Table, self._parts, strict=True):
            clusters = self.clusters[table]
            if 2 * len(boxes.numbers) < len(self.tree):
                clusters.add(boxes.numbers, low[:, own], high[:, own])
            if 2 * len(boxes.numbers) >= len(self.tree) or clusters.is_crowded:
                numbers = self.tree.numbers()
                all_low, all_high = self.tree.bounds(numbers)
                clusters.partition(numbers, all_low[:, own], all_high[:, own])

    def use(self, audience: Audience) -> None:
        """Serve these subscriptions, and no others: those of a file, which never change."""
        assert not len(self.tree), "it has subscriptions of its own"
        self._used = audience

    def unsubscribe(self, numbers: Longs) -> None:
        unknown = numbers[~self.tree.holds(numbers)]
        if len(unknown):
            raise InvalidValue(f"there is no subscription {unknown[0]}")
        for tree in self.trees:
            tree.remove(numbers)
        for clusters in self.clusters:
            clusters.remove(numbers)

    def apply(self, changes: Iterable[Change]) -> Messages:
        """Take changes in their order; the form for a few of them, one by one."""
        return self.apply_columns(columns_of(list(changes), self.dimensions))

    def apply_columns(self, changes: ChangeColumns) -> Messages:
        """Take changes in their order. Messages are in the order in which clients need them.

        If one of them is refused, none is taken.
        """
        (messages,) = self._told(self._taken(changes), (self.audience,))
        return messages

    def apply_for_both(self, changes: ChangeColumns, other: Audience) -> tuple[Messages, Messages]:
        """The messages for the subscriptions, and those for another audience of the same rows."""
        own, theirs = self._told(self._taken(changes), (self.audience, other))
        return own, theirs

    def apply_for_base(self, changes: ChangeColumns, base: Table) -> Messages:
        """The messages for subscriptions that hold rows of one table only, and none of the other:
        its semijoin, of a join of more tables (`semijoin_kernels.py`)."""
        is_used = np.arange(len(Table)) == base
        lines, desks = self._taken(changes), [self._desks[0]] * 2
        tell_edge(lines, self.tables, (self.audience,) * 2, is_used, desks)
        left, right = self.tables
        return Messages(*desks[base].written(), (left, right))

    def take_silently(self, changes: ChangeColumns) -> None:
        """Have the rows that these changes leave, and tell nobody."""
        lines, at = self._taken(changes), 0
        while at < len(lines):
            at = kernels.settle(lines, at, tuple(table.index for table in self.tables))
            if at < len(lines):
                table = self.tables[lines[at, kernels.SIDE]]
                table.reserve(joins=0, places=room_needed(table.index, lines[at, kernels.JOIN]))

    def expired(self, now_s: float) -> ChangeColumns:
        """The deletions of rows that are kept until now or less long."""
        return self.rows.expired(now_s)

    def expire(self, now_s: float) -> Messages:
        """Delete the rows that are kept until now or less long."""
        return self.apply_columns(self.expired(now_s))

    @property
    def tree(self) -> BoxTree:
        """The subscriptions, in whatever order."""
        return self.trees[0]

    @property
    def tree_arrays(self) -> tuple[Tree, ...]:
        return tuple(tree.arrays for tree in self.trees)

    @property
    def audience(self) -> Audience:
        """All subscriptions, told by the server's scheme."""
        if self._used is not None:
            return self._used
        return Audience.of(
            self.dimensions,
            self.tree_arrays,
            tuple(each.anchors for each in self.clusters),
            self.scheme,
        )

    @property
    def tables(self) -> tuple[TableRows, ...]:
        return self.rows.tables

    @property
    def join_values(self) -> int:
        """How many join values there are, or have been since the rows were last loaded."""
        return self.rows.join_values

    @property
    def _parts(self) -> tuple[slice, slice]:
        left, right = self.dimensions
        return slice(0, left), slice(left, left + right)

    def _taken(self, changes: ChangeColumns) -> Longs:
        """What changes mean for rows, which are there from now on, as lines for `process`."""
        self.rows.tidy()
        return self.rows.take(changes)

    def _told(self, changes: Longs, audiences: Sequence[Audience]) -> list[Messages]:
        """The messages of changes that are taken, for each audience."""
        needs, at = np.zeros(4, np.int64), 0
        while len(self._desks) < len(audiences):
            self._desks.append(Desk())
        desks = self._desks[: len(audiences)]
        for desk in desks:
            desk.used[:] = 0
        while at < len(changes):
            tables = tuple(table.index for table in self.tables)
            tellers = tuple(map(teller, audiences, desks))
            at, short = kernels.process(changes, at, tables, tellers, needs)
            if at < len(changes) and short >= 0:
                desks[short].make_room(needs)
            elif at < len(changes):
                self.tables[changes[at, kernels.SIDE]].reserve(joins=0, places=int(needs[2]))
        left, right = self.tables
        return [Messages(*desk.written(), (left, right)) for desk in desks]

    def question(self, own: Table) -> Question:
        """Room for asking who is affected by tuples of a table."""
        return question(self.dimensions, own, self.trees[own].arrays)
