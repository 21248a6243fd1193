"""Filters become clauses that are satisfied by the same items; predicates are unified."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.orders.order_world import FOUND, items_of

from headgate.model.atoms import Arithmetic, Call, Comparison, Constraint, Relation, Variable
from headgate.model.errors import InvalidValue
from headgate.model.evaluate import matches
from headgate.model.filters import FALSE as NEVER
from headgate.model.filters import TRUE as ALWAYS
from headgate.model.filters import And, Filter, Not, Or
from headgate.operators.orders.clauses import (
    CLAUSES_MAX,
    FALSE,
    KNOWN,
    TRUE,
    Clause,
    ClauseLiteral,
    clauses_of,
)
from headgate.operators.orders.predicates import (
    RELATIONS,
    PredicateIndex,
    ValueTest,
    call_text,
    holds,
    numbers_of,
    unify,
    value_test,
)

X, Y = Variable("x"), Variable("y")
P, Q = Call("p"), Call("q")
CHEAP = Comparison("n", Relation.LESS, 9)
FIRST = unify(Call("b", (X,)))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Call("p", (X, Y)), Call("p", (Variable("a"), Variable("b"))), True),
        (Call("p", (X, Y)), Call("p", (Y, X)), True),
        (Call("p", (X, X)), Call("p", (Y, Y)), True),
        (Call("p", (X, Y)), Call("p", (X, X)), False),
        (Call("p", (X, 1)), Call("p", (1, X)), False),
        (Call("p", (1,)), Call("p", (True,)), False),
        (Call("p", ("a",)), Call("p", ("A",)), False),
        (Call("p", (1,)), Call("q", (1,)), False),
    ],
)
def test_predicates_are_the_same_up_to_renaming(one: Call, other: Call, same: bool) -> None:
    predicates = PredicateIndex()
    assert (predicates.number(one) == predicates.number(other)) == same
    assert len(predicates.calls) == (1 if same else 2)


def test_calls_as_text() -> None:
    assert call_text(Call("near", ("O'Hare", X, 5, True))) == "near('O''Hare', ?x, 5, true)"
    assert len(call_text(Call("p", ("long" * 50,)))) < 50


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        (And((P, CHEAP, Q, P)), [Clause(CHEAP, (ClauseLiteral(P, TRUE), ClauseLiteral(Q, TRUE)))]),
        (Not(P), [Clause(ALWAYS, (ClauseLiteral(P, FALSE),))]),
        (Or((P, CHEAP)), [Clause(ALWAYS, (ClauseLiteral(P, TRUE),)), Clause(CHEAP, ())]),
        (
            Not(And((P, CHEAP))),
            [Clause(ALWAYS, (ClauseLiteral(P, FALSE),)), Clause(Not(CHEAP), ())],
        ),
        (Or((P, And((P, Q)))), [Clause(ALWAYS, (ClauseLiteral(P, TRUE),))]),
        (And((P, Not(P))), []),
        (And((P, NEVER)), []),
        (ALWAYS, [Clause(ALWAYS, ())]),
    ],
)
def test_clauses_without_variables(filter_: Filter, expected: list[Clause]) -> None:
    assert list(clauses_of(filter_)) == expected


def test_a_constraint_on_one_answer_is_a_value_test() -> None:
    (clause,) = clauses_of(And((Call("b", (X,)), Constraint(50, Relation.LESS, X))))
    greater = RELATIONS.index(Relation.GREATER)
    assert clause == Clause(ALWAYS, (ClauseLiteral(FIRST, TRUE, (ValueTest(0, greater, 50.0),)),))


def test_a_constraint_on_several_answers_is_joint() -> None:
    calls = Call("b", (X,)), Call("c", (1, Y))
    twice = Constraint(X, Relation.GREATER, Arithmetic("*", 2, Y))
    (clause,) = clauses_of(And((*calls, twice, CHEAP)))
    assert clause.joint == And((*calls, twice))
    assert clause.guard == CHEAP
    assert [literal.required for literal in clause.literals] == [TRUE, TRUE]


def test_one_predicate_with_two_variable_names_is_evaluated_once() -> None:
    parts = (
        Call("b", (X,)),
        Call("b", (Y,)),
        Constraint(X, Relation.LESS, 1),
        Constraint(Y, Relation.GREATER, 1),
    )
    (clause,) = clauses_of(And(parts))
    assert clause.literals == (ClauseLiteral(FIRST, TRUE),)
    assert clause.joint == And(parts)


def test_a_negation_of_variables_needs_all_answers() -> None:
    mob = And((Call("b", (X,)), Constraint(X, Relation.GREATER, 5), CHEAP))
    outside, inside = clauses_of(Not(mob))
    assert outside == Clause(Not(CHEAP), ())
    assert inside.literals == (ClauseLiteral(FIRST, KNOWN),)
    assert inside.joint == And((Not(And(mob.parts[:2])),))


def test_filters_that_depend_on_the_order_of_their_parts_are_refused() -> None:
    either = Or((Not(Call("b", (X,))), P))
    with pytest.raises(InvalidValue, match=r"variable '\?x' is negated"):
        clauses_of(And((either, Or((Call("c", (1, X)), Q)))))
    assert clauses_of(And((either, Call("c", (1, X)))))
    with pytest.raises(InvalidValue, match=r"variable '\?y' is not bound"):
        clauses_of(And((P, Constraint(Y, Relation.LESS, 1))))


def test_too_many_clauses_are_refused() -> None:
    def choices(count: int) -> Filter:
        return And(tuple(Or((Call("p", (n,)), Call("q", (n,)))) for n in range(count)))

    assert len(clauses_of(choices(8))) == CLAUSES_MAX
    with pytest.raises(InvalidValue, match="more than 256 alternatives"):
        clauses_of(choices(9))
    many = Or(tuple(Call("p", (n,)) for n in range(10_000)))
    half = Or(many.parts[:200])
    for filter_ in (choices(64), many, And((half, Or((half, CHEAP)), Not(choices(64))))):
        with pytest.raises(InvalidValue, match="more than 256 alternatives"):
            clauses_of(filter_)


@given(
    st.sampled_from([*FOUND, math.nan]),
    st.sampled_from(Relation),
    st.sampled_from([0, 1, 2.5, -3, 2**53 - 1]),
    st.booleans(),
)
def test_value_tests_agree_with_the_oracle(
    value: float, relation: Relation, constant: float, mirrored: bool
) -> None:
    call = Call("b", (Y, X))
    sides = (constant, X) if mirrored else (X, constant)
    constraint = Constraint(sides[0], relation, sides[1])
    test = value_test(call, constraint)
    assert test is not None
    assert test.column == 1
    (item,) = items_of(1)
    expected = matches(
        And((call, constraint)), item, operators={"b": lambda *_: [(math.nan, value)]}
    )
    (row,) = numbers_of([[math.nan], [value]])
    assert holds(row[1], test.relation, test.constant) == expected


def test_constraints_that_are_no_value_tests() -> None:
    call = Call("b", (X,))
    for right in ("text", True, 2**53, math.inf, Y, Arithmetic("+", X, 1)):
        assert value_test(call, Constraint(X, Relation.EQUAL, right)) is None
    assert value_test(call, Constraint(Y, Relation.EQUAL, 1)) is None
    assert np.isnan(numbers_of([["a", True, None]])).all()
