"""The forms in which an operator can be written.

    def loc_in(item, area): ...                       true or false, one item at a time
    def near(item, place, metres): ...                … or tuples, where it is given a Variable

    @binds("people")
    def mob_pattern(item): ...                        tuples: the values that it finds

    @batch_operator
    def loc_in(batch, area): ...                      a mask, for many items at once

    @batch_operator(binds=("metres",))
    def distance_from(batch, place): ...              arrays: the values that it finds

The first form is that of `model/evaluate.py`: the function is given the item and all arguments, and
must do right by constants and variables wherever they may stand. A function that *binds* parameters
is not given them. It says which values they have, and a call with a constant in such a place,
`mobPattern(60)`, is true if that is among them; so a function of this form is always right in both.

A batch form gets an Arrow record batch, one row for each item, with the attributes as columns and
`@source`, `@id` and `@time` beside them; an attribute that an item lacks is null. Its answer is

    without binds   a Boolean array with one value for each row; null is false
    with binds      an array for each name, or only one where one is bound: with one value for each
                    row, and null where there is none, or with a list of values for each row
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, overload

MARK = "__headgate_form__"

Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Form:
    """`binds` is None where any argument may be a variable, and the function sees it."""

    batch: bool = False
    binds: tuple[str, ...] | None = None


def form_of(function: Callable[..., object]) -> Form:
    found = getattr(function, MARK, None)
    return found if isinstance(found, Form) else Form()


def binds(*names: str) -> Callable[[Function], Function]:
    """Mark a function that yields one tuple for each solution, with a value for each name."""
    return lambda function: _marked(function, Form(binds=names))


@overload
def batch_operator(function: Function) -> Function: ...
@overload
def batch_operator(*, binds: tuple[str, ...] = ()) -> Callable[[Function], Function]: ...
def batch_operator(
    function: Function | None = None, *, binds: tuple[str, ...] = ()
) -> Function | Callable[[Function], Function]:
    """Mark a function that answers for all rows of a record batch at once."""
    form = Form(batch=True, binds=binds)
    return (lambda each: _marked(each, form)) if function is None else _marked(function, form)


def _marked(function: Function, form: Form) -> Function:
    setattr(function, MARK, form)
    return function
