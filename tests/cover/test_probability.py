"""Probabilities equal counted shares wherever the bounds are equal, and lie within them else."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import numpy as np
import pytest
from bench.baselines.uniform_statistics import UniformDistribution, uniform_statistics
from hypothesis import given
from hypothesis import strategies as st

from headgate.cover.cells import cells_of_sample, cells_of_statistics
from headgate.cover.conditions import ConditionTable
from headgate.cover.probability import (
    ProbabilityBounds,
    Statistics,
    box_intersection,
    boxes_of,
    counted_statistics,
    disjoint,
)
from headgate.model.atoms import (
    Atom,
    Between,
    Comparison,
    Contains,
    In,
    IsPresent,
    Relation,
    TimestampPart,
)
from headgate.model.errors import PlanError
from headgate.model.evaluate import matches
from headgate.model.filters import FALSE, TRUE, And, Filter, Not, Or
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type

NOW = datetime(2026, 11, 16, tzinfo=UTC)
SCHEMA = Schema(
    (
        Attribute("x", Type.INT),
        Attribute("y", Type.INT),
        Attribute("f", Type.FLOAT),
        Attribute("title", Type.TEXT),
        Attribute("at", Type.TIMESTAMP),
    )
)
TOP = 4
UNIFORM = uniform_statistics(SCHEMA, {"x": (0, TOP), "y": (0, TOP)})
WORLD = [
    Item(f"{x} {y}", "S", NOW, {"x": x, "y": y}) for x, y in product(range(TOP + 1), range(TOP + 1))
]
HALF_THERE = [
    Item(f"{x} {y}", "S", NOW, {k: v for k, v in (("x", x), ("y", y)) if v is not None})
    for x, y in product([0, 1, 2, None, None, 7], [3, 3, None])
]

values = st.integers(-1, TOP + 1) | st.sampled_from([0.5, 2.5])
names = st.sampled_from(["x", "y"])
atoms: st.SearchStrategy[Atom] = st.one_of(
    st.builds(Comparison, names, st.sampled_from(Relation), values),
    st.builds(lambda name, pair: Between(name, *sorted(pair)), names, st.tuples(values, values)),
    st.builds(lambda name, some: In(name, tuple(some)), names, st.lists(values, min_size=1)),
    st.builds(IsPresent, names),
)
positive = st.recursive(
    atoms | st.sampled_from([TRUE, FALSE]),
    lambda part: (
        st.lists(part, max_size=4).map(lambda some: And(tuple(some)))
        | st.lists(part, max_size=4).map(lambda some: Or(tuple(some)))
    ),
    max_leaves=8,
)
words = st.builds(Contains, st.just("title"), st.sampled_from(["rock", "pop"]))
any_filter = st.recursive(
    atoms | words,
    lambda part: st.one_of(
        st.lists(part, max_size=3).map(lambda some: And(tuple(some))),
        st.lists(part, max_size=3).map(lambda some: Or(tuple(some))),
        st.builds(Not, part),
    ),
    max_leaves=6,
)


def share(filter_: Filter, items: list[Item]) -> float:
    return sum(matches(filter_, item) for item in items) / len(items)


@given(positive)
def test_uniform_values_are_counted_exactly(filter_: Filter) -> None:
    result = UNIFORM.probability(filter_)
    assert (result.low, result.high) == pytest.approx((share(filter_, WORLD),) * 2)


@given(positive)
def test_a_sample_of_independent_attributes_is_counted_exactly(filter_: Filter) -> None:
    """All pairs of values are in the sample equally often, so the attributes are independent."""
    result = counted_statistics(SCHEMA, HALF_THERE).probability(filter_)
    assert (result.low, result.high) == pytest.approx((share(filter_, HALF_THERE),) * 2)


@given(any_filter)
def test_the_bounds_hold_for_every_filter(filter_: Filter) -> None:
    result = UNIFORM.probability(filter_)
    assert result.low - 1e-9 <= share(filter_, WORLD) <= result.high + 1e-9


@given(any_filter)
def test_the_bounds_hold_where_an_attribute_is_unknown(filter_: Filter) -> None:
    known = {("x", None): UNIFORM.distributions["x", None]}
    result = Statistics(SCHEMA, known).probability(filter_)
    assert result.low - 1e-9 <= share(filter_, WORLD) <= result.high + 1e-9


@given(st.lists(st.lists(atoms, max_size=3).map(lambda some: And(tuple(some))), max_size=4))
def test_disjoint_boxes_have_the_same_union_and_nothing_in_common(some: list[Filter]) -> None:
    boxes = boxes_of(Or(tuple(some)), SCHEMA)
    assert boxes is not None
    pieces = disjoint(boxes)
    assert pieces is not None
    for position, box in enumerate(pieces):
        assert all(box_intersection(box, other) is None for other in pieces[:position])
    total = sum(UNIFORM.of_box(box).low for box in pieces)
    assert total == pytest.approx(share(Or(tuple(some)), WORLD))


def test_several_atoms_on_one_attribute_are_not_independent() -> None:
    low, high = Comparison("x", Relation.GREATER, 0), Comparison("x", Relation.LESS, 2)
    assert UNIFORM.probability(And((low, high))).low == pytest.approx(1 / 5)
    assert UNIFORM.probability(Or((low, high))).low == pytest.approx(1)


def test_floats_are_measured_by_length() -> None:
    statistics = uniform_statistics(SCHEMA, {"f": (0.0, 10.0)})
    assert statistics.probability(Between("f", 2.5, 5)).high == pytest.approx(0.25)
    assert statistics.probability(Comparison("f", Relation.EQUAL, 3)).high == 0
    assert statistics.probability(Comparison("f", Relation.GREATER, 100)).high == 0


def test_items_may_lack_an_attribute() -> None:
    statistics = Statistics(SCHEMA, {("x", None): UniformDistribution(0, 9, presence=0.5)})
    assert statistics.probability(IsPresent("x")) == ProbabilityBounds(0.5, 0.5)
    assert statistics.probability(Not(Comparison("x", Relation.LESS, 5))) == ProbabilityBounds(
        0.75, 0.75
    )


def test_unknown_probabilities_have_the_bounds_0_and_1() -> None:
    rock = Contains("title", "rock")
    assert UNIFORM.probability(rock) == ProbabilityBounds(0, 1)
    few = Comparison("x", Relation.EQUAL, 1)
    assert UNIFORM.probability(And((rock, few))).high == pytest.approx(0.2)
    assert UNIFORM.probability(Or((rock, few))).low == pytest.approx(0.2)
    assert UNIFORM.probability(
        Comparison("at", Relation.EQUAL, 7, TimestampPart.MONTH)
    ) == ProbabilityBounds(0, 1)


def test_a_union_of_too_many_boxes_is_bounded() -> None:
    many = Or(
        tuple(
            And((Comparison("x", Relation.NOT_EQUAL, n), Comparison("y", Relation.EQUAL, n)))
            for n in range(300)
        )
    )
    result = UNIFORM.probability(many)
    assert result.low <= share(many, WORLD) <= result.high


@given(st.lists(atoms, min_size=1, max_size=3), atoms)
def test_cells_of_advertisements_are_conditional_probabilities(
    advertised: list[Atom], atom: Atom
) -> None:
    coming = [item for item in WORLD if matches(Or(tuple(advertised)), item)]
    if not coming:
        with pytest.raises(PlanError):
            cells_of_statistics(UNIFORM, advertised)
        return
    conditions = ConditionTable(SCHEMA)
    numbers = conditions.read(atom)
    if numbers is None:
        return
    for cells in (
        cells_of_statistics(UNIFORM, advertised),
        cells_of_sample(WORLD, SCHEMA, advertised),
    ):
        low, high = cells.of(conditions.entries[numbers[0]])
        assert cells.weights.sum() == pytest.approx(1)
        assert cells.weights @ low == pytest.approx(share(atom, coming))
        assert np.array_equal(low, high)


def test_advertisements_of_unknown_probability_are_rejected() -> None:
    with pytest.raises(PlanError, match="sample"):
        cells_of_statistics(UNIFORM, [Contains("title", "rock")])
    with pytest.raises(PlanError, match="no item satisfies the advertisements"):
        cells_of_statistics(UNIFORM, [])
    with pytest.raises(PlanError, match="no item"):
        cells_of_sample(WORLD, SCHEMA, [Contains("title", "rock")])
