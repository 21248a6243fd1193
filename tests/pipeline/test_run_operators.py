"""S1 to S5 of [Operators] through a whole run; operators that fail stop nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.running.logged import logged_rows
from tests.operators.test_city import CITY, FEEDS, ITEMS, naive
from tests.pipeline.spark_session import spark
from tests.pipeline.waiting import until

from headgate.catalog.catalog import Catalog
from headgate.deliver.settings import DeliverySettings
from headgate.language.parse import parse_script
from headgate.pipeline.operator_stage import OperatorRules
from headgate.pipeline.run import Run
from headgate.pipeline.run_context import RunSettings
from headgate.pipeline.status import status_of

pytestmark = pytest.mark.integration

FAILING = """
register operator strange(a text) from 'somebody.elses:module';
register operator divides(divisor int) from 'tests.operators.functions:divides';
create feed Refused from Drones where strange('x');
create feed Failing from Drones where speed >= 0 and divides(2);
create feed Every from Drones;
"""


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(str(tmp_path / "catalog.db")) as opened:
        opened.apply(parse_script((CITY / "city.feeds").read_text(encoding="utf-8") + FAILING))
        for feed in (*FEEDS, "Failing", "Every"):
            text = f"subscribe to {feed} output file '{feed}.json' for 30 days;"
            opened.apply(parse_script(text))
        yield opened


def test_the_city(catalog: Catalog, tmp_path: Path) -> None:
    shutil.copy(CITY / "drones.json", tmp_path)
    settings = RunSettings(
        tmp_path / "data",
        DeliverySettings(tmp_path, tmp_path, items_in_file=1_000),
        base=tmp_path,
        options={"settle_s": "0", "tail_s": "0", "scan_s": "0.05"},
        operators=OperatorRules(("tests.operators",)),
    )

    def delivered(feed: str) -> int:
        path = tmp_path / f"{feed}.json"
        return len(json.loads(path.read_bytes())["items"]) if path.exists() else 0

    with Run(catalog, spark(), settings) as run:
        run.start()
        until(lambda: delivered("Every") == len(ITEMS))
        for feed in FEEDS:
            until(lambda feed=feed: delivered(feed) == len(naive(feed)))
        until(lambda: "operator divides" in status_of(run).errors)
        status, names = status_of(run), run.plans.names
    stored: dict[str, list[str]] = {name: [] for name in names.values()}
    for row in logged_rows(tmp_path / "data"):
        for number in row.feeds:
            stored[names[number]].append(row.id)
    for feed in FEEDS:
        assert sorted(stored[feed]) == sorted(naive(feed))
    assert stored["Failing"] == stored["Refused"] == []
    assert list(status.refused) == ["Refused"]
    assert "'somebody.elses' is not allowed" in status.refused["Refused"]
    # Drones have no number `n`: the operator raises for each, or is left alone after a while.
    assert "failed 80 times" in status.errors["operator divides"]
    asked = {name for name, each in status.operators.items() if each.learned.items}
    assert {"locIn", "mobPattern", "distanceFrom"} <= asked
    kept = json.loads((tmp_path / "data" / "operators.json").read_bytes())
    assert asked <= {row[0] for row in kept["observed"]}
