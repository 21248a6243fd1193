"""Dataclasses of arrays are encoded and decoded; invalid content is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.strategies import all_atoms, filters

from headgate.match.array_file_layout import JSON
from headgate.match.dataclass_codec import WrongShape, from_arrays, to_arrays
from headgate.model.atoms import Call, TimestampPart, Variable
from headgate.model.filters import Filter
from headgate.model.values import Link, Xml

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]


@dataclass(frozen=True)
class Leaf:
    values: npt.NDArray[np.int32]
    name: str | None


@dataclass(frozen=True)
class Twig:
    numbers: Numbers
    share: float


@dataclass(frozen=True)
class Tree:
    leaves: tuple[Leaf | Twig, ...]
    key: tuple[str, TimestampPart | None]
    kinds: Mapping[str, TimestampPart]
    depth: int
    is_tall: bool


TREE = Tree(
    (
        Leaf(np.arange(3, dtype=np.int32), "a"),
        Twig(np.array([0.5]), 0.5),
        Leaf(np.zeros(0, "i4"), None),
    ),
    ("time", TimestampPart.DATE),
    {"x": TimestampPart.YEAR},
    2,
    True,
)


def test_decoding_gives_the_encoded_value() -> None:
    arrays, stored = to_arrays(TREE)
    assert sorted(arrays) == ["leaves.0.values", "leaves.1.numbers", "leaves.2.values"]
    again = from_arrays(Tree, arrays, stored)
    assert to_arrays(again)[1] == stored
    assert all(np.array_equal(arrays[name], each) for name, each in to_arrays(again)[0].items())
    assert isinstance(again.leaves[1], Twig)
    assert again.key[1] is TimestampPart.DATE


@pytest.mark.parametrize(
    ("change", "expected_message"),
    [
        ({"depth": "2"}, "depth is not of type int"),
        ({"depth": True}, "depth is not of type int"),
        ({"is": "Leaf"}, "it is not a Tree"),
        ({"more": 1}, "it is not a Tree with just its fields"),
        ({"key": ["time"]}, "key is not a list of 2"),
        ({"key": ["time", "century"]}, "key.1 is not a TimestampPart"),
        ({"key": "time"}, "key is not a list"),
        ({"kinds": []}, "kinds is not a mapping"),
        ({"leaves": [{"is": "Tree"}]}, "leaves.0 is not anything that may stand there"),
        (
            {"leaves": [{"is": "Leaf", "name": 3, "values": None}]},
            "leaves.0.name is not of type str",
        ),
        ({"leaves": [None] * 4}, "leaves.0 is not anything that may stand there"),
    ],
)
def test_content_that_does_not_fit_the_type_is_refused(
    change: dict[str, JSON], expected_message: str
) -> None:
    arrays, stored = to_arrays(TREE)
    assert isinstance(stored, Mapping)
    with pytest.raises(WrongShape, match=expected_message):
        from_arrays(Tree, arrays, {**stored, **change})


@pytest.mark.parametrize(
    "wrong",
    [np.zeros(3, np.int64), np.zeros((3, 1), np.int32), np.zeros(3, np.float32), None],
)
def test_an_array_of_another_kind_is_refused(wrong: npt.NDArray[np.int64] | None) -> None:
    arrays, stored = to_arrays(TREE)
    changed = {name: each for name, each in arrays.items() if name != "leaves.0.values"}
    if wrong is not None:
        changed["leaves.0.values"] = wrong
    with pytest.raises(WrongShape, match="values is not a line of int32"):
        from_arrays(Tree, changed, stored)


@dataclass(frozen=True)
class Kept:
    filters: tuple[Filter, ...]


@given(st.lists(filters(all_atoms), max_size=3))
def test_filters_survive_encoding(given_filters: list[Filter]) -> None:
    kept = Kept(tuple(given_filters))
    arrays, stored = to_arrays(kept)
    assert from_arrays(Kept, arrays, json.loads(json.dumps(stored))) == kept


CALL = Call(
    "p",
    (1, 1.0, True, "a", Link("http://a.b"), Xml("<a/>"), b"\x00\xff", NOON, Variable("x")),
)


def test_values_of_every_kind_survive_encoding() -> None:
    arrays, stored = to_arrays(Kept((CALL,)))
    (again,) = from_arrays(Kept, arrays, json.loads(json.dumps(stored))).filters
    assert again == CALL
    assert isinstance(again, Call)
    assert [type(each) for each in again.arguments] == [type(each) for each in CALL.arguments]


@pytest.mark.parametrize(
    ("argument", "expected_message"),
    [
        ({"is": "datetime", "text": "soon"}, "a datetime"),
        ({"is": "datetime", "text": 3}, "a datetime"),
        ({"is": "bytes", "text": "é"}, "a bytes"),
        ({"is": "list"}, "anything that may stand there"),
        ([], "anything that may stand there"),
    ],
)
def test_invalid_values_are_refused(argument: JSON, expected_message: str) -> None:
    stored: JSON = {
        "is": "Kept",
        "filters": [{"is": "Call", "operator": "p", "arguments": [argument]}],
    }
    with pytest.raises(WrongShape, match=expected_message):
        from_arrays(Kept, {}, stored)


def test_an_invalid_atom_is_refused() -> None:
    between: JSON = {"is": "Between", "attribute": "a", "low": 3, "high": 1, "part": None}
    with pytest.raises(WrongShape, match="is nothing"):
        from_arrays(Kept, {}, {"is": "Kept", "filters": [between]})
