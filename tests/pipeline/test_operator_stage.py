"""Feeds whose filters call operators have what the naive evaluator says, and each item once."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.match.strategies import NOON
from tests.plan.execute import execute
from tests.plan.papers import defined

from headgate.language.statements import RegisterOperator, Statement
from headgate.match.array_file import open_arrays, write_arrays
from headgate.match.item_columns import items_to_arrow
from headgate.model.errors import SnapshotError
from headgate.model.items import Item
from headgate.operators.call_items import oracle_operators
from headgate.operators.load import load_all
from headgate.operators.orders.methods import EVALUATION_ORDERS
from headgate.pipeline.feed_costs import costs_of_plans
from headgate.pipeline.layer_builder import declaration_of
from headgate.pipeline.match_stage import MatchConfig, match_batch
from headgate.pipeline.operator_stage import OperatorRules, OperatorSetup, take_report
from headgate.pipeline.source_plan import (
    SourcePlan,
    open_source_plan,
    plan_sources,
    write_source_plan,
)
from headgate.plan.algebra import Plan
from headgate.plan.leaves import leaves_by_source
from headgate.plan.normalize import normalize_all
from headgate.plan.translate import compose_all

SOURCES = """
register stream T from json 't' (n int, b int);
register operator divides(divisor int) from 'tests.operators.functions:divides';
register operator divisor(found int) from 'tests.operators.functions:divisor';
register operator divided(by int, quotient int, rest int) from 'tests.operators.functions:divided';
"""
PARTS = (
    "n > 3",
    "b < 5",
    "divides(2)",
    "divides(3)",
    "not divides(2)",
    "divisor(?x) and ?x > 2",
    "(divides(5) or n < 2)",
    "divisor(?x) and divided(4, ?x, ?y)",
)
RULES = OperatorRules(("tests.operators",))
ITEMS = [Item(str(n), "T", NOON, {"n": n, "b": n % 9}) for n in range(30)]


class World:
    """Feeds on T: their plans, and how their operators are called."""

    def __init__(self, script: str, rules: OperatorRules = RULES) -> None:
        self.known: dict[str, Statement] = defined(SOURCES + script)
        names = [name for name in self.known if name.startswith("F")]
        self.number_of = {name: 10 * n + 3 for n, name in enumerate(names)}
        self.plans: dict[str, Plan] = dict(normalize_all(compose_all(names, self.known)))
        declared = [
            declaration_of(e) for e in self.known.values() if isinstance(e, RegisterOperator)
        ]
        self.setup = OperatorSetup(tuple(declared), rules)

    def source_plan(self) -> SourcePlan:
        asked = leaves_by_source(self.plans)
        return plan_sources(asked, self.known, self.number_of)["T"]

    def expected(self) -> dict[str, set[str]]:
        plan = self.source_plan()
        loaded, refused = load_all(self.setup.declarations, RULES.allowed)
        assert refused == {}
        called = oracle_operators(loaded, plan.schema)
        return {
            name: {item.id for item in execute(own, {"T": ITEMS}, called)}
            for name, own in self.plans.items()
        }

    def found(self, paths: list[str], dropped: list[str]) -> dict[str, list[str]]:
        numbers = np.array([self.number_of[name] for name in dropped], np.int32)
        asked = MatchConfig({"T": paths}, numbers, every=True, operators=self.setup)
        batch = items_to_arrow(ITEMS, open_source_plan(Path(paths[0])).schema)
        rows = pa.Table.from_batches(match_batch(batch, asked)).to_pylist()
        assert [row["@id"] for row in rows] == [item.id for item in ITEMS]
        names = {number: name for name, number in self.number_of.items()}
        found: dict[str, list[str]] = {name: [] for name in self.number_of if name not in dropped}
        for row in rows:
            for number in row["@feeds"]:
                found[names[number]].append(row["@id"])
        return found


conditions = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4, unique=True)
scripts = st.lists(
    st.lists(conditions.map(" and ".join), min_size=1, max_size=2), min_size=1, max_size=6
)


def script_of(feeds: list[list[str]]) -> str:
    """A feed with several branches on the source is a union of parts."""
    made = ["create feed F from T;"]
    for n, branches in enumerate(feeds):
        made += [f"create feed P{n}_{at} from T where {each};" for at, each in enumerate(branches)]
        made.append(
            f"create feed F{n} from ({' | '.join(f'P{n}_{at}' for at in range(len(branches)))});"
        )
    return "".join(made)


@given(scripts, st.data())
@settings(deadline=None, max_examples=30)
def test_feeds_have_what_the_naive_evaluator_says(
    feeds: list[list[str]], data: st.DataObject
) -> None:
    world = World(script_of(feeds))
    dropped = data.draw(st.lists(st.sampled_from(sorted(world.number_of)), unique=True))
    with tempfile.TemporaryDirectory() as folder:
        found = world.found([str(write_source_plan(Path(folder), world.source_plan()))], dropped)
    for name, ids in world.expected().items():
        if name not in dropped:
            assert sorted(found[name]) == sorted(ids)


def test_what_operators_cost_and_answer_is_told_once(tmp_path: Path) -> None:
    take_report()
    world = World("create feed F from T where n > 9 and divides(2) and divisor(?x) and ?x > 4;")
    path = str(write_source_plan(tmp_path, world.source_plan()))
    found = world.found([path], [])
    assert found["F"] == sorted(world.expected()["F"], key=int)
    report = take_report()
    observed = {(row[0], row[2]) for row in report["observed"]}  # type: ignore[attr-defined]
    # Only what the guard lets through, and the second only where the first does not decide.
    assert ("divides", 20.0) in observed or ("divisor", 20.0) in observed
    assert take_report() == {}


def test_what_calls_take_is_shared_by_the_feeds_that_have_them(tmp_path: Path) -> None:
    world = World(
        """register operator slow(by int) from 'tests.operators.functions:slowly_divides';
        create feed F1 from T where slow(2);
        create feed F2 from T where n > 4 and slow(2) and not divides(7);
        create feed F3 from T where slow(3);
        create feed F4 from T where divides(5);"""
    )
    path = str(write_source_plan(tmp_path, world.source_plan()))

    def costs_without(*dropped: str) -> dict[str, int]:
        world.found([path], list(dropped))
        numbers = np.array([world.number_of[name] for name in dropped], np.int32)
        costs = costs_of_plans([path], numbers, world.setup)
        return {name: costs.get(str(number), 0) for name, number in world.number_of.items()}

    costs = costs_without()
    assert costs["F1"] >= 30 * 2_000 / 2
    assert costs["F2"] >= 30 * 2_000 / 2
    assert costs["F3"] >= 30 * 2_000
    assert costs["F4"] < costs["F3"] / 4
    assert costs_of_plans([path], np.zeros(0, np.int32), world.setup) == {}  # taken once
    # What only suspended feeds have is not called; who is left pays alone.
    costs = costs_without("F2", "F3")
    assert costs["F1"] >= 30 * 2_000
    assert costs["F2"] == costs["F3"] == 0


SHARED = "".join(
    f"create feed F{k} from T where divides({k}) and divides(7);" for k in (1, 2, 3, 4, 5)
)
"""All clauses share their last literal, which is seldom true."""


def evaluations(order: str, folder: Path) -> float:
    """How many pairs of a predicate and an item a worker with this order evaluates."""
    world = World(SHARED, replace(RULES, order=order))
    path = str(write_source_plan(folder, world.source_plan()))
    take_report()
    found = world.found([path], [])
    assert found == {name: sorted(ids, key=int) for name, ids in world.expected().items()}
    observed = take_report()["observed"]
    return sum(row[2] for row in observed)  # type: ignore[attr-defined]


def test_a_worker_evaluates_by_the_order_that_was_chosen(tmp_path: Path) -> None:
    """Five literals and then the shared one, for 30 items; the adaptive order begins with it."""
    counts = {order: evaluations(order, tmp_path) for order in EVALUATION_ORDERS}
    assert counts["naive"] > 90 + 30
    assert counts["adaptive"] < 30 + 5 * 5 + 5
    assert counts["sequential"] > counts["adaptive"]
    assert RULES.order == "adaptive"
    assert evaluations(RULES.order, tmp_path) == counts["adaptive"]


def test_an_operator_that_fails_is_no_match_and_is_counted(tmp_path: Path) -> None:
    take_report()
    world = World("create feed F from T where divides(0); create feed F1 from T where n > 27;")
    found = world.found([str(write_source_plan(tmp_path, world.source_plan()))], [])
    assert found == {"F": [], "F1": ["28", "29"]}
    failures = take_report()["failures"]
    assert failures["divides"]["counts"] == {"raised": 30}  # type: ignore[index]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("clauses", [5]),
        ("clause_start", [0]),
        ("tests.owner", [7]),
        ("tests.predicates", [9]),
        ("tests.clause_start", [0, 9]),
        ("tests.joint", [3]),
        ("tests.subscriptions", [-1]),
    ],
)
def test_a_file_with_wrong_numbers_is_refused(name: str, wrong: list[int], tmp_path: Path) -> None:
    plan = World("create feed F from T where n > 3 and divides(2);").source_plan()
    snapshot = open_arrays(write_source_plan(tmp_path, plan))
    assert name in snapshot.arrays
    arrays = {**snapshot.arrays, name: np.array(wrong, snapshot.arrays[name].dtype)}
    with pytest.raises(SnapshotError, match="holds no sound source plan"):
        open_source_plan(write_arrays(tmp_path, arrays, dict(snapshot.metadata)))
