"""Calls in a child process == calls in this process == the functions called directly."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operators import functions
from tests.operators.runtime_calls import (
    ALLOWED,
    SCHEMA,
    TAME,
    call_operator,
    item,
    numbers,
    solutions,
)
from tests.sandbox.processes import worker_of

from headgate.match.item_columns import items_to_arrow
from headgate.model.atoms import Argument, Call, Constraint, Relation, Variable
from headgate.model.errors import OperatorError
from headgate.model.evaluate import matches
from headgate.model.filters import And
from headgate.model.items import Item
from headgate.model.values import Link, Value, comparable
from headgate.operators.answers import CallAnswers
from headgate.operators.call_items import RowItems, call_here, oracle_operators
from headgate.operators.declaration import Declaration, OperatorLimits
from headgate.operators.failures import Failure
from headgate.operators.load import load_all
from headgate.operators.runtime import BatchCalls, OperatorRuntime, PlanCalls

X, Y = Variable("x"), Variable("y")
LOADED, _ = load_all(TAME, ALLOWED)
ORACLE = oracle_operators(LOADED, SCHEMA)

small = st.integers(-5, 30)
items = st.lists(st.builds(item, small, st.text(max_size=3)), min_size=1, max_size=20)
divisors = st.integers(1, 7)
calls = st.one_of(
    st.builds(lambda d: Call("divides", (d,)), divisors),
    st.builds(lambda d: Call("divisor", (d,)), divisors),
    st.just(Call("divisor", (X,))),
    st.builds(lambda d: Call("divided", (d, X, Y)), divisors),
    st.builds(lambda d, q: Call("divided", (d, q, Y)), divisors, small),
    st.builds(lambda d: Call("divided", (d, X, X)), divisors),
    st.just(Call("pairs", (X, X))),
    st.builds(lambda d, q, r: Call("divided", (d, q, r)), divisors, small, small),
    st.just(Call("letters", (X,))),
    st.builds(lambda c: Call("letters", (c,)), st.characters()),
    st.builds(lambda d: Call("divides_all", (d,)), divisors),
    st.just(Call("halves", (X,))),
    st.builds(lambda h: Call("halves", (h,)), small),
    st.just(Call("pairs", (X, Y))),
    st.builds(lambda low: Call("pairs", (low, Y)), small),
    st.builds(lambda high: Call("pairs", (X, high + 0.5)), small),
)


def holds_of(call: Call, n: int, word: str) -> list[tuple[Value, ...]]:
    """All arguments of which the operator is true, given the divisor that some are called with."""
    by = next((each for each in call.arguments if isinstance(each, int)), 1)
    match call.operator:
        case "divides" | "divides_all":
            return [(by,)] if n % by == 0 else []
        case "divisor":
            return [(each,) for each in range(1, 8) if n % each == 0]
        case "divided":
            return [(by, n // by, n % by)] if n >= 0 else []
        case "letters":
            return [(each,) for each in word]
        case "halves":
            return [(n // 2,)] if n % 2 == 0 else []
    return [(each, each + 0.5) for each in range(max(n, 0) % 4)]


def by_hand(call: Call, subject: Item) -> list[tuple[Value, ...]]:
    """The solutions of a call, computed without the code under test."""
    n, word = subject.attributes["n"], subject.attributes["word"]
    assert isinstance(n, int)
    found = []
    for values in holds_of(call, n, str(word)):
        bound: dict[str, Value] = {}
        fitting = [
            bound.setdefault(wanted.name, value) == value
            if isinstance(wanted, Variable)
            else comparable(value) == comparable(wanted)
            for wanted, value in zip(call.arguments, values, strict=True)
        ]
        if all(fitting):
            pairs = zip(call.arguments, values, strict=True)
            found.append(tuple(value for wanted, value in pairs if isinstance(wanted, Variable)))
    return found


@pytest.fixture(scope="module")
def operators() -> Iterator[OperatorRuntime]:
    with OperatorRuntime(TAME, allowed=ALLOWED) as found:
        yield found


def same(first: CallAnswers, second: CallAnswers) -> bool:
    alike = [
        np.array_equal(first.answered, second.answered),
        np.array_equal(first.true, second.true),
        (first.starts is None) == (second.starts is None),
        [each.type for each in first.values] == [each.type for each in second.values],
    ]
    if first.starts is not None:
        alike.append(solutions(first) == solutions(second))
    return all(alike)


@given(given_items=items, call=calls, data=st.data())
def test_the_child_answers_what_the_functions_answer(
    operators: OperatorRuntime, given_items: list[Item], call: Call, data: st.DataObject
) -> None:
    rows = np.array(
        data.draw(st.lists(st.integers(0, len(given_items) - 1), unique=True)), np.int32
    )
    batch = items_to_arrow(given_items, SCHEMA)
    found = BatchCalls(PlanCalls(operators, [call]), batch, SCHEMA).evaluate(0, rows)
    here = call_here(LOADED[call.operator], call, rows, RowItems(batch, SCHEMA), OperatorLimits())
    assert same(found, here)
    for at, row in enumerate(rows.tolist()):
        expected = by_hand(call, given_items[row])
        assert found.answered[at]
        assert found.true[at] == bool(expected)
        assert found.true[at] == matches(call, given_items[row], operators=ORACLE)
        if found.starts is not None:
            assert solutions(found)[at] == expected


@given(n=small, at_least=small)
def test_the_oracle_calls_the_same_operators(n: int, at_least: int) -> None:
    big = And((Call("divided", (3, X, Y)), Constraint(X, Relation.GREATER, at_least)))
    assert matches(big, item(n), operators=ORACLE) == (n >= 0 and n // 3 > at_least)
    same_twice = Call("divided", (3, X, X))
    assert matches(same_twice, item(n), operators=ORACLE) == (n >= 0 and n // 3 == n % 3)


def test_bound_links_keep_their_type(operators: OperatorRuntime) -> None:
    answers = call_operator(operators, "links", X, items=[7])
    (found,) = answers.values[0].to_pylist()
    assert found == Link("http://a.b/7")
    assert isinstance(found, Link)
    is_it = Constraint(X, Relation.EQUAL, Link("http://A.b/7"))
    assert matches(And((Call("links", (X,)), is_it)), item(7), operators=ORACLE)
    assert call_operator(operators, "links", Link("http://A.b/7"), items=[7, 8]).true.tolist() == [
        True,
        False,
    ]


def test_predicates_are_identified_by_number(operators: OperatorRuntime) -> None:
    predicates = PlanCalls(operators, [Call("divides", (2,)), Call("divides", (3,))])
    batch_calls = BatchCalls(predicates, numbers(1, 2, 3, 6), SCHEMA)
    rows = np.array([3, 2, 1, 0], np.int32)
    assert batch_calls.evaluate(1, rows).true.tolist() == [True, True, False, False]
    assert batch_calls.evaluate(0, rows).true.tolist() == [True, False, True, False]
    assert batch_calls.evaluate(0, rows[:0]).true.tolist() == []


def test_calls_of_several_batches_may_alternate(operators: OperatorRuntime) -> None:
    predicates = PlanCalls(operators, [Call("divides", (2,))])
    first = BatchCalls(predicates, numbers(1, 2), SCHEMA)
    second = BatchCalls(predicates, numbers(2, 1), SCHEMA)
    rows = np.arange(2, dtype=np.int32)
    for _ in range(2):
        assert first.evaluate(0, rows).true.tolist() == [False, True]
        assert second.evaluate(0, rows).true.tolist() == [True, False]


def test_a_row_out_of_range_raises(operators: OperatorRuntime) -> None:
    with pytest.raises(IndexError, match="rows must be from 0 to 1"):
        call_operator(operators, "divides", 2, items=[1, 2], rows=[2])


def test_an_item_without_a_needed_attribute_fails(operators: OperatorRuntime) -> None:
    batch = items_to_arrow([item(4), item(None), item(6)], SCHEMA)
    answers = call_operator(operators, "divides", 2, items=batch)
    assert answers.answered.tolist() == [True, False, True]
    assert "AssertionError" in operators.failures["divides"].last


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("divides_all", (X,), "finds no values for 'divisor'"),
        ("divides", (), "takes 1 arguments, not 0"),
    ],
)
def test_an_invalid_call_fails_for_every_item(
    operators: OperatorRuntime, name: str, arguments: tuple[Argument, ...], problem: str
) -> None:
    before = operators.failures[name].counts.get(Failure.NOT_LOADED, 0)
    assert not call_operator(operators, name, *arguments, items=[1, 2]).answered.any()
    assert operators.failures[name].counts[Failure.NOT_LOADED] == before + 2
    assert problem in operators.failures[name].last


def test_an_undeclared_operator_is_refused(operators: OperatorRuntime) -> None:
    with pytest.raises(OperatorError, match="'unknown' is not declared"):
        call_operator(operators, "unknown", items=[1])


def test_a_child_that_was_killed_from_outside_is_replaced(operators: OperatorRuntime) -> None:
    assert call_operator(operators, "divides", 2, items=[2]).true.all()
    child = operators.child_pid
    assert child is not None
    os.kill(worker_of(child), signal.SIGKILL)
    assert call_operator(operators, "divides", 2, items=[2, 3]).true.tolist() == [True, False]
    assert operators.child_pid != child
    assert Failure.DIED not in operators.failures["divides"].counts


@given(given_items=items, called=st.lists(calls, max_size=6), data=st.data())
def test_a_round_gives_the_answers_of_its_calls_one_by_one(
    operators: OperatorRuntime, given_items: list[Item], called: list[Call], data: st.DataObject
) -> None:
    batch = items_to_arrow(given_items, SCHEMA)
    batch_calls = BatchCalls(PlanCalls(operators, called), batch, SCHEMA)
    some = st.lists(st.integers(0, len(given_items) - 1), unique=True)
    rows = [np.array(data.draw(some), np.int32) for _ in called]
    starts = np.cumsum([0, *map(len, rows)])
    numbers_ = np.arange(len(called), dtype=np.int32)
    found = batch_calls.evaluate_round(numbers_, starts, np.concatenate([*rows, numbers_[:0]]))
    assert (found.seconds >= 0).all()
    for number, own in enumerate(rows):
        span = slice(*starts[number : number + 2].tolist())
        bound = found.bound.get(number)
        values = (None, ()) if bound is None else (bound.starts, bound.values)
        answers = CallAnswers(found.answered[span], found.true[span], *values)
        assert same(answers, batch_calls.evaluate(number, own))


def test_operators_that_cannot_be_loaded_fail_and_are_listed() -> None:
    unknown = Declaration("gone", f"{functions.__name__}:gone")
    with OperatorRuntime([unknown, *TAME], allowed=ALLOWED) as operators:
        assert "has no function 'gone'" in operators.refused()["gone"]
        assert not call_operator(operators, "gone", items=[1]).answered.any()
        assert operators.failures["gone"].counts == {Failure.NOT_LOADED: 1}


def test_declarations_survive_json() -> None:
    declared = Declaration("p", "a:b", (("x", TAME[0].parameters[0][1]),), 40.0, 0.1)
    assert Declaration.from_json(declared.to_json()) == declared
