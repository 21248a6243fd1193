"""Messages as rows, however they are cut into batches and partitions; without Spark or a broker."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.pipeline.sources.kafka_messages import SENT, TAKEN, Message, batches

from headgate.acquire.rejected import read_rejected
from headgate.acquire.source_list import ListedSource
from headgate.match.item_columns import items_from_arrow
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.pipeline.sources.kafka_rows import read_messages
from headgate.pipeline.sources.kafka_source import KafkaGroup, kafka_queries
from headgate.pipeline.sources.kafka_topics import TopicSource, client_settings

SCHEMA = Schema((Attribute("n", Type.INT), Attribute("kafka_key", Type.TEXT)))
SOURCES = (
    TopicSource("A", "stream", "", "a", "AAAAAAAAxx"),
    TopicSource("B", "stream", "", "b", "BBBBBBBBxx"),
    TopicSource("A2", "stream", "", "a", "AAAAAAAAxx"),
)
VALUES = st.one_of(
    st.none(),
    st.binary(max_size=6),
    st.sampled_from([b"{}", b"[]", b" {} ", b"{}\r", b"null", b'{"n":null}', b'{"n":1.5}', b"{"]),
    st.builds(
        lambda n: json.dumps({"n": n}).encode(), st.one_of(st.integers(0, 9), st.text(max_size=2))
    ),
)
MESSAGES = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(0, 1),
        st.one_of(st.none(), st.binary(max_size=3)),
        VALUES,
    ),
    max_size=30,
)


def obvious(messages: list[Message]) -> tuple[list[Item], int]:
    items, rejected = [], 0
    for offset, (topic, partition, key, value) in enumerate(messages):
        for source in (each for each in SOURCES if each.topic == topic):
            try:
                read = json.loads((value or b"").decode())
            except ValueError:
                read = "wrong"
            n = read.get("n") if isinstance(read, dict) else "wrong"
            if n is not None and not isinstance(n, int):
                rejected += 1
                continue
            attributes: dict[str, object] = {} if n is None else {"n": n}
            with contextlib.suppress(UnicodeDecodeError):
                attributes |= {} if key is None else {"kafka_key": key.decode()}
            id_ = f"{topic}#{source.topic_id[:8]}:{partition}:{offset}"
            items.append(Item(id_, source.source, SENT, attributes))
    return items, rejected


@settings(max_examples=150, deadline=None)
@example(messages=[("a", 0, None, b'{"n": 0}'), ("a", 0, None, b"")], size=2)
@example(messages=[("a", 0, None, b"{}"), ("a", 0, None, b'{"":1}')], size=2)
@given(messages=MESSAGES, size=st.integers(1, 30))
def test_every_message_becomes_an_item_or_is_rejected(messages: list[Message], size: int) -> None:
    with TemporaryDirectory() as folder:
        stage = read_messages(SOURCES, SCHEMA, Path(folder))
        found = [
            item
            for rows in stage(batches(messages, size))
            for item in items_from_arrow(rows, SCHEMA)
        ]
        rejected = list(read_rejected([Path(folder)]))
    items, count = obvious(messages)
    assert sorted(found, key=repr) == sorted(items, key=repr)
    assert len(rejected) == count


def test_a_message_from_the_future_has_the_time_of_its_batch(tmp_path: Path) -> None:
    (batch,) = batches([("a", 0, None, b'{"n": 1}')], 1)
    late = batch.set_column(
        5, "timestamp", pa.array([datetime(2099, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    )
    (rows,) = read_messages(SOURCES[:1], SCHEMA, tmp_path)([late])
    assert [each.time for each in items_from_arrow(rows, SCHEMA)] == [TAKEN]


def test_a_topic_with_another_id_has_a_query_of_its_own() -> None:
    listed = tuple(
        ListedSource(name.upper(), f"kafka://h:1/{name}", "stream", "kafka") for name in "abc"
    )
    group = KafkaGroup("kafka.0a1b2c-0123456789ab", SCHEMA, listed)
    first, second = kafka_queries(group, {"a": "1", "b": "9"}, {"a": "1", "b": "2", "c": "3"})
    assert (first.name, first.topics) == (group.name, ("a",))
    assert second.topics == ("b",)
    assert second.name != group.name
    assert second.name.endswith("-0123456789ab")
    (again,) = kafka_queries(group, {"b": "9"}, {"b": "2"})
    assert again == second


def test_secrets_are_read_from_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    options = {"kafka.a": "plain", "kafka.b": f"file:{tmp_path / 'secret'}", "brokers": "x"}
    assert client_settings(options) == {"kafka.a": "plain", "kafka.b": "s3cret"}
