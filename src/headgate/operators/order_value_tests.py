"""Tests: value constraints that one answer decides, in the form in which a kernel runs them.

`?people > 50` beside `mobPattern(?people)` compares a column of the answer with a number. Tens of
thousands of subscriptions may share the call and differ in the number, so these are no Python: a
solution is a row of float64, and a test is (column, relation, constant).

Law: a test is true of a solution exactly if model/evaluate.py says so of the constraint. Hence only
numbers below 2⁵³ are constants of tests. Values may be larger: rounding to float64 keeps the order
of any integer to such a constant. What is no number becomes NaN, of which no test is true, not even
`!=`: values of two kinds do not compare.

Rejected: texts as codes. Folding and interning every text that an operator finds costs more than
the few constraints on texts, which are left to order_joint.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.model.atoms import Call, Constraint, Expression, Relation, Variable
from headgate.model.values import Kind, Value, kind_of
from headgate.operators.order_predicates import variable_names

RELATIONS = tuple(Relation)
_MIRRORED = {
    Relation.LESS: Relation.GREATER,
    Relation.LESS_EQUAL: Relation.GREATER_EQUAL,
    Relation.GREATER: Relation.LESS,
    Relation.GREATER_EQUAL: Relation.LESS_EQUAL,
}
EXACT_MAX = 2.0**53


@dataclass(frozen=True, slots=True)
class ValueTest:
    """`column` counts the variable arguments of the call; `relation` is a place in RELATIONS."""

    column: int
    relation: int
    constant: float


def value_test(call: Call, constraint: Constraint) -> ValueTest | None:
    """The constraint as a test on this call's answer, if it is one."""
    left, relation, right = constraint.left, constraint.relation, constraint.right
    if isinstance(right, Variable):
        left, relation, right = right, _MIRRORED.get(relation, relation), left
    names = variable_names(call)
    if not isinstance(left, Variable) or left.name not in names:
        return None
    constant = _small_number(right)
    if constant is None:
        return None
    return ValueTest(names.index(left.name), RELATIONS.index(relation), constant)


def _small_number(expression: Expression) -> float | None:
    match expression:
        case bool():
            return None
        case int() | float() if abs(expression) < EXACT_MAX:  # NaN is not
            return float(expression)
    return None


def numbers_of(columns: Sequence[Sequence[Value | None]]) -> npt.NDArray[np.float64]:
    """[solution, column] as the kernels compare them."""
    rows = [[_number(value) for value in row] for row in zip(*columns, strict=True)]
    return np.array(rows, np.float64).reshape(len(rows), len(columns))


def _number(value: Value | None) -> float:
    if value is None or kind_of(value) is not Kind.NUMBER:
        return math.nan
    assert isinstance(value, (int, float))
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)
