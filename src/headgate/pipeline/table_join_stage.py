"""Joins of tables on Spark: a query of its own, with the rows of tables as its state.

    lots_source ──► groupBy(lane) ──► transformWithState ──► one row for each group and bucket
    pieces of changes                 BucketProcessor         files of messages and results

Spark's cost is for each key that it calls, and for each value of the state: about a millisecond, or
as long as a thousand changes. So there is one key for each bucket, and few buckets; the state of a
group is a base and a log (`bucket.py`); changes come as pieces of many (`lots_source.py`).
Subscriptions are mapped from the snapshot's files, and shared by all workers of a machine.

`run_lot` is the same in one process, with a dictionary for Spark's state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from headgate.pipeline.match_stage import freeze_garbage
from headgate.pipeline.records import to_row
from headgate.pipeline.snapshot import OpenSnapshot, open_snapshot, read_numbers
from headgate.store.data_folder import DataFolder
from headgate.store.whole_files import WholeParquet
from headgate.tables.bucket import Attributes, Bucket, GroupUpdate, ServerCache
from headgate.tables.change_batches import ChangeBatch, read_change_batch
from headgate.tables.group_joins import attributes_by_table
from headgate.tables.group_output import GroupOutput, GroupSubscriptions
from headgate.tables.join_groups import JoinGroup
from headgate.tables.schemes import DEFAULT_SCHEME, JoinScheme
from headgate.tables.spark_partition_keys import partition_keys
from headgate.tables.stored_boxes import OpenBoxes, gathered_boxes, open_boxes
from headgate.tables.subscription_index import SubscriptionIndex

STATE_DDL = "content binary"


class PieceRow(NamedTuple):
    """What comes from the source for one bucket (`lots_source.py`)."""

    group: str
    file: int
    part: int
    content: bytes


@dataclass(frozen=True, slots=True)
class BucketSummary:
    """What a bucket has told of one group; without a group, that it has taken the lot."""

    lot: int
    bucket: int
    group: str = ""
    changes: int = 0
    rows: int = 0
    messages: int = 0
    messages_path: str = ""
    results: int = 0
    results_path: str = ""
    unknown: str = ""
    """Words that say nothing about rows: [table, word, rows], …"""


def run_lot(
    bucket: Bucket,
    lot: ChangeBatch,
    pieces: Iterable[PieceRow],
    folder: DataFolder,
    scheme: JoinScheme = DEFAULT_SCHEME,
) -> Iterator[BucketSummary]:
    """Take the changes of a lot that are this bucket's."""
    by_group: dict[str, list[PieceRow]] = {}
    for each in pieces:
        by_group.setdefault(each.group, []).append(each)
    opened = open_snapshot(str(folder.plans / lot.snapshot))
    for name in lot.ended:
        bucket.forget(name)
    yield BucketSummary(lot.number, bucket.number)
    for name, group in opened.groups.items():
        own = sorted(by_group.get(name, ()), key=lambda each: (each.file, each.part))
        if own or name in lot.fresh or not group.keeps_forever:
            step = GroupUpdate(
                lot.moment.timestamp(),
                [each.content for each in own if each.file < 0],
                [each.content for each in own if each.file >= 0],
            )
            yield _run_group(bucket, lot, group, step, folder=folder, scheme=scheme)


def _run_group(
    bucket: Bucket,
    lot: ChangeBatch,
    group: JoinGroup,
    step: GroupUpdate,
    *,
    folder: DataFolder,
    scheme: JoinScheme,
) -> BucketSummary:
    opened = open_snapshot(str(folder.plans / lot.snapshot))
    held = bucket.opened(group, is_fresh=group.name in lot.fresh)
    subscribed = SUBSCRIPTIONS.every(opened, group.name, scheme)
    wanted = None
    if lot.wanted:
        wanted = SUBSCRIPTIONS.wanted(subscribed, group.name, folder.plans / lot.wanted)
    held.select_by(_attributes(subscribed.boxes, group))
    teller = GroupOutput(group, held, subscribed, wanted)
    held.run(step, teller.announce)
    day = f"day={lot.moment.date().isoformat()}"
    name = f"{lot.number}-{bucket.number}.parquet"
    messages_count, messages_path = _write(
        teller.messages, folder.messages / group.name / day / name
    )
    results_count, results_path = _write(
        teller.results, results_file(folder, lot, group, bucket.number)
    )
    bucket.commit(group.name, step, held)
    return BucketSummary(
        lot.number,
        bucket.number,
        group.name,
        teller.changes,
        len(held.server.rows),
        messages_count,
        messages_path,
        results_count,
        results_path,
    )


