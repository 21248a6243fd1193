"""Ranges are equivalent to filters, and boxes to the plans that they were made from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from bench.baselines.multiway.rows import checked_values
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.execute import execute

from headgate.model.atoms import Atom, Between, Comparison, Contains, Relation
from headgate.model.evaluate import matches
from headgate.model.filters import TRUE, conjunction
from headgate.model.items import Item
from headgate.plan.algebra import Filter, NaturalJoin, Plan, Side, Source, Union
from headgate.tables.boxes import (
    BoxGroup,
    SelectJoin,
    box_group,
    number_of,
    range_of,
    select_join_of,
)
from headgate.tables.changes import JoinChange
from headgate.tables.clients import JoinClient
from headgate.tables.messages import JoinSide
from headgate.tables.recipients import content, recipients
from headgate.tables.server import SelectJoinServer

START = datetime(2026, 1, 1, tzinfo=UTC)
BIG = 2**53
numbers = st.one_of(
    st.integers(-3, 6), st.floats(-3, 6), st.sampled_from([BIG - 1, BIG, BIG + 1, BIG + 2])
)
times = st.integers(0, 5).map(lambda each: START + timedelta(microseconds=each))


def atoms(attribute: str, values: st.SearchStrategy[object]) -> st.SearchStrategy[Atom]:
    return st.one_of(
        st.builds(Comparison, st.just(attribute), st.sampled_from(Relation), values),
        st.tuples(values, values).map(lambda two: Between(attribute, *sorted(two))),
    )


def item(source: str, number: int, **attributes: object) -> Item:
    return Item(f"{number}", source, START, {k: v for k, v in attributes.items() if v is not None})


@pytest.mark.parametrize("values", [numbers, times])
@given(data=st.data())
def test_a_value_that_satisfies_an_atom_is_in_its_range(
    values: st.SearchStrategy[object], data: st.DataObject
) -> None:
    atom, value = data.draw(atoms("a", values)), data.draw(values | st.none())
    actual = range_of(atom)
    if actual is None:
        assert isinstance(atom, Comparison)
        assert atom.relation is Relation.NOT_EQUAL
        return
    number = number_of(value)
    (own,) = checked_values([float("nan") if number is None else number], 1)
    is_in = actual[1][0] <= own <= actual[1][1]
    holds = matches(atom, item("s", 1, a=value))
    assert is_in or not holds
    if not isinstance(value, int | float) or abs(value) < BIG - 1:
        bounds = (atom.low, atom.high) if isinstance(atom, Between) else (atom.value,)
        if all(isinstance(each, datetime) or abs(each) < BIG - 1 for each in bounds):
            assert is_in == holds


def table_join(left: Plan, right: Plan) -> NaturalJoin:
    return NaturalJoin(("k",), (Side("R", ("k", "a")), Side("S", ("k", "c", "d"))), (left, right))


small = st.integers(0, 5)
filters = (
    st.lists(atoms("a", small), max_size=2),
    st.lists(st.one_of(atoms("c", small), atoms("d", small)), max_size=3),
)


def selected(name: str, parts: list[Atom]) -> Plan:
    return Filter(conjunction(parts), Source(name)) if parts else Source(name)


@given(
    sides=st.lists(st.tuples(*filters), min_size=1, max_size=4),
    left=st.lists(st.tuples(small | st.none(), st.integers(0, 1)), max_size=5),
    right=st.lists(st.tuples(small | st.none(), small, st.integers(0, 1) | st.none()), max_size=5),
)
def test_boxes_select_the_same_results_as_plans(
    sides: list[tuple[list[Atom], list[Atom]]],
    left: list[tuple[int | None, int]],
    right: list[tuple[int | None, int, int | None]],
) -> None:
    plans = [table_join(selected("R", one), selected("S", other)) for one, other in sides]
    joins = {at: select_join_of(plan) for at, plan in enumerate(plans)}
    living = {at: join for at, join in joins.items() if join is not None and not join.is_empty}
    items = {
        "R": [item("R", n, a=a, k=k) for n, (a, k) in enumerate(left)],
        "S": [item("S", n, c=c, d=d, k=k) for n, (c, d, k) in enumerate(right)],
    }
    for at, join in joins.items():
        assert join is not None
        if join.is_empty:
            assert not execute(plans[at], items)
    group = box_group(list(living), living.values())
    clients = clients_of(group, items)
    for at, join in living.items():
        actual = {
            f"{one.payload.decode()}+{other.payload.decode()}"
            for one, other in clients[at].join()
            if satisfies(join, one.payload, other.payload, items)
        }
        assert actual == {each.id for each in execute(plans[at], items)}


def satisfies(join: SelectJoin, one: bytes, other: bytes, items: dict[str, list[Item]]) -> bool:
    """What ranges could not say."""
    left, right = items["R"][int(one)], items["S"][int(other)]
    return matches(join.sides[0].rest, left) and matches(join.sides[1].rest, right)


def clients_of(group: BoxGroup, items: dict[str, list[Item]]) -> dict[int, JoinClient]:
    server = SelectJoinServer(group.dimensions)
    server.subscribe(group.boxes)
    clients = {number: JoinClient() for number in group.boxes.numbers.tolist()}
    changes = [
        JoinChange(
            table,
            (each.id,),
            (each.attributes["k"],) if "k" in each.attributes else None,
            tuple(
                float("nan") if (number := number_of(each.attributes.get(name))) is None else number
                for name in group.attributes[table] or ("",)
            ),
            each.id.encode(),
        )
        for table, name in zip(JoinSide, "RS", strict=True)
        for each in items[name]
    ]
    found = server.apply(changes)
    messages = list(found)
    for number, at in sorted(recipients(server, found), key=lambda each: each[1]):
        client = clients[number]
        client.receive(client.expected, messages[at])
    for number, client in clients.items():
        assert {r.number for r in client.rows()} == {r.number for r in content(server, number)}
    return clients


def test_conditions_that_are_no_ranges_become_the_residual() -> None:
    words = Contains("title", "rock")
    plan = table_join(selected("R", [words, Comparison("a", Relation.GREATER, 1)]), Source("S"))
    above = Comparison("a", Relation.NOT_EQUAL, 3)
    join = select_join_of(Filter(above, plan))
    assert join is not None
    assert (join.sides[0].rest, join.sides[1].rest, join.rest) == (words, TRUE, above)
    assert join.signature == (("R", "S"), ("k",))


@pytest.mark.parametrize(
    "plan", [Source("R"), table_join(Union((Source("R"), Source("T"))), Source("S"))]
)
def test_other_plans_are_not_select_joins(plan: Plan) -> None:
    assert select_join_of(plan) is None


@pytest.mark.parametrize(
    ("relation", "bound", "value"),
    [(Relation.GREATER, BIG, BIG + 1), (Relation.LESS, BIG + 2, BIG + 1)],
)
def test_a_value_that_rounds_to_the_bound_is_in_the_range(
    relation: Relation, bound: int, value: int
) -> None:
    atom = Comparison("a", relation, bound)
    assert matches(atom, item("s", 1, a=value))
    actual = range_of(atom)
    assert actual is not None
    assert actual[1][0] <= float(value) <= actual[1][1]
