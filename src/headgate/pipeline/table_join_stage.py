"""Table joins on Spark: what a bucket does with its changes. Its state is the rows of tables.

    change_batch_source ──► groupBy(partition key) ──► transformWithState ──► BucketSummary rows
    pieces of changes                                  BucketProcessor        files of messages
                                                                              and results

Spark takes about a millisecond for each key that it calls and for each value of the state, as long
as the join takes for a thousand changes. So there is one key for each bucket, and there are few
buckets; the state of a group is a base and a log (tables/bucket.py); changes come in large pieces
(sources/change_batch_source.py). Subscriptions are memory-mapped from the snapshot's files and
shared by all workers of a machine.

`run_change_batch` does the same in one process, with a dictionary in place of Spark's state.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from headgate.match.item_columns import FEEDS, INNER
from headgate.match.row_users import COST_US_MIN
from headgate.pipeline.feed_costs import FeedCosts
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
    """A piece of the changes for one bucket (change_batch_source.py)."""

    group: str
    file: int
    part: int
    content: bytes


@dataclass(frozen=True, slots=True)
class BucketSummary:
    """What a bucket has done for one group in a change batch. A summary without a group only says
    that the bucket has processed the batch."""

    batch: int
    bucket: int
    group: str = ""
    changes: int = 0
    rows: int = 0
    messages: int = 0
    messages_path: str = ""
    results: int = 0
    results_path: str = ""
    tested: str = ""
    """JSON: the numbers of the feeds whose residual filters the results must pass."""
    costs: str = field(default="", compare=False)
    """JSON: the CPU time of feeds in µs, by number (feed_costs.py); a replay takes another time."""
    unknown: str = ""
    """JSON: unknown words in place of insert, update or delete, as [table, word, rows], …"""


def run_change_batch(
    bucket: Bucket,
    batch: ChangeBatch,
    pieces: Iterable[PieceRow],
    folder: DataFolder,
    scheme: JoinScheme = DEFAULT_SCHEME,
) -> Iterator[BucketSummary]:
    """Process the changes of a batch that belong to this bucket."""
    by_group: dict[str, list[PieceRow]] = {}
    for piece in pieces:
        by_group.setdefault(piece.group, []).append(piece)
    opened = open_snapshot(folder, batch.snapshot)
    for name in batch.ended:
        bucket.forget(name)
    yield BucketSummary(batch.number, bucket.number)
    for name, group in opened.groups.items():
        ordered = sorted(by_group.get(name, ()), key=lambda piece: (piece.file, piece.part))
        if ordered or name in batch.fresh or not group.keeps_forever:
            update = GroupUpdate(
                batch.instant.timestamp(),
                [piece.content for piece in ordered if piece.file < 0],  # of the history
                [piece.content for piece in ordered if piece.file >= 0],
            )
            yield _run_group(bucket, batch, group, update, folder=folder, scheme=scheme)


def _run_group(
    bucket: Bucket,
    batch: ChangeBatch,
    group: JoinGroup,
    update: GroupUpdate,
    *,
    folder: DataFolder,
    scheme: JoinScheme,
) -> BucketSummary:
    opened = open_snapshot(folder, batch.snapshot)
    bucket_server = bucket.opened(group, is_fresh=group.name in batch.fresh)
    subscriptions = SUBSCRIPTIONS.of_all_feeds(opened, group.name, scheme)
    with_results = None
    if batch.wanted:
        with_results = SUBSCRIPTIONS.with_results(
            subscriptions, group.name, folder.plan_path(batch.wanted)
        )
    bucket_server.select_by(_attributes(subscriptions.boxes, group))
    output = GroupOutput(group, bucket_server, subscriptions, with_results)
    began_ns = time.thread_time_ns()
    bucket_server.run(update, output.announce)
    cpu_ns = time.thread_time_ns() - began_ns
    day = f"day={batch.instant.date().isoformat()}"
    name = f"{batch.number}-{bucket.number}.parquet"
    messages_count, messages_path = _write(
        output.messages, folder.messages / group.name / day / name
    )
    results_count, results_path = _write(
        output.results, results_file(folder, batch, group, bucket.number)
    )
    bucket.commit(group.name, update, bucket_server)
    return BucketSummary(
        batch.number,
        bucket.number,
        group.name,
        output.changes,
        len(bucket_server.server.rows),
        messages_count,
        messages_path,
        results_count,
        results_path,
        json.dumps(_tested_feeds(output.results)) if results_count else "",
        json.dumps(costs_of_results(output.results, cpu_ns)) if results_count else "",
    )


def costs_of_results(results: Sequence[pa.Table], cpu_ns: int) -> FeedCosts:
    """The time of a group, divided among its feeds by how many results each of them has: a join
    takes as long as it makes results, and what it takes without any is shared by all."""
    lists = [table.column(name).combine_chunks() for table in results for name in (FEEDS, INNER)]
    feeds = np.concatenate([np.asarray(each.flatten()) for each in lists])
    numbers, counts = np.unique(feeds, return_counts=True)
    cpu_us = (cpu_ns * counts / max(feeds.size, 1)).astype(np.int64) // 1_000
    is_much = cpu_us >= COST_US_MIN
    return {
        str(feed): us
        for feed, us in zip(numbers[is_much].tolist(), cpu_us[is_much].tolist(), strict=True)
    }


def _tested_feeds(results: list[pa.Table]) -> list[int]:
    lists = [table.column(INNER).combine_chunks() for table in results]
    feeds = np.concatenate([np.asarray(each.flatten()) for each in lists])
    return [int(feed) for feed in np.unique(feeds)]


def _attributes(boxes: OpenBoxes, group: JoinGroup) -> Attributes:
    if group.is_for_results:
        return attributes_by_table(boxes.attributes, len(group.tables))
    return boxes.attributes


def results_file(folder: DataFolder, batch: ChangeBatch, group: JoinGroup, bucket: int) -> Path:
    return folder.tables / "results" / f"{batch.number}-{bucket}-{group.name}.parquet"


def _write(tables: list[pa.Table], path: Path) -> tuple[int, str]:
    """Write rows to a file that replaces the file of an earlier attempt. Returns the number of rows
    and the path; the path is empty if there are no rows."""
    writer = WholeParquet(path, compression="lz4")
    for table in tables:
        writer.write(table)
    rows = sum(table.num_rows for table in tables)
    return (rows, str(path)) if writer.close() else (0, "")


@dataclass(slots=True)
class SubscriptionCache:
    """A worker's cache of the subscriptions of each group. It holds only those of the last
    snapshot, since they may be large."""

    _of_all: dict[str, tuple[object, GroupSubscriptions]] = field(default_factory=dict)
    _with_results: dict[str, tuple[object, str, GroupSubscriptions | None]] = field(
        default_factory=dict
    )

    def of_all_feeds(
        self, opened: OpenSnapshot, group: str, scheme: JoinScheme
    ) -> GroupSubscriptions:
        """The subscriptions of all feeds; messages are written for these."""
        key = (scheme, *opened.joins[group], opened.dropped.tobytes())
        cached = self._of_all.get(group)
        if cached is not None and cached[0] == key:
            return cached[1]
        files = [_opened_file(path) for path in opened.joins[group]]
        subscriptions = _index(gathered_boxes(files, opened.dropped), scheme)
        self._of_all[group] = key, subscriptions
        return subscriptions

    def with_results(
        self, of_all: GroupSubscriptions, group: str, path: Path
    ) -> GroupSubscriptions | None:
        """The subscriptions of feeds whose results are delivered; None if there are none. The file
        has the numbers of these feeds."""
        cached = self._with_results.get(group)
        if cached is not None and cached[0] is of_all and cached[1] == path.name:
            return cached[2]
        feeds, boxes = read_numbers(path), of_all.boxes
        subscriptions = None
        if np.isin(boxes.feeds, feeds).any():
            subscriptions = _index(boxes.only(feeds), JoinScheme.REF_J_PLUS)
        self._with_results[group] = of_all, path.name, subscriptions
        return subscriptions


SUBSCRIPTIONS = SubscriptionCache()
"""Of this process: workers are kept from batch to batch."""


@lru_cache(maxsize=64)
def _opened_file(path: str) -> OpenBoxes:
    """Cached: the files never change."""
    return open_boxes(Path(path))


def _index(boxes: OpenBoxes, scheme: JoinScheme) -> GroupSubscriptions:
    index = SubscriptionIndex.of(boxes.dimensions, boxes.trees, boxes.anchors, scheme)
    return GroupSubscriptions(boxes, index)


class SparkBlobs:
    """Named values in Spark's state, of the key that Spark is processing."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getMapState("blobs", "name string", STATE_DDL)

    def get(self, name: str) -> bytes | None:
        value = self._state.getValue((name,))
        return None if value is None else bytes(value[0])

    def put(self, name: str, content: bytes) -> None:
        self._state.updateValue((name,), (content,))

    def remove(self, name: str) -> None:
        self._state.removeKey((name,))


