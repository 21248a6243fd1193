"""Plans of any number of tables, decomposed greedily: clients hold what the plans give."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from bench.baselines.multiway.compile import MultiwayPlan, compile_multiway
from bench.baselines.multiway.rows import TableChange
from bench.baselines.multiway.server import MultiwayServer
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.execute import execute
from tests.plan.papers import defined
from tests.tables.test_boxes import atoms

from headgate.model.atoms import Atom
from headgate.model.errors import InvalidValue
from headgate.model.evaluate import matches
from headgate.model.filters import conjunction
from headgate.model.items import Item
from headgate.plan.algebra import Filter, NaturalJoin, Plan, Side, Source
from headgate.plan.normalize import normalize
from headgate.plan.split_payload import split_payload
from headgate.plan.translate import compose_all
from headgate.tables.boxes import SelectJoin, number_of, select_join_of
from headgate.tables.clients import MultiwayClient
from headgate.tables.decompose import (
    JoinStatistics,
    all_forms,
    decompose_greedy,
    parametric_costs,
    signature_of,
)
from headgate.tables.messages import SemijoinAction, SemijoinMessage

START = datetime(2026, 1, 1, tzinfo=UTC)
JOINS = {"R": ("x",), "S": ("x", "y"), "T": ("y", "z"), "U": ("z", "x")}
small = st.integers(0, 3)


class Served:
    """A server of compiled plans, and its clients."""

    def __init__(self, joins: dict[int, SelectJoin]) -> None:
        self.plan: MultiwayPlan = compile_multiway(list(joins), joins.values())
        graph = self.plan.graph
        statistics = JoinStatistics(
            dict.fromkeys(graph.tables, 1 / len(graph.tables)),
            {(t, edge): 2.0 for edge in graph.edges for t in (edge.left, edge.right)},
        )
        signatures = [each.signature for each in self.plan.subscriptions]
        costs = parametric_costs(all_forms(signatures), statistics)
        self.server = MultiwayServer(graph)
        self.clients: dict[int, MultiwayClient] = {}
        attributes = {name: shape.join_attributes for name, shape in graph.tables.items()}
        chosen = decompose_greedy(signatures, costs)
        for each in self.plan.subscriptions:
            choice = chosen[each.signature]
            self.server.subscribe(each.signature, choice, each.boxes)
            for number in each.boxes.numbers.tolist():
                self.clients[number] = MultiwayClient(each.signature, choice, attributes)

    def put(
        self, table: str, item: Item, payload: bytes = b""
    ) -> list[tuple[int, SemijoinMessage]]:
        shape = self.plan.graph.tables[table]
        numbers = (number_of(item.attributes.get(name)) for name in shape.selection_attributes)
        change = TableChange(
            table,
            (item.id,),
            tuple(item.attributes.get(name) for name in shape.join_attributes),
            tuple(math.nan if each is None else each for each in numbers),
            payload,
        )
        got = []
        for group in self.server.apply([change]):
            messages = list(group)
            lines = sorted(self.server.recipients(group).tolist(), key=lambda line: line[1])
            for number, first, end in lines:
                for message in messages[first:end]:
                    client = self.clients[number]
                    assert client.receive(client.expected, message) is None
                    got.append((number, message))
        return got


@st.composite
def plans(draw: st.DrawFn) -> NaturalJoin:
    """Joins of tables that share attributes, each with ranges on a and b."""
    tables = draw(st.lists(st.sampled_from(sorted(JOINS)), min_size=2, max_size=4, unique=True))
    on = tuple(name for name in "xyz" if sum(name in JOINS[each] for each in tables) > 1)
    inputs: list[Plan] = []
    for table in tables:
        parts: list[Atom] = draw(
            st.lists(st.one_of(atoms("a", small), atoms("b", small)), max_size=2)
        )
        inputs.append(Filter(conjunction(parts), Source(table)) if parts else Source(table))
    sides = tuple(Side(table, (*JOINS[table], "a", "b")) for table in tables)
    return NaturalJoin(on, sides, tuple(inputs))


rows = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys("xyzab", small),
)


@given(
    some=st.lists(plans(), min_size=1, max_size=3),
    items=st.lists(st.tuples(st.sampled_from(sorted(JOINS)), rows), max_size=14),
)
def test_clients_hold_what_plans_give(
    some: list[NaturalJoin], items: list[tuple[str, dict[str, int]]]
) -> None:
    joins: dict[int, SelectJoin] = {}
    for at, plan in enumerate(some):
        join = select_join_of(plan)
        assert join is not None
        connected = {name for side in join.sides for name in side.on}
        if not join.is_empty and connected and _is_connected(plan):
            joins[at] = join
    if not joins:
        return
    served = Served(joins)
    stored: dict[str, list[Item]] = {table: [] for table in JOINS}
    for number, (table, values) in enumerate(items):
        own = {k: v for k, v in values.items() if k in (*JOINS[table], "a", "b")}
        item = Item(f"{number}", table, START, own)
        stored[table].append(item)
        if table in served.plan.graph.tables:
            served.put(table, item, item.id.encode())
    for at, join in joins.items():
        found = {
            "+".join(row.payload.decode() for row in rows)
            for rows in served.clients[at].join()
            if all(
                matches(side.rest, _item(stored[side.table], row.payload))
                for side, row in zip(join.sides, rows, strict=True)
            )
        }
        assert found == {each.id for each in execute(some[at], stored)}


def _is_connected(plan: NaturalJoin) -> bool:
    reached, rest = {plan.sides[0].name}, [side.name for side in plan.sides[1:]]
    while more := [t for t in rest if any(set(JOINS[t]) & set(JOINS[r]) for r in reached)]:
        reached |= set(more)
        rest = [each for each in rest if each not in more]
    return not rest


def _item(items: list[Item], payload: bytes) -> Item:
    return next(each for each in items if each.id == payload.decode())


def test_three_tables_on_one_attribute_are_a_triangle() -> None:
    tables = ("R", "S", "U")
    sides = tuple(Side(table, (*JOINS[table], "a")) for table in tables)
    join = select_join_of(NaturalJoin(("x",), sides, tuple(map(Source, tables))))
    assert join is not None
    assert [str(form) for table in tables for form in signature_of(join).forms(table)] == [
        "R^S", "R^U", "S^R", "S^U", "U^R", "U^S",
    ]  # fmt: skip
    plan = compile_multiway([0], [join])
    assert plan.graph.tables["R"].selection_attributes == ("",)


PRODUCTS = """
register table Products (ID int key, Rating float, Photo text payload) from json 'p/*.json';
create feed Good from Products where Rating >= 3;
create feed Best from Products where Rating >= 5;
"""


def test_a_payload_is_not_sent_again_while_the_row_is_selected() -> None:
    """Appendix I: "the Photo would not be sent to a subscription if the product's previous rating
    was already within the subscription's range"."""
    definitions = defined(PRODUCTS)
    joins, halves = {}, {}
    for number, feed in enumerate(("Good", "Best")):
        split = split_payload(normalize(compose_all([feed], definitions)[feed]), definitions)
        assert split is not None
        join = select_join_of(split.plan)
        assert join is not None
        joins[number] = join
        halves |= split.halves
    served = Served(joins)

    def rate(rating: float, photo: str = "photo") -> dict[int, list[tuple[str, SemijoinAction]]]:
        """Who gets which half."""
        whole = {"ID": 7, "Rating": rating, "Photo": photo}
        got: dict[int, list[tuple[str, SemijoinAction]]] = {0: [], 1: []}
        for name, half in halves.items():
            own = {each: whole[each] for each in half.attributes}
            payload = photo.encode() if "Photo" in own else b""
            for number, message in served.put(name, Item("7", name, START, own), payload):
                base = halves[message.form.base]
                got[number].append((base.attributes[-1], message.act))
        return {number: sorted(some) for number, some in got.items()}

    rating, photo = ("Rating", SemijoinAction.INSERT), ("Photo", SemijoinAction.INSERT)
    assert rate(1.0) == {0: [], 1: []}
    assert rate(3.0) == {0: [photo, rating], 1: []}
    assert rate(4.0) == {0: [rating], 1: []}
    assert rate(5.0) == {0: [rating], 1: [photo, rating]}
    assert rate(5.0, "another photo") == {0: [photo], 1: [photo]}
    assert rate(4.0, "another photo") == {
        0: [rating],
        1: [("Photo", SemijoinAction.EMPTY), ("Rating", SemijoinAction.DELETE)],
    }
    assert [len(list(client.join())) for client in served.clients.values()] == [1, 0]


def test_a_join_without_a_common_attribute_is_refused() -> None:
    join = select_join_of(
        NaturalJoin(("x", "y"), (Side("R", ("x",)), Side("T", ("y",))), (Source("R"), Source("T")))
    )
    assert join is not None
    with pytest.raises(InvalidValue, match="R, T are not connected"):
        compile_multiway([0], [join])
