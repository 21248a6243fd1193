"""Predicates, which are operator calls without variable names, and tests of the values they bind.

[Operators §3]: two calls are the same predicate "if they have the same non-variable arguments and
all their variable arguments can be unified". So the variables of a predicate are numbered in the
order of their first occurrence:

    p(?x, ?y)     p(?1, ?2)
    p(?a, ?b)     p(?1, ?2)       the same predicate: it is evaluated once for both
    p(?x, ?x)     p(?1, ?1)       another one: both arguments must be equal

Constants are compared with their kind (model/atoms.py), so p(1) is not p(true), and as they are
spelled, because an operator sees the spelling: f('Bronx') is not f('bronx').

A *value test* is a constraint that the answer of a single call decides: `?people > 50` with
`mobPattern(?people)` compares a column of the answer with a number. Tens of thousands of
subscriptions may share the call and differ in the number, so a kernel runs the tests: a solution is
a row of float64, and a test is (column, relation, constant).

Invariant: a test is true of a solution exactly if model/evaluate.py says so of the constraint.
Hence only numbers below 2⁵³ are constants of tests. Values may be larger: rounding to float64 keeps
the order of any integer to such a constant. Values that are no numbers become NaN, for which no
test is true, not even `!=`, because values of two kinds do not compare.

Rejected: tests of texts, as integer codes. Folding and interning every text that an operator
returns costs more than the few constraints on texts, which joint_constraints.py checks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.match.bit_rows import Ints
from headgate.model.atoms import Argument, Call, Constraint, Expression, Relation, Variable
from headgate.model.values import Kind, Value, kind_of

Bytes = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float64]

TEXT_SHOWN_MAX = 40
RELATIONS = tuple(Relation)
EXACT_MAX = 2.0**53
_MIRRORED = {
    Relation.LESS: Relation.GREATER,
    Relation.LESS_EQUAL: Relation.GREATER_EQUAL,
    Relation.GREATER: Relation.LESS,
    Relation.GREATER_EQUAL: Relation.LESS_EQUAL,
}


class PredicateIndex:
    """Numbers distinct predicates as they come. A number never changes and is never reused."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._numbers: dict[Call, int] = {}
        self._number_of_call: dict[Call, int] = {}

    def number(self, call: Call) -> int:
        number = self._number_of_call.get(call)
        if number is None:
            predicate = unify(call)
            number = self._numbers.setdefault(predicate, len(self.calls))
            if number == len(self.calls):
                self.calls.append(predicate)
            self._number_of_call[call] = number
        return number


def unify(call: Call) -> Call:
    """The predicate of a call.

    >>> unify(Call("p", (Variable("b"), 5, Variable("b")))).arguments
    (Variable(name='1'), 5, Variable(name='1'))
    """
    numbers: dict[str, int] = {}

    def renamed(argument: Argument) -> Argument:
        if isinstance(argument, Variable):
            return Variable(str(numbers.setdefault(argument.name, len(numbers) + 1)))
        return argument

    return Call(call.operator, tuple(renamed(each) for each in call.arguments))


def variable_names(call: Call) -> list[str]:
    """The name of each variable argument; an answer has a column for each."""
    return [each.name for each in call.arguments if isinstance(each, Variable)]


def call_text(call: Call) -> str:
    """The call as the language writes it.

    >>> call_text(Call("near", ("O'Hare", Variable("d"), True)))
    "near('O''Hare', ?d, true)"
    """
    return f"{call.operator}({', '.join(_argument_texts(call.arguments))})"


def _argument_texts(arguments: Iterable[Argument]) -> list[str]:
    return [f"?{a.name}" if isinstance(a, Variable) else _value_text(a) for a in arguments]


def _value_text(value: Value) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case datetime():
            return f"'{value.isoformat()}'"
        case bytes():
            return f"x'{value.hex()[:TEXT_SHOWN_MAX]}'"
    shown = value if len(value) <= TEXT_SHOWN_MAX else value[: TEXT_SHOWN_MAX - 1] + "…"
    return "'" + shown.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class ValueTest:
    """`column` counts the variable arguments of the call; `relation` is an index of RELATIONS."""

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
    constant = _exact_float(right)
    if constant is None:
        return None
    return ValueTest(names.index(left.name), RELATIONS.index(relation), constant)


def _exact_float(expression: Expression) -> float | None:
    match expression:
        case bool():
            return None
        case int() | float() if abs(expression) < EXACT_MAX:  # false for NaN
            return float(expression)
    return None


def numbers_of(columns: Sequence[Sequence[Value | None]]) -> Floats:
    """float64 [solution, column]: the values as the kernels compare them."""
    rows = [[_as_float(value) for value in row] for row in zip(*columns, strict=True)]
    return np.array(rows, np.float64).reshape(len(rows), len(columns))


def _as_float(value: Value | None) -> float:
    if value is None or kind_of(value) is not Kind.NUMBER:
        return math.nan
    assert isinstance(value, (int, float))
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


class ValueTests(NamedTuple):
    """The columns of a ClauseTable that value tests are made of."""

    clause_start: Ints  # [clause + 1]
    predicates: Ints  # [literal]
    test_start: Ints  # [literal + 1]: the first test of each literal
    columns: Bytes  # [test]
    relations: Bytes  # [test]
    constants: Floats  # [test]


@nb.njit(nogil=True, cache=True)
def has_passing_solution(solutions, literal, tests):  # type: ignore[no-untyped-def]
    """Whether one solution passes all tests of a literal; true if it has none.

    solutions  float64 [solution, column]
    tests      ValueTests
    """
    first, end = tests.test_start[literal], tests.test_start[literal + 1]
    if first == end:
        return True
    for solution in range(solutions.shape[0]):
        passed = True
        for test in range(first, end):
            value = solutions[solution, tests.columns[test]]
            if not holds(value, tests.relations[test], tests.constants[test]):
                passed = False
                break
        if passed:
            return True
    return False


@nb.njit(nogil=True, cache=True)
def holds(value, relation, constant):  # type: ignore[no-untyped-def]
    """`relation` is an index of RELATIONS; NaN is in no relation to anything."""
    if np.isnan(value):
        return False
    if relation == 0:
        return value == constant
    if relation == 1:
        return value != constant
    if relation == 2:
        return value < constant
    if relation == 3:
        return value <= constant
    if relation == 4:
        return value > constant
    return value >= constant
