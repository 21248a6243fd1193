"""Kafka topics as a streaming source: `spark.readStream.format("headgate_kafka")`.

    watcher thread: watermarks of topics ──► next_offsets     in the planning process
    range of a topic's partition ──► messages ──► rows        in Spark's tasks
                                        └──► rejected messages

A message is one item; its value is a JSON object. Each partition of a topic is a partition of the
micro-batch and is read by offset. There is no consumer group, and no offset is committed to Kafka:
Spark's checkpoint holds the offsets. Messages that are not valid items are rejected and recorded,
as those of files are (acquire/rejected.py).

    option      default   what
    list                  the list file (acquire/source_list.py)
    folder                the folder of rejected messages
    brokers               'host:port, …' that may be connected to, or '*' for any
    starting    earliest  where a new source begins: earliest or latest
    poll_s      0.2       time between two requests for the watermarks
    rows_max    200000    rows of a micro-batch at most
    kafka.…               settings of librdkafka, such as kafka.security.protocol

The id of an item is 'topic:partition:offset', unless the schema has an id or a key
(acquire/item_rows.py). An item without a time has the time of its message.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from headgate.acquire.item_rows import RowBuilder, SourceColumns, places_of
from headgate.acquire.read_json import add_json, read_quickly
from headgate.acquire.rejected import Rejects
from headgate.acquire.source_list import ListedSource, WatchedList, read_source_list
from headgate.match.item_columns import OWN, TIME
from headgate.model.errors import HeadgateError, PipelineError
from headgate.model.schema import Schema
from headgate.pipeline.sources.kafka_topics import (
    Consumers,
    KafkaMessage,
    OffsetRange,
    Offsets,
    Watermarks,
    first_offset,
    next_offsets,
    offset_ranges,
    read_messages,
    read_watermarks,
    require_kafka,
    topic_of,
    write_problems,
)
from headgate.pipeline.sources.source_format import Options, spark_columns

log = logging.getLogger(__name__)

SETTING_PREFIX = "kafka."


class KafkaSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "headgate_kafka"

    def schema(self) -> StructType:
        return spark_columns(read_source_list(Options(self.options).path("list")).schema)

    def streamReader(self, schema: StructType) -> KafkaReader:  # noqa: ARG002
        require_kafka()
        options = Options(dict(self.options))
        return KafkaReader(options, read_source_list(options.path("list")).schema)


class KafkaPartition(InputPartition):
    def __init__(self, span: OffsetRange) -> None:
        super().__init__(f"{span.source} {span.partition}: {span.start} to {span.end}")
        self.span = span


class KafkaReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark creates several readers of a query. Only the one that plans offsets polls topics."""

    def __init__(self, options: Options, schema: Schema) -> None:
        self._options = options
        self._schema = schema
        self._folder = options.path("folder")
        self._rows_max = options.whole("rows_max", 200_000)
        self._brokers = brokers_of(options)
        self._settings = {
            key[len(SETTING_PREFIX) :]: value
            for key, value in options.values.items()
            if key.startswith(SETTING_PREFIX)
        }
        starting = options.text("starting", "earliest")
        if starting not in ("earliest", "latest"):
            raise PipelineError(f"option 'starting' must be earliest or latest, not '{starting}'")
        self._from_latest = starting == "latest"
        self._watcher: _TopicWatcher | None = None
        self._until: Watermarks | None = None

    def initialOffset(self) -> Offsets:
        return {}

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        watcher = self._started()
        return next_offsets(
            start,
            watcher.sources,
            watcher.watermarks if self._until is None else self._until,
            now_us=int(time.time() * 1e6),
            rows_max=limit.max_rows if isinstance(limit, ReadMaxRows) else None,
            from_latest=self._from_latest,
        )

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._rows_max)

    def prepareForTriggerAvailableNow(self) -> None:
        watcher = self._started()
        watcher.poll()
        self._until = watcher.watermarks

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[KafkaPartition]:
        kinds = {source.name: source.kind for source in self._started().sources}
        return [KafkaPartition(span) for span in offset_ranges(start, end, kinds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, KafkaPartition)
        consumers = Consumers(self._settings)
        try:
            yield from read_range(
                partition.span, consumers, self._schema, self._folder, brokers=self._brokers
            )
        finally:
            consumers.close()

    def stop(self) -> None:
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None

    def _started(self) -> _TopicWatcher:
        if self._watcher is None:
            self._watcher = _TopicWatcher(self._options, self._settings)
        return self._watcher


def brokers_of(options: Options) -> tuple[str, ...]:
    names = (name.strip() for name in options.text("brokers", "").split(","))
    return tuple(name for name in names if name)


def read_range(
    span: OffsetRange,
    consumers: Consumers,
    schema: Schema,
    folder: Path,
    *,
    brokers: Sequence[str],
) -> Iterator[pa.RecordBatch]:
    """The rows of a range. Rejected messages are written once the last row has been read."""
    topic = topic_of(span.path, brokers=brokers)
    columns = SourceColumns(span.source, span.kind, schema)
    place = f"{topic.name}:{span.partition}"
    rejects = Rejects(span.source, place)
    first = first_offset(consumers, topic, span.partition)
    if first > span.start:
        last_missing = min(first, span.end) - 1
        reason = f"offsets {span.start} to {last_missing} are no longer in the topic"
        rejects.add(span.start, reason)
    if first < span.end:
        for batch in read_messages(consumers, topic, span, start=max(first, span.start)):
            rows = _rows(batch, columns, rejects, place, span.taken_us)
            if rows.num_rows:
                yield rows
    rejects.write(folder, _rejected_name(span))


def _rejected_name(span: OffsetRange) -> str:
    digest = hashlib.sha256(f"{span.source}\0{span.path}".encode()).hexdigest()[:12]
    return f"{digest}-{span.partition}-{span.start}"


def _rows(
    messages: Sequence[KafkaMessage],
    columns: SourceColumns,
    rejects: Rejects,
    place: str,
    taken_us: int,
) -> pa.RecordBatch:
    """All values are parsed at once if possible, otherwise one by one."""
    values = [message.value for message in messages if message.value is not None]
    times = {message.offset: _time_us(message, taken_us) for message in messages}
    parsed = None
    if len(values) == len(messages) and not any(b"\n" in value for value in values):
        parsed = read_quickly(b"\n".join(values), columns)
    if parsed is not None:
        attributes, offsets = parsed, [message.offset for message in messages]
    else:
        builder = RowBuilder(columns, rejects)
        for message in messages:
            if message.value is None:
                rejects.add(message.offset, "the message has no value")
            else:
                add_json(builder, rejects, message.offset, message.value)
        attributes, offsets = builder.take()
    row_times = pa.array([times[offset] for offset in offsets], pa.int64()).cast(OWN[TIME])
    return columns.rows(attributes, places_of(place, pa.array(offsets, pa.int64())), row_times)


def _time_us(message: KafkaMessage, taken_us: int) -> int:
    """The time of the message, but not later than that of the batch."""
    return taken_us if message.time_us is None else min(message.time_us, taken_us)


class _TopicWatcher:
    """A thread that polls the brokers for the watermarks of all topics."""

    def __init__(self, options: Options, settings: Mapping[str, str]) -> None:
        self.sources: tuple[ListedSource, ...] = ()
        self.watermarks: Watermarks = {}
        self._folder = options.path("folder")
        self._brokers = brokers_of(options)
        self._pause_s = options.number("poll_s", 0.2, least=0.01)
        self._list = WatchedList(options.path("list"))
        self._consumers = Consumers(settings)
        self._problems: dict[str, str] | None = None
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._read_list()
        self._thread = threading.Thread(target=self._work, name="watch-kafka", daemon=True)
        self._thread.start()

    def poll(self) -> None:
        with self._lock:
            self._read_list()
            problems: dict[str, str] = {}
            watermarks: dict[str, Mapping[int, tuple[int, int]]] = {}
            for source in self.sources:
                try:
                    topic = topic_of(source.path, brokers=self._brokers)
                    watermarks[source.name] = read_watermarks(self._consumers, topic)
                except PipelineError as error:
                    problems[source.name] = str(error)
            self.watermarks = watermarks
            if problems != self._problems:
                write_problems(self._folder, problems)
                self._problems = problems

    def close(self) -> None:
        self._stopped.set()
        self._thread.join(10.0)
        if not self._thread.is_alive():
            self._consumers.close()

    def _read_list(self) -> None:
        source_list = self._list.changed()
        if source_list is not None:
            self.sources = source_list.sources

    def _work(self) -> None:
        while not self._stopped.is_set():
            try:
                self.poll()
            except (HeadgateError, OSError) as error:
                log.error("%s", error)
            except Exception:
                log.exception("the topics cannot be polled")
            self._stopped.wait(self._pause_s)
