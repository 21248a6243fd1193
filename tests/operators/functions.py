"""Well-behaved operators of each form, for tests. Items have a number `n` and a text `word`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from headgate.model.atoms import Variable
from headgate.model.items import Item
from headgate.model.values import Value
from headgate.operators import batch_operator, binds

Solutions = Iterable[tuple[Value, ...]]
CONSTANT = 5


def number(item: Item) -> int:
    found = item.attributes.get("n")
    assert isinstance(found, int)
    return found


def divides(item: Item, divisor: int) -> bool:
    return number(item) % divisor == 0


def slowly_divides(item: Item, divisor: int) -> bool:
    time.sleep(0.002)
    return divides(item, divisor)


def divisor(item: Item, argument: Value | Variable) -> bool | Solutions:
    """Gets a variable or a constant as its argument, and handles both."""
    if isinstance(argument, Variable):
        return [(each,) for each in range(1, 8) if number(item) % each == 0]
    assert isinstance(argument, int)
    return number(item) % argument == 0


@binds("quotient", "rest")
def divided(item: Item, by: int) -> Iterator[tuple[int, int]]:
    if number(item) >= 0:
        yield divmod(number(item), by)


@binds("letter")
def letters(item: Item) -> Solutions:
    return [(each,) for each in str(item.attributes.get("word", ""))]


@binds("link")
def links(item: Item) -> Solutions:
    return [(f"http://a.b/{number(item)}",)]


@batch_operator
def divides_all(batch: pa.RecordBatch, divisor: int) -> pa.Array:
    numbers = batch["n"]
    return pc.equal(pc.subtract(numbers, pc.multiply(pc.divide(numbers, divisor), divisor)), 0)


@batch_operator(binds=("half",))
def halves(batch: pa.RecordBatch) -> pa.Array:
    """Of even numbers only."""
    found = [each // 2 if each % 2 == 0 else None for each in batch["n"].to_pylist()]
    return pa.array(found, pa.int64())


@batch_operator(binds=("low", "high"))
def pairs(batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    """As many as the number says."""
    counts = [range(max(each, 0) % 4) for each in batch["n"].to_pylist()]
    low = pa.array([list(each) for each in counts], pa.list_(pa.int64()))
    return low, pa.array([[x + 0.5 for x in each] for each in counts], pa.list_(pa.float64()))


async def asynchronous(item: Item) -> bool:
    return bool(item)
