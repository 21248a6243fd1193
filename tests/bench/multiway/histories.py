"""Generated join graphs, subscriptions and histories, and the nested loops that judge them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from bench.baselines.multiway.graph import JoinGraph, TableShape
from bench.baselines.multiway.rows import TableChange
from bench.baselines.multiway.server import MultiwayServer
from hypothesis import strategies as st
from tests.tables.histories import NUMBERS, Bounds, box, boxes

from headgate.tables.boxes import MISSING
from headgate.tables.clients import MultiwayClient
from headgate.tables.decompose import Choice
from headgate.tables.join_graph import Edge, Signature
from headgate.tables.messages import SemijoinMessage
from headgate.tables.schemes import JoinScheme


def graph_of(
    tables: dict[str, str], edges: Iterable[tuple[str, str, str]], widths: dict[str, int]
) -> JoinGraph:
    """Tables with one-letter join attributes, edges as (table, table, attributes)."""
    shapes = {
        name: TableShape(tuple(joins), ("a", "b")[: widths.get(name, 1)])
        for name, joins in tables.items()
    }
    return JoinGraph(shapes, tuple(Edge.between(*each) for each in edges))


GRAPHS = {
    "chain": graph_of({"R": "x", "S": "xy", "T": "y"}, [("R", "S", "x"), ("S", "T", "y")], {}),
    "star": graph_of(
        {"R": "x", "S": "xyz", "T": "y", "U": "z"},
        [("R", "S", "x"), ("S", "T", "y"), ("S", "U", "z")],
        {"S": 2},
    ),
    "triangle": graph_of(
        {"R": "xz", "S": "xy", "T": "yz"},
        [("R", "S", "x"), ("S", "T", "y"), ("R", "T", "z")],
        {},
    ),
    "one attribute": graph_of(
        {"R": "x", "S": "x", "T": "x"},
        [("R", "S", "x"), ("S", "T", "x"), ("R", "T", "x")],
        {"T": 2},
    ),
    "two attributes": graph_of(
        {"R": "xy", "S": "xy", "T": "y"},
        [("R", "S", "xy"), ("R", "S", "x"), ("S", "T", "y")],
        {},
    ),
}
"""The last one joins R and S on x and y in some subscriptions, and on x alone in others."""


@dataclass(frozen=True)
class Wish:
    """A subscription to be: its signature, its semijoins, its bounds."""

    number: int
    signature: Signature
    choice: Choice
    bounds: Bounds


Step = TableChange | Wish | int
"""A change of a row, a subscription that comes, or the number of one that goes."""


@st.composite
def signatures(draw: st.DrawFn, graph: JoinGraph) -> Signature:
    """A connected part of the graph: grown edge by edge; of parallel edges one."""
    first = draw(st.sampled_from(graph.edges))
    tables, edges = [first.left, first.right], [first]
    for _ in range(draw(st.integers(0, 3))):
        pairs = {(each.left, each.right) for each in edges}
        more = [
            each
            for each in graph.edges
            if (each.left, each.right) not in pairs
            and (each.left in tables or each.right in tables)
        ]
        if not more:
            break
        edge = draw(st.sampled_from(more))
        edges.append(edge)
        tables += [each for each in (edge.left, edge.right) if each not in tables]
    return Signature(tuple(draw(st.permutations(tables))), tuple(edges))


@st.composite
def wishes(draw: st.DrawFn, graph: JoinGraph) -> Wish:
    signature = draw(signatures(graph))
    choice = {table: draw(st.sampled_from(signature.forms(table))) for table in signature.tables}
    width = sum(graph.width(table) for table in signature.tables)
    return Wish(draw(st.integers(0, 6)), signature, choice, draw(boxes(width)))


@st.composite
def changes(draw: st.DrawFn, graph: JoinGraph, *, whole: bool = False) -> TableChange:
    table = draw(st.sampled_from(sorted(graph.tables)))
    shape, key = graph.tables[table], (draw(st.integers(0, 4)),)
    if not whole and draw(st.integers(0, 3)) == 0:
        return TableChange(table, key)
    joins = st.sampled_from([1, 1, 1, 2] if whole else [1, 1, 2, None])
    count, width = len(shape.join_attributes), len(shape.selection_attributes)
    return TableChange(
        table,
        key,
        draw(st.tuples(*[joins] * count)),
        draw(st.tuples(*[NUMBERS if whole else NUMBERS | st.just(math.nan)] * width)),
        draw(st.sampled_from([b"", b"logo"])),
    )


def histories(graph: JoinGraph) -> st.SearchStrategy[list[Step]]:
    """Some subscriptions, then rows, most of which join, then anything."""
    first = st.lists(wishes(graph), min_size=1, max_size=5)
    rows = st.lists(changes(graph, whole=True), max_size=12)
    rest = st.lists(
        st.one_of([changes(graph)] * 4 + [wishes(graph), st.integers(0, 6)]), max_size=12
    )
    return st.tuples(first, rows, rest).map(lambda all_: [*all_[0], *all_[1], *all_[2]])


@dataclass
class MultiwayWorld:
    """A server, its clients, and the rows as a dictionary."""

    graph: JoinGraph
    scheme: JoinScheme = JoinScheme.REF_SJ_CLU_PLUS
    server: MultiwayServer = field(init=False)
    clients: dict[int, MultiwayClient] = field(default_factory=dict)
    wishes: dict[int, Wish] = field(default_factory=dict)
    rows: dict[tuple[str, tuple[object, ...]], TableChange] = field(default_factory=dict)
    received: list[tuple[int, SemijoinMessage]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.server = MultiwayServer(self.graph, scheme=self.scheme)

    def take(self, step: Step) -> list[SemijoinMessage]:
        match step:
            case TableChange():
                return self.change([step])
            case Wish(number) if number not in self.clients:
                self.server.subscribe(step.signature, step.choice, box(number, step.bounds))
                attributes = {name: s.join_attributes for name, s in self.graph.tables.items()}
                self.wishes[number] = step
                self.clients[number] = MultiwayClient(step.signature, step.choice, attributes)
                self.clients[number].resync(self.server.content(number), expected=0)
            case int() if step in self.clients:
                self.server.unsubscribe(np.array([step]))
                del self.clients[step], self.wishes[step]
        return []

    def redecompose(self, choices: dict[Signature, Choice]) -> None:
        for number in self.server.redecompose(choices).tolist():
            wish = replace(self.wishes[number], choice=choices[self.wishes[number].signature])
            attributes = {name: s.join_attributes for name, s in self.graph.tables.items()}
            self.wishes[number] = wish
            self.clients[number] = MultiwayClient(wish.signature, wish.choice, attributes)
            self.clients[number].resync(self.server.content(number), expected=0)

    def change(self, some: Iterable[TableChange]) -> list[SemijoinMessage]:
        some = list(some)
        for each in some:
            self.rows.pop((each.table, each.key), None)
            if each.values is not None:
                self.rows[each.table, each.key] = each
        self.received = []
        sent = []
        for group in self.server.apply(some):
            messages = list(group)
            sent += messages
            gets: dict[int, set[int]] = {at: set() for at in range(len(messages))}
            for number, first, end in self.server.recipients(group).tolist():
                for at in range(first, end):
                    gets[at].add(number)
            for at, message in enumerate(messages):
                assert self.in_region(message) == gets[at]
                for number in gets[at]:
                    client = self.clients[number]
                    assert client.receive(client.expected, message) is None
                    self.received.append((number, message))
        return sent

    def in_region(self, message: SemijoinMessage) -> set[int]:
        """The subscriptions of the group that the message's own words describe."""
        found = set()
        for number, wish in self.wishes.items():
            if wish.choice.get(message.form.base) != message.form:
                continue
            edge = message.form.edge
            low, high = (
                (self.part(wish, edge.left)[i], self.part(wish, edge.right)[i]) for i in (0, 1)
            )
            if message.region.holds(low, high):
                found.add(number)
        return found

    def part(self, wish: Wish, table: str) -> Bounds:
        own = self.graph.columns(wish.signature)[table]
        low, high = wish.bounds
        return low[own], high[own]

    def selected(self, wish: Wish, table: str) -> list[TableChange]:
        low, high = self.part(wish, table)
        return [
            row
            for row in self.rows.values()
            if row.table == table
            and row.values is not None
            and all(
                least <= (MISSING if math.isnan(value) else value) <= most
                for least, value, most in zip(low, row.values, high, strict=True)
            )
        ]

    def agree(self, edge: Edge, one: TableChange, other: TableChange) -> bool:
        """Whether rows of the edge's tables have its join attributes, with equal values."""
        values = (
            {
                each.joins[self.graph.tables[each.table].join_attributes.index(name)]
                for each in (one, other)
            }
            for name in edge.on
        )
        return all(len(each) == 1 and None not in each for each in values)

    def join(self, number: int) -> list[tuple[object, ...]]:
        """The select-join from scratch, by nested loops."""
        wish = self.wishes[number]
        tables = wish.signature.tables
        return sorted(
            tuple(plain(row) for row in rows)
            for rows in product(*(self.selected(wish, table) for table in tables))
            if all(
                self.agree(edge, rows[tables.index(edge.left)], rows[tables.index(edge.right)])
                for edge in wish.signature.edges
            )
        )

    def semijoins(self, number: int) -> set[tuple[object, ...]]:
        """The rows of all semijoins from scratch."""
        wish = self.wishes[number]
        return {
            plain(row)
            for table, form in wish.choice.items()
            for row in self.selected(wish, table)
            if any(self.agree(form.edge, row, each) for each in self.selected(wish, form.filtering))
        }

    def check(self) -> None:
        for number, client in self.clients.items():
            held = sorted(tuple(plain(row) for row in rows) for rows in client.join())
            assert held == self.join(number)
            assert {plain(row) for row in client.rows()} == self.semijoins(number)
            again = sorted((row.table, row.number) for row in self.server.content(number))
            assert sorted((row.table, row.number) for row in client.rows()) == again


def plain(row: object) -> tuple[object, ...]:
    """A row of the judge and one of a client in the same words, which can be sorted."""
    values = tuple(MISSING if math.isnan(each) else each for each in row.values)
    return row.table, tuple(map(repr, row.joins)), values, row.payload
