"""A whole run of posted events and Kafka topics, with a restart and a topic created again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from bench.running.logged import count_ids
from tests.pipeline.sources.kafka_broker import KafkaBroker
from tests.pipeline.spark_session import spark
from tests.pipeline.waiting import until

from headgate.api.posting import PostBox
from headgate.catalog.catalog import Catalog
from headgate.deliver.settings import DeliverySettings
from headgate.language.parse import parse_script
from headgate.pipeline.run import Run
from headgate.pipeline.run_context import RunSettings
from headgate.pipeline.status import status_of

pytestmark = pytest.mark.integration


def make_run(path: Path, catalog: Catalog, **options: str) -> Run:
    deliver = DeliverySettings(path, path)
    settings = RunSettings(path / "data", deliver, base=path, options=options)
    return Run(catalog, spark(), settings)


def test_posted_events_are_stored_once(tmp_path: Path) -> None:
    with Catalog.open(str(tmp_path / "catalog.db")) as catalog:
        catalog.apply(parse_script("register stream Alerts from post (id text, level int);"))
        box = PostBox(catalog, tmp_path / "data")
        box.post("Alerts", [{"id": f"a{n}", "level": n} for n in range(10)])
        for start in (10, 20):
            with make_run(tmp_path, catalog) as run:
                run.start()
                box.post("Alerts", [{"id": f"a{n}", "level": n} for n in range(start, start + 10)])
                until(lambda start=start: len(count_ids(tmp_path / "data", "Alerts")) == start + 10)
                assert status_of(run).errors == {}
    assert count_ids(tmp_path / "data", "Alerts") == Counter({f"a{n}": 1 for n in range(30)})


def test_topics_are_stored_once(tmp_path: Path) -> None:
    with (
        KafkaBroker(tmp_path / "kafka") as broker,
        Catalog.open(str(tmp_path / "catalog.db")) as catalog,
    ):
        broker.create("clicks")
        script = f"register stream Clicks from kafka '{broker.path('clicks')}' (n int);"
        catalog.apply(parse_script(script + "create feed Small from Clicks where n < 5;"))
        count = 0
        for is_created_again in (False, True):
            with make_run(tmp_path, catalog, brokers=broker.address) as run:
                run.start()
                for number in range(2):
                    if is_created_again and number:
                        broker.recreate("clicks")
                    broker.send("clicks", [b'{"n": %d}' % n for n in range(10)])
                    count += 10
                    until(lambda count=count: len(count_ids(tmp_path / "data", "Clicks")) == count)
    assert set(count_ids(tmp_path / "data", "Clicks").values()) == {1}
    assert count == 40
