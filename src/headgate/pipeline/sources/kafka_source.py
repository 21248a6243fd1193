"""Kafka topics as a streaming source, by Spark's own connector.

    sources of one schema at the same brokers      one query (a group)
    ┌────────────┐
    │ topic a    │   subscribe = a,b ──► kafka connector ──► read_messages ──► rows of items
    │ topic b    │                        offsets: Spark's      (tasks)
    └────────────┘
    topic b, created again: another query, from its beginning

A thread (`KafkaTopics`) asks the brokers for the ids of all topics every two seconds, and decides
from them which queries there should be (`kafka_queries`). A query whose topics have changed is
started again, and goes on from its checkpoint; a new topic is read from its beginning.

**What is lost is reported, and reading goes on.** A query starts strict (`failOnDataLoss`): where
messages are missing, Spark ends it. It is started again after a pause, and then its checkpoint is
compared with what the brokers have. What is gone is recorded among the rejected messages, with
topic, partition and offsets; the query is then started so that it skips the gap, and made strict
again once it is past it. A topic with another id is never taken for the old one: its items have
other ids.

    option             default    what
    brokers                       the brokers that sources may name, separated by commas, or '*'
    kafka.*                       settings of Kafka's client: security.protocol, sasl.*, ssl.*;
                                  values 'env:NAME' and 'file:PATH' are read from there
    starting           earliest   where a new query starts: earliest or latest
    rows_max           200000     messages of a micro-batch at most
    partition_rows                messages of a task at most; by default the fourth part of what a
                                  core would get of the largest batch, at least 5,000

Rejected: one query for all topics of all schemas, because rows of different columns would have to
be packed; a Python source over librdkafka, which was here before, because it had neither the
connector's cached consumers nor its splitting of large partitions.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import current_timestamp

from headgate.acquire.rejected import Rejects
from headgate.acquire.source_list import ListedSource
from headgate.model.errors import HeadgateError, PipelineError
from headgate.model.schema import Schema
from headgate.pipeline.sources.kafka_fields import SchemaFile
from headgate.pipeline.sources.kafka_rows import COLUMNS, HEADERS, read_messages
from headgate.pipeline.sources.kafka_topics import (
    Partition,
    TopicAdmin,
    TopicSource,
    add_known_topics,
    check_brokers,
    checkpoint_offsets,
    client_settings,
    connection_hash,
    topic_of,
    write_problems,
)
from headgate.pipeline.sources.kafka_values import current_schema
from headgate.pipeline.sources.source_format import Options, spark_columns
from headgate.pipeline.spark_jars import MISSING, connector_version, has_connector
from headgate.store.data_folder import DataFolder

log = logging.getLogger(__name__)

WATCH_S = 2.0
POLL_MS = 30_000
"""A task fails, and Spark repeats it, if a message of its range does not come for this long."""


@dataclass(frozen=True, slots=True)
class KafkaGroup:
    """Sources with the same schema at the same brokers."""

    name: str
    schema: Schema
    sources: tuple[ListedSource, ...]

    @property
    def brokers(self) -> str:
        return topic_of(self.sources[0].path).brokers


@dataclass(frozen=True, slots=True)
class KafkaQuery:
    """What one streaming query reads. One that differs from what runs replaces it."""

    name: str
    brokers: str
    schema: Schema
    sources: tuple[TopicSource, ...]
    restarts: int = 0
    """How often it was started again to be strict."""

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(sorted({each.topic for each in self.sources}))


def kafka_queries(
    group: KafkaGroup,
    ids: Mapping[str, str],
    known: Mapping[str, str],
    schemas: Mapping[str, SchemaFile] | None = None,
) -> list[KafkaQuery]:
    """The queries of a group: one for all topics with the id that is known, and one for each topic
    with another id. `ids` are those of the topics at the brokers now, and `schemas` those of
    sources whose values are no JSON."""
    queries: dict[str, KafkaQuery] = {}
    for listed in group.sources:
        topic = topic_of(listed.path).name
        if topic not in ids:
            continue
        values = (schemas or {}).get(listed.name)
        source = TopicSource(listed.name, listed.kind, listed.changes, topic, ids[topic], values)
        name = group.name
        if ids[topic] != known.get(topic, ids[topic]):
            schema = group.name.rpartition("-")[2]
            name = f"kafka.{connection_hash(f'{group.brokers} {topic} {ids[topic]}')}-{schema}"
        query = queries.get(name) or KafkaQuery(name, group.brokers, group.schema, ())
        queries[name] = replace(query, sources=(*query.sources, source))
    return list(queries.values())


class KafkaTopics:
    """Which Kafka queries there should be, and their DataFrames. `queries` and `follow` return at
    once; `frame` asks the brokers, for some seconds at most."""

    def __init__(
        self,
        session: SparkSession,
        folder: DataFolder,
        options: Mapping[str, str],
        *,
        base: Path | None = None,
    ) -> None:
        """`base` is the folder of the schema files."""
        self._session, self._folder = session, folder
        self._base = None if base is None else base.absolute()
        self._options = Options(options)
        self._groups: tuple[KafkaGroup, ...] = ()
        self._queries: dict[str, KafkaQuery] = {}
        self._lossy: set[str] = set()
        """Queries that were started so that they skip what is gone."""
        self._restarts: dict[str, int] = {}
        self._ids: dict[tuple[str, str], str] = {}
        """The last known id of each topic, by brokers and name."""
        self._admin: TopicAdmin | None = None
        self._lock = threading.Lock()
        self._wake, self._stopped = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def follow(self, groups: Iterable[KafkaGroup]) -> None:
        """These are the groups from now on."""
        self._groups = tuple(groups)
        if self._groups and self._thread is None:
            _log_connector(self._session)
            self._thread = threading.Thread(target=self._work, name="kafka-topics", daemon=True)
            self._thread.start()
        self._wake.set()

    def queries(self) -> dict[str, KafkaQuery]:
        return self._queries

    def stop(self) -> None:
        self._stopped.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(15.0)
        with self._lock:
            if self._admin is not None:
                self._admin.close()
                self._admin = None

    def frame(self, query: KafkaQuery) -> DataFrame:
        """The rows of a query that is about to start."""
        folder = self._folder.sources / query.name
        with self._lock:
            gone = self._what_is_gone(query)
        for source in query.sources:
            _record_loss(source, gone, folder)
        if gone is not None:
            self._lossy.add(query.name)
        reader = self._session.readStream.format("kafka").options(**self._reader_options(query))
        messages = reader.option("failOnDataLoss", str(gone is None).lower()).load()
        names = [*COLUMNS, *([HEADERS] if _wants_headers(query.schema) else [])]
        messages = messages.withColumn("taken", current_timestamp()).select(*names)
        stage = read_messages(query.sources, query.schema, folder.absolute())
        return messages.mapInArrow(stage, spark_columns(query.schema))

    def _reader_options(self, query: KafkaQuery) -> dict[str, str]:
        rows_max = self._options.whole("rows_max", 200_000)
        cores = self._session.sparkContext.defaultParallelism
        share = max(rows_max // (4 * cores), 5_000)
        starting = self._options.text("starting", "earliest")
        if starting not in ("earliest", "latest"):
            raise PipelineError(f"option 'starting' must be earliest or latest, not '{starting}'")
        return {
            **client_settings(self._options.values),
            "kafka.bootstrap.servers": query.brokers,
            "subscribe": ",".join(query.topics),
            "startingOffsets": starting,
            "maxOffsetsPerTrigger": str(rows_max),
            "maxRecordsPerPartition": str(self._options.whole("partition_rows", share)),
            "kafkaConsumer.pollTimeoutMs": str(POLL_MS),
            "includeHeaders": str(_wants_headers(query.schema)).lower(),
        }

    # What the brokers have

    def _what_is_gone(self, query: KafkaQuery) -> dict[Partition, tuple[int, int]] | None:
        """The ranges of offsets that the query should read and the brokers do not have; None if
        nothing is missing. An error if a topic was created again."""
        before, is_pending = checkpoint_offsets(self._folder.checkpoints / query.name)
        if not before and not is_pending:
            return None
        ids, _ = self._client().topic_ids(query.brokers, query.topics)
        if any(ids.get(each.topic, each.topic_id) != each.topic_id for each in query.sources):
            self._wake.set()
            raise PipelineError("a topic was created again; it will be read from its beginning")
        offsets = self._client().offsets(
            query.brokers, [each for each in query.topics if each in ids]
        )
        left_out = {each for each in before if each not in offsets}
        return gone_offsets(before, offsets) or ({} if left_out else None)

    def _client(self) -> TopicAdmin:
        if self._admin is None:
            self._admin = TopicAdmin(self._session, client_settings(self._options.values))
        return self._admin

    # The thread

    def _work(self) -> None:
        while not self._stopped.is_set():
            self._wake.clear()
            try:
                self._look()
            except (HeadgateError, Py4JError, OSError) as error:
                log.error("Kafka topics: %s", error)
            except Exception:
                log.exception("the topics cannot be looked at")
            self._wake.wait(WATCH_S)

    def _look(self) -> None:
        queries: dict[str, KafkaQuery] = {}
        for group in self._groups:
            folder = self._folder.sources / group.name
            problems, readable = self._readable(group)
            schemas, readable = self._schemas(readable, problems)
            if readable.sources and has_connector(self._session):
                topics = sorted({topic_of(each.path).name for each in readable.sources})
                ids = self._topic_ids(readable, topics, problems)
                known = add_known_topics(folder, ids)
                found = kafka_queries(readable, ids, known, schemas)
                queries |= {each.name: self._strict_again(each) for each in found}
            write_problems(folder, problems)
        self._queries = queries

    def _readable(self, group: KafkaGroup) -> tuple[dict[str, str], KafkaGroup]:
        """For each source that cannot be read the reason, and the group without them."""
        allowed = [each.strip() for each in self._options.text("brokers", "").split(",")]
        problems: dict[str, str] = {}
        if not has_connector(self._session):
            problems = {each.name: MISSING for each in group.sources}
        for source in group.sources:
            try:
                check_brokers(topic_of(source.path), [each for each in allowed if each])
            except PipelineError as error:
                problems[source.name] = str(error)
        sources = tuple(each for each in group.sources if each.name not in problems)
        return problems, replace(group, sources=sources)

    def _schemas(
        self, group: KafkaGroup, problems: dict[str, str]
    ) -> tuple[dict[str, SchemaFile], KafkaGroup]:
        """The schemas of values that are no JSON, and the group without sources that lack one."""
        schemas: dict[str, SchemaFile] = {}
        folder = self._folder.sources / group.name
        for source in (each for each in group.sources if each.value_format):
            schema, problem = current_schema(source, group.schema, base=self._base, folder=folder)
            if schema is not None:
                schemas[source.name] = schema
            if problem:
                problems[source.name] = problem
        sources = (each for each in group.sources if not each.value_format or each.name in schemas)
        return schemas, replace(group, sources=tuple(sources))

    def _topic_ids(
        self, group: KafkaGroup, topics: Sequence[str], problems: dict[str, str]
    ) -> dict[str, str]:
        """The ids of the topics: as the brokers say, else the last known ones. A topic that is
        missing for a moment keeps its place, since a query that is started without it forgets its
        offsets."""
        brokers = group.brokers
        with self._lock:
            if self._stopped.is_set():
                return {}
            try:
                ids, failed = self._client().topic_ids(brokers, topics)
            except (PipelineError, Py4JError) as error:
                ids, failed = {}, dict.fromkeys(topics, str(error))
        self._ids |= {(brokers, topic): id_ for topic, id_ in ids.items()}
        for source in group.sources:
            if (topic := topic_of(source.path).name) in failed:
                problems[source.name] = failed[topic]
        last_known = {
            topic: self._ids[brokers, topic] for topic in topics if (brokers, topic) in self._ids
        }
        return last_known | ids

    def _strict_again(self, query: KafkaQuery) -> KafkaQuery:
        """Start a query again that skipped what was gone, once it is past it."""
        if query.name in self._lossy:
            with self._lock:
                before, is_pending = checkpoint_offsets(self._folder.checkpoints / query.name)
                if before and not is_pending and self._what_is_gone(query) is None:
                    self._lossy.discard(query.name)
                    self._restarts[query.name] = self._restarts.get(query.name, 0) + 1
        return replace(query, restarts=self._restarts.get(query.name, 0))


def gone_offsets(
    before: Mapping[Partition, int], offsets: Mapping[Partition, tuple[int, int]]
) -> dict[Partition, tuple[int, int]]:
    """The ranges that the brokers do not have, of partitions that were read up to `before`.

    >>> gone_offsets({("a", 0): 5, ("a", 1): 5}, {("a", 0): (9, 20), ("a", 1): (0, 5)})
    {('a', 0): (5, 9)}
    """
    gone: dict[Partition, tuple[int, int]] = {}
    for partition, start in before.items():
        if partition not in offsets:
            continue
        earliest, latest = offsets[partition]
        if earliest > start:
            gone[partition] = start, earliest
        elif latest < start:
            gone[partition] = latest, start
    return gone


def _record_loss(
    source: TopicSource, gone: Mapping[Partition, tuple[int, int]] | None, folder: Path
) -> None:
    for (topic, partition), (first, end) in (gone or {}).items():
        if topic != source.topic:
            continue
        rejects = Rejects(source.source, f"{topic}:{partition}")
        rejects.add(first, f"the offsets {first} to {end - 1} are not in the topic any more")
        digest = hashlib.sha256(f"{source.source}\0{source.place}".encode()).hexdigest()[:12]
        rejects.write(folder, f"lost-{digest}-{partition}-{first}-{end}")


def _log_connector(session: SparkSession) -> None:
    """Once in a run: an operator should know if the connector is not that of Spark."""
    if has_connector(session):
        version = connector_version(session)
        level = logging.INFO if version == session.version else logging.WARNING
        log.log(level, "Kafka connector %s with Spark %s", version or "?", session.version)


def _wants_headers(schema: Schema) -> bool:
    return schema.get("kafka_headers") is not None
