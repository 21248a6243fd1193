"""S1 to S5 of [Operators §2.1] as printed, over the drones of examples/city.

The naive evaluator says which items are in which feed; the golden file holds that. What the child
answers, joined by hand, must say the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from headgate.language.check import check
from headgate.language.parse import parse_script
from headgate.language.statements import CreateFeed, RegisterOperator, RegisterStream, Statement
from headgate.match.item_columns import items_to_arrow
from headgate.model.atoms import Call, Variable
from headgate.model.evaluate import matches
from headgate.model.filters import And, Filter, atoms_of, conjuncts
from headgate.model.items import Item, attributes_of_json
from headgate.model.schema import Schema
from headgate.model.values import Value
from headgate.operators.call_items import oracle_operators
from headgate.operators.declaration import Declaration
from headgate.operators.examples.drones import drones
from headgate.operators.load import load_all
from headgate.operators.runtime import BatchCalls, OperatorRuntime, PlanCalls
from headgate.pipeline.layer_builder import declaration_of

CITY = Path(__file__).parents[2] / "examples" / "city"
FEEDS = ("S1", "S2", "S3", "S4", "S5")


def defined() -> dict[str, Statement]:
    definitions: dict[str, Statement] = {}
    for statement in parse_script((CITY / "city.feeds").read_text(encoding="utf-8")):
        checked = check(statement, definitions)
        definitions[checked.name] = checked  # type: ignore[union-attr]
    return definitions


DEFINED = defined()


def schema() -> Schema:
    stream = DEFINED["Drones"]
    assert isinstance(stream, RegisterStream)
    return Schema(stream.attributes)


def declarations() -> list[Declaration]:
    return [declaration_of(each) for each in DEFINED.values() if isinstance(each, RegisterOperator)]


def items() -> list[Item]:
    found = []
    for line in (CITY / "drones.json").read_text(encoding="utf-8").splitlines():
        attributes = attributes_of_json(json.loads(line), schema())
        time = attributes["time"]
        assert not isinstance(time, int | float | str | bytes)
        found.append(Item(str(attributes["id"]), "Drones", time, attributes))
    return found


def filter_of(feed: str) -> Filter:
    statement = DEFINED[feed]
    assert isinstance(statement, CreateFeed)
    (condition,) = statement.where
    return condition.filter


ITEMS = items()
LOADED, REFUSED = load_all(declarations())
ORACLE = oracle_operators(LOADED, schema())


def naive(feed: str) -> list[str]:
    return [each.id for each in ITEMS if matches(filter_of(feed), each, operators=ORACLE)]


def test_every_operator_of_the_example_is_loaded() -> None:
    assert REFUSED == {}
    assert len(LOADED) == 10


def test_the_example_file_is_what_the_generator_writes() -> None:
    lines = (CITY / "drones.json").read_text(encoding="utf-8").splitlines()
    assert [json.loads(each) for each in lines] == list(drones(len(lines)))


def test_the_oracle_gives_the_golden_matches(golden: Callable[[str, str], None]) -> None:
    told = [f"{feed}: {' '.join(naive(feed))}" for feed in FEEDS]
    golden("operators/city.txt", "\n".join(told) + "\n")
    assert all(naive(feed) for feed in FEEDS), "each feed has an item"
    assert all(len(naive(feed)) < len(ITEMS) / 4 for feed in FEEDS)


@pytest.mark.integration
def test_the_child_gives_the_matches_of_the_oracle() -> None:
    batch = items_to_arrow(ITEMS, schema())
    rows = np.arange(len(ITEMS), dtype=np.int32)
    calls = list(
        dict.fromkeys(a for feed in FEEDS for a in atoms_of(filter_of(feed)) if isinstance(a, Call))
    )
    assert len(calls) == 11, "what feeds share is one predicate"
    with OperatorRuntime(declarations()) as operators:
        predicates = PlanCalls(operators, calls)
        batch_calls = BatchCalls(predicates, batch, schema())
        bound = {call: solutions(batch_calls, at, call, rows) for at, call in enumerate(calls)}
        assert all(each.total == 0 for each in operators.failures.values())
    for feed in FEEDS:
        filter_ = filter_of(feed)
        assert [each.id for at, each in enumerate(ITEMS) if joined(filter_, bound, at)] == (
            naive(feed)
        )


Bindings = dict[str, Value]


def solutions(
    batch_calls: BatchCalls, number: int, call: Call, rows: np.ndarray
) -> list[list[Bindings]]:
    answers = batch_calls.evaluate(number, rows)
    names = [each.name for each in call.arguments if isinstance(each, Variable)]
    if answers.starts is None:
        return [[{}] if each else [] for each in answers.true.tolist()]
    tuples = list(zip(*(each.to_pylist() for each in answers.values), strict=True))
    starts = answers.starts.tolist()
    return [
        [dict(zip(names, each, strict=True)) for each in tuples[a:b]] for a, b in pairwise(starts)
    ]


def joined(filter_: Filter, bound: dict[Call, list[list[Bindings]]], row: int) -> bool:
    """§2.2: one choice of what the calls bind satisfies all constraints. Here no two calls of a
    feed bind one variable."""
    parts = conjuncts(filter_)
    called = [bound[each][row] for each in parts if isinstance(each, Call)]
    constraints = And(tuple(each for each in parts if not isinstance(each, Call)))
    return any(
        matches_bound(constraints, {name: value for each in choice for name, value in each.items()})
        for choice in product(*called)
    )


def matches_bound(constraints: Filter, values: Bindings) -> bool:
    given = Call("given", tuple(Variable(name) for name in values))
    if not values:
        return True
    whole = And((given, constraints))
    return matches(whole, ITEMS[0], operators={"given": lambda *_: [tuple(values.values())]})
