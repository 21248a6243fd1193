"""One call of one operator, made ready: what the function is given, and what its answer must be.

    distanceFrom('Statue of Liberty', ?x)     the function binds `metres`, and is given the place;
                                              it answers (metres,), which is the value of ?x
    distanceFrom('Statue of Liberty', 500)    the same, but true where metres = 500
    near('Bronx', ?x)                         a function that binds nothing by itself is given all
                                              arguments, with a Variable in the second place

Calls that differ in the names of their variables are one predicate, but p(?x, ?x) is not p(?x, ?y):
it wants both values to be equal ([Operators §3]). So a variable has a number here, by
the order in which variables first stand in the call, and no name.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from headgate.model.atoms import Argument, Call, Variable
from headgate.model.items import value_of_json
from headgate.model.values import Comparable, Type, Value, comparable, kind_of
from headgate.operators.declaration import Declaration
from headgate.operators.load import LoadedOperator, check_call


@dataclass(frozen=True, slots=True)
class PreparedCall:
    operator: LoadedOperator
    given: tuple[Argument, ...]
    """What the function is called with, after the item or the batch."""
    types: tuple[Type, ...]
    """Of the values in one solution, as the function answers."""
    variables: tuple[int, ...]
    """Which of these values the call asks for."""
    wanted: tuple[tuple[int, Comparable], ...]
    """Which of these values must be equal to a constant of the call."""
    equal: tuple[tuple[int, int], ...] = ()
    """Which of these values must be equal to each other."""
    asks_all: bool = False
    """It asks for all of these values, in the order in which the function answers them."""


def prepare(operator: LoadedOperator, call: Call) -> PreparedCall:
    declaration, form = operator.declaration, operator.form
    check_call(declaration, form, call)
    arguments = _numbered(call)
    places = dict(zip((name for name, _ in declaration.parameters), arguments, strict=True))
    names = form.binds
    if names is None:
        names = tuple(name for name, each in places.items() if isinstance(each, Variable))
        given = arguments
    else:
        given = tuple(each for name, each in places.items() if name not in names)
    declared = dict(declaration.parameters)
    # In the order of the call, whatever the order in which the function answers.
    bound = [(names.index(name), each) for name, each in places.items() if name in names]
    first: dict[Argument, int] = {}
    for at, each in bound:
        first.setdefault(each, at)
    variables = [(at, each) for at, each in bound if isinstance(each, Variable)]
    asked = tuple(at for at, _ in variables)
    return PreparedCall(
        operator,
        given,
        tuple(declared[name] for name in names),
        asked,
        tuple((at, comparable(each)) for at, each in bound if not isinstance(each, Variable)),
        tuple((first[each], at) for at, each in variables if first[each] != at),
        asks_all=asked == tuple(range(len(names))),
    )


def variable_types(declaration: Declaration, call: Call) -> tuple[Type, ...]:
    """The types of the values that the call asks for, in the order of its arguments."""
    return tuple(
        type_
        for (_, type_), argument in zip(declaration.parameters, call.arguments, strict=True)
        if isinstance(argument, Variable)
    )


def encode_call(call: Call) -> bytes:
    """The call for another process. It is the same for all calls that are one predicate."""
    return json.dumps([call.operator, [_encoded(each) for each in _numbered(call)]]).encode()


def decode_call(encoded: bytes, declarations: dict[str, Declaration]) -> Call:
    name, arguments = json.loads(encoded)
    types = (type_ for _, type_ in declarations[name].parameters)
    return Call(name, tuple(map(_decoded, arguments, types)))


def _numbered(call: Call) -> tuple[Argument, ...]:
    """A function is not to know by which name a subscriber calls what it finds."""
    numbers: dict[str, int] = {}
    return tuple(
        Variable(str(numbers.setdefault(each.name, len(numbers))))
        if isinstance(each, Variable)
        else each
        for each in call.arguments
    )


def _encoded(argument: Argument) -> object:
    match argument:
        case Variable(number):
            return [number]
        case bytes():
            return base64.b64encode(argument).decode()
        case datetime():
            return argument.isoformat()
    return argument


def _decoded(encoded: object, type_: Type) -> Argument:
    if isinstance(encoded, list):
        return Variable(encoded[0])
    if isinstance(encoded, int | float):
        return encoded  # a number stays as it is written, also where an int is declared
    return value_of_json(encoded, type_)


def select(prepared: PreparedCall, solutions: list[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
    """Of these solutions the values that are asked for, of those that have the constants and whose
    values are equal where the call has one variable twice."""
    if prepared.wanted or prepared.equal:
        solutions = [each for each in solutions if fits(prepared, each)]
    elif prepared.asks_all:
        return solutions
    return [tuple(each[at] for at in prepared.variables) for each in solutions]


def fits(prepared: PreparedCall, solution: Sequence[Value]) -> bool:
    return all(comparable(solution[at]) == value for at, value in prepared.wanted) and all(
        _are_equal(solution[one], solution[other]) for one, other in prepared.equal
    )


def _are_equal(one: Value, other: Value) -> bool:
    return kind_of(one) is kind_of(other) and comparable(one) == comparable(other)
