"""Plans that know of items, and plans made on Spark, give the answers of those that do neither."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.spark_session import spark
from tests.pipeline.test_planner import NOON, matched

from headgate.catalog.catalog import Catalog
from headgate.catalog.statistics import SourceStatistics
from headgate.factor.factorize import Factorized, factorize
from headgate.factor.methods import METHOD_NAMES, METHODS
from headgate.factor.time_budget import TimeBudgetExceeded
from headgate.language.parse import parse_script
from headgate.match.item_columns import group_of, items_to_arrow
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.pipeline import planner as planner_module
from headgate.pipeline import write_plans as write_plans_module
from headgate.pipeline.methods import describe_factorized
from headgate.pipeline.planner import CurrentPlans, Planner
from headgate.pipeline.snapshot import read_snapshot
from headgate.pipeline.source_plan import open_source_plan
from headgate.pipeline.write_plans import sample_of, write_plans_on
from headgate.store.data_folder import DataFolder
from headgate.store.log import Sequencer
from headgate.store.log_state import Origin
from headgate.store.log_view import LogView
from headgate.store.log_writer import LogFileWriter

SOURCES = ("S", "T", "U", "V")


@pytest.fixture
def catalog(tmp_path: Path):
    with Catalog.open(str(tmp_path / "catalog.db")) as opened:
        chance = random.Random(1)
        script = [f"register stream {each} from json 's' (a int, b int);" for each in SOURCES]
        for number in range(600):
            low, high = sorted(chance.sample(range(12), 2))
            script.append(
                f"create feed F{number} from {SOURCES[number % 4]} where a >= {low} and a < {high} "
                f"and b != {chance.randrange(4)};"
            )
        opened.apply(parse_script("".join(script)))
        yield opened


def store_items(folder: DataFolder, planned: CurrentPlans, source: str, count: int) -> None:
    schema = planned.schemas[source]
    items = [Item(str(n), source, NOON, {"a": n % 12, "b": n % 5}) for n in range(count)]
    writer = LogFileWriter(folder.storage, f"files-{group_of(schema)}")
    writer.write(items_to_arrow(items, schema), {})
    assert Sequencer(folder.storage).commit(Origin("files", str(count)), writer.close())


def test_a_layer_is_planned_again_when_something_is_known(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner_module, "INFORM_MIN", 100)
    planner = Planner(catalog, DataFolder(tmp_path / "data").make())
    first = planner.update()
    assert [each.informed for each in first.snapshot.layers] == [False]
    assert planner.merge() is first
    catalog.record_statistics([SourceStatistics("S", 1_000, 60.0, {"a >= 3": 10, "b != 1": 900})])
    second = planner.merge()
    assert [each.informed for each in second.snapshot.layers] == [True]
    assert second.snapshot.layers[0].plans["S"] != first.snapshot.layers[0].plans["S"]
    assert planner.merge() is second
    for source in SOURCES:
        assert matched(second, source) == matched(first, source)


def test_items_of_the_store_are_a_sample(catalog: Catalog, tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data").make()
    planned = Planner(catalog, DataFolder(tmp_path / "other").make()).update()
    assert sample_of(LogView(folder), "S", planned.schemas["S"]) is None
    store_items(folder, planned, "S", 200)
    assert sample_of(LogView(folder), "S", planned.schemas["S"]) is None, "too few"
    store_items(folder, planned, "S", 300)
    sample = sample_of(LogView(folder), "S", planned.schemas["S"])
    assert sample is not None
    assert sample.size == 500
    assert sample_of(LogView(folder), "T", planned.schemas["T"]) is None
    assert sample_of(LogView(folder), "S", Schema((Attribute("c", Type.INT),))) is None
    informed = Planner(catalog, folder).update()
    assert [each.informed for each in informed.snapshot.layers] == [True]
    for source in SOURCES:
        assert matched(informed, source) == matched(planned, source)


def forest_sizes(planned: CurrentPlans) -> dict[str, int]:
    plans = planned.snapshot.layers[0].plans
    opened = {source: open_source_plan(planned.path.with_name(plans[source])) for source in SOURCES}
    return {source: plan.program.forest.node_row.size for source, plan in opened.items()}


def test_filters_are_factorised_by_the_method_that_was_chosen(
    catalog: Catalog, tmp_path: Path
) -> None:
    """Each source has over 100 distinct filters of three clauses, of which many are shared."""
    planned = {
        method: Planner(catalog, DataFolder(tmp_path / method).make(), factorize=method).update()
        for method in METHOD_NAMES
    }
    unknown = "by prefix-by-use: nothing is known of its items yet"
    (layer,) = planned["auto"].snapshot.layers
    counts = {source: layer.methods[source].split()[0] for source in SOURCES}
    assert min(map(int, counts.values())) > 100
    assert layer.methods == {source: f"{counts[source]} filters {unknown}" for source in SOURCES}
    for method in METHODS:
        (layer,) = planned[method].snapshot.layers
        text = f"filters by {method}: method {method} was requested"
        assert layer.methods == {source: f"{counts[source]} {text}" for source in SOURCES}
        for source in SOURCES:
            assert matched(planned[method], source) == matched(planned["auto"], source)
    sizes = {method: forest_sizes(each)["S"] for method, each in planned.items()}
    assert sizes["naive"] > sizes["sta"] > sizes["prefix-by-use"]
    assert sizes["auto"] == sizes["prefix-by-use"]
    assert describe_factorized(DataFolder(tmp_path / "vcb"))[0] == (
        f"S: {counts['S']} filters by vcb: method vcb was requested"
    )


def test_auto_says_what_it_has_compared(catalog: Catalog, tmp_path: Path) -> None:
    catalog.record_statistics([SourceStatistics("S", 1_000, 60.0, {"a >= 3": 10, "b != 1": 900})])
    (layer,) = Planner(catalog, DataFolder(tmp_path).make()).update().snapshot.layers
    assert "expected node visits for a batch, the fewest of 4 methods" in layer.methods["S"]
    assert layer.methods["T"].endswith("nothing is known of its items yet")


def test_layers_of_another_method_are_planned_again(catalog: Catalog, tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data").make()
    before = Planner(catalog, folder).update()
    planner = Planner(catalog, folder, factorize="vcb")
    assert planner.update().snapshot.layers[0].plans == before.snapshot.layers[0].plans
    after = planner.merge()
    assert "by vcb" in after.snapshot.layers[0].methods["S"]
    assert planner.merge() is after, "and once only"
    assert Planner(catalog, folder, factorize="vcb").merge().path == after.path


def test_a_method_that_takes_too_long_is_replaced(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*args: Any, method: str = "auto", **options: Any) -> Factorized:
        if method == "vca":
            raise TimeBudgetExceeded("vca did not end within 10 s")
        return factorize(*args, method=method, **options)

    monkeypatch.setattr(write_plans_module, "factorize", slow)
    (layer,) = (
        Planner(catalog, DataFolder(tmp_path).make(), factorize="vca").update().snapshot.layers
    )
    text = layer.methods["S"]
    assert "vca did not end within 10 s; " in text
    assert "filters by vca" not in text


def test_snapshots_of_earlier_versions_were_factorised_automatically(
    catalog: Catalog, tmp_path: Path
) -> None:
    planned = Planner(catalog, DataFolder(tmp_path).make(), factorize="vcb").update()
    content = json.loads(planned.path.read_bytes())
    for layer in content["layers"]:
        del layer["factorize"], layer["methods"]
    encoded = json.dumps(content, separators=(",", ":")).encode()
    path = planned.path.with_name(hashlib.sha256(encoded).hexdigest()[:32] + ".snapshot.json")
    path.write_bytes(encoded)
    (layer,) = read_snapshot(path).layers
    assert (layer.factorize, layer.methods) == ("auto", {})
    assert layer.plans == planned.snapshot.layers[0].plans


@pytest.mark.integration
def test_many_sources_are_planned_on_spark(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Planner(catalog, DataFolder(tmp_path / "here").make()).update()
    monkeypatch.setattr(write_plans_module, "ON_SPARK_FILTERS", 100)
    jobs: list[int] = []

    def write(folder: DataFolder, tasks: list[write_plans_module.PlanTask]):
        jobs.append(len(tasks))
        return write_plans_on(spark(), folder, tasks)

    there = Planner(catalog, DataFolder(tmp_path / "there").make(), write=write).update()
    assert jobs == [4]
    assert there.snapshot.layers[0].plans == here.snapshot.layers[0].plans
    for name in there.snapshot.layers[0].plans.values():
        assert open_source_plan(there.path.with_name(name)).program.subscription_count > 0
