"""Records reach librdkafka's in-process broker, under the same id at every attempt."""

from __future__ import annotations

import json
from pathlib import Path

import confluent_kafka
import pytest
from tests.deliver.log_world import LogWorld, MemoryCatalog, Sub, news
from tests.deliver.things import settings

from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_worker import DeliveryWorker
from headgate.deliver.errors import OutputError
from headgate.deliver.output_kafka import KafkaOutput, KafkaSettings, checked_topic


def test_items_are_records_with_key_headers_and_the_body_of_a_webhook(tmp_path: Path):
    host = confluent_kafka.Producer({"bootstrap.servers": "none:1", "test.mock.num.brokers": 1})
    (broker,) = host.list_topics(timeout=30).brokers.values()
    brokers = f"{broker.host}:{broker.port}"
    log, catalog = LogWorld(tmp_path), MemoryCatalog()
    catalog.add(Sub(1, "Rock", "kafka", "rock"))
    log.publish(news("n1"), news("n2"))
    given = settings(tmp_path, kafka=KafkaSettings(brokers), round_budget_s=60.0)
    with (
        DeliveryDatabase(str(tmp_path / "deliver.db")) as database,
        DeliveryWorker(log.storage, catalog, database, given) as worker,
    ):
        assert worker.step(log.now).sent == {"kafka": 2}
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": brokers, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["rock"])
    records = consumer.consume(2, timeout=60)
    consumer.close()
    assert sorted(each.key() for each in records) == [b"n1", b"n2"]
    headers = dict(records[0].headers())
    assert (headers["feed"], headers["subscription"]) == (b"Rock", b"1")
    assert headers["message"].startswith(b"msg_")
    assert json.loads(records[0].value())["data"]["items"][0]["source"] == "S"


def test_without_brokers_the_error_says_what_to_do():
    with pytest.raises(OutputError, match="HEADGATE_KAFKA_BROKERS") as caught:
        KafkaOutput(KafkaSettings()).send("t", key="k", value="v", headers={})
    assert caught.value.unreachable


@pytest.mark.parametrize("topic", ["", "a b", "é", ".", "x" * 250])
def test_what_is_no_topic_is_refused_for_good(topic: str):
    with pytest.raises(OutputError) as caught:
        checked_topic(topic)
    assert caught.value.lasting
