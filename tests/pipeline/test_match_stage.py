"""The match stage gives the same on Spark, in one process, and by the naive evaluator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.match.drawn import drawn
from tests.match.strategies import NOON, SCHEMA, filters, items
from tests.pipeline.spark_session import spark

from headgate.match.item_columns import STORED_AS
from headgate.model.errors import SnapshotError
from headgate.model.evaluate import matches
from headgate.model.filters import Filter
from headgate.model.items import Item
from headgate.pipeline.match_stage import MatchConfig, match_stage, matched_schema
from headgate.pipeline.source_plan import source_plan, write_source_plan
from headgate.plan.leaves import FilterUsers

SOURCES = ("s1", "s2", "unknown")
Answers = dict[tuple[str, str], tuple[list[int], list[int]]]


@pytest.fixture(scope="module")
def asked() -> dict[str, list[Filter]]:
    found = list(dict.fromkeys(drawn(filters, 80)))
    return {"s1": found[::2], "s2": found[1::2]}


@pytest.fixture(scope="module")
def plans(
    asked: dict[str, list[Filter]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    """Every third filter is asked for by two feeds, and every fifth by one that looks further."""
    folder = tmp_path_factory.mktemp("plans")
    paths = {}
    for source, own in asked.items():
        leaves = {filter_: FilterUsers(*_askers(at)) for at, filter_ in enumerate(own)}
        number_of = {str(n): n for n in range(1_000)}
        plan = source_plan(source, SCHEMA, leaves, number_of=number_of)
        paths[source] = [str(write_source_plan(folder, plan))]
    return paths


def _askers(at: int) -> tuple[list[str], list[str]]:
    feeds = [str(at), str(500 + at)] if at % 3 == 0 else [str(at)]
    return feeds, [str(at)] if at % 5 == 0 else []


@pytest.fixture(scope="module")
def some() -> list[Item]:
    found = drawn(items, 300)
    return [
        Item(str(at), SOURCES[at % 7 % 3], NOON, item.attributes) for at, item in enumerate(found)
    ]


def table_of(some: list[Item]) -> pa.Table:
    columns = {
        "@source": pa.array([item.source for item in some]),
        "@id": pa.array([item.id for item in some]),
        "@time": pa.array([item.time for item in some], pa.timestamp("us", tz="UTC")),
    }
    for each in SCHEMA.attributes:
        values = [item.attributes.get(each.name) for item in some]
        columns[str(each.name)] = pa.array(values, STORED_AS[each.type])
    return pa.table(columns)


def answers(found: pa.Table) -> Answers:
    rows = found.select(["@source", "@id", "@feeds", "@inner"]).to_pylist()
    return {
        (row["@source"], row["@id"]): (sorted(row["@feeds"]), sorted(row["@inner"])) for row in rows
    }


@pytest.fixture(scope="module")
def expected(asked: dict[str, list[Filter]], some: list[Item]) -> Answers:
    found: Answers = {}
    for item in some:
        own = [at for at, each in enumerate(asked.get(item.source, [])) if matches(each, item)]
        feeds = sorted(int(name) for at in own for name in _askers(at)[0])
        inner = sorted(int(name) for at in own for name in _askers(at)[1])
        if feeds or inner:
            found[item.source, item.id] = feeds, inner
    return found


@pytest.mark.parametrize("rows", [1, 7, 64, 4_096])
def test_in_one_process(
    plans: dict[str, list[str]], some: list[Item], expected: Answers, rows: int
) -> None:
    table = table_of(some)
    found = list(match_stage(MatchConfig(plans))(table.to_batches(max_chunksize=rows)))
    assert answers(pa.Table.from_batches(found)) == expected
    assert all(batch.schema == matched_schema(table.schema) for batch in found)


@pytest.mark.integration
@pytest.mark.parametrize("partitions", [1, 5])
def test_on_spark(
    plans: dict[str, list[str]], some: list[Item], expected: Answers, partitions: int
) -> None:
    frame = spark().createDataFrame(table_of(some)).repartition(partitions)
    schema = ", ".join(f"`{name}` {kind}" for name, kind in frame.dtypes)
    found = frame.mapInArrow(
        match_stage(MatchConfig(plans)), f"{schema}, `@feeds` array<int>, `@inner` array<int>"
    )
    assert answers(found.toArrow()) == expected


def test_only_some_columns_go_on(
    plans: dict[str, list[str]], some: list[Item], expected: Answers
) -> None:
    found = list(
        match_stage(MatchConfig(plans, keep=["@id", "@source"]))(table_of(some).to_batches())
    )
    assert found[0].schema.names == ["@id", "@source", "@feeds", "@inner"]
    assert answers(pa.Table.from_batches(found)) == expected


def test_several_plans_of_a_source_are_as_one(
    asked: dict[str, list[Filter]], some: list[Item], expected: Answers, tmp_path: Path
) -> None:
    """Whatever feed is in which plan, and though some feeds are dropped."""
    layers: dict[str, list[str]] = {}
    number_of = {str(n): n for n in range(1_000)}
    for source, own in asked.items():
        for part in range(3):
            leaves = {
                each: FilterUsers(*_askers(at)) for at, each in enumerate(own) if at % 3 == part
            }
            plan = source_plan(source, SCHEMA, leaves, number_of=number_of)
            layers.setdefault(source, []).append(str(write_source_plan(tmp_path, plan)))
    table = table_of(some)
    found = list(match_stage(MatchConfig(layers))(table.to_batches(max_chunksize=64)))
    assert answers(pa.Table.from_batches(found)) == expected

    dropped = np.array([0, 1, 2, 5, 501], np.int32)
    everything = MatchConfig(layers, dropped, every=True)
    found = list(match_stage(everything)(table.to_batches(max_chunksize=64)))
    kept = answers(pa.Table.from_batches(found))
    gone = set(dropped.tolist())
    assert len(kept) == len(some)
    assert kept == {
        (item.source, item.id): tuple(
            [each for each in numbers if each not in gone]
            for numbers in expected.get((item.source, item.id), ([], []))
        )
        for item in some
    }


def test_nothing_in_nothing_out(plans: dict[str, list[str]]) -> None:
    assert list(match_stage(MatchConfig(plans))([])) == []
    assert list(match_stage(MatchConfig(plans))(table_of([]).to_batches(max_chunksize=5))) == []


def test_a_plan_that_is_gone_is_an_error_that_names_it(some: list[Item], tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.headgate")
    with pytest.raises(SnapshotError, match="gone"):
        list(match_stage(MatchConfig({"s1": [gone]}))(table_of(some).to_batches()))
