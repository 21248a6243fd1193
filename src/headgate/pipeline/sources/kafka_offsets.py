"""Offsets of a Kafka query: for each source its topic, and for each partition the next offset.

    {"Events": {"path": "kafka://host:9092/events", "0": 17, "1": 3}, "@": {"taken_us": …}}

A source that was just registered, and a partition that was just added, has a position in the end of
a batch but none in its start. Then the batch *introduces* it, and reads nothing of it: the next one
goes on from there. So where reading began is written down before anything is read, and a batch
that is run again begins at the same place.

`taken_us` is when the batch was planned. It is in the offset so that it is the same when the batch
is run again, and it changes only when a position does: otherwise each look would be a new batch.

A source that is dropped is forgotten: if it is registered again, it begins again. So does a
partition that has become shorter than what was read of it: somebody has made the topic anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.acquire.source_list import ListedSource
from headgate.pipeline.sources.kafka_topics import Range

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
