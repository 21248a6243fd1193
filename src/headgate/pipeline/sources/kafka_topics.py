"""Kafka topics: how sources name them, what the brokers say about them, and their identity.

A topic that is deleted and created again has the same name, and its offsets begin at 0 again. So a
topic is identified by the id that the brokers give it (`topicId`). The first id that is seen of a
topic is stored in `topics.json` of its group; a topic with another id later is another topic, which
a query of its own reads from the beginning (kafka_source.py).

The brokers are asked through the Java client that Spark's connector brings along, so that all its
settings (`kafka.security.protocol`, SASL, TLS) hold here too.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from headgate.model.errors import PipelineError, printable
from headgate.model.schema import Schema
from headgate.model.values import Type, with_article
from headgate.pipeline.sources.kafka_fields import SchemaFile
from headgate.store.whole_files import write_whole

PREFIX = "kafka."
REQUEST_S = 5
_PATH = re.compile(r"kafka://([A-Za-z0-9._\-\[\]:,]{1,500})/([A-Za-z0-9._-]{1,249})")
METADATA: dict[str, tuple[Type, ...]] = {
    "kafka_key": (Type.TEXT, Type.BYTES),
    "kafka_value": (Type.TEXT, Type.BYTES),
    "kafka_headers": (Type.TEXT,),
    "kafka_topic": (Type.TEXT,),
    "kafka_partition": (Type.INT,),
    "kafka_offset": (Type.INT,),
    "kafka_timestamp": (Type.TIMESTAMP,),
}
"""Attributes that come from the message and not from its value, and the types they may have."""
Partition = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True, slots=True)
class Topic:
    brokers: str
    name: str


@dataclass(frozen=True, slots=True)
class TopicSource:
    """A source, and the topic that it reads."""

    source: str
    kind: str
    changes: str
    """The attribute that says what happened to a row of a table; empty if there is none."""
    topic: str
    topic_id: str
    values: SchemaFile | None = None
    """The schema of the values, if they are no JSON."""

    @property
    def place(self) -> str:
        """The beginning of the ids of its items. Eight characters of the topic's id distinguish
        the topics that had this name one after the other.

        >>> TopicSource("Clicks", "stream", "", "clicks", "Bvfm2XZwTBOzM3aIyRZnbQ").place
        'clicks#Bvfm2XZw'
        """
        return f"{self.topic}#{self.topic_id[:8]}"


def topic_of(path: str) -> Topic:
    """The topic of a path; an error if the path is malformed.

    >>> topic_of("kafka://localhost:9092/events")
    Topic(brokers='localhost:9092', name='events')
    """
    match = _PATH.fullmatch(path)
    if match is None:
        raise PipelineError(f"'{path}' is no topic; write it as 'kafka://host:port/topic'")
    return Topic(match[1], match[2])


def check_brokers(topic: Topic, allowed: Sequence[str]) -> None:
    """Without this anybody who registers a source could have the run connect to any machine."""
    for broker in topic.brokers.split(","):
        if broker not in allowed and "*" not in allowed:
            raise PipelineError(
                f"'{broker}' is not among the brokers that may be connected to; "
                "the operator of the run allows it with --brokers"
            )


def check_metadata(schema: Schema) -> None:
    for attribute in schema.attributes:
        types = METADATA.get(str(attribute.name))
        if types and attribute.type not in types:
            raise PipelineError(
                f"'{attribute.name}' of a Kafka source is {with_article(types[0])}, "
                f"not {with_article(attribute.type)}"
            )


def value_attributes(schema: Schema) -> Schema:
    """The attributes that come from the value of a message."""
    return Schema(tuple(each for each in schema.attributes if str(each.name) not in METADATA))


def connection_hash(brokers: str) -> str:
    """A short name for these brokers, part of the name of a group."""
    return hashlib.sha256(brokers.encode()).hexdigest()[:6]


def client_settings(options: Mapping[str, str]) -> dict[str, str]:
    """The options that begin with 'kafka.', with secrets read from where they are.

    A value `env:NAME` is that of an environment variable, `file:PATH` the content of a file; so no
    secret needs to be in a command line or in a file of settings.
    """
    chosen = {key: value for key, value in options.items() if key.startswith(PREFIX)}
    return {key: _secret(key, value) for key, value in chosen.items()}


def _secret(key: str, value: str) -> str:
    kind, _, where = value.partition(":")
    if kind == "env":
        if where not in os.environ:
            raise PipelineError(f"option '{key}': there is no environment variable {where}")
        return os.environ[where]
    if kind == "file":
        try:
            return Path(where).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise PipelineError(f"option '{key}': '{where}' cannot be read: {error}") from None
    return value


# --- asking the brokers ---------------------------------------------------------------------------


class TopicAdmin:
    """One Java client per list of brokers. For one thread at a time."""

    def __init__(self, session: SparkSession, settings: Mapping[str, str]) -> None:
        self._jvm: Any = session.sparkContext._jvm
        self._settings = settings
        self._clients: dict[str, Any] = {}

    def close(self) -> None:
        for client in self._clients.values():
            client.close(self._jvm.java.time.Duration.ofSeconds(1))
        self._clients.clear()

    def topic_ids(
        self, brokers: str, topics: Iterable[str]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """The ids of those topics that exist, and for each of the others the reason."""
        names = self._jvm.java.util.ArrayList()
        for topic in topics:
            names.add(topic)
        ids: dict[str, str] = {}
        problems: dict[str, str] = {}
        futures = self._client(brokers).describeTopics(names).topicNameValues()
        for topic in topics:
            try:
                ids[topic] = str(self._result(futures.get(topic)).topicId().toString())
            except Py4JJavaError as error:
                problems[topic] = f"topic '{topic}' at {brokers}: {cause_of(error)}"
        return ids, problems

    def offsets(self, brokers: str, topics: Iterable[str]) -> dict[Partition, tuple[int, int]]:
        """The first offset that each partition still has, and its end."""
        client = self._client(brokers)
        names = self._jvm.java.util.ArrayList()
        for topic in topics:
            names.add(topic)
        try:
            described = self._result(client.describeTopics(names).allTopicNames())
            partitions = [
                (topic, int(each.partition()))
                for topic in topics
                for each in described.get(topic).partitions()
            ]
            earliest = self._list_offsets(client, partitions, "earliest")
            latest = self._list_offsets(client, partitions, "latest")
        except Py4JJavaError as error:
            raise PipelineError(f"brokers {brokers}: {cause_of(error)}") from None
        return {each: (earliest[each], latest[each]) for each in partitions}

    def _list_offsets(
        self, client: Any, partitions: Sequence[Partition], which: str
    ) -> dict[Partition, int]:
        kafka = self._jvm.org.apache.kafka
        wanted = self._jvm.java.util.HashMap()
        keys = {each: kafka.common.TopicPartition(*each) for each in partitions}
        for key in keys.values():
            wanted.put(key, getattr(kafka.clients.admin.OffsetSpec, which)())
        found = self._result(client.listOffsets(wanted).all())
        return {each: int(found.get(key).offset()) for each, key in keys.items()}

    def _client(self, brokers: str) -> Any:
        if brokers not in self._clients:
            settings = self._jvm.java.util.HashMap()
            settings.put("request.timeout.ms", str(REQUEST_S * 1_000 - 500))
            settings.put("default.api.timeout.ms", str(REQUEST_S * 1_000))
            for key, value in self._settings.items():
                settings.put(key.removeprefix(PREFIX), value)
            settings.put("bootstrap.servers", brokers)
            try:
                client = self._jvm.org.apache.kafka.clients.admin.Admin.create(settings)
            except Py4JJavaError as error:
                raise PipelineError(f"brokers {brokers}: {cause_of(error)}") from None
            self._clients[brokers] = client
        return self._clients[brokers]

    def _result(self, future: Any) -> Any:
        return future.get(REQUEST_S + 1, self._jvm.java.util.concurrent.TimeUnit.SECONDS)


def cause_of(error: Py4JJavaError) -> str:
    """The innermost message of a Java error."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    name = str(cause.getClass().getSimpleName())
    return printable(f"{cause.getMessage() or name}")[:300]