SERVERS = ServerCache()
"""Of this process: servers stay in memory from batch to batch, with their rows decoded."""


class BucketProcessor(StatefulProcessor):
    """Processes the rows of one bucket in a micro-batch; the key is its partition key."""

    def __init__(
        self, folder: DataFolder, buckets: int, scheme: JoinScheme = DEFAULT_SCHEME
    ) -> None:
        self._folder, self._buckets, self._scheme = folder, buckets, scheme

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._blobs = SparkBlobs(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002
        freeze_garbage()
        number = partition_keys(self._buckets).index(int(key[0]))
        cache_key = f"{self._folder.path}/{number}"
        bucket = Bucket(number, self._buckets, cache_key, self._blobs, SERVERS)
        # The columns have the names of earlier versions: "lot" is the change batch.
        inputs = list(rows)
        batch = read_change_batch(self._folder.tables, int(inputs[0].lot))
        pieces = [
            PieceRow(row.group, row.file, row.part, bytes(row.content))
            for row in inputs
            if row.group
        ]
        for summary in run_change_batch(bucket, batch, pieces, self._folder, self._scheme):
            yield Row(**to_row(summary))
        for row in inputs:
            if not row.group and row.content:
                unknown = bytes(row.content).decode()
                yield Row(**to_row(BucketSummary(batch.number, number, unknown=unknown)))

    def close(self) -> None:
        """There is nothing to close."""
