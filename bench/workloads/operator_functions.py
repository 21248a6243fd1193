"""Operators that do next to nothing, and some that misbehave on the item in the middle."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.operators import batch_operator, binds
from headgate.operators.declaration import Declaration

SCHEMA = Schema(
    (
        Attribute("n", Type.INT),
        Attribute("latitude", Type.FLOAT),
        Attribute("longitude", Type.FLOAT),
        Attribute("text", Type.TEXT),
    )
)
MOMENT = datetime(2026, 11, 16, tzinfo=UTC)
BAD = 2_048


def items(count: int) -> list[Item]:
    return [
        Item(
            str(n),
            "Numbers",
            MOMENT,
            {
                "n": n,
                "latitude": 40.5 + n % 97 / 200,
                "longitude": -74.2 + n % 89 / 180,
                "text": "a drone over the city, and what it sees " * 3,
            },
        )
        for n in range(count)
    ]


def _number(item: Item) -> int:
    found = item.attributes["n"]
    assert isinstance(found, int)
    return found


def is_even(item: Item) -> bool:
    return _number(item) % 2 == 0


@binds("half")
def half_of(item: Item) -> Iterator[tuple[int]]:
    yield (_number(item) // 2,)


@batch_operator
def are_even(batch: pa.RecordBatch) -> pa.Array:
    return pc.equal(pc.bit_wise_and(batch["n"], 1), 0)


@batch_operator(binds=("half",))
def halves(batch: pa.RecordBatch) -> pa.Array:
    return pc.divide(batch["n"], 2)


def hangs_once(item: Item) -> bool:
    if _number(item) == BAD:
        time.sleep(3600)
    return True


def crashes_once(item: Item) -> bool:
    if _number(item) == BAD:
        os.abort()
    return True


@batch_operator
def batch_raises_once(batch: pa.RecordBatch) -> pa.Array:
    if pc.any(pc.equal(batch["n"], BAD)).as_py():
        raise ValueError("the one in the middle")
    return pa.array([True] * batch.num_rows)


def always_raises(item: Item) -> bool:
    raise ValueError(item.id)


def always_hangs(item: Item) -> bool:
    time.sleep(3600)
    return bool(item)


_PARAMETERS = {"half_of": (("half", Type.INT),), "halves": (("half", Type.INT),)}
DECLARATIONS = [
    *(
        Declaration(
            each.__name__, f"{__name__}:{each.__name__}", _PARAMETERS.get(each.__name__, ())
        )
        for each in (
            is_even,
            half_of,
            are_even,
            halves,
            hangs_once,
            crashes_once,
            batch_raises_once,
            always_raises,
            always_hangs,
        )
    ),
    Declaration("locIn", "headgate.operators.examples.places:loc_in", (("area", Type.TEXT),)),
]
