"""Selectivities and costs are declared, then learned; an order is printed as text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.operators.orders.order_world import World, candidates_of, items_of, subscribed

from headgate.model.atoms import Call, Constraint, Relation, Variable
from headgate.model.filters import And, Not, Or
from headgate.operators.orders.adaptive import AdaptiveOrder
from headgate.operators.orders.estimates import FORGET_ITEMS, DeclaredEstimate, PredicateEstimates
from headgate.operators.orders.evaluator import Evaluator
from headgate.operators.orders.explain import order_text

CALLS = [Call("f", (1,)), Call("f", (2,)), Call("g")]


def observe(
    estimates: PredicateEstimates, predicate: int, *, items: int, true: int, seconds: float = 0.0
) -> None:
    answers = np.arange(items) < true
    estimates.observe(
        np.array([predicate], np.int32),
        np.array([0, items]),
        np.ones(items, np.bool_),
        answers,
        np.array([seconds]),
    )


def test_declared_estimates_hold_until_answers_are_learned() -> None:
    estimates = PredicateEstimates(CALLS, {"f": DeclaredEstimate(cost=40, selectivity=0.1)})
    assert estimates.selectivity().tolist() == pytest.approx([0.1, 0.1, 0.5])
    assert estimates.cost().tolist() == [40, 40, 1]


def test_answers_of_a_predicate_count_for_its_operator_too() -> None:
    estimates = PredicateEstimates(CALLS)
    observe(estimates, 0, items=1_000, true=900)
    learned, sibling, other = estimates.selectivity().tolist()
    assert learned == pytest.approx(0.9, abs=0.01)
    assert sibling == pytest.approx(0.9, abs=0.01)
    assert other == 0.5
    observe(estimates, 1, items=1_000, true=0)
    assert estimates.selectivity()[1] < 0.01
    assert estimates.selectivity()[0] == pytest.approx(0.9, abs=0.01)


def test_costs_are_measured_and_declared_ones_get_their_unit() -> None:
    declared = {"f": DeclaredEstimate(cost=2), "g": DeclaredEstimate(cost=6)}
    estimates = PredicateEstimates(CALLS, declared)
    observe(estimates, 0, items=1_000, true=0, seconds=2.0)  # 2 ms each: a unit is 1 ms
    assert estimates.cost().tolist() == pytest.approx([2e-3, 2e-3, 6e-3])
    observe(estimates, 2, items=10_000, true=0, seconds=10.0)
    assert estimates.cost()[2] == pytest.approx(1e-3, rel=0.01)


def test_old_answers_lose_weight() -> None:
    estimates = PredicateEstimates(CALLS)
    for _ in range(4):
        observe(estimates, 0, items=int(FORGET_ITEMS), true=0)
    observe(estimates, 0, items=int(FORGET_ITEMS), true=int(FORGET_ITEMS))
    assert estimates.items[0] <= FORGET_ITEMS
    assert estimates.selectivity()[0] > 0.45


def test_failures_change_only_the_cost() -> None:
    estimates = PredicateEstimates(CALLS)
    none = np.zeros(5, np.bool_)
    estimates.observe(np.array([0], np.int32), np.array([0, 5]), none, none, np.array([5.0]))
    assert estimates.items[0] == 0
    assert estimates.selectivity()[0] == 0.5


def test_predicates_may_be_added() -> None:
    estimates = PredicateEstimates(CALLS[:1])
    observe(estimates, 0, items=100, true=100)
    estimates.grow(CALLS)
    assert estimates.selectivity().size == 3
    assert estimates.items.tolist() == [100, 0, 0]


def test_counts_are_reported_once_and_other_processes_start_from_them() -> None:
    estimates = PredicateEstimates(CALLS)
    observe(estimates, 2, items=10, true=4, seconds=3.0)
    observe(estimates, 0, items=5, true=5, seconds=1.0)
    observe(estimates, 2, items=10, true=4, seconds=3.0)
    evaluated, news = estimates.take_unreported()
    assert evaluated.tolist() == [0, 2]
    assert news.tolist() == [[5, 5, 1], [20, 8, 6]]
    assert estimates.take_unreported()[0].size == 0
    other = PredicateEstimates(CALLS)
    other.start_from(np.array([[5.0, 5.0], [0.0, 0.0], [20.0, 8.0]]))
    assert other.selectivity().tolist() == estimates.selectivity().tolist()
    assert other.take_unreported()[0].size == 0


def test_the_evaluator_updates_the_estimates() -> None:
    table = subscribed([And((Call("p", (1,)), Call("q", (1,))))]).table()
    estimates = PredicateEstimates(table.calls)
    world = World(1, share=0.25)
    candidates = candidates_of(table, items_of(400))
    Evaluator(table, AdaptiveOrder(), estimates).evaluate(candidates, world.evaluate_round(table))
    assert estimates.items.max() == 400
    evaluated_first = int(estimates.items.argmax())
    assert estimates.selectivity()[evaluated_first] == pytest.approx(0.25, abs=0.1)
    assert (estimates.cost() > 0).all()


def test_the_order_as_text(golden: Callable[[str, str], None]) -> None:
    people, bronx = Variable("people"), Call("locIn", ("Bronx",))
    filters = [
        And((bronx, Call("chasePattern", ("policeCar", "anyCar")))),
        And((bronx, Call("mobPattern", (people,)), Constraint(people, Relation.GREATER, 50))),
        And((bronx, Or((Call("trafficPattern", ("congestion",)), Not(Call("quiet")))))),
    ]
    table = subscribed(filters).table()
    declared = {"locIn": DeclaredEstimate(1, 0.1), "mobPattern": DeclaredEstimate(40, 0.02)}
    estimates = PredicateEstimates(table.calls, declared)
    number = table.calls.index(bronx)
    observe(estimates, number, items=2_000, true=250, seconds=2.0)
    text = order_text(table, estimates) + "\n\n" + order_text(table, estimates, subscriptions=[1])
    text += "\n\n" + order_text(table, estimates, shown_max=2)
    text += "\n\n" + order_text(table, estimates, subscriptions=[])
    for name in ("naive", "sequential", "sub-order"):
        text += "\n\n" + order_text(table, estimates, order=name)
    text += "\n"
    golden("operator-order.txt", text)
    assert "locIn('Bronx')" in text
