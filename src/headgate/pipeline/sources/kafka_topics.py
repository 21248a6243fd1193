"""Kafka topics: which brokers are allowed, the messages of a range, and the offsets of a query.

The package confluent-kafka is optional: `pip install 'headgate[kafka]'`.

**Allowed brokers.** librdkafka connects to any address that it is given. So only brokers that the
operator has allowed are connected to (option `brokers`). A source that names another one is not
read, and the status shows the reason.

**Offsets of a query.** For each source the path of its topic, and for each partition the next
offset to read:

    {"Events": {"path": "kafka://host:9092/events", "0": 17, "1": 3}, "@": {"taken_us": …}}

A new source or partition has a position in the end offset of a batch but none in its start offset.
That batch only *introduces* it and reads nothing of it; the next batch reads from there. So the
position at which reading begins is in the checkpoint before anything is read, and a replay begins
at the same position.

`taken_us` is the time at which the batch was planned. It is a part of the offset so that a replay
has the same time. It changes only together with a position; otherwise each poll would start a
batch.

A dropped source is removed from the offsets: if it is registered again, it begins anew. So does a
partition whose end is before the position read so far, as the topic must have been recreated.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.acquire.source_list import ListedSource
from headgate.model.errors import PipelineError
from headgate.store.whole_files import write_whole

try:
    import confluent_kafka
except ImportError:  # pragma: no cover
    confluent_kafka = None  # type: ignore[assignment]

_PATH = re.compile(r"kafka://([A-Za-z0-9._\-\[\]:,]{1,500})/([A-Za-z0-9._-]{1,249})")
MESSAGES_AT_ONCE = 10_000
REQUEST_S = 5.0
SILENCE_S = 30.0
"""A task fails, and Spark retries it, if no message of its range arrives for this long."""


@dataclass(frozen=True, slots=True)
class Topic:
    brokers: str
    name: str


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The messages of one partition from `start` up to, but without, `end`."""

    source: str
    kind: str
    path: str
    partition: int
    start: int
    end: int
    taken_us: int


@dataclass(frozen=True, slots=True)
class KafkaMessage:
    offset: int
    value: bytes | None
    time_us: int | None


def require_kafka() -> None:
    if confluent_kafka is None:
        raise PipelineError(
            "Kafka needs the package confluent-kafka; install it with: "
            "pip install 'headgate[kafka]'"
        )


def topic_of(path: str, *, brokers: Sequence[str]) -> Topic:
    """The topic of a path; an error if the path is malformed or a broker is not allowed.

    >>> topic_of("kafka://localhost:9092/events", brokers=["localhost:9092"])
    Topic(brokers='localhost:9092', name='events')
    """
    match = _PATH.fullmatch(path)
    if match is None:
        raise PipelineError(f"'{path}' is no topic; write it as 'kafka://host:port/topic'")
    for broker in match[1].split(","):
        if broker not in brokers and "*" not in brokers:
            raise PipelineError(
                f"'{broker}' is not among the brokers that may be connected to; "
                "the operator of the pipeline allows it with the option 'brokers'"
            )
    return Topic(match[1], match[2])


# Topics and messages


class Consumers:
    """One consumer per list of brokers, created on first use. For one thread at a time."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        require_kafka()
        self._settings = dict(settings)
        self._by_brokers: dict[str, confluent_kafka.Consumer] = {}

    def close(self) -> None:
        for consumer in self._by_brokers.values():
            consumer.close()
        self._by_brokers.clear()

    def of(self, brokers: str) -> confluent_kafka.Consumer:
        if brokers not in self._by_brokers:
            self._by_brokers[brokers] = confluent_kafka.Consumer(
                {
                    **self._settings,
                    "bootstrap.servers": brokers,
                    "group.id": "headgate",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "auto.offset.reset": "error",
                    "logger": _silent,
                }
            )
        return self._by_brokers[brokers]


class _SilentLogger:
    """Drops librdkafka's messages on failed connections: the problems of sources report them."""

    def log(self, *_: object) -> None:
        return None


_silent = _SilentLogger()


def read_watermarks(consumers: Consumers, topic: Topic) -> dict[int, tuple[int, int]]:
    """For each partition the first offset that the topic still has, and the end offset."""
    consumer = consumers.of(topic.brokers)
    try:
        metadata = consumer.list_topics(topic.name, timeout=REQUEST_S).topics[topic.name]
        if metadata.error is not None:
            raise PipelineError(f"topic '{topic.name}': {metadata.error}")
        return {
            partition: consumer.get_watermark_offsets(
                confluent_kafka.TopicPartition(topic.name, partition), timeout=REQUEST_S
            )
            for partition in sorted(metadata.partitions)
        }
    except confluent_kafka.KafkaException as error:
        raise PipelineError(f"topic '{topic.name}' at {topic.brokers}: {error.args[0]}") from error


def first_offset(consumers: Consumers, topic: Topic, partition: int) -> int:
    """The first offset that the partition still has."""
    topic_partition = confluent_kafka.TopicPartition(topic.name, partition)
    consumer = consumers.of(topic.brokers)
    try:
        low, _ = consumer.get_watermark_offsets(topic_partition, timeout=SILENCE_S)
    except confluent_kafka.KafkaException as error:
        raise PipelineError(f"topic '{topic.name}' at {topic.brokers}: {error.args[0]}") from error
    return int(low)


