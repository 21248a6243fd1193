"""Kafka through Spark's connector, against a real broker: restarts, losses, new topics."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from tests.pipeline.sources.kafka_broker import KafkaBroker
from tests.pipeline.sources.streams import Collected, wait_for
from tests.pipeline.sources.test_kafka_avro import written as avro_value
from tests.pipeline.sources.test_kafka_protobuf import described, shop_file
from tests.pipeline.sources.test_kafka_protobuf import written as protobuf_value
from tests.pipeline.spark_session import spark

from headgate.acquire.rejected import Rejected, read_rejected
from headgate.acquire.source_list import ListedSource
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.pipeline.queries import KeptQuery
from headgate.pipeline.sources.kafka_source import KafkaGroup, KafkaQuery, KafkaTopics
from headgate.pipeline.sources.kafka_topics import TopicSource, checkpoint_offsets, kafka_problems
from headgate.store.data_folder import DataFolder
from headgate.store.whole_files import write_whole

SCHEMA = Schema((Attribute("n", Type.INT), Attribute("title", Type.TEXT)))
GROUP = "kafka.abcdef-0123456789ab"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


def numbers(start: int, count: int) -> list[bytes | None]:
    return [json.dumps({"n": n, "title": f"t{n}"}).encode() for n in range(start, start + count)]


class KafkaRun:
    """What a run does with its Kafka queries, without the rest of a run."""

    def __init__(self, folder: Path, broker: KafkaBroker, schema: Schema = SCHEMA) -> None:
        self.folder = DataFolder(folder).make()
        self.schema = schema
        self.collected: dict[str, Collected] = {}
        options = {"brokers": broker.address}
        self.topics = KafkaTopics(spark(), self.folder, options, base=folder)
        self._kept: dict[str, KeptQuery] = {}
        self._started: dict[str, KafkaQuery] = {}

    def __enter__(self) -> KafkaRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.topics.stop()
        for kept in self._kept.values():
            kept.stop(0.0)

    def follow(self, *sources: ListedSource) -> None:
        self.topics.follow([KafkaGroup(GROUP, self.schema, sources)] if sources else [])

    def step(self) -> None:
        """As `Queries.reconcile`."""
        queries = self.topics.queries()
        for name, started in list(self._started.items()):
            if queries.get(name) != started:
                self._kept[name].stop(0.0)
                del self._started[name]
        for name, query in queries.items():
            self._kept.setdefault(name, KeptQuery()).keep(lambda query=query: self._start(query))

    def _start(self, query: KafkaQuery) -> object:
        frame = self.topics.frame(query)
        self._started[query.name] = query
        collected = self.collected.setdefault(query.name, Collected())
        writer = frame.writeStream.foreachBatch(collected.take)
        checkpoint = self.folder.checkpoints / query.name
        return writer.option("checkpointLocation", str(checkpoint)).start()

    @property
    def checkpoint(self) -> Path:
        (query,) = self._started
        return self.folder.checkpoints / query

    def has_committed(self) -> bool:
        """Whether Spark has committed the last batch."""
        before, is_pending = checkpoint_offsets(self.checkpoint)
        return bool(before) and not is_pending

    def ids(self) -> list[str]:
        return [each for collected in self.collected.values() for each in collected.ids()]

    def values(self, name: str = "n") -> list[object]:
        tables = (t for c in self.collected.values() for t in c.batches.values())
        return sorted(each for table in tables for each in table[name].to_pylist())

    def until(self, count: int) -> None:
        def happened() -> bool:
            self.step()
            return len(self.ids()) >= count

        wait_for(happened)
        assert len(self.ids()) == count

    def rejected(self) -> list[Rejected]:
        return list(read_rejected(self.folder.sources.glob("*")))


def stream(broker: KafkaBroker, topic: str, name: str = "Numbers") -> ListedSource:
    return ListedSource(name, broker.path(topic), "stream", "kafka")


def test_messages_arrive_once_over_restarts_and_new_sources(tmp_path: Path, broker: KafkaBroker):
    broker.create("first", 2)
    broker.create("second")
    broker.send("first", numbers(0, 500))
    broker.send("first", numbers(500, 500), partition=1)
    with KafkaRun(tmp_path, broker) as run:
        run.follow(stream(broker, "first"))
        run.until(1_000)
        broker.send("second", numbers(1_000, 100))
        run.follow(stream(broker, "first"), stream(broker, "second", "More"))
        run.until(1_100)
        collected = run.collected
    broker.send("first", numbers(1_100, 50))
    with KafkaRun(tmp_path, broker) as run:
        run.collected = collected
        run.follow(stream(broker, "first"), stream(broker, "second", "More"))
        run.until(1_150)
        assert run.values() == list(range(1_150))
        assert len(set(run.ids())) == 1_150
        assert list(run.collected) == [GROUP], "topics of one schema share a query"


def test_a_poisonous_message_is_rejected_with_its_place(tmp_path: Path, broker: KafkaBroker):
    broker.create("poison")
    broker.send("poison", [*numbers(0, 5), b'{"n": "x"}', b"\xff{", None, *numbers(5, 5)])
    with KafkaRun(tmp_path, broker) as run:
        run.follow(stream(broker, "poison"))
        run.until(10)
        wait_for(lambda: len(run.rejected()) == 3)
        found = {each.line: each for each in run.rejected()}
    assert sorted(found) == [5, 6, 7]
    assert found[5].file == "poison:0"
    assert "expected an int" in found[5].error
    assert found[7].error == "the message has no value"


def test_metadata_are_attributes(tmp_path: Path, broker: KafkaBroker):
    schema = Schema(
        (
            Attribute("n", Type.INT),
            Attribute("kafka_key", Type.TEXT),
            Attribute("kafka_headers", Type.TEXT),
            Attribute("kafka_offset", Type.INT),
            Attribute("kafka_timestamp", Type.TIMESTAMP),
        )
    )
    broker.create("meta")
    broker.send("meta", numbers(7, 1), keys=[b"k"], headers={"h": b"v"})
    with KafkaRun(tmp_path, broker, schema) as run:
        run.follow(stream(broker, "meta"))
        run.until(1)
        (item,) = next(iter(run.collected.values())).items(schema)
    assert item.attributes["n"] == 7
    assert item.attributes["kafka_key"] == "k"
    assert item.attributes["kafka_headers"] == '{"h": "v"}'
    assert item.attributes["kafka_offset"] == 0
    assert item.attributes["kafka_timestamp"] == item.time


def test_a_tombstone_deletes_the_row_of_its_key(tmp_path: Path, broker: KafkaBroker):
    schema = Schema(
        (Attribute("id", Type.INT, key=True), Attribute("v", Type.TEXT), Attribute("op", Type.TEXT))
    )
    broker.create("rows")
    values: list[bytes | None] = [b'{"id": 1, "v": "a"}', None, None, None]
    broker.send("rows", values, keys=[b"1", b"1", b'{"id": 2}', b"x"])
    table = ListedSource("Rows", broker.path("rows"), "table", "kafka", changes="op")
    with KafkaRun(tmp_path, broker, schema) as run:
        run.follow(table)
        run.until(3)
        items = next(iter(run.collected.values())).items(schema)
        wait_for(lambda: len(run.rejected()) == 1)
        assert run.rejected()[0].line == 3
    assert [each.attributes for each in items] == [
        {"id": 1, "v": "a"},
        {"id": 1, "op": "tombstone"},
        {"id": 2, "op": "tombstone"},
    ]
    assert len({each.id for each in items}) == 3


def test_a_topic_created_again_is_read_from_its_beginning(tmp_path: Path, broker: KafkaBroker):
    broker.create("again")
    broker.create("steady")
    broker.send("again", numbers(0, 20))
    broker.send("steady", numbers(100, 10))
    sources = stream(broker, "again"), stream(broker, "steady", "Steady")
    with KafkaRun(tmp_path, broker) as run:
        run.follow(*sources)
        run.until(30)
        broker.recreate("again")
        broker.send("again", numbers(20, 5))
        broker.send("steady", numbers(110, 10))
        run.until(45)
        broker.send("again", numbers(25, 30))
        broker.send("steady", numbers(120, 10))
        run.until(85)
        assert run.values() == [*range(55), *range(100, 130)]
        assert len(set(run.ids())) == 85
        assert len(run.collected) == 2, "the new topic has a query of its own"


def test_expired_messages_are_reported_and_reading_goes_on(tmp_path: Path, broker: KafkaBroker):
    broker.create("expired")
    broker.send("expired", numbers(0, 10))
    with KafkaRun(tmp_path, broker) as run:
        run.follow(stream(broker, "expired"))
        run.until(10)
        wait_for(run.has_committed)
    broker.send("expired", numbers(10, 10))
    broker.delete_before("expired", 15)
    with KafkaRun(tmp_path, broker) as run:
        run.follow(stream(broker, "expired"))
        run.until(5)
        assert run.values() == list(range(15, 20))
        (lost,) = run.rejected()
        assert (lost.file, lost.line) == ("expired:0", 10)
        assert "10 to 14" in lost.error


def test_messages_that_expire_before_their_first_batch_is_committed(
    tmp_path: Path, broker: KafkaBroker
):
    broker.create("pending")
    broker.send("pending", numbers(0, 10))
    with KafkaRun(tmp_path, broker) as run:
        run.follow(stream(broker, "pending"))
        run.until(10)
        wait_for(run.has_committed)
        commits = run.checkpoint / "commits"
    for each in commits.iterdir():  # as if the driver had died before
        each.unlink()
    broker.send("pending", numbers(10, 10))
    broker.delete_before("pending", 15)
    with KafkaRun(tmp_path, broker) as run:
        run.follow(stream(broker, "pending"))
        run.until(5)
        assert run.values() == list(range(15, 20))
        (lost,) = run.rejected()
        assert "0 to 14" in lost.error


def test_a_broker_that_is_killed_comes_back(tmp_path: Path):
    with KafkaBroker(tmp_path / "kafka") as broker:
        broker.create("kept")
        broker.send("kept", numbers(0, 10))
        with KafkaRun(tmp_path / "run", broker) as run:
            run.follow(stream(broker, "kept"))
            run.until(10)
            broker.kill()
            wait_for(lambda: bool(kafka_problems(run.folder.sources / GROUP)))
            broker.start()
            broker.send("kept", numbers(10, 10))
            run.until(20)
            assert run.values() == list(range(20))
            wait_for(lambda: not kafka_problems(run.folder.sources / GROUP))


def test_sources_that_cannot_be_read_are_told_why(tmp_path: Path, broker: KafkaBroker):
    broker.create("allowed")
    broker.send("allowed", numbers(0, 3))
    sources = (
        stream(broker, "allowed"),
        stream(broker, "none", "None"),
        ListedSource("Other", "kafka://10.0.0.1:9092/x", "stream", "kafka"),
    )
    with KafkaRun(tmp_path, broker) as run:
        run.follow(*sources)
        run.until(3)
        problems = kafka_problems(run.folder.sources / GROUP)
    assert "does not host" in problems["None"]
    assert "--brokers" in problems["Other"]
    assert "Numbers" not in problems


def test_avro_and_protobuf_values_share_a_query(tmp_path: Path, broker: KafkaBroker):
    """Also with a schema file that changes, breaks, and is missing after a restart."""
    schema = Schema((Attribute("number", Type.INT), Attribute("title", Type.TEXT)))
    fields = [{"name": "number", "type": "int"}, {"name": "title", "type": "string"}]
    avro: dict[str, object] = {"type": "record", "name": "Click", "fields": fields}
    wider = {**avro, "fields": [*fields, {"name": "more", "type": "boolean"}]}

    def save(content: object) -> None:
        write_whole(tmp_path / "click.avsc", json.dumps(content).encode())

    save(avro)
    (tmp_path / "shop.desc").write_bytes(described(shop_file()))
    for topic in ("avro", "protobuf"):
        broker.create(topic)
    prefix = b"\0\0\0\0\7"
    broker.send("avro", [avro_value(avro, {"number": 1, "title": "é"}), b"\2", b"{}"])
    broker.send("protobuf", [protobuf_value({"number": 2, "title": "b"}), prefix + b"\2\4"])
    sources = (
        replace(stream(broker, "avro"), value_format="avro", value_schema="click.avsc"),
        replace(
            stream(broker, "protobuf", "Other"),
            value_format="protobuf",
            value_schema="shop.desc",
            value_message="shop.Click",
        ),
    )
    with KafkaRun(tmp_path, broker, schema) as run:
        run.follow(*sources)
        run.until(2)
        assert run.values("title") == ["b", "é"]
        wait_for(lambda: len(run.rejected()) == 3)
        places = {(each.source, each.file, each.line) for each in run.rejected()}
        assert places == {
            ("Numbers", "avro:0", 1),
            ("Numbers", "avro:0", 2),
            ("Other", "protobuf:0", 1),
        }
        save(wider)
        wait_for(lambda: wider_is_used(run, wider))
        broker.send("avro", [prefix + avro_value(wider, {"number": 3, "title": "", "more": True})])
        run.until(3)
        (tmp_path / "click.avsc").write_text("{")
        wait_for(lambda: "no JSON" in kafka_problems(run.folder.sources / GROUP).get("Numbers", ""))
        broker.send("avro", [avro_value(wider, {"number": 4, "title": "", "more": True})])
        run.until(4)
        collected = run.collected
    (tmp_path / "click.avsc").unlink()
    broker.send("avro", [avro_value(wider, {"number": 5, "title": "", "more": True})])
    with KafkaRun(tmp_path, broker, schema) as run:
        run.collected = collected
        run.follow(*sources)
        run.until(5)
        assert run.values("number") == [1, 2, 3, 4, 5]
        assert list(run.collected) == [GROUP]


def wider_is_used(run: KafkaRun, avro: object) -> bool:
    run.step()
    queries = run.topics.queries().values()
    contents = [each.values.content for query in queries for each in query.sources if each.values]
    return json.dumps(avro).encode() in contents


def query_of(broker: KafkaBroker, topic: str) -> KafkaQuery:
    source = TopicSource("Numbers", "stream", "", topic, "AAAAAAAAxx")
    return KafkaQuery(GROUP, broker.address, SCHEMA, (source,))


def read_now(frame: DataFrame, checkpoint: Path, sizes: list[tuple[int, int]]) -> None:
    """All that is there now; the rows and tasks of each batch."""

    def take(rows: DataFrame, _batch: int) -> None:
        counts = rows.rdd.mapPartitions(lambda part: [sum(1 for _ in part)]).collect()
        sizes.append((sum(counts), len(counts)))

    writer = frame.writeStream.foreachBatch(take).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    assert query.awaitTermination(120)


def test_large_partitions_are_split_and_a_checkpoint_goes_on(tmp_path: Path, broker: KafkaBroker):
    """The limits on batches and tasks hold, also in a query that stops when it has read all."""
    broker.create("large")
    broker.send("large", numbers(0, 1_000))
    folder = DataFolder(tmp_path).make()
    options = {"brokers": broker.address, "rows_max": "400", "partition_rows": "100"}
    sizes: list[tuple[int, int]] = []
    for count in (0, 10):
        topics = KafkaTopics(spark(), folder, options)
        broker.send("large", numbers(1_000, count))
        read_now(topics.frame(query_of(broker, "large")), tmp_path / "checkpoint", sizes)
        topics.stop()
    assert sizes == [(400, 4), (400, 4), (200, 2), (10, 1)]


def test_a_strict_query_ends_where_messages_are_gone(tmp_path: Path, broker: KafkaBroker):
    broker.create("strict")
    broker.send("strict", numbers(0, 10))
    topics = KafkaTopics(spark(), DataFolder(tmp_path).make(), {"brokers": broker.address})
    frame = topics.frame(query_of(broker, "strict"))
    sizes: list[tuple[int, int]] = []
    read_now(frame, tmp_path / "checkpoint", sizes)
    broker.send("strict", numbers(10, 10))
    broker.delete_before("strict", 15)
    with pytest.raises(StreamingQueryException, match=r"(?i)some data may have been lost"):
        read_now(frame, tmp_path / "checkpoint", sizes)
    topics.stop()
    assert sizes == [(10, 1)]


def test_the_version_of_the_connector_is_logged(
    tmp_path: Path, broker: KafkaBroker, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.INFO), KafkaRun(tmp_path, broker) as run:
        run.follow(stream(broker, "nowhere"))
    assert f"with Spark {spark().version}" in caplog.text
    assert "Kafka connector 4." in caplog.text
