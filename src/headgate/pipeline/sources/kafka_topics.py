"""Kafka topics: where they are, how far they go, and the messages of a range of offsets.

`confluent-kafka` is optional: `pip install 'headgate[kafka]'`.

A broker is somebody's machine in somebody's network, and librdkafka connects to it without asking
anyone. So only brokers that the operator has named are connected to (option `brokers`); a source
that names another one is a problem of that source.
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
CONSUME_AT_ONCE = 10_000
ASK_S = 5.0
SILENCE_S = 30.0
"""A range whose messages do not come for so long is an error of its task, which is tried again."""


@dataclass(frozen=True, slots=True)
class Topic:
    brokers: str
    name: str


@dataclass(frozen=True, slots=True)
class Range:
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
    """The topic that a path names, or an error that says why it is not read.

    >>> topic_of("kafka://localhost:9092/events", brokers=["localhost:9092"])
    Topic(brokers='localhost:9092', name='events')
    """
    found = _PATH.fullmatch(path)
    if found is None:
        raise PipelineError(f"'{path}' is no topic; write it as 'kafka://host:port/topic'")
    for each in found[1].split(","):
        if each not in brokers and "*" not in brokers:
            raise PipelineError(
                f"'{each}' is not among the brokers that may be connected to; "
                "whoever runs the pipeline allows it by the option 'brokers'"
            )
    return Topic(found[1], found[2])


class Consumers:
    """A consumer for each group of brokers, made when it is first asked. One thread at a time."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        require_kafka()
        self._settings = dict(settings)
        self._made: dict[str, confluent_kafka.Consumer] = {}

    def close(self) -> None:
        for each in self._made.values():
            each.close()
        self._made.clear()

    def of(self, brokers: str) -> confluent_kafka.Consumer:
        if brokers not in self._made:
            self._made[brokers] = confluent_kafka.Consumer(
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
        return self._made[brokers]


def watermarks(consumers: Consumers, topic: Topic) -> dict[int, tuple[int, int]]:
    """By partition the first offset that is there, and the one behind the last."""
    consumer = consumers.of(topic.brokers)
    try:
        found = consumer.list_topics(topic.name, timeout=ASK_S).topics[topic.name]
        if found.error is not None:
            raise PipelineError(f"topic '{topic.name}': {found.error}")
        return {
            partition: consumer.get_watermark_offsets(
                confluent_kafka.TopicPartition(topic.name, partition), timeout=ASK_S
            )
            for partition in sorted(found.partitions)
        }
    except confluent_kafka.KafkaException as error:
        raise PipelineError(f"topic '{topic.name}' at {topic.brokers}: {error.args[0]}") from error


def first_offset(consumers: Consumers, topic: Topic, partition: int) -> int:
    where = confluent_kafka.TopicPartition(topic.name, partition)
    try:
        low, _ = consumers.of(topic.brokers).get_watermark_offsets(where, timeout=SILENCE_S)
    except confluent_kafka.KafkaException as error:
        raise PipelineError(f"topic '{topic.name}' at {topic.brokers}: {error.args[0]}") from error
    return int(low)


def messages(
    consumers: Consumers, topic: Topic, part: Range, *, start: int
) -> Iterator[list[KafkaMessage]]:
    """All messages of the range, in order; offsets may be missing, as after a compaction."""
    consumer = consumers.of(topic.brokers)
    consumer.assign([confluent_kafka.TopicPartition(topic.name, part.partition, start)])
    heard, at = time.monotonic(), start
    while True:
        batch, reached = [], False
        # No more than there are: it waits until so many have come, or for its timeout.
        for each in consumer.consume(min(CONSUME_AT_ONCE, part.end - at), timeout=0.5):
            heard = time.monotonic()
            problem = each.error()
            if problem is not None and problem.code() != confluent_kafka.KafkaError._PARTITION_EOF:
                raise PipelineError(f"topic '{topic.name}' at {topic.brokers}: {problem}")
            if (each.offset() or 0) >= part.end:
                reached = True
            elif problem is None:
                batch.append(_message(each))
        if batch:
            yield batch
            at = batch[-1].offset + 1
            reached = reached or at >= part.end
        if reached:
            consumer.unassign()
            return
        if time.monotonic() - heard > SILENCE_S:
            raise PipelineError(
                f"topic '{topic.name}' at {topic.brokers}: no message of offsets {part.start} to "
                f"{part.end} of partition {part.partition} came in {SILENCE_S:g} s"
            )


def _message(found: confluent_kafka.Message) -> KafkaMessage:
    kind, milliseconds = found.timestamp()
    known = kind != confluent_kafka.TIMESTAMP_NOT_AVAILABLE
    value = found.value()
    assert value is None or isinstance(value, bytes)
    return KafkaMessage(int(found.offset() or 0), value, milliseconds * 1_000 if known else None)


class _Silent:
    """librdkafka tells of every connection that fails; the problems of sources say so already."""

    def log(self, *_: object) -> None:
        return None


_silent = _Silent()


def write_problems(folder: Path, problems: Mapping[str, str]) -> None:
    write_whole(folder / "problems.json", json.dumps(dict(sorted(problems.items()))).encode())


def kafka_problems(folder: Path) -> dict[str, str]:
    """By source, why it cannot be read; from any process."""
    path = folder / "problems.json"
    found: dict[str, str] = json.loads(path.read_bytes()) if path.exists() else {}
    return found


# === part: headgate.pipeline.sources.kafka_topics
# Offsets of a Kafka query: for each source its topic, and for each partition the next offset.
#
#     {"Events": {"path": "kafka://host:9092/events", "0": 17, "1": 3}, "@": {"taken_us": …}}
#
# A source that was just registered, and a partition that was just added, has a position in the end
# of
# a batch but none in its start. Then the batch *introduces* it, and reads nothing of it: the next
# one
# goes on from there. So where reading began is written down before anything is read, and a batch
# that is run again begins at the same place.
#
# `taken_us` is when the batch was planned. It is in the offset so that it is the same when the
# batch
# is run again, and it changes only when a position does: otherwise each look would be a new batch.
#
# A source that is dropped is forgotten: if it is registered again, it begins again. So does a
# partition that has become shorter than what was read of it: somebody has made the topic anew.

BATCH = "@"
Position = dict[str, int | str]
Offsets = dict[str, Position]
Known = Mapping[str, Mapping[int, tuple[int, int]]]
"""By source and partition, the first offset that is there and the one behind the last."""


def next_offsets(
    start: Offsets,
    sources: Sequence[ListedSource],
    known: Known,
    *,
    now_us: int,
    rows_max: int | None,
    from_latest: bool,
) -> Offsets:
    """How far one can read from `start`; the same as `start` where there is nothing new."""
    end: Offsets = {}
    waiting: dict[tuple[str, int], int] = {}
    for source in sources:
        before = _before(start, source)
        if not before and source.name not in known:
            continue  # nothing is known of it yet
        end[source.name] = position = {"path": source.path, **before}
        for partition, (low, high) in known.get(source.name, {}).items():
            at = before.get(str(partition))
            if at is None:
                # A partition that is added later is new as a whole.
                position[str(partition)] = high if from_latest and not before else low
            elif high < int(at):
                position[str(partition)] = low
            else:
                waiting[source.name, partition] = high - int(at)
    for (name, partition), count in _shares(waiting, rows_max).items():
        end[name][str(partition)] = int(end[name][str(partition)]) + count
    if end == {name: each for name, each in start.items() if name != BATCH}:
        return start
    return {**end, BATCH: {"taken_us": now_us}}


def ranges(start: Offsets, end: Offsets, kinds: Mapping[str, str]) -> list[Range]:
    """What is to be read between two offsets."""
    taken_us = int(end.get(BATCH, {}).get("taken_us", 0))
    found: list[Range] = []
    for name, position in end.items():
        before = start.get(name, {})
        if name == BATCH or before.get("path") != position["path"]:
            continue
        for partition, until in position.items():
            if partition in before and partition != "path" and int(before[partition]) < int(until):
                path, kind = str(position["path"]), kinds.get(name, "stream")
                begin = int(before[partition])
                found.append(Range(name, kind, path, int(partition), begin, int(until), taken_us))
    return found


def _before(start: Offsets, source: ListedSource) -> Position:
    """The positions of a source by partition; none if it has another topic now."""
    found = start.get(source.name, {})
    if found.get("path") != source.path:
        return {}
    return {partition: at for partition, at in found.items() if partition != "path"}


def _shares(
    waiting: Mapping[tuple[str, int], int], rows_max: int | None
) -> dict[tuple[str, int], int]:
    """How many messages of each partition are read: all, or as large a part of each."""
    total = sum(waiting.values())
    if rows_max is None or total <= rows_max:
        return dict(waiting)
    return {each: -(-count * rows_max // total) for each, count in waiting.items()}