def _attributes(boxes: OpenBoxes, group: JoinGroup) -> Attributes:
    if group.is_for_results:
        return attributes_by_table(boxes.attributes, len(group.tables))
    return boxes.attributes


def results_file(folder: DataFolder, lot: ChangeBatch, group: JoinGroup, bucket: int) -> Path:
    return folder.tables / "results" / f"{lot.number}-{bucket}-{group.name}.parquet"


def _write(tables: list[pa.Table], path: Path) -> tuple[int, str]:
    """How many rows there are, and where; nothing is left there of an earlier attempt."""
    writer = WholeParquet(path, compression="lz4")
    for table in tables:
        writer.write(table)
    rows = sum(table.num_rows for table in tables)
    return (rows, str(path)) if writer.close() else (0, "")


@dataclass(slots=True)
class Subscriptions:
    """What a worker has opened of the subscriptions of each group: of the last snapshot only, as
    they may be large."""

    _every: dict[str, tuple[object, GroupSubscriptions]] = field(default_factory=dict)
    _wanted: dict[str, tuple[object, str, GroupSubscriptions | None]] = field(default_factory=dict)

    def every(self, opened: OpenSnapshot, group: str, scheme: JoinScheme) -> GroupSubscriptions:
        """Those of all feeds."""
        key = (scheme, *opened.joins[group], opened.dropped.tobytes())
        known = self._every.get(group)
        if known is not None and known[0] == key:
            return known[1]
        files = [_opened_file(path) for path in opened.joins[group]]
        found = _subscribed(gathered_boxes(files, opened.dropped), scheme)
        self._every[group] = key, found
        return found

    def wanted(
        self, every: GroupSubscriptions, group: str, path: Path
    ) -> GroupSubscriptions | None:
        """Those of feeds whose results somebody wants, by the file with their numbers; None if
        there are none."""
        known = self._wanted.get(group)
        if known is not None and known[0] is every and known[1] == path.name:
            return known[2]
        feeds, boxes = read_numbers(path), every.boxes
        found = None
        if np.isin(boxes.feeds, feeds).any():
            found = _subscribed(boxes.only(feeds), JoinScheme.REF_J_PLUS)
        self._wanted[group] = every, path.name, found
        return found


SUBSCRIPTIONS = Subscriptions()
"""Workers live on from batch to batch."""


@lru_cache(maxsize=64)
def _opened_file(path: str) -> OpenBoxes:
    """Files never change, so what was opened stays right."""
    return open_boxes(Path(path))


def _subscribed(boxes: OpenBoxes, scheme: JoinScheme) -> GroupSubscriptions:
    index = SubscriptionIndex.of(boxes.dimensions, boxes.trees, boxes.anchors, scheme)
    return GroupSubscriptions(boxes, index)


class SparkBlobs:
    """Spark's state of the key that is being called."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getMapState("blobs", "name string", STATE_DDL)

    def get(self, name: str) -> bytes | None:
        found = self._state.getValue((name,))
        return None if found is None else bytes(found[0])

    def put(self, name: str, content: bytes) -> None:
        self._state.updateValue((name,), (content,))

    def remove(self, name: str) -> None:
        self._state.removeKey((name,))


HELD = ServerCache()
"""Workers live on from batch to batch, and so do the servers that they remember."""


class BucketProcessor(StatefulProcessor):
    def __init__(
        self, folder: DataFolder, buckets: int, scheme: JoinScheme = DEFAULT_SCHEME
    ) -> None:
        self._folder, self._buckets, self._scheme = folder, buckets, scheme

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._blobs = SparkBlobs(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002
        freeze_garbage()
        number = partition_keys(self._buckets).index(int(key[0]))
        place = f"{self._folder.path}/{number}"
        bucket = Bucket(number, self._buckets, place, self._blobs, HELD)
        some = list(rows)
        lot = read_change_batch(self._folder.tables, int(some[0].lot))
        pieces = [
            PieceRow(each.group, each.file, each.part, bytes(each.content))
            for each in some
            if each.group
        ]
        for told in run_lot(bucket, lot, pieces, self._folder, self._scheme):
            yield Row(**to_row(told))
        for each in some:
            if not each.group and each.content:
                unknown = bytes(each.content).decode()
                yield Row(**to_row(BucketSummary(lot.number, number, unknown=unknown)))

    def close(self) -> None:
        """Nothing is open."""