# --- files ----------------------------------------------------------------------------------------


def write_problems(folder: Path, problems: Mapping[str, str]) -> None:
    write_whole(folder / "problems.json", json.dumps(dict(sorted(problems.items()))).encode())


def kafka_problems(folder: Path) -> dict[str, str]:
    """For each source that cannot be read the reason; readable from any process."""
    return _read_json(folder / "problems.json")


def known_topics(folder: Path) -> dict[str, str]:
    """The id of each topic that the group's own query reads or has read."""
    return _read_json(folder / "topics.json")


def add_known_topics(folder: Path, ids: Mapping[str, str]) -> dict[str, str]:
    """Store the ids of topics that were not known before; returns those of all."""
    known = known_topics(folder)
    new = {topic: id_ for topic, id_ in ids.items() if topic not in known}
    if new:
        known |= new
        write_whole(folder / "topics.json", json.dumps(known, sort_keys=True).encode())
    return known


def _read_json(path: Path) -> dict[str, str]:
    content: dict[str, str] = json.loads(path.read_bytes()) if path.exists() else {}
    return content


def checkpoint_offsets(checkpoint: Path) -> tuple[dict[Partition, int], bool]:
    """Where the next batch of a Spark checkpoint begins, and whether it was planned already.

    An offset file has a line with the version, one with metadata, and one for each source. Where
    the first batch begins is in a file of the source: a zero byte, a line with the version, and
    the offsets.
    """
    planned = _numbered(checkpoint / "offsets")
    committed = _numbered(checkpoint / "commits")
    done = [each for each in planned if each in committed]
    pending = bool(planned) and planned[-1] not in committed
    path = checkpoint / "offsets" / str(done[-1]) if done else checkpoint / "sources" / "0" / "0"
    if not done and not (pending and path.exists()):
        return {}, pending
    offsets = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    return {
        (topic, int(partition)): int(offset)
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
    }, pending


def _numbered(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return sorted(int(each.name) for each in folder.iterdir() if each.name.isdigit())
