"""Kafka through Spark, against librdkafka's in-process broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from tests.pipeline.sources.streams import Collected, streaming, uncommit, wait_for

from headgate.acquire.rejected import read_rejected
from headgate.acquire.source_list import ListedSource, write_source_list
from headgate.model.errors import PipelineError
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.pipeline.sources import kafka_topics
from headgate.pipeline.sources.kafka_source import KafkaSource
from headgate.pipeline.sources.kafka_topics import kafka_problems, topic_of

SCHEMA = Schema((Attribute("n", Type.INT), Attribute("title", Type.TEXT)))


class Broker:
    """The producer hosts the broker: it lives as long as the producer does."""

    def __init__(self) -> None:
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": "none:1", "test.mock.num.brokers": 1}
        )
        (broker,) = self._producer.list_topics(timeout=10).brokers.values()
        self.address = f"{broker.host}:{broker.port}"

    def send(self, topic: str, values: list[bytes | None], partition: int = 0) -> None:
        for value in values:
            self._producer.produce(topic, value=value, partition=partition)
        assert self._producer.flush(10) == 0

    def path(self, topic: str) -> str:
        return f"kafka://{self.address}/{topic}"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    return Broker()


def numbers(start: int, count: int) -> list[bytes]:
    return [json.dumps({"n": n, "title": f"t{n}"}).encode() for n in range(start, start + count)]


def options(folder: Path, broker: Broker, **more: str) -> dict[str, str]:
    given = {
        "list": str(folder / "sources.json"),
        "folder": str(folder / "state"),
        "brokers": broker.address,
        "poll_s": "0.05",
        "rows_max": "1000",
    }
    return given | more


def listed(broker: Broker, name: str, topic: str) -> ListedSource:
    return ListedSource(name, broker.path(topic), "stream", "kafka")


def test_messages_arrive_once_over_restarts_and_replays(tmp_path: Path, broker: Broker):
    sources = [listed(broker, "First", "first"), ListedSource("Bad", "kafka://other:1/x")]
    write_source_list(tmp_path / "sources.json", SCHEMA, sources)
    broker.send("first", numbers(0, 2_000))
    broker.send("first", [b"poison", None, b'{"n": "x"}', b'{"n":\n 1}'], partition=1)
    collected, checkpoint = Collected(), tmp_path / "checkpoint"

    with streaming(KafkaSource, options(tmp_path, broker), checkpoint, collected):
        wait_for(lambda: len(collected.ids()) == 2_001)
        broker.send("second", numbers(5_000, 10))
        sources.append(listed(broker, "Second", "second"))
        write_source_list(tmp_path / "sources.json", SCHEMA, sources)
        wait_for(lambda: len(collected.ids()) == 2_011)
        problems = kafka_problems(tmp_path / "state")

    uncommit(checkpoint)
    broker.send("first", numbers(2_000, 10))
    with streaming(KafkaSource, options(tmp_path, broker), checkpoint, collected):
        wait_for(lambda: len(collected.ids()) == 2_021)
    assert collected.replayed
    assert all(before.equals(after) for before, after in collected.replayed)
    found = {each.id: each for each in collected.items(SCHEMA)}
    assert len(found) == 2_021
    assert {found[f"first:0:{n}"].attributes["n"] for n in range(2_010)} == set(range(2_010))
    assert found["second:0:3"].attributes == {"n": 5_003, "title": "t5003"}
    assert found["second:0:3"].source == "Second"
    assert found["first:1:3"].attributes == {"n": 1}
    rejected = [(each.file, each.line, each.text) for each in read_rejected([tmp_path / "state"])]
    assert sorted(rejected) == [
        ("first:1", 0, "poison"),
        ("first:1", 1, ""),
        ("first:1", 2, '{"n": "x"}'),
    ]
    assert list(problems) == ["Bad"]
    assert "option 'brokers'" in problems["Bad"]


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("kafka://host:1", "is no topic"),
        ("http://host:1/x", "is no topic"),
        ("kafka://host:1/a/b", "is no topic"),
        ("kafka://host:1,evil:2/a", "'evil:2' is not among the brokers"),
    ],
)
def test_a_path_that_is_no_topic_or_not_allowed_is_refused(path: str, error: str):
    with pytest.raises(PipelineError, match=error):
        topic_of(path, brokers=["host:1"])
    assert topic_of("kafka://any:1/x", brokers=["*"]).name == "x"


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kafka_topics, "confluent_kafka", None)
    with pytest.raises(PipelineError, match=r"pip install 'headgate\[kafka\]'"):
        KafkaSource({}).streamReader(None)
