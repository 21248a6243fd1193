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

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from headgate.join.select import change_kernels as kernels
from headgate.join.select.box_tree import BoxTree
from headgate.join.select.box_tree_kernels import STACK, Excluded, Floats, Longs, Tree
from headgate.join.select.boxes import Boxes, checked_values
from headgate.join.select.messages import Key, Messages, Table
from headgate.join.select.question_kernels import Question
from headgate.join.select.schemes import FORMS, SchemeName
from headgate.join.select.stabbing_sets import StabbingSets
from headgate.join.select.table import TableRows
from headgate.model.errors import InvalidValue

ROOM_MIN = 1_024


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to a row: its values now, or None if it is gone.

    A row whose join attributes are not all there joins with nothing: `join` is None. A table with a
    retention window says until when the row is kept.
    """

    table: Table
    key: Key
    join: Key | None = None
    values: tuple[float, ...] | None = None
    payload: bytes = b""
    until_s: float = math.inf


class SelectJoinServer:
    def __init__(
        self,
        dimensions: tuple[int, int] = (1, 1),
        *,
        scheme: SchemeName = SchemeName.REF_SJ_CLU_PLUS,
        join_attributes: int = 1,
    ) -> None:
        self.scheme = scheme
        self.dimensions = dimensions
        self.tables = tuple(
            TableRows(table, dimensions=dimensions[table], join_attributes=join_attributes)
            for table in Table
        )
        self.trees = tuple(
            BoxTree(sum(dimensions), near=self._parts[table.other]) for table in Table
        )
        """The subscriptions, ordered for questions about changes of either table."""
        self.clusters = tuple(StabbingSets(each) for each in dimensions)
        self._codes: dict[Key, int] = {}
        self._joins: list[Key] = []
        self.next_number = 0
        """The number of the next version of a row."""
        self._header: Longs = np.empty((ROOM_MIN, kernels.HEADER), np.int64)
        self._numbers: Floats = np.empty(ROOM_MIN)
        self._wanted = np.empty(ROOM_MIN, np.bool_)

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

    def unsubscribe(self, numbers: Longs) -> None:
        unknown = numbers[~self.tree.holds(numbers)]
        if len(unknown):
            raise InvalidValue(f"there is no subscription {unknown[0]}")
        for tree in self.trees:
            tree.remove(numbers)
        for clusters in self.clusters:
            clusters.remove(numbers)

    def apply(self, changes: Iterable[Change]) -> Messages:
        """Take changes in their order. Messages are in the order in which clients need them.

        If one of them is refused, none is taken.
        """
        changes = list(changes)
        checked = [checked_values(each.values, self.dimensions[each.table]) for each in changes]
        for table in self.tables:
            table.begin_batch()
        pairs = zip(changes, checked, strict=True)
        lines = [line for change, values in pairs for line in self._lines(change, values)]
        return self._process(np.array(lines, np.int64).reshape(-1, 5))

    def expire(self, now_s: float) -> Messages:
        """Delete the rows that are kept until now or less long."""
        gone = [(table, key) for table in self.tables for key in table.expired(now_s)]
        return self.apply([Change(table.table, key) for table, key in gone])

    @property
    def tree(self) -> BoxTree:
        """The subscriptions, in whatever order."""
        return self.trees[0]

    @property
    def tree_arrays(self) -> tuple[Tree, ...]:
        return tuple(tree.arrays for tree in self.trees)

    @property
    def join_values(self) -> int:
        """How many join values there are or have been."""
        return len(self._codes)

    def code_of(self, join: Key) -> int:
        """The small number that stands for a join value."""
        code = self._codes.setdefault(join, len(self._codes))
        if code == len(self._joins):
            self._joins.append(join)
        return code

    def join_of(self, code: int) -> Key:
        return self._joins[code]

    @property
    def _parts(self) -> tuple[slice, slice]:
        left, right = self.dimensions
        return slice(0, left), slice(left, left + right)

    def _lines(
        self, change: Change, values: tuple[float, ...] | None
    ) -> Sequence[tuple[int, int, int, int, int]]:
        """What the change means for rows: nothing, one of the three kinds, or two of them."""
        side, rows = int(change.table), self.tables[change.table]
        old = rows.slot_of.get(change.key)
        if values is None or change.join is None:
            if old is None:
                return ()
            del rows.slot_of[change.key]
            rows.leave(old)
            return ((kernels.DELETE, side, rows.codes[old], -1, old),)
        code = self.code_of(change.join)
        if (
            old is not None
            and rows.codes[old] == code
            and rows.is_same(old, values, change.payload)
        ):
            if rows.until_s[old] != change.until_s:
                rows.keep_until(old, change.key, change.until_s)
            return ()
        number, self.next_number = self.next_number, self.next_number + 1
        new = rows.put(
            change.key,
            number=number,
            join=self.join_of(code),
            code=code,
            values=values,
            payload=change.payload,
            until_s=change.until_s,
        )
        if old is None:
            return ((kernels.INSERT, side, code, new, -1),)
        rows.leave(old)
        if rows.codes[old] == code:
            return ((kernels.REPLACE, side, code, new, old),)
        return (
            (kernels.DELETE, side, rows.codes[old], -1, old),
            (kernels.INSERT, side, code, new, -1),
        )

    def _process(self, changes: Longs) -> Messages:
        used, needs = np.zeros(2, np.int64), np.zeros(4, np.int64)
        for table in self.tables:
            table.reserve(joins=len(self._codes), places=0)
        questions = tuple(self.question(table) for table in Table)
        anchors = tuple(each.anchors for each in self.clusters)
        trees, scheme, at = self.tree_arrays, FORMS[self.scheme].kernel, 0
        while True:
            tables = tuple(table.index for table in self.tables)
            out = kernels.Out(self._header, self._numbers, used)
            at = kernels.process(
                changes, at, tables, trees, questions, anchors, scheme, out, self._wanted, needs
            )
            if at == len(changes):
                break
            self._make_room(used, needs, self.tables[changes[at, kernels.SIDE]])
        header, numbers = self._header[: used[0]].copy(), self._numbers[: used[1]].copy()
        left, right = self.tables
        return Messages(header, numbers, (left, right))

    def question(self, own: Table) -> Question:
        """Room for asking who is affected by tuples of a table."""
        width, other = 2 * sum(self.dimensions), self._parts[own.other].start
        none = Excluded(np.empty((0, self.dimensions[own])), 0)
        found = np.empty(len(self.trees[own].arrays.points), np.int64)
        stack = np.empty((STACK, 3), np.int64)
        return Question(np.empty(width), np.empty(width), none, stack, found, other)

    def _make_room(self, used: Longs, needs: Longs, rows: TableRows) -> None:
        messages, numbers, places, marks = needs.tolist()
        if used[0] + messages > len(self._header):
            more = np.empty((len(self._header) + messages, kernels.HEADER), np.int64)
            self._header = np.concatenate([self._header, more])
        if used[1] + numbers > len(self._numbers):
            self._numbers = np.concatenate([self._numbers, np.empty(len(self._numbers) + numbers)])
        if marks > len(self._wanted):
            self._wanted = np.empty(2 * marks, np.bool_)
        rows.reserve(joins=0, places=places)
