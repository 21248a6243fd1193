"""One call of one operator, made ready: the function's arguments, and how to read its answer.

    distanceFrom('Statue of Liberty', ?x)     the function binds `metres`, and gets the place;
                                              it returns (metres,), which is the value of ?x
    distanceFrom('Statue of Liberty', 500)    the same, but true where metres = 500
    near('Bronx', ?x)                         a function without `binds` gets all arguments,
                                              with a Variable as the second one

Calls that differ in the names of their variables are one predicate, but p(?x, ?x) is not p(?x, ?y):
both values must be equal ([Operators §3]). So variables are numbered here in the order of their
first occurrence, and have no names.
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
    arguments: tuple[Argument, ...]
    """The arguments of the function, after the item or the batch."""
    types: tuple[Type, ...]
    """The types of the values in one solution, as the function returns them."""
    variables: tuple[int, ...]
    """The positions of the values that are bound to variables of the call."""
    constants: tuple[tuple[int, Comparable], ...]
    """Positions and constants: the values that must be equal to a constant of the call."""
    equal: tuple[tuple[int, int], ...] = ()
    """Pairs of positions whose values must be equal."""
    binds_all: bool = False
    """All values are bound to variables, in the order in which the function returns them."""


def prepare(operator: LoadedOperator, call: Call) -> PreparedCall:
    declaration, form = operator.declaration, operator.form
    check_call(declaration, form, call)
    arguments = _numbered(call)
    places = dict(zip((name for name, _ in declaration.parameters), arguments, strict=True))
    names = form.binds
    if names is None:
        names = tuple(name for name, each in places.items() if isinstance(each, Variable))
        passed = arguments
    else:
        passed = tuple(each for name, each in places.items() if name not in names)
    declared = dict(declaration.parameters)
    # In the order of the call, whatever the order in which the function answers.
    bound = [(names.index(name), each) for name, each in places.items() if name in names]
    first: dict[Argument, int] = {}
    for position, argument in bound:
        first.setdefault(argument, position)
    variables = [(at, each) for at, each in bound if isinstance(each, Variable)]
    bound_positions = tuple(at for at, _ in variables)
    return PreparedCall(
        operator,
        passed,
        tuple(declared[name] for name in names),
        bound_positions,
        tuple((at, comparable(each)) for at, each in bound if not isinstance(each, Variable)),
        tuple((first[each], at) for at, each in variables if first[each] != at),
        binds_all=bound_positions == tuple(range(len(names))),
    )


def variable_types(declaration: Declaration, call: Call) -> tuple[Type, ...]:
    """The types of the variable arguments of a call."""
    return tuple(
        type_
        for (_, type_), argument in zip(declaration.parameters, call.arguments, strict=True)
        if isinstance(argument, Variable)
    )


def encode_call(call: Call) -> bytes:
    """The call as JSON for another process; the same for all calls that are one predicate."""
    return json.dumps([call.operator, [_encoded(each) for each in _numbered(call)]]).encode()


def decode_call(encoded: bytes, declarations: dict[str, Declaration]) -> Call:
    name, arguments = json.loads(encoded)
    types = (type_ for _, type_ in declarations[name].parameters)
    return Call(name, tuple(map(_decoded, arguments, types)))


def _numbered(call: Call) -> tuple[Argument, ...]:
    """The arguments with numbered variables."""
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
    """The values of the call's variables in each solution that has the call's constants, and equal
    values where the call has one variable twice."""
    if prepared.constants or prepared.equal:
        solutions = [each for each in solutions if fits(prepared, each)]
    elif prepared.binds_all:
        return solutions
    return [tuple(each[at] for at in prepared.variables) for each in solutions]


def fits(prepared: PreparedCall, solution: Sequence[Value]) -> bool:
    return all(comparable(solution[at]) == value for at, value in prepared.constants) and all(
        _are_equal(solution[one], solution[other]) for one, other in prepared.equal
    )


def _are_equal(left: Value, right: Value) -> bool:
    return kind_of(left) is kind_of(right) and comparable(left) == comparable(right)