def read_messages(
    consumers: Consumers, topic: Topic, span: OffsetRange, *, start: int
) -> Iterator[list[KafkaMessage]]:
    """All messages of the range, in order. Offsets may be missing, as after a compaction."""
    consumer = consumers.of(topic.brokers)
    consumer.assign([confluent_kafka.TopicPartition(topic.name, span.partition, start)])
    last_received, position = time.monotonic(), start
    while True:
        batch, at_end = [], False
        # `consume` waits for as many messages as it is asked for, or for its timeout.
        count = min(MESSAGES_AT_ONCE, span.end - position)
        for message in consumer.consume(count, timeout=0.5):
            last_received = time.monotonic()
            problem = message.error()
            if problem is not None and problem.code() != confluent_kafka.KafkaError._PARTITION_EOF:
                raise PipelineError(f"topic '{topic.name}' at {topic.brokers}: {problem}")
            if (message.offset() or 0) >= span.end:
                at_end = True
            elif problem is None:
                batch.append(_kafka_message(message))
        if batch:
            yield batch
            position = batch[-1].offset + 1
            at_end = at_end or position >= span.end
        if at_end:
            consumer.unassign()
            return
        if time.monotonic() - last_received > SILENCE_S:
            raise PipelineError(
                f"topic '{topic.name}' at {topic.brokers}: no message of offsets {span.start} to "
                f"{span.end} of partition {span.partition} came in {SILENCE_S:g} s"
            )


def _kafka_message(message: confluent_kafka.Message) -> KafkaMessage:
    kind, milliseconds = message.timestamp()
    has_time = kind != confluent_kafka.TIMESTAMP_NOT_AVAILABLE
    value = message.value()
    assert value is None or isinstance(value, bytes)
    time_us = milliseconds * 1_000 if has_time else None
    return KafkaMessage(int(message.offset() or 0), value, time_us)


# Problems of sources, in a file for the status


def write_problems(folder: Path, problems: Mapping[str, str]) -> None:
    write_whole(folder / "problems.json", json.dumps(dict(sorted(problems.items()))).encode())


def kafka_problems(folder: Path) -> dict[str, str]:
    """For each source that cannot be read the reason; readable from any process."""
    path = folder / "problems.json"
    problems: dict[str, str] = json.loads(path.read_bytes()) if path.exists() else {}
    return problems


# Offsets of a query

BATCH = "@"
"""The key of what the offset says of the batch, not of a source."""
Position = dict[str, int | str]
Offsets = dict[str, Position]
Watermarks = Mapping[str, Mapping[int, tuple[int, int]]]
"""By source and partition, the first offset that the topic still has, and the end offset."""


def next_offsets(
    start: Offsets,
    sources: Sequence[ListedSource],
    watermarks: Watermarks,
    *,
    now_us: int,
    rows_max: int | None,
    from_latest: bool,
) -> Offsets:
    """The end offset of the batch that begins at `start`; `start` itself if nothing is new."""
    end: Offsets = {}
    unread: dict[tuple[str, int], int] = {}
    for source in sources:
        before = _positions(start, source)
        if not before and source.name not in watermarks:
            continue  # its topic has not been polled yet
        end[source.name] = positions = {"path": source.path, **before}
        for partition, (low, high) in watermarks.get(source.name, {}).items():
            position = before.get(str(partition))
            if position is None:
                # A partition that was added to a known topic is read from its beginning.
                positions[str(partition)] = high if from_latest and not before else low
            elif high < int(position):
                positions[str(partition)] = low
            else:
                unread[source.name, partition] = high - int(position)
    for (name, partition), count in _shares(unread, rows_max).items():
        end[name][str(partition)] = int(end[name][str(partition)]) + count
    if end == {name: positions for name, positions in start.items() if name != BATCH}:
        return start
    return {**end, BATCH: {"taken_us": now_us}}


def offset_ranges(start: Offsets, end: Offsets, kinds: Mapping[str, str]) -> list[OffsetRange]:
    """The ranges between two offsets. `kinds` are those of the sources by name."""
    taken_us = int(end.get(BATCH, {}).get("taken_us", 0))
    spans: list[OffsetRange] = []
    for name, positions in end.items():
        before = start.get(name, {})
        if name == BATCH or before.get("path") != positions["path"]:
            continue
        path, kind = str(positions["path"]), kinds.get(name, "stream")
        for partition, until in positions.items():
            if partition == "path" or partition not in before:
                continue
            first, last = int(before[partition]), int(until)
            if first < last:
                spans.append(OffsetRange(name, kind, path, int(partition), first, last, taken_us))
    return spans


def _positions(start: Offsets, source: ListedSource) -> Position:
    """The positions of a source by partition; none if its topic has changed."""
    positions = start.get(source.name, {})
    if positions.get("path") != source.path:
        return {}
    return {partition: offset for partition, offset in positions.items() if partition != "path"}


def _shares(
    unread: Mapping[tuple[str, int], int], rows_max: int | None
) -> dict[tuple[str, int], int]:
    """How many messages of each partition are read: all, or the same fraction of each."""
    total = sum(unread.values())
    if rows_max is None or total <= rows_max:
        return dict(unread)
    return {key: -(-count * rows_max // total) for key, count in unread.items()}
