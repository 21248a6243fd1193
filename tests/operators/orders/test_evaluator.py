"""Every order gives the matches of the oracle, and evaluates no predicate twice for an item."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.operators.orders.order_world import (
    FakeAnswers,
    World,
    candidates_of,
    conjunctions,
    evaluate,
    filters,
    items_of,
    one_by_one,
    oracle_matches,
    subscribed,
)

from headgate.model.atoms import Call, Constraint, Relation, Variable
from headgate.model.errors import InvalidValue, OperatorError
from headgate.model.filters import FALSE, TRUE, And, Filter, Not, Or
from headgate.operators.orders import evaluator
from headgate.operators.orders.adaptive import AdaptiveOrder
from headgate.operators.orders.clauses import clauses_of
from headgate.operators.orders.estimates import PredicateEstimates
from headgate.operators.orders.evaluator import CandidateClauses, Evaluator
from headgate.operators.orders.methods import EVALUATION_ORDERS

X, Y = Variable("x"), Variable("y")
worlds = st.builds(World, st.integers(0, 10**6), share=st.sampled_from([0.2, 0.5, 0.9]))


@given(st.lists(filters, min_size=1, max_size=6), worlds, st.integers(1, 5))
def test_every_order_gives_the_matches_of_the_oracle(
    subscribed_filters: list[Filter], world: World, count: int
) -> None:
    table, items = subscribed(subscribed_filters).table(), items_of(count)
    expected = oracle_matches(dict(enumerate(subscribed_filters)), world, items)
    for name, order in EVALUATION_ORDERS.items():
        assert evaluate(table, order(), world, items)[0] == expected, name


@given(st.lists(filters, min_size=1, max_size=8), st.data())
def test_subscriptions_come_and_go(pool: list[Filter], data: st.DataObject) -> None:
    world, items = World(7), items_of(3)
    subscriptions = subscribed([])
    orders = {name: order() for name, order in EVALUATION_ORDERS.items()}
    current: dict[int, Filter] = {}
    for name in range(data.draw(st.integers(1, 12))):
        if current and data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(sorted(current)))
            subscriptions.remove(gone)
            del current[gone]
        else:
            current[name] = data.draw(st.sampled_from(pool))
            subscriptions.add(name, current[name])
        table = subscriptions.table()
        assert len(subscriptions) == len(current)
        expected = oracle_matches(current, world, items)
        for each, order in orders.items():
            assert evaluate(table, order, world, items)[0] == expected, each


@given(
    st.lists(conjunctions, min_size=1, max_size=6),
    st.integers(0, 10**6),
    st.sampled_from([0.1, 0.5]),
)
def test_a_failed_predicate_satisfies_no_clause(
    subscribed_filters: list[Filter], seed: int, failing: float
) -> None:
    world, items = World(seed, share=0.8, failing=failing), items_of(4)
    table = subscribed(subscribed_filters).table()
    expected = {
        (item, name)
        for item, name in oracle_matches(dict(enumerate(subscribed_filters)), world, items)
        if not any(
            world.fails(literal.predicate, item)
            for clause in clauses_of(subscribed_filters[name])
            for literal in clause.literals
        )
    }
    for name, order in EVALUATION_ORDERS.items():
        assert evaluate(table, order(), world, items)[0] == expected, name


@given(st.lists(filters, min_size=1, max_size=5), worlds, st.integers(1, 40))
@settings(max_examples=30)
def test_groups_of_items_give_the_same_matches_as_the_whole_batch(
    subscribed_filters: list[Filter], world: World, edges: int
) -> None:
    table, items = subscribed(subscribed_filters).table(), items_of(12)
    whole, _ = evaluate(table, AdaptiveOrder(), world, items)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluator, "SLOTS_MAX", edges)
        assert evaluate(table, AdaptiveOrder(), world, items)[0] == whole


def test_a_predicate_is_evaluated_for_all_items_in_one_call() -> None:
    table = subscribed([And((Call("p"), Call("q")))]).table()
    world, items = World(3, share=1.0), items_of(10)
    for order in EVALUATION_ORDERS.values():
        found, counted = evaluate(table, order(), world, items)
        assert len(found) == 10
        assert (counted.evaluated, counted.call_count) == (20, 2)


def test_joint_constraints_refute_before_all_answers_are_known() -> None:
    """b has no solution above 5, so p need not be evaluated."""
    filter_ = And((Call("b", (X,)), Constraint(X, Relation.GREATER, 5), Call("p")))
    joint = And((Call("b", (X,)), Call("c", (1, X)), Call("p")))
    evaluated: list[str] = []

    def evaluate_call(predicate: int, rows: np.ndarray) -> FakeAnswers:
        call = table.calls[predicate]
        evaluated.append(call.operator)
        every = np.ones(rows.size, np.bool_)
        if call.operator == "p":
            return FakeAnswers(every, every)
        found = Single(5 if call.operator == "b" else 6)
        return FakeAnswers(every, every, np.arange(rows.size + 1), [found])

    for tested, expected in ((filter_, ["b"]), (joint, ["b", "c"])):
        evaluated.clear()
        table = subscribed([tested]).table()
        evaluator = Evaluator(
            table, EVALUATION_ORDERS["sequential"](), PredicateEstimates(table.calls)
        )
        found = evaluator.evaluate(candidates_of(table, items_of(1)), one_by_one(evaluate_call))
        assert (evaluated, found.items.size) == (expected, 0)


class Single(list[int]):
    def __init__(self, value: int) -> None:
        super().__init__([value])

    def to_pylist(self) -> list[int]:
        return list(self)


def test_an_answer_without_values_is_an_error() -> None:
    table = subscribed([And((Call("b", (X,)), Constraint(X, Relation.LESS, 1)))]).table()
    every = np.ones(1, np.bool_)
    evaluator = Evaluator(table, AdaptiveOrder(), PredicateEstimates(table.calls))
    with pytest.raises(OperatorError, match=r"b\(\?1\) was answered without values"):
        evaluator.evaluate(
            candidates_of(table, items_of(1)), one_by_one(lambda *_: FakeAnswers(every, every))
        )


def test_a_batch_without_candidates_has_no_matches() -> None:
    table = subscribed([TRUE, FALSE, Or((Call("p"), Not(Call("p"))))]).table()
    world = World(1)
    found, counted = evaluate(table, AdaptiveOrder(), world, items_of(2))
    assert {name for _, name in found} == {0, 2}
    assert counted.evaluated == 2
    empty = CandidateClauses(np.zeros(4, np.int64), np.zeros(0, np.int32))
    evaluator = Evaluator(table, AdaptiveOrder(), PredicateEstimates(table.calls))
    assert evaluator.evaluate(empty, world.evaluate_round(table)).evaluated == 0


def test_names_are_used_once() -> None:
    subscriptions = subscribed([Call("p")])
    with pytest.raises(InvalidValue, match="subscription 0 is there already"):
        subscriptions.add(0, Call("q"))
    with pytest.raises(InvalidValue, match="there is no subscription 7"):
        subscriptions.remove(7)
    assert 0 in subscriptions
