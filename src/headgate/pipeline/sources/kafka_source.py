"""Kafka topics as a streaming source: `spark.readStream.format("headgate_kafka")`.

A message is one item, its value a JSON object. A partition of a topic is a partition of the
micro-batch, read by offset: no consumer group, and nothing is committed to Kafka, as Spark's
checkpoint knows what was read. What is no item is rejected, as from files (rejected.py).

    option      default   what
    list                  the list file (source_list.py)
    folder                where what was rejected is kept
    brokers               'host:port, …' that may be connected to, or '*' for any
    starting    earliest  or latest: where a source begins that was just registered
    poll_s      0.2       between two looks at how far the topics go
    rows_max    200000    in a micro-batch
    kafka.…               settings of librdkafka, such as kafka.security.protocol

Ids are 'topic:partition:offset', unless the schema has an id or a key (item_rows.py). The time is
that of the message where the item does not state one.
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
    Known,
    Offsets,
    Range,
    first_offset,
    messages,
    next_offsets,
    ranges,
    require_kafka,
    topic_of,
    watermarks,
    write_problems,
)
from headgate.pipeline.sources.source_format import Options, spark_columns

log = logging.getLogger(__name__)

PREFIX = "kafka."


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


class OffsetRange(InputPartition):
    def __init__(self, part: Range) -> None:
        super().__init__(f"{part.source} {part.partition}: {part.start} to {part.end}")
        self.part = part


class KafkaReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark makes several of them. Only the one that is asked for offsets looks at the topics."""

    def __init__(self, options: Options, schema: Schema) -> None:
        self._options = options
        self._schema = schema
        self._folder = options.path("folder")
        self._rows_max = options.whole("rows_max", 200_000)
        self._brokers = brokers_of(options)
        self._settings = {
            key[len(PREFIX) :]: value
            for key, value in options.given.items()
            if key.startswith(PREFIX)
        }
        starting = options.text("starting", "earliest")
        if starting not in ("earliest", "latest"):
            raise PipelineError(f"option 'starting' is earliest or latest, not '{starting}'")
        self._from_latest = starting == "latest"
        self._watching: _Watching | None = None
        self._until: Known | None = None

    def initialOffset(self) -> Offsets:
        return {}

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        watching = self._watched()
        return next_offsets(
            start,
            watching.sources,
            watching.known if self._until is None else self._until,
            now_us=int(time.time() * 1e6),
            rows_max=limit.max_rows if isinstance(limit, ReadMaxRows) else None,
            from_latest=self._from_latest,
        )

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._rows_max)

    def prepareForTriggerAvailableNow(self) -> None:
        watching = self._watched()
        watching.look()
        self._until = watching.known

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[OffsetRange]:
        kinds = {each.name: each.kind for each in self._watched().sources}
        return [OffsetRange(each) for each in ranges(start, end, kinds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, OffsetRange)
        consumers = Consumers(self._settings)
        try:
            yield from read_range(
                partition.part, consumers, self._schema, self._folder, brokers=self._brokers
            )
        finally:
            consumers.close()

    def stop(self) -> None:
        if self._watching is not None:
            self._watching.close()
            self._watching = None

    def _watched(self) -> _Watching:
        if self._watching is None:
            self._watching = _Watching(self._options, self._settings)
        return self._watching


def brokers_of(options: Options) -> tuple[str, ...]:
    return tuple(each.strip() for each in options.text("brokers", "").split(",") if each.strip())


def read_range(
    part: Range,
    consumers: Consumers,
    schema: Schema,
    folder: Path,
    *,
    brokers: Sequence[str],
) -> Iterator[pa.RecordBatch]:
    """The rows of these messages; what is rejected is kept when the last row has been read."""
    topic = topic_of(part.path, brokers=brokers)
    columns = SourceColumns(part.source, part.kind, schema)
    place = f"{topic.name}:{part.partition}"
    rejects = Rejects(part.source, place)
    first = first_offset(consumers, topic, part.partition)
    if first > part.start:
        gone = min(first, part.end) - 1
        rejects.add(part.start, f"offsets {part.start} to {gone} are no longer in the topic")
    if first < part.end:
        for batch in messages(consumers, topic, part, start=max(first, part.start)):
            rows = _rows(batch, columns, rejects, place, part.taken_us)
            if rows.num_rows:
                yield rows
    rejects.write(folder, _rejected_name(part))


def _rejected_name(part: Range) -> str:
    digest = hashlib.sha256(f"{part.source}\0{part.path}".encode()).hexdigest()[:12]
    return f"{digest}-{part.partition}-{part.start}"


def _rows(
    found: Sequence[KafkaMessage],
    columns: SourceColumns,
    rejects: Rejects,
    place: str,
    taken_us: int,
) -> pa.RecordBatch:
    values = [each.value for each in found if each.value is not None]
    times = {each.offset: _time_us(each, taken_us) for each in found}
    quick = None
    if len(values) == len(found) and not any(b"\n" in each for each in values):
        quick = read_quickly(b"\n".join(values), columns)
    if quick is not None:
        attributes, offsets = quick, [each.offset for each in found]
    else:
        builder = RowBuilder(columns, rejects)
        for each in found:
            if each.value is None:
                rejects.add(each.offset, "the message has no value")
            else:
                add_json(builder, rejects, each.offset, each.value)
        attributes, offsets = builder.take()
    taken = pa.array([times[each] for each in offsets], pa.int64()).cast(OWN[TIME])
    return columns.rows(attributes, places_of(place, pa.array(offsets, pa.int64())), taken)


def _time_us(message: KafkaMessage, taken_us: int) -> int:
    """When the message was sent; a time in the future is not believed."""
    return taken_us if message.time_us is None else min(message.time_us, taken_us)


class _Watching:
    """A thread that asks the brokers how far their topics go."""

    def __init__(self, options: Options, settings: Mapping[str, str]) -> None:
        self.sources: tuple[ListedSource, ...] = ()
        self.known: Known = {}
        self._folder = options.path("folder")
        self._brokers = brokers_of(options)
        self._pause_s = options.number("poll_s", 0.2, least=0.01)
        self._list = WatchedList(options.path("list"))
        self._consumers = Consumers(settings)
        self._problems: dict[str, str] | None = None
        self._one_at_a_time = threading.Lock()
        self._stopped = threading.Event()
        self._read_list()
        self._thread = threading.Thread(target=self._work, name="watch-kafka", daemon=True)
        self._thread.start()

    def look(self) -> None:
        with self._one_at_a_time:
            self._read_list()
            problems: dict[str, str] = {}
            known: dict[str, Mapping[int, tuple[int, int]]] = {}
            for source in self.sources:
                try:
                    topic = topic_of(source.path, brokers=self._brokers)
                    known[source.name] = watermarks(self._consumers, topic)
                except PipelineError as error:
                    problems[source.name] = str(error)
            self.known = known
            if problems != self._problems:
                write_problems(self._folder, problems)
                self._problems = problems

    def close(self) -> None:
        self._stopped.set()
        self._thread.join(10.0)
        if not self._thread.is_alive():
            self._consumers.close()

    def _read_list(self) -> None:
        listed = self._list.changed()
        if listed is not None:
            self.sources = listed.sources

    def _work(self) -> None:
        while not self._stopped.is_set():
            try:
                self.look()
            except (HeadgateError, OSError) as error:
                log.error("%s", error)
            except Exception:
                log.exception("the topics cannot be looked at")
            self._stopped.wait(self._pause_s)
