"""Helpers of the operator tests: items with a number and a word, and calls for them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pyarrow as pa
from tests.operators import functions, hostile

from headgate.match.item_columns import items_to_arrow
from headgate.model.atoms import Argument, Call
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type, Value
from headgate.operators.answers import CallAnswers
from headgate.operators.declaration import Declaration
from headgate.operators.runtime import BatchCalls, OperatorRuntime, PlanCalls

SCHEMA = Schema((Attribute("n", Type.INT), Attribute("word", Type.TEXT)))
ALLOWED = ("tests.operators",)
INSTANT = datetime(2026, 11, 16, tzinfo=UTC)
INT, FLOAT, TEXT = Type.INT, Type.FLOAT, Type.TEXT

PARAMETERS: dict[str, tuple[tuple[str, Type], ...]] = {
    "divides": (("divisor", INT),),
    "divisor": (("found", INT),),
    "divided": (("by", INT), ("quotient", INT), ("rest", INT)),
    "letters": (("letter", TEXT),),
    "links": (("link", Type.LINK),),
    "divides_all": (("divisor", INT),),
    "halves": (("half", INT),),
    "pairs": (("low", INT), ("high", FLOAT)),
    "binds_nonsense": (("found", INT),),
    "never_ends": (("found", INT),),
    "notes_each_call": (("port", INT),),
}


def declare(name: str) -> Declaration:
    module = functions if hasattr(functions, name) else hostile
    return Declaration(name, f"{module.__name__}:{name}", PARAMETERS.get(name, ()))


TAME = [declare(name) for name in PARAMETERS if hasattr(functions, name)]
HOSTILE = [
    declare(name)
    for name, found in vars(hostile).items()
    if inspect.isfunction(found) and found.__module__ == hostile.__name__ and name != "is_bad"
]


def item(n: int | None, word: str = "", id_: str = "") -> Item:
    attributes: dict[str, Value] = {"word": word} if n is None else {"n": n, "word": word}
    return Item(id_ or f"i{n}", "Numbers", INSTANT, attributes)


def numbers(*given: int) -> pa.RecordBatch:
    return items_to_arrow([item(n, id_=f"{at}") for at, n in enumerate(given)], SCHEMA)


def call_operator(
    operators: OperatorRuntime,
    name: str,
    *arguments: Argument,
    items: pa.RecordBatch | Sequence[int],
    rows: Sequence[int] | None = None,
) -> CallAnswers:
    """Call one operator for a batch of items, or for items with these numbers."""
    batch = items if isinstance(items, pa.RecordBatch) else numbers(*items)
    predicates = PlanCalls(operators, [Call(name, tuple(arguments))])
    called_rows = range(batch.num_rows) if rows is None else rows
    return BatchCalls(predicates, batch, SCHEMA).evaluate(0, np.array(called_rows, np.int32))


def solutions(answers: CallAnswers) -> list[list[tuple[object, ...]]]:
    """For each row its solutions; only of binding calls."""
    assert answers.starts is not None
    columns = [each.to_pylist() for each in answers.values]
    tuples = list(zip(*columns, strict=True))
    starts = answers.starts.tolist()
    return [tuples[a:b] for a, b in pairwise(starts)]
