"""The answer of a batch form, checked and brought into one form: a state and lists for each row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.arrow_types import STORED_AS
from headgate.model.values import Type, Value
from headgate.operators.answers import TRUE, Longs, Part, States
from headgate.operators.arrow_arrays import arrow_of
from headgate.operators.check_answer import WrongAnswer, shown, value_as
from headgate.operators.prepared import PreparedCall, fits


def checked_batch(answer: object, prepared: PreparedCall, *, count: int, bindings_max: int) -> Part:
    """Raise `WrongAnswer` where it is not an array for each thing asked, one entry for each row."""
    if not prepared.types:
        return Part(_mask(answer, count))
    arrays = list(answer) if isinstance(answer, tuple) else [answer]
    if len(arrays) != len(prepared.types):
        raise WrongAnswer(
            f"it answered {len(arrays)} arrays, expected one for each of the "
            f"{len(prepared.types)} parameters that it binds"
        )
    columns = [
        _lists(each, type_, count) for each, type_ in zip(arrays, prepared.types, strict=True)
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
    found = np.asarray(pc.fill_null(array, False))
    return found.astype(np.uint8)


def _lists(answer: object, type_: Type, count: int) -> tuple[Longs, pa.Array]:
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
    wanted = STORED_AS[type_]
    try:
        if pa.types.is_null(values.type):
            return pa.array([], wanted)
        typed = values.cast(wanted)
        typed.validate(full=True)
    except pa.ArrowException:
        raise WrongAnswer(f"it answered an array of {values.type}, expected {wanted}") from None
    if type_ is Type.FLOAT and len(typed) and pc.any(pc.is_nan(typed)).as_py():
        raise WrongAnswer("one of its values is NaN, which is no value; leave it null")
    return typed


def _selected(prepared: PreparedCall, starts: Longs, values: Sequence[pa.Array]) -> Part:
    """The solutions that fit the call, and of them the values asked for."""
    keep = np.ones(int(starts[-1]), np.bool_)
    if prepared.wanted or prepared.equal:
        solutions = zip(*(each.to_pylist() for each in values), strict=True)
        keep[:] = [fits(prepared, _typed_values(each, prepared.types)) for each in solutions]
    kept = np.zeros(len(keep) + 1, np.int64)
    np.cumsum(keep, out=kept[1:])
    starts = kept[starts]
    states = np.where(np.diff(starts) > 0, TRUE, 0).astype(np.uint8)
    offsets = arrow_of(starts.astype(np.int32))
    mask = arrow_of(keep)
    lists = (
        pa.ListArray.from_arrays(offsets, values[at].filter(mask)) for at in prepared.variables
    )
    return Part(states, tuple(lists))


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
