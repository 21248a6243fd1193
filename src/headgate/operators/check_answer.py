"""Is what an operator answered what it should have answered? An operator may answer anything.

Values are taken as the type that the parameter is declared with, so that a binding can be compared
with constants and stored in a column: an int is whole and fits 64 bits, a float is a number, a
timestamp has a zone, a text can be written as UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import islice

import numpy as np

from headgate.model.errors import OperatorError
from headgate.model.values import INT_MAX, INT_MIN, Link, Type, Value, Xml, with_article

_TEXTS: dict[Type, type[str]] = {Type.TEXT: str, Type.LINK: Link, Type.XML: Xml}


class WrongAnswer(OperatorError):
    """It is not of the form, or not of the types, that it should have."""


def truth_of(answer: object) -> bool:
    if not isinstance(answer, bool | np.bool_):
        raise WrongAnswer(f"it answered {shown(answer)}, expected true or false")
    return bool(answer)


def solutions_of(
    answer: object, types: tuple[Type, ...], *, bindings_max: int
) -> list[tuple[Value, ...]]:
    """The tuples of an answer with variables. A generator runs here, so this may raise anything."""
    if not isinstance(answer, Iterable) or isinstance(answer, str | bytes | dict):
        raise WrongAnswer(f"it answered {shown(answer)}, expected a tuple for each solution")
    found = [_solution(each, types) for each in islice(answer, bindings_max + 1)]
    if len(found) > bindings_max:
        raise WrongAnswer(f"it answered more than {bindings_max:,} solutions for one item")
    return found


def _solution(solution: object, types: tuple[Type, ...]) -> tuple[Value, ...]:
    if not isinstance(solution, tuple) or len(solution) != len(types):
        plural = "" if len(types) == 1 else "s"
        raise WrongAnswer(
            f"one of its solutions is {shown(solution)}, "
            f"expected a tuple of {len(types)} value{plural}"
        )
    return tuple(map(value_as, solution, types))


def value_as(value: object, type_: Type) -> Value:
    """The value as one of this type, or `WrongAnswer`."""
    if isinstance(value, np.generic):
        value = value.item()
    match type_:
        case Type.INT:
            if type(value) is float and value.is_integer():
                value = int(value)
            if type(value) is int and INT_MIN <= value <= INT_MAX:
                return value
        case Type.FLOAT:
            if (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and (number := _number(value)) == number
            ):
                return number
        case Type.BOOL:
            if isinstance(value, bool):
                return value
        case Type.TEXT | Type.LINK | Type.XML:
            if isinstance(value, str) and (value.isascii() or _is_utf8(value)):
                return _TEXTS[type_](value)
        case Type.TIMESTAMP:
            if isinstance(value, datetime) and value.tzinfo is not None:
                return value
        case Type.BYTES:
            if isinstance(value, bytes):
                return value
    raise WrongAnswer(f"one of its values is {shown(value)}, expected {with_article(type_)}")


def _number(value: int | float) -> float:
    """NaN, which is no value, where it is too large."""
    try:
        return float(value)
    except OverflowError:
        return float("nan")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(answer: object) -> str:
    """The answer in a message; its own words are not to be trusted with it."""
    if answer is None or isinstance(answer, bool):
        return str(answer).lower() if answer is not None else "nothing"
    try:
        text = repr(answer)
    except Exception:
        text = ""
    return f"{type(answer).__name__} {text[:60]}{'…' if len(text) > 60 else ''}".strip()
