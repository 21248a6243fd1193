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
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headgate.join.select import change_kernels as kernels
from headgate.join.select.audience import Audience, question
from headgate.join.select.box_tree import BoxTree
from headgate.join.select.box_tree_kernels import Floats, Longs, Tree
from headgate.join.select.boxes import Boxes
from headgate.join.select.byte_codes import ByteCodes
from headgate.join.select.changes import Change, ChangeColumns, columns_of, deletions
from headgate.join.select.messages import Messages, Table
from headgate.join.select.question_kernels import Question
from headgate.join.select.schemes import FORMS, SchemeName
from headgate.join.select.stabbing_sets import StabbingSets
from headgate.join.select.table import TableContent, TableRows
from headgate.join.select.table_kernels import room_needed
from headgate.join.select.take_kernels import take
from headgate.model.errors import InvalidValue

__all__ = ["Change", "SelectJoinServer"]
ROOM_MIN = 1_024


class SelectJoinServer:
    def __init__(
        self,
        dimensions: tuple[int, int] = (1, 1),
        *,
        scheme: SchemeName = SchemeName.REF_SJ_CLU_PLUS,
        join_attributes: int = 1,
        numbers: tuple[int, int] = (0, 1),
    ) -> None:
        """`numbers` are those that it gives to versions of rows: the first, and the step from one
        to the next; so servers of several buckets never give the same."""
        self.scheme = scheme
        self.dimensions = dimensions
        self.join_attributes = join_attributes
        self._clear()
        self.trees = tuple(
            BoxTree(sum(dimensions), near=self._parts[table.other]) for table in Table
        )
        """The subscriptions, ordered for questions about changes of either table."""
        self.clusters = tuple(StabbingSets(each) for each in dimensions)
        self.next_number, self._step = numbers
        """The number of the next version of a row."""
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
        left, right = self.tables
        return deletions((left.expired(now_s), right.expired(now_s)), self.dimensions)

    def expire(self, now_s: float) -> Messages:
        """Delete the rows that are kept until now or less long."""
        return self.apply_columns(self.expired(now_s))

    def content(self) -> tuple[TableContent, TableContent]:
        """All rows of both tables."""
        left, right = self.tables
        return left.content(), right.content()

    def load(self, content: tuple[TableContent, TableContent], *, next_number: int) -> None:
        """Have these rows and no others."""
        self._clear()
        for table, own in zip(self.tables, content, strict=True):
            table.load(own)
        for table in self.tables:
            table.reserve(joins=self.join_values, places=0)
        self.next_number = next_number

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
    def join_values(self) -> int:
        """How many join values there are, or have been since the rows were last loaded."""
        return len(self._joins)

    @property
    def _parts(self) -> tuple[slice, slice]:
        left, right = self.dimensions
        return slice(0, left), slice(left, left + right)

    def _clear(self) -> None:
        """Have no rows."""
        self._joins = ByteCodes()
        self.tables = tuple(
            TableRows(
                table,
                dimensions=self.dimensions[table],
                join_attributes=self.join_attributes,
                joins=self._joins,
            )
            for table in Table
        )

    def _taken(self, changes: ChangeColumns) -> Longs:
        """What changes mean for rows, which are there from now on, as lines for `process`."""
        changes = changes.checked(self.dimensions)
        if any(table.is_wasteful for table in self.tables):
            self.load(self.content(), next_number=self.next_number)
        for table in self.tables:
            table.begin_batch(changes)
        self._joins.reserve(changes.joins)
        lines = np.empty((2 * len(changes), 5), np.int64)
        given = changes.arrays
        left, right = self.tables
        keys, joins = (left.keys.arrays, right.keys.arrays), self._joins.arrays
        rows = left.slots, right.slots
        used, number = take(given, rows, keys, joins, self.next_number, self._step, lines)
        self.next_number = int(number)
        for table in self.tables:
            table.reserve(joins=self.join_values, places=0)
        return lines[:used]

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
            tellers = tuple(map(_teller, audiences, desks))
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


@dataclass(slots=True)
class Desk:
    """Where the messages of a batch are written; it grows, and is used again."""

    header: Longs = field(default_factory=lambda: np.empty((ROOM_MIN, kernels.HEADER), np.int64))
    numbers: Floats = field(default_factory=lambda: np.empty(ROOM_MIN))
    wanted: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(ROOM_MIN, np.bool_))
    used: Longs = field(default_factory=lambda: np.zeros(2, np.int64))

    def make_room(self, needs: Longs) -> None:
        messages, numbers, _, marks = needs.tolist()
        if self.used[0] + messages > len(self.header):
            more = np.empty((len(self.header) + messages, kernels.HEADER), np.int64)
            self.header = np.concatenate([self.header, more])
        if self.used[1] + numbers > len(self.numbers):
            more_numbers = np.empty(len(self.numbers) + numbers)
            self.numbers = np.concatenate([self.numbers, more_numbers])
        if marks > len(self.wanted):
            self.wanted = np.empty(2 * marks, np.bool_)

    def written(self) -> tuple[Longs, Floats]:
        return self.header[: self.used[0]].copy(), self.numbers[: self.used[1]].copy()


def _teller(audience: Audience, desk: Desk) -> kernels.Teller:
    return kernels.Teller(
        audience.trees,
        audience.questions,
        audience.anchors,
        FORMS[audience.scheme].kernel,
        kernels.Out(desk.header, desk.numbers, desk.used),
        desk.wanted,
    )
