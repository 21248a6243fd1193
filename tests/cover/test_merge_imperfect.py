"""Imperfect mergers match all that their parts match; false positives are within the bounds."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import pytest
from bench.baselines.uniform_statistics import uniform_statistics
from hypothesis import given
from hypothesis import strategies as st

from headgate.cover.cells import cells_of_sample, cells_of_statistics
from headgate.cover.merge_imperfect import ImperfectMerging, merge_imperfect
from headgate.cover.merge_perfect import Merger
from headgate.cover.probability import Statistics
from headgate.model.atoms import (
    Atom,
    Between,
    Call,
    Comparison,
    Constraint,
    Contains,
    In,
    IsPresent,
    Relation,
    Variable,
)
from headgate.model.evaluate import matches
from headgate.model.filters import FALSE, TRUE, And, Filter, Or
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type

NOW = datetime(2026, 11, 16, tzinfo=UTC)
NAMES = ("x", "y", "z")
TOP = 3
SCHEMA = Schema(
    (*(Attribute(name, Type.INT) for name in NAMES), Attribute("title", Type.TEXT)),
)
UNIFORM = uniform_statistics(SCHEMA, dict.fromkeys(NAMES, (0, TOP)))
WORLD = [
    Item(str(values), "S", NOW, dict(zip(NAMES, values, strict=True)))
    for values in product(range(TOP + 1), repeat=len(NAMES))
]
TITLED = [
    Item(str(at), "S", NOW, {"x": x, "y": y, "title": title})
    for at, (x, y, title) in enumerate(
        product(range(4), range(3), ["rock", "rock pop", "pop", "jazz rock"])
    )
]
TICKETS = Schema((Attribute("price", Type.INT), Attribute("to", Type.TEXT)))
PRICES = uniform_statistics(TICKETS, {"price": (0, 199)})

values = st.integers(0, TOP)
names = st.sampled_from(NAMES)
relations = st.sampled_from(Relation)
atoms: st.SearchStrategy[Atom] = st.one_of(
    st.builds(Comparison, names, relations, values),
    st.builds(Comparison, names, st.just(Relation.EQUAL), values),
    st.builds(lambda name, pair: Between(name, *sorted(pair)), names, st.tuples(values, values)),
    st.builds(lambda name, some: In(name, tuple(some)), names, st.lists(values, min_size=1)),
)
conjunctions = st.lists(atoms, min_size=1, max_size=4).map(lambda some: And(tuple(some)))
thresholds = st.sampled_from([0.0, 0.01, 0.05, 0.2, 1.0])
titles = st.builds(Contains, st.sampled_from(["title", None]), st.sampled_from(["rock", "pop"]))


def shares(merger: Merger, some: list[Filter], items: list[Item]) -> tuple[float, float]:
    """The true IMT and degree of a merger; asserts that it matches all that its parts match."""
    matched = vain = 0
    parts = Or(tuple(some[part] for part in merger.parts))
    for item in items:
        by_merger, by_parts = matches(merger.filter, item), matches(parts, item)
        assert by_merger >= by_parts
        matched += by_merger
        vain += by_merger and not by_parts
    return vain / len(items), vain / matched if matched else 0.0


def check_bounds(
    mergers: list[Merger], some: list[Filter], items: list[Item], threshold: float
) -> None:
    parts = [part for merger in mergers for part in merger.parts]
    assert len(parts) == len(set(parts))
    for merger in mergers:
        assert len(merger.parts) > 1
        assert 0 <= merger.imt <= threshold
        imt, degree = shares(merger, some, items)
        assert merger.imt >= imt - 1e-9
        assert merger.degree >= degree - 1e-9


@given(st.lists(conjunctions, max_size=8), thresholds)
def test_the_declared_bounds_hold(some: list[Filter], threshold: float) -> None:
    mergers = merge_imperfect(some, SCHEMA, cells_of_statistics(UNIFORM), threshold=threshold)
    check_bounds(mergers, some, WORLD, threshold)


@given(
    st.lists(conjunctions, max_size=8), st.lists(conjunctions, min_size=1, max_size=3), thresholds
)
def test_the_declared_bounds_hold_with_advertisements(
    some: list[Filter], advertised: list[Filter], threshold: float
) -> None:
    coming = [item for item in WORLD if matches(Or(tuple(advertised)), item)]
    if coming:
        cells = cells_of_statistics(UNIFORM, advertised)
        mergers = merge_imperfect(some, SCHEMA, cells, threshold=threshold)
        check_bounds(mergers, some, coming, threshold)


@given(st.lists(conjunctions, max_size=6), thresholds)
def test_unknown_probabilities_are_taken_as_the_worst_case(
    some: list[Filter], threshold: float
) -> None:
    known = {("x", None): UNIFORM.distributions["x", None]}
    cells = cells_of_statistics(Statistics(SCHEMA, known))
    check_bounds(merge_imperfect(some, SCHEMA, cells, threshold=threshold), some, WORLD, threshold)


@given(
    st.lists(
        st.lists(atoms | titles, min_size=1, max_size=3).map(lambda some: And(tuple(some))),
        max_size=8,
    ),
    thresholds,
)
def test_a_sample_is_counted_exactly(some: list[Filter], threshold: float) -> None:
    cells = cells_of_sample(TITLED, SCHEMA)
    mergers = merge_imperfect(some, SCHEMA, cells, threshold=threshold)
    check_bounds(mergers, some, TITLED, threshold)
    for merger in mergers:
        assert (merger.imt, merger.degree) == pytest.approx(shares(merger, some, TITLED))


@given(st.lists(conjunctions, max_size=8))
def test_a_higher_threshold_continues_from_a_lower_one(some: list[Filter]) -> None:
    cells = cells_of_statistics(UNIFORM)
    merging = ImperfectMerging(some, SCHEMA, cells)
    left = len(some)
    for threshold in (0.0, 0.02, 0.1, 0.5):
        result = merging.up_to(threshold)
        assert result == merge_imperfect(some, SCHEMA, cells, threshold=threshold)
        now_left = len(some) - sum(len(merger.parts) - 1 for merger in result)
        assert now_left <= left
        left = now_left


@given(st.lists(conjunctions, max_size=8), thresholds)
def test_a_total_bounds_all_mergers_together(some: list[Filter], total: float) -> None:
    cells = cells_of_statistics(UNIFORM)
    mergers = merge_imperfect(some, SCHEMA, cells, threshold=1, total_max=total)
    assert sum(merger.imt for merger in mergers) <= total + 1e-9
    before, after = Or(tuple(some)), Or(tuple(merger.filter for merger in mergers))
    vain = sum(matches(after, item) and not matches(before, item) for item in WORLD)
    assert vain / len(WORLD) <= total + 1e-9


def price(relation: str, value: int) -> Comparison:
    return Comparison("price", Relation(relation), value)


@pytest.mark.parametrize(
    ("first", "second", "merger", "in_vain"),
    [  # [MBD, Table 1]
        (price("<", 50), price(">", 149), IsPresent("price"), 100),
        (price("<", 50), price("=", 99), price("<=", 99), 49),
        (price(">", 149), price("=", 100), price(">=", 100), 49),
    ],
)
def test_the_rules_of_table_1(first: Atom, second: Atom, merger: Atom, in_vain: int) -> None:
    cells = cells_of_statistics(PRICES)
    (result,) = merge_imperfect([first, second], TICKETS, cells, threshold=1)
    assert result.filter == merger
    assert result.imt == pytest.approx(in_vain / 200)
    assert merge_imperfect([first, second], TICKETS, cells, threshold=in_vain / 200 - 0.001) == []


def test_the_example_of_tickets() -> None:
    """[MBD §5.1.1]; the paper prints > 145, which would lose the item with price 145."""
    some = [price(">", 150), price("=", 145), price("=", 147), price("=", 148)]
    (result,) = merge_imperfect(some, TICKETS, cells_of_statistics(PRICES), threshold=0.02)
    assert (result.filter, result.parts) == (price(">=", 145), (0, 1, 2, 3))
    assert result.imt == pytest.approx(3 / 200)  # 146, 149, 150
    assert result.degree == pytest.approx(3 / 55)


def test_items_that_are_not_advertised_cost_nothing() -> None:
    """[MBD §5.4]."""
    some = [price(">", 150), price("=", 130), price("=", 120)]
    advertised = cells_of_statistics(PRICES, [price(">", 150)])
    (result,) = merge_imperfect(some, TICKETS, advertised, threshold=0)
    assert (result.filter, result.imt, result.degree) == (price(">=", 120), 0, 0)
    (alone,) = merge_imperfect(some, TICKETS, cells_of_statistics(PRICES), threshold=0)
    assert (alone.filter, alone.parts) == (In("price", (120, 130)), (1, 2))


def test_two_conditions_may_differ() -> None:
    cells = cells_of_statistics(UNIFORM)
    some: list[Filter] = [
        And(
            (
                Comparison("z", Relation.EQUAL, 1),
                Comparison("x", Relation.EQUAL, x),
                Between("y", x, x + 1),
            )
        )
        for x in (0, 1)
    ]
    (result,) = merge_imperfect(some, SCHEMA, cells, threshold=0.1)
    assert isinstance(result.filter, And)
    assert set(result.filter.parts) == {
        Comparison("z", Relation.EQUAL, 1),
        Between("x", 0, 1),
        Between("y", 0, 2),
    }
    assert result.imt == pytest.approx((6 - 4) / 64)


def test_conditions_that_cannot_be_joined_are_dropped() -> None:
    some = [And((price("<", 20), Contains("to", word))) for word in ("rome", "paris")]
    (result,) = merge_imperfect(some, TICKETS, cells_of_statistics(PRICES), threshold=0.1)
    assert result.filter == price("<", 20)
    assert (result.imt, result.degree) == pytest.approx((0.1, 1.0))  # no part might ever match


def test_the_degree_is_taken_against_the_original_parts() -> None:
    some = [price("=", 10 * position) for position in range(10)]
    merging = ImperfectMerging(some, TICKETS, cells_of_statistics(PRICES))
    merging._conditions.in_values_max = 1  # else a list would do
    (result,) = merging.up_to(1)
    assert result.filter == Between("price", 0, 90)
    assert result.degree == pytest.approx(81 / 91)


def test_operators_are_not_called_for_statistics() -> None:
    some = [And((Call("odd"), Comparison("x", Relation.EQUAL, x))) for x in (0, 1)]
    (result,) = merge_imperfect(some, SCHEMA, cells_of_sample(TITLED, SCHEMA), threshold=0)
    assert result.filter == And((Call("odd"), Between("x", 0, 1)))


def test_conditions_that_share_variables_are_dropped_together() -> None:
    people = Variable("people")
    many = Constraint(people, Relation.GREATER, 50)
    some = [And((Call(name, (people,)), many, price("<", 20))) for name in ("mob", "gang")]
    (result,) = merge_imperfect(some, TICKETS, cells_of_statistics(PRICES), threshold=0.1)
    assert result.filter == price("<", 20)


def test_filters_that_are_never_or_always_true() -> None:
    cells = cells_of_statistics(UNIFORM)
    assert merge_imperfect([FALSE, FALSE], SCHEMA, cells, threshold=1) == []
    (result,) = merge_imperfect([TRUE, TRUE], SCHEMA, cells, threshold=0)
    assert result == Merger(TRUE, (0, 1))
    assert merge_imperfect([], SCHEMA, cells, threshold=1) == []


def test_long_conjunctions_merge_if_one_condition_differs() -> None:
    names = [f"n{position}" for position in range(60)]
    schema = Schema(tuple(Attribute(name, Type.INT) for name in names))
    statistics = uniform_statistics(schema, dict.fromkeys(names, (0, 9)))
    some = [
        And(
            tuple(
                Comparison(name, Relation.GREATER, (position + n) % 9)
                for position, name in enumerate(names)
            )
        )
        for n in range(9)
    ]
    same = And((*some[0].parts[:-1], Comparison(names[-1], Relation.EQUAL, 1)))
    (result,) = merge_imperfect([*some, same], schema, cells_of_statistics(statistics), threshold=1)
    assert result.parts == (0, 9)
