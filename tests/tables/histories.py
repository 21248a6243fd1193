"""Generated subscriptions and histories of changes, and nested-loop joins as the oracle."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from hypothesis import strategies as st

from headgate.tables.boxes import LEAST, MISSING, Boxes
from headgate.tables.changes import JoinChange
from headgate.tables.clients import JoinClient
from headgate.tables.messages import JoinMessage, JoinSide
from headgate.tables.recipients import content, recipients
from headgate.tables.schemes import SCHEMES, JoinScheme
from headgate.tables.server import SelectJoinServer

NUMBERS = st.integers(0, 9).map(float)
Bounds = tuple[tuple[float, ...], tuple[float, ...]]
Step = JoinChange | tuple[str, int, Bounds] | tuple[str, int]


@st.composite
def ranges(draw: st.DrawFn) -> tuple[float, float]:
    """Ranges with two bounds, with one, with none, and single points."""
    low, high = sorted((draw(NUMBERS), draw(NUMBERS)))
    kind = draw(st.sampled_from(["both"] * 4 + ["point", "above", "below", "any"]))
    return {
        "both": (low, high),
        "point": (low, low),
        "above": (low, math.inf),
        "below": (LEAST, high),
        "any": (MISSING, math.inf),
    }[kind]


def boxes(dimensions: int) -> st.SearchStrategy[Bounds]:
    ranges_ = st.lists(ranges(), min_size=dimensions, max_size=dimensions)
    return ranges_.map(lambda each: (tuple(r[0] for r in each), tuple(r[1] for r in each)))


@st.composite
def changes(draw: st.DrawFn, dimensions: tuple[int, int]) -> JoinChange:
    table = draw(st.sampled_from(JoinSide))
    key = (draw(st.integers(0, 5)),)
    if draw(st.integers(0, 3)) == 0:
        return JoinChange(table, key)
    join = draw(st.sampled_from([("x",), ("x",), ("y",), None]))
    size = dimensions[table]
    values = st.lists(NUMBERS | st.just(math.nan), min_size=size, max_size=size).map(tuple)
    return JoinChange(table, key, join, draw(values), draw(st.sampled_from([b"", b"logo"])))


def histories(dimensions: tuple[int, int], *, churn: bool = True) -> st.SearchStrategy[list[Step]]:
    """Some subscriptions, then rows that join, then anything."""
    size, number = sum(dimensions), st.integers(0, 9)
    steps: list[st.SearchStrategy[Step]] = [changes(dimensions)] * 4
    if churn:
        steps += [
            st.tuples(st.just("subscribe"), number, boxes(size)),
            st.tuples(st.just("unsubscribe"), number),
        ]
    boxes_ = st.lists(boxes(size), min_size=3, max_size=10)
    first = boxes_.map(lambda all_: [("subscribe", at, each) for at, each in enumerate(all_)])
    rows = st.tuples(*(insertions(table, dimensions[table]) for table in JoinSide))
    rest = st.lists(st.one_of(steps), max_size=15)
    return st.tuples(first, rows, rest).map(
        lambda all_: [*all_[0], *all_[1][1], *all_[1][0], *all_[2]]
    )


def insertions(table: JoinSide, size: int) -> st.SearchStrategy[list[JoinChange]]:
    """Rows of one join value with different keys."""
    values = st.lists(NUMBERS, min_size=size, max_size=size).map(tuple)
    return st.lists(values, min_size=1, max_size=5).map(
        lambda all_: [JoinChange(table, (at,), ("x",), each) for at, each in enumerate(all_)]
    )


def box(number: int, bounds: Bounds) -> Boxes:
    return Boxes(np.array([number]), np.array([bounds[0]]), np.array([bounds[1]]))


@dataclass
class World:
    """A server, its clients, and the rows as a dictionary."""

    dimensions: tuple[int, int]
    scheme: JoinScheme
    server: SelectJoinServer = field(init=False)
    clients: dict[int, JoinClient] = field(default_factory=dict)
    bounds: dict[int, Bounds] = field(default_factory=dict)
    rows: dict[tuple[JoinSide, tuple[object, ...]], JoinChange] = field(default_factory=dict)
    received: list[tuple[int, JoinMessage]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.server = SelectJoinServer(self.dimensions, scheme=self.scheme)

    def take(self, step: Step) -> list[JoinMessage]:
        match step:
            case JoinChange():
                return self.change([step])
            case ("subscribe", int(number), (low, high)) if number not in self.clients:
                self.bounds[number] = low, high
                self.server.subscribe(box(number, (low, high)))
                self.clients[number] = JoinClient(SCHEMES[self.scheme].keeps_unjoined)
                self.clients[number].resync(content(self.server, number), expected=0)
            case ("unsubscribe", int(number)) if number in self.clients:
                self.server.unsubscribe(np.array([number]))
                del self.clients[number], self.bounds[number]
        return []

    def change(self, changes_: Iterable[JoinChange]) -> list[JoinMessage]:
        changes_ = list(changes_)
        for change in changes_:
            self.rows.pop((change.table, change.key), None)
            if change.join is not None and change.values is not None:
                self.rows[change.table, change.key] = change
        messages = self.server.apply(changes_)
        sent = list(messages)
        self.received = []
        recipients_of: dict[int, set[int]] = {at: set() for at in range(len(sent))}
        for number, position in recipients(self.server, messages):
            recipients_of[position].add(number)
        for position, message in enumerate(sent):
            assert self.in_region(message) == recipients_of[position]
            for number in recipients_of[position]:
                client = self.clients[number]
                assert client.receive(client.expected, message) is None
                self.received.append((number, message))
        return sent

    def in_region(self, message: JoinMessage) -> set[int]:
        """The subscriptions in the message's region, tested one by one."""
        left = self.dimensions[0]
        return {
            number
            for number, (low, high) in self.bounds.items()
            if message.region.holds((low[:left], low[left:]), (high[:left], high[left:]))
        }

    def selected(self, number: int, table: JoinSide) -> list[JoinChange]:
        left = self.dimensions[0]
        columns = slice(0, left) if table is JoinSide.LEFT else slice(left, None)
        low, high = (each[columns] for each in self.bounds[number])
        return [
            row
            for row in self.rows.values()
            if row.table is table
            and row.values is not None
            and all(
                least <= (MISSING if math.isnan(value) else value) <= most
                for least, value, most in zip(low, row.values, high, strict=True)
            )
        ]

    def join(self, number: int) -> set[tuple[object, ...]]:
        """The select-join from scratch, by nested loops."""
        pairs = product(self.selected(number, JoinSide.LEFT), self.selected(number, JoinSide.RIGHT))
        return {
            (left.join, _plain(left), _plain(right))
            for left, right in pairs
            if left.join == right.join
        }

    def held(self, number: int) -> set[tuple[object, ...]]:
        return {
            (left.join, (left.values, left.payload), (right.values, right.payload))
            for left, right in self.clients[number].join()
        }

    def check(self) -> None:
        for number, client in self.clients.items():
            assert self.held(number) == self.join(number)
            again = {row.number for row in content(self.server, number)}
            assert {row.number for row in client.rows()} == again


def _plain(row: JoinChange) -> tuple[tuple[float, ...], bytes]:
    assert row.values is not None
    return tuple(MISSING if math.isnan(each) else each for each in row.values), row.payload
