"""Checks that an operator's answer has the form and the types that it should have.

An operator may return anything. Values are converted to the declared type of the parameter, so that
a binding can be compared with constants and stored in a column: an int is whole and fits 64 bits, a
float is a number, a timestamp has a time zone, a text can be encoded as UTF-8. The answer of a
batch form becomes a state and lists of values for each row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.item_columns import STORED_AS
from headgate.model.errors import OperatorError
from headgate.model.values import INT_MAX, INT_MIN, Link, Type, Value, Xml, with_article
from headgate.operators.answers import TRUE, Longs, PartialAnswers, States, arrow_of
from headgate.operators.prepared_call import PreparedCall, fits

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
    solutions = [_solution(each, types) for each in islice(answer, bindings_max + 1)]
    if len(solutions) > bindings_max:
        raise WrongAnswer(f"it answered more than {bindings_max:,} solutions for one item")
    return solutions


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


def checked_batch(
    answer: object, prepared: PreparedCall, *, count: int, bindings_max: int
) -> PartialAnswers:
    """Raise `WrongAnswer` unless it is an array for each bound parameter, one entry per row."""
    if not prepared.types:
        return PartialAnswers(_mask(answer, count))
    arrays = list(answer) if isinstance(answer, tuple) else [answer]
    if len(arrays) != len(prepared.types):
        raise WrongAnswer(
            f"it answered {len(arrays)} arrays, expected one for each of the "
            f"{len(prepared.types)} parameters that it binds"
        )
    columns = [
        _list_column(each, type_, count) for each, type_ in zip(arrays, prepared.types, strict=True)
    ]
    starts, values = columns[0][0], [each for _, each in columns]
    if any(not np.array_equal(starts, each) for each, _ in columns[1:]):
        raise WrongAnswer("it answered different numbers of values for one row")
    if count and int(np.diff(starts).max()) > bindings_max:
        raise WrongAnswer(f"it answered more than {bindings_max:,} solutions for one item")
    return _selected(prepared, starts, values)


def _mask(answer: object, count: int) -> States:
    array = _array(answer, count)
    if not pa.types.is_boolean(array.type):
        raise WrongAnswer(f"it answered an array of {array.type}, expected one of bool")
    mask = np.asarray(pc.fill_null(array, False))
    return mask.astype(np.uint8)


def _list_column(answer: object, type_: Type, count: int) -> tuple[Longs, pa.Array]:
    """Where the values of each row begin, and all values."""
    array = _array(answer, count)
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        lengths = np.asarray(pc.fill_null(array.value_lengths(), 0))
        values = array.flatten()
    else:
        lengths, values = np.asarray(array.is_valid()), array.drop_null()
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts, _typed(values, type_)


def _typed(values: pa.Array, type_: Type) -> pa.Array:
    if values.null_count:
        raise WrongAnswer("one of its lists has a null in it")
    expected = STORED_AS[type_]
    try:
        if pa.types.is_null(values.type):
            return pa.array([], expected)
        typed = values.cast(expected)
        typed.validate(full=True)
    except pa.ArrowException:
        raise WrongAnswer(f"it answered an array of {values.type}, expected {expected}") from None
    if type_ is Type.FLOAT and len(typed) and pc.any(pc.is_nan(typed)).as_py():
        raise WrongAnswer("one of its values is NaN, which is no value; leave it null")
    return typed


def _selected(prepared: PreparedCall, starts: Longs, values: Sequence[pa.Array]) -> PartialAnswers:
    """The solutions that fit the call: states, and the values of its variables."""
    keep = np.ones(int(starts[-1]), np.bool_)
    if prepared.constants or prepared.equal:
        solutions = zip(*(each.to_pylist() for each in values), strict=True)
        keep[:] = [fits(prepared, _typed_values(each, prepared.types)) for each in solutions]
    kept_before = np.zeros(len(keep) + 1, np.int64)
    np.cumsum(keep, out=kept_before[1:])
    starts = kept_before[starts]
    states = np.where(np.diff(starts) > 0, TRUE, 0).astype(np.uint8)
    offsets = arrow_of(starts.astype(np.int32))
    mask = arrow_of(keep)
    lists = (
        pa.ListArray.from_arrays(offsets, values[at].filter(mask)) for at in prepared.variables
    )
    return PartialAnswers(states, tuple(lists))


def _typed_values(solution: Sequence[object], types: Sequence[Type]) -> list[Value]:
    """Links and documents come out of Arrow as texts."""
    return [value_as(each, type_) for each, type_ in zip(solution, types, strict=True)]


def _array(answer: object, count: int) -> pa.Array:
    if isinstance(answer, pa.ChunkedArray):
        answer = answer.combine_chunks()
    if isinstance(answer, pa.DictionaryArray):
        answer = answer.dictionary_decode()
    if isinstance(answer, np.ndarray | list):
        try:
            answer = arrow_of(answer) if isinstance(answer, np.ndarray) else pa.array(answer)
        except (pa.ArrowException, OverflowError):
            raise WrongAnswer(f"it answered {shown(answer)}, which is no array") from None
    if not isinstance(answer, pa.Array):
        raise WrongAnswer(f"it answered {shown(answer)}, expected an array")
    if len(answer) != count:
        raise WrongAnswer(f"it answered {len(answer):,} values for {count:,} rows")
    return answer
