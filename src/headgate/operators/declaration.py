"""How an operator is declared and written: `register operator`, limits, and the decorators.

    register operator locIn(area text) cost 40 selectivity 0.1 from 'city.operators:loc_in';
                      name  parameters      cost            selectivity    target

`Declaration` and `OperatorLimits` go to other processes as JSON: to executors, and from there to
the child process that calls the functions. A function has one of these forms:

    def loc_in(item, area): ...                       true or false, one item at a time
    def near(item, place, metres): ...                … or tuples, where an argument is a Variable

    @binds("people")
    def mob_pattern(item): ...                        tuples: the values of the bound parameters

    @batch_operator
    def loc_in(batch, area): ...                      a mask, for many items at once

    @batch_operator(binds=("metres",))
    def distance_from(batch, place): ...              arrays: the values of the bound parameters

The first form is that of `model/evaluate.py`: the function gets the item and all arguments, and
must handle constants and variables in every position. A function that *binds* parameters does not
get them. It returns their values, and a call with a constant in such a position, `mobPattern(60)`,
is true if the constant is among them.

A batch form gets an Arrow record batch, one row for each item, with the attributes as columns and
`@source`, `@id` and `@time` as further columns; an attribute that an item lacks is null. It returns

    without binds   a Boolean array with one value for each row; null is false
    with binds      an array for each name, or just one where one is bound: with one value for each
                    row, and null where there is none, or with a list of values for each row
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar, overload

from headgate.model.values import Type
from headgate.sandbox.confinement import Confinement
from headgate.sandbox.enter import WALLS


@dataclass(frozen=True, slots=True)
class Declaration:
    """The operator as registered. The cost is relative to that of others; None is to be learned."""

    name: str
    target: str
    parameters: tuple[tuple[str, Type], ...] = ()
    cost: float | None = None
    selectivity: float | None = None

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @staticmethod
    def from_json(declared: dict[str, object]) -> Declaration:
        parameters, cost, selectivity = (
            declared[each] for each in ("parameters", "cost", "selectivity")
        )
        assert isinstance(parameters, list | tuple)
        assert cost is None or isinstance(cost, int | float)
        assert selectivity is None or isinstance(selectivity, int | float)
        return Declaration(
            str(declared["name"]),
            str(declared["target"]),
            tuple((str(name), Type(type_)) for name, type_ in parameters),
            cost,
            selectivity,
        )


@dataclass(frozen=True, slots=True)
class OperatorLimits:
    """What one operator may take before its answer is given up."""

    item_s: float = 1.0
    """The time for one item."""
    batch_s: float = 10.0
    """The time for one call of a batch form, however many items it is given."""
    load_s: float = 60.0
    """The time for importing one operator's module."""
    memory_bytes: int = 1 << 30
    """What all operators together may take, beyond what the process takes by itself."""
    bindings_max: int = 1_000
    """The number of solutions for one item."""
    split_s: float = 30.0
    """How long a failing batch form is called again for parts of the batch, to find the items that
    it fails on."""

    def to_json(self) -> dict[str, float | int]:
        return asdict(self)


CHILD = "headgate.operators.child:main"


@dataclass(frozen=True, slots=True)
class OperatorGrants:
    """What the operators of a run may reach besides the items that they are given."""

    read: tuple[str, ...] = ()
    """Files and folders."""
    network: bool = False
    walls: tuple[str, ...] = WALLS
    """Tests leave out some (sandbox/enter.py)."""

    def confinement(self, allowed: Sequence[str], *, page: int) -> Confinement:
        """How the child process is confined; `page` is the descriptor of the shared page."""
        return Confinement(
            CHILD,
            (str(page),),
            modules=tuple(allowed),
            read=self.read,
            network=self.network,
            # An allocator that does not reserve more than the operators may take.
            environment={"ARROW_DEFAULT_MEMORY_POOL": "system"},
            walls=self.walls,
        )


MARK = "__headgate_form__"

Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Form:
    """`binds` is None where any argument may be a variable, and the function sees it."""

    batch: bool = False
    binds: tuple[str, ...] | None = None


def form_of(function: Callable[..., object]) -> Form:
    form = getattr(function, MARK, None)
    return form if isinstance(form, Form) else Form()


def binds(*names: str) -> Callable[[Function], Function]:
    """Mark a function that yields one tuple for each solution, with a value for each name."""
    return lambda function: _with_form(function, Form(binds=names))


@overload
def batch_operator(function: Function) -> Function: ...
@overload
def batch_operator(*, binds: tuple[str, ...] = ()) -> Callable[[Function], Function]: ...
def batch_operator(
    function: Function | None = None, *, binds: tuple[str, ...] = ()
) -> Function | Callable[[Function], Function]:
    """Mark a function that answers for all rows of a record batch at once."""
    form = Form(batch=True, binds=binds)
    return (lambda each: _with_form(each, form)) if function is None else _with_form(function, form)


def _with_form(function: Function, form: Form) -> Function:
    setattr(function, MARK, form)
    return function
