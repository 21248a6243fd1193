"""Checks of the answers of batch forms: each kind of wrong answer has its own message."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from headgate.model.atoms import Call, Variable
from headgate.model.values import Link, Type
from headgate.operators.check_answer import WrongAnswer, checked_batch, value_as
from headgate.operators.declaration import Declaration, Form
from headgate.operators.load import LoadedOperator
from headgate.operators.prepared_call import PreparedCall, prepare

X, Y = Variable("x"), Variable("y")


def prepared(*types: Type) -> PreparedCall:
    names = tuple(f"p{at}" for at in range(len(types)))
    declared = Declaration("p", "m:f", tuple(zip(names, types, strict=True)))
    operator = LoadedOperator(declared, lambda _: None, Form(batch=True, binds=names))
    return prepare(operator, Call("p", (X, Y)[: len(types)]))


@pytest.mark.parametrize(
    "answer",
    [
        pa.array([True, None, False]),
        np.array([True, False, False]),
        [True, False, False],
        pa.chunked_array([[True], [False, False]]),
        pa.array([True, False, None]).dictionary_encode(),
    ],
)
def test_masks(answer: object) -> None:
    assert checked_batch(answer, prepared(), count=3, bindings_max=9).states.tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("answer", "types", "message"),
    [
        (None, [], "answered nothing, expected an array"),
        ([True], [], "answered 1 values for 3 rows"),
        ([1, 0, 1], [], "array of int64, expected one of bool"),
        ([1, "a", object()], [], "which is no array"),
        (["a", "b", "c"], [Type.INT], "array of string, expected int64"),
        ([1.5, 2.0, 3.0], [Type.INT], "array of double, expected int64"),
        ([1.0, float("nan"), 3.0], [Type.FLOAT], "NaN"),
        ([[1], [None], []], [Type.INT], "null in it"),
        ([[1] * 10, [], []], [Type.INT], "more than 9 solutions"),
        ([1, 2, 3], [Type.INT, Type.INT], "answered 1 arrays, expected one for each of the 2"),
        (([1, 2, 3], [1, None, 3]), [Type.INT, Type.INT], "different numbers of values"),
        (([1, 2, 3], [[1], [2], [3, 4]]), [Type.INT, Type.INT], "different numbers of values"),
    ],
)
def test_wrong_answers(answer: object, types: list[Type], message: str) -> None:
    with pytest.raises(WrongAnswer, match=message):
        checked_batch(answer, prepared(*types), count=3, bindings_max=9)


def test_bindings() -> None:
    part = checked_batch(
        ([1, None, 3], [[1], [], [2]]), prepared(Type.INT, Type.FLOAT), count=3, bindings_max=9
    )
    assert part.states.tolist() == [1, 0, 1]
    assert [each.to_pylist() for each in part.lists] == [[[1], [], [3]], [[1.0], [], [2.0]]]


def test_an_empty_batch_has_an_answer() -> None:
    part = checked_batch([None] * 3, prepared(Type.TEXT), count=3, bindings_max=9)
    assert part.states.tolist() == [0, 0, 0]
    assert checked_batch([], prepared(Type.TEXT), count=0, bindings_max=9).states.tolist() == []


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (5, Type.INT, 5),
        (5.0, Type.INT, 5),
        (np.int32(5), Type.INT, 5),
        (5, Type.FLOAT, 5.0),
        (float("inf"), Type.FLOAT, float("inf")),
        (Link("a"), Type.TEXT, "a"),
        ("http://a.b", Type.LINK, Link("http://a.b")),
        (datetime(2026, 1, 1, tzinfo=UTC), Type.TIMESTAMP, datetime(2026, 1, 1, tzinfo=UTC)),
        (b"x", Type.BYTES, b"x"),
        (np.True_, Type.BOOL, True),
    ],
)
def test_values_that_fit(value: object, type_: Type, expected: object) -> None:
    found = value_as(value, type_)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (True, Type.INT),
        (2**63, Type.INT),
        (1.5, Type.INT),
        (True, Type.FLOAT),
        (10**400, Type.FLOAT),
        (float("nan"), Type.FLOAT),
        ("\ud800", Type.TEXT),
        (b"x", Type.TEXT),
        (datetime(2026, 1, 1), Type.TIMESTAMP),
        ("2026-01-01", Type.TIMESTAMP),
        (1, Type.BOOL),
        (None, Type.TEXT),
        ([], Type.BYTES),
    ],
)
def test_values_that_do_not_fit(value: object, type_: Type) -> None:
    with pytest.raises(WrongAnswer, match="one of its values is"):
        value_as(value, type_)
