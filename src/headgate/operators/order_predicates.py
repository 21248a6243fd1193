"""Predicates: operator calls that are the same up to the names of their variables.

[Operators §3]: two calls are one predicate "if they have the same non-variable
arguments and all their variable arguments can be unified". So a predicate is a call whose variables
are numbered in the order in which they first occur:

    p(?x, ?y)     p(?1, ?2)
    p(?a, ?b)     p(?1, ?2)       the same: it is asked once for both
    p(?x, ?x)     p(?1, ?1)       another one: it wants both arguments to be equal

Constants are compared with their kind (model/atoms.py), so p(1) is not p(true), and as they are
spelled, since an operator sees the spelling: f('Bronx') is not f('bronx').
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from headgate.model.atoms import Argument, Call, Variable
from headgate.model.values import Value

TEXT_SHOWN_MAX = 40


class Predicates:
    """Distinct predicates, numbered as they come. A number never changes and is never reused."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._numbers: dict[Call, int] = {}
        self._unified: dict[Call, int] = {}

    def number(self, call: Call) -> int:
        known = self._unified.get(call)
        if known is None:
            predicate = unify(call)
            known = self._numbers.setdefault(predicate, len(self.calls))
            if known == len(self.calls):
                self.calls.append(predicate)
            self._unified[call] = known
        return known


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
    """The name of each variable argument: what the columns of an answer are about."""
    return [each.name for each in call.arguments if isinstance(each, Variable)]


def call_text(call: Call) -> str:
    """As the language writes it.

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
