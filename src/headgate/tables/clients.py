"""Clients: they hold the rows of a subscription's semijoins and join them ([Select-Joins §3.1,
§4]).

    held by join value     LEFT rows    RIGHT rows
    GOOG                   s1, s4       r2, r3            join: s1 r2, s1 r3, s4 r2, s4 r3

Invariant: after all messages that are for it, in order, `join()` is the content of the
subscription.

`JoinClient` has both tables of a two-way join. Within a join value all left rows join with all
right ones; if one side becomes empty, the rows of the other side leave their semijoin without a
message. (Not with Rel-Sel, whose clients also hold rows without a partner.)

`MultiwayClient` has one semijoin per table. Tables are joined each after one of its neighbours, on
all attributes shared with the tables before it, so a cycle in the join graph is no special case:

    tables       R^S: rows of R      S^T: rows of S      T^S: rows of T
    join         R's rows one by one; for each, S's rows that agree with it; for each pair, T's rows

The sender of the last hop numbers the deliveries of each subscription. A delivery that comes again
is ignored. One that comes too early shows a gap: the client reports it, refuses further deliveries
until `resync` gives it the current content, and keeps its rows meanwhile.

Plain Python without NumPy or Numba, so that a client can run anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.tables.decompose import Choice
    from headgate.tables.join_graph import Signature
    from headgate.tables.messages import (
        JoinMessage,
        JoinRow,
        Joins,
        Key,
        SemijoinMessage,
        SemijoinRow,
    )

LEFT, RIGHT = 0, 1
DELETE = 1


@dataclass(frozen=True, slots=True)
class Gap:
    """Deliveries `first` to `next` − 1 are missing: the client needs a `resync`."""

    first: int
    next: int


@dataclass(slots=True)
class JoinClient:
    """The client of a two-way join. `expected` is the number of the next delivery."""

    keeps_unjoined: bool = False
    expected: int = 0
    is_stale: bool = False
    _rows: dict[int, JoinRow] = field(default_factory=dict)
    _held: tuple[dict[Key, set[int]], ...] = field(default_factory=lambda: ({}, {}))

    def receive(self, number: int, message: JoinMessage) -> Gap | None:
        """Apply one delivery; return a gap if an earlier one is missing."""
        if number < self.expected:
            return None
        if self.is_stale or number > self.expected:
            self.is_stale = True
            return Gap(self.expected, number)
        self.expected += 1
        if message.kind == DELETE:
            for row in message.rows:
                self._drop(row.number, prune=not self.keeps_unjoined)
            return None
        if message.replaces is not None:
            # The new row takes its place at once, so no row is left without a partner.
            self._drop(message.replaces, prune=False)
        for row in message.rows:
            self._hold(row)
        return None

    def resync(self, rows: Iterable[JoinRow], *, expected: int) -> None:
        """Replace all rows with these, the content before delivery `expected`."""
        self._rows.clear()
        for side in self._held:
            side.clear()
        for row in rows:
            self._hold(row)
        self.expected, self.is_stale = expected, False

    def rows(self) -> Iterator[JoinRow]:
        """All rows that are held."""
        return iter(self._rows.values())

    def join(self) -> Iterator[tuple[JoinRow, JoinRow]]:
        """The content of the subscription: every left row with every right row that it joins
        with."""
        left, right = self._held
        for join, numbers in left.items():
            for left_number in numbers:
                for right_number in right.get(join, ()):
                    yield self._rows[left_number], self._rows[right_number]

    def _hold(self, row: JoinRow) -> None:
        self._rows[row.number] = row
        self._held[row.table].setdefault(row.join, set()).add(row.number)

    def _drop(self, number: int, *, prune: bool) -> None:
        row = self._rows.pop(number, None)
        if row is None:
            return
        own_rows, partner_rows = self._held[row.table], self._held[1 - row.table]
        own_rows[row.join].discard(number)
        if own_rows[row.join]:
            return
        del own_rows[row.join]
        if prune:
            for partner in partner_rows.pop(row.join, ()):
                del self._rows[partner]


EMPTY = 2


@dataclass(slots=True)
class _Held:
    """The semijoin of one table: its rows by number, and by the join value of its edge."""

    positions: tuple[int, ...]
    rows: dict[int, SemijoinRow] = field(default_factory=dict)
    numbers: dict[Joins, set[int]] = field(default_factory=dict)

    def hold(self, row: SemijoinRow) -> None:
        self.rows[row.number] = row
        self.numbers.setdefault(_pick(row.joins, self.positions), set()).add(row.number)

    def drop(self, number: int) -> None:
        row = self.rows.pop(number, None)
        if row is not None:
            join = _pick(row.joins, self.positions)
            self.numbers[join].discard(number)
            if not self.numbers[join]:
                del self.numbers[join]

    def empty(self, join: Key) -> None:
        for number in self.numbers.pop(join, ()):
            del self.rows[number]


class MultiwayClient:
    """The client of a join of many tables.

    `attributes` are the join attributes of each table, in the order in which rows have them.
    """

    def __init__(
        self, signature: Signature, choice: Choice, attributes: Mapping[str, tuple[str, ...]]
    ) -> None:
        self.expected = 0
        """The number of the next delivery."""
        self.is_stale = False
        self._choice = choice
        self._held = {
            table: _Held(tuple(attributes[table].index(each) for each in choice[table].edge.on))
            for table in signature.tables
        }
        self._order = signature.reached()
        self._places = tuple(self._order.index(table) for table in signature.tables)
        self._steps = _steps(self._order, signature, attributes)

    def receive(self, number: int, message: SemijoinMessage) -> Gap | None:
        """Apply one delivery; return a gap if an earlier one is missing."""
        if number < self.expected:
            return None
        if self.is_stale or number > self.expected:
            self.is_stale = True
            return Gap(self.expected, number)
        self.expected += 1
        table = message.form.base
        assert self._choice[table] == message.form, f"{message.form} is none of its semijoins"
        held = self._held[table]
        if message.act == EMPTY:
            assert message.join is not None, "an empty join value is named"
            held.empty(message.join)
            return None
        assert message.row is not None, "a row comes or goes"
        if message.act == DELETE:
            held.drop(message.row.number)
            return None
        if message.replaces is not None:
            held.drop(message.replaces)
        held.hold(message.row)
        return None

    def resync(self, rows: Iterable[SemijoinRow], *, expected: int) -> None:
        """Replace all rows with these, the content before delivery `expected`."""
        for held in self._held.values():
            held.rows.clear()
            held.numbers.clear()
        for row in rows:
            self._held[row.table].hold(row)
        self.expected, self.is_stale = expected, False

    def rows(self) -> Iterator[SemijoinRow]:
        """All rows that are held."""
        for held in self._held.values():
            yield from held.rows.values()

    def join(self) -> Iterator[tuple[SemijoinRow, ...]]:
        """The content of the subscription: rows that join, one of each table, in the signature's
        order."""
        combinations: Iterable[tuple[SemijoinRow, ...]] = [()]
        for table, step in zip(self._order, self._steps, strict=True):
            combinations = _join_table(combinations, self._held[table].rows.values(), step)
        return (tuple(each[at] for at in self._places) for each in combinations)


@dataclass(frozen=True, slots=True)
class _Step:
    """Which join attributes of a table must equal which of the tables before it."""

    own: tuple[int, ...]
    before: tuple[tuple[int, int], ...]


def _steps(
    order: list[str], signature: Signature, attributes: Mapping[str, tuple[str, ...]]
) -> list[_Step]:
    steps = []
    for rank, table in enumerate(order):
        equal: dict[tuple[int, int], int] = {}
        for form in signature.forms(table):
            if form.filtering in order[:rank]:
                place = order.index(form.filtering)
                for name in form.edge.on:
                    position = attributes[form.filtering].index(name)
                    equal[place, position] = attributes[table].index(name)
        steps.append(_Step(tuple(equal.values()), tuple(equal)))
    return steps


def _join_table(
    before: Iterable[tuple[SemijoinRow, ...]], rows: Iterable[SemijoinRow], step: _Step
) -> Iterator[tuple[SemijoinRow, ...]]:
    """Extend each combination by every row of the next table that agrees with it."""
    by_join: dict[Joins, list[SemijoinRow]] = {}
    for row in rows:
        join = _pick(row.joins, step.own)
        if None not in join:
            by_join.setdefault(join, []).append(row)
    for combination in before:
        join = tuple(combination[place].joins[at] for place, at in step.before)
        for row in by_join.get(join, ()):
            yield (*combination, row)


def _pick(joins: Joins, positions: tuple[int, ...]) -> Joins:
    return tuple(joins[at] for at in positions)
