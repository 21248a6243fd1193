"""The client of one multi-way subscription: it holds its semijoins and joins them (§4).

    tables       R^S: rows of R      S^T: rows of S      T^S: rows of T
    join         R's rows one by one; for each, S's rows that agree with it; for each pair, T's rows

Law: after all messages that are for it, each table's rows are its semijoin, and `join()` is the
content of the subscription. Tables are joined each after one of its neighbours, with all tables
before it on all attributes that they are joined on, so a cycle in the graph is no special case.

Deliveries are numbered as for two-way joins (`client.py`): a repeated one is ignored, and after
a gap the client refuses everything until it gets its content anew. Plain Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate.tables.client import Gap

if TYPE_CHECKING:
    from headgate.tables.decompose_greedy import Choice
    from headgate.tables.join_graph import Signature
    from headgate.tables.messages import Key
    from headgate.tables.multiway_messages import SemijoinMessage
    from headgate.tables.multiway_rows import Joins, TableRow

EMPTY, DELETE = 2, 1


@dataclass(slots=True)
class _Held:
    """The semijoin of one table: its rows by number, and by the join value of its edge."""

    positions: tuple[int, ...]
    rows: dict[int, TableRow] = field(default_factory=dict)
    numbers: dict[Joins, set[int]] = field(default_factory=dict)

    def hold(self, row: TableRow) -> None:
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
    """`attributes` are the join attributes of each table, in the order in which rows have them."""

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
        """Apply one delivery; a gap if something before it is missing."""
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

    def resync(self, rows: Iterable[TableRow], *, expected: int) -> None:
        """Forget everything and hold these rows, as they are before delivery `expected`."""
        for held in self._held.values():
            held.rows.clear()
            held.numbers.clear()
        for row in rows:
            self._held[row.table].hold(row)
        self.expected, self.is_stale = expected, False

    def rows(self) -> Iterator[TableRow]:
        """All rows that are held."""
        for held in self._held.values():
            yield from held.rows.values()

    def join(self) -> Iterator[tuple[TableRow, ...]]:
        """The content of the subscription: a row of each table, in the signature's order, that
        agree."""
        found: Iterable[tuple[TableRow, ...]] = [()]
        for table, step in zip(self._order, self._steps, strict=True):
            found = _joined(found, self._held[table].rows.values(), step)
        return (tuple(each[at] for at in self._places) for each in found)


@dataclass(frozen=True, slots=True)
class _Step:
    """Which join attributes of a table must equal which of the tables before it."""

    own: tuple[int, ...]
    before: tuple[tuple[int, int], ...]


def _steps(
    order: list[str], signature: Signature, attributes: Mapping[str, tuple[str, ...]]
) -> list[_Step]:
    found = []
    for at, table in enumerate(order):
        equal: dict[tuple[int, int], int] = {}
        for form in signature.forms(table):
            if form.filtering in order[:at]:
                place = order.index(form.filtering)
                for name in form.edge.on:
                    theirs = attributes[form.filtering].index(name)
                    equal[place, theirs] = attributes[table].index(name)
        found.append(_Step(tuple(equal.values()), tuple(equal)))
    return found


def _joined(
    before: Iterable[tuple[TableRow, ...]], rows: Iterable[TableRow], step: _Step
) -> Iterator[tuple[TableRow, ...]]:
    by_join: dict[Joins, list[TableRow]] = {}
    for row in rows:
        join = _pick(row.joins, step.own)
        if None not in join:
            by_join.setdefault(join, []).append(row)
    for some in before:
        wanted = tuple(some[place].joins[at] for place, at in step.before)
        for row in by_join.get(wanted, ()):
            yield (*some, row)


def _pick(joins: Joins, positions: tuple[int, ...]) -> Joins:
    return tuple(joins[at] for at in positions)
