"""A whole run of a Kafka source that is registered with an Avro schema of the base folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.running.logged import count_ids
from tests.pipeline.sources.kafka_broker import KafkaBroker
from tests.pipeline.sources.test_kafka_avro import written
from tests.pipeline.spark_session import spark
from tests.pipeline.waiting import until

from headgate.catalog.catalog import Catalog
from headgate.deliver.settings import DeliverySettings
from headgate.language.parse import parse_script
from headgate.pipeline.run import Run
from headgate.pipeline.run_context import RunSettings
from headgate.pipeline.status import status_of

pytestmark = pytest.mark.integration

AVRO = {
    "type": "record",
    "name": "Click",
    "fields": [
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "n", "type": "int"},
    ],
}


def test_a_schema_of_the_base_folder_is_used(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    with (
        KafkaBroker(tmp_path / "kafka") as broker,
        Catalog.open(str(tmp_path / "catalog.db")) as catalog,
    ):
        broker.create("clicks")
        path = broker.path("clicks")
        script = f"register stream Clicks from kafka '{path}' avro 'click.avsc' (n int);"
        catalog.apply(parse_script(script + "create feed Small from Clicks where n < 5;"))
        broker.send("clicks", [written(AVRO, {"tags": ["a"], "n": n}) for n in range(10)])
        settings = RunSettings(
            tmp_path / "data",
            DeliverySettings(tmp_path, tmp_path),
            base=base,
            options={"brokers": broker.address},
        )
        with Run(catalog, spark(), settings) as run:
            run.start()
            until(lambda: "no such file" in str(status_of(run)))
            (base / "click.avsc").write_text(json.dumps(AVRO))
            until(lambda: len(count_ids(tmp_path / "data", "Clicks")) == 10)
    assert set(count_ids(tmp_path / "data", "Clicks").values()) == {1}
