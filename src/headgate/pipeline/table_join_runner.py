"""The driver's part of the table joins: makes change batches for their query, commits the results.

    the log ──► step: a change batch ──► the query processes it (table_join_stage.py)
     ▲                                          │ results
     └── finish: residual filters, on workers ◄─┘ ──► progress ──► next batch

There is one change batch at a time; changes that arrive in the meantime go into the next one. All
steps are idempotent. A change batch is written to a file before the query reads it. Its results are
committed to the log with the point up to which it has read the log; then progress is written. What
a replay commits again is recognised by that point.

A new feed, and a new subscriber, receive the results of changes from then on.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from headgate.language.statements import MaterializeFeed
from headgate.match.item_columns import FEEDS, INNER, group_of
from headgate.pipeline.batch_stage import PartitionSummary
from headgate.pipeline.match_stage import Stage, freeze_garbage
from headgate.pipeline.planner import CurrentPlans
from headgate.pipeline.records import ddl, from_table, to_batch
from headgate.pipeline.run_batch import files_of
from headgate.pipeline.run_context import RunContext
from headgate.pipeline.run_log import LogFollower
from headgate.pipeline.snapshot import open_snapshot, write_numbers
from headgate.pipeline.table_join_stage import BucketSummary
from headgate.plan.algebra import Plan
from headgate.store.data_folder import DataFolder
from headgate.store.log_index import open_placed
from headgate.store.log_state import LogFile
from headgate.store.log_writer import TABLES, LogFileWriter
from headgate.tables.change_batches import (
    NEVER,
    ChangeBatch,
    ChangeFile,
    ChangeProgress,
    last_change_batch,
    read_change_batch,
    read_change_progress,
    write_change_batch,
    write_change_progress,
)
from headgate.tables.join_groups import JoinGroup
from headgate.tables.results import ResidualFilters
from headgate.windows.arrivals import instant_of

GROUP = "tables"
EXPIRE_S = 60.0
"""How often expired rows are removed when no changes arrive."""
PROGRESS_S = 5.0
SUBSCRIBED_S = 60.0
"""How long the list of subscribed feeds is used; subscriptions expire with time."""


class TableJoinRunner:
    """`finish` is called by the thread of the query; all other methods are for one thread."""

    def __init__(self, context: RunContext, session: SparkSession, *, has_state: bool) -> None:
        """`has_state` says whether the query has rows of earlier change batches."""
        self._context, self._session = context, session
        self._subscribed: Sequence[str] = ()
        self._subscribed_at = -1, 0.0
        self._feeds_file_key: tuple[Sequence[str], Path] | None = None
        self._feeds_file = ""
        self._folder = context.folder.tables
        self._progress = read_change_progress(self._folder)
        self.follower = LogFollower(context.log, GROUP)
        self.point = max(self._progress.point, self.follower.point)
        if self._progress.decided == NEVER:
            # What the log has already is history, which new groups load.
            self.point = context.log.state.point
            self._progress = ChangeProgress(
                self._progress.number, instant_of(self.point.arrived_us), (), self.point
            )
        self._written_at = self._expired_at = time.monotonic()
        self.problems: dict[str, str] = {}
        """Problems with the changes of a table, by table."""
        self._unknown: Counter[tuple[str, str]] = Counter()
        self.wake = threading.Event()
        self._batch_in_work = self._interrupted_batch(has_state=has_state)
        write_change_progress(self._folder, self._progress)

    @property
    def decided(self) -> datetime:
        """The instant up to which all changes have been processed."""
        return self._progress.decided

    @property
    def files_in_work(self) -> frozenset[str]:
        """Files that a change batch in work reads: they must not be removed."""
        batch = self._batch_in_work
        files = () if batch is None else (*batch.files, *batch.history)
        return frozenset(file.path for file in files)

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of groups whose rows are in the state."""
        return self._progress.groups

    @property
    def is_needed(self) -> bool:
        """Whether the query has to run: there is a change batch in work, or a table join."""
        return self._batch_in_work is not None or bool(self._context.plans.snapshot.groups)

    def wait(self, timeout_s: float) -> None:
        """Wait for changes, or for the change batch in work."""
        if self._batch_in_work is not None:
            self.wake.wait(timeout_s)
        else:
            self._context.log.wait(self.point.seq, timeout_s)

    def step(self) -> None:
        """Make the next change batch, if the last one is finished and there is work for it."""
        self.wake.clear()
        if self._batch_in_work is not None:
            return
        plans = self._context.plans
        groups = plans.snapshot.groups
        fresh = tuple(name for name in groups if name not in self._progress.groups)
        ended = tuple(name for name in self._progress.groups if name not in groups)
        is_time = self._is_time_to_expire(groups)
        if is_time or fresh or ended:
            self._context.log.tick()  # rows expire by the instant of the log
        state = self._context.log.state
        if state.seq <= self.point.seq:
            return
        tables = {table.source for group in groups.values() for table in group.tables}
        files = self._changes(self.point.position, state.next_position, tables)
        if files or fresh or ended or is_time:
            self._expired_at = time.monotonic()
            change_batch = ChangeBatch(
                self._progress.number + 1,
                plans.path.name,
                instant_of(state.arrived_us),
                files,
                self._history(fresh, groups),
                fresh,
                tuple(groups),
                ended,
                self._delivered_feeds_file(plans),
                state.point,
            )
            write_change_batch(self._folder, change_batch)
            self._batch_in_work = change_batch
            return
        self.point = state.point
        self.follower.reached(state.point)
        if time.monotonic() - self._written_at > PROGRESS_S:
            self._write(self._progress.number, self._progress.groups)

    def finish(self, summaries: Sequence[BucketSummary]) -> None:
        """All buckets have processed a change batch: deliver its results."""
        number = max(summary.batch for summary in summaries)
        if number <= self._progress.number:
            return  # a replay: Spark was stopped before it recorded its commit
        change_batch = read_change_batch(self._folder, number)
        with_results = [summary for summary in summaries if summary.results]
        self._note_unknown(summaries)
        self._context.meters.add(joined=sum(summary.results for summary in with_results))
        for summary in with_results:
            self._context.budget.add(json.loads(summary.costs))
        files = files_of(self._store(change_batch, with_results)) if with_results else []
        self.follower.reached(change_batch.end, files, snapshot=change_batch.snapshot)
        self.point = change_batch.end
        self._write(number, change_batch.groups)
        for summary in with_results:
            Path(summary.results_path).unlink(missing_ok=True)
        self._batch_in_work = None
        self.wake.set()

    def _note_unknown(self, summaries: Sequence[BucketSummary]) -> None:
        """Count rows whose operation is none of the known words."""
        for summary in summaries:
            for table, word, count in json.loads(summary.unknown or "[]"):
                self._unknown[table, word] += count
                self.problems[table] = (
                    f"{self._unknown[table, word]:,} rows are left out: "
                    f"'{word}' is not a known operation"
                )

    def _interrupted_batch(self, *, has_state: bool) -> ChangeBatch | None:
        """The change batch that an earlier process has not finished. If the state is missing, a
        batch that does not load the history is dropped, and the next one loads it."""
        progress = self._progress
        if last_change_batch(self._folder, after=progress.number) == progress.number:
            if not has_state:
                self._forget_groups()
            return None
        change_batch = read_change_batch(self._folder, progress.number + 1)
        if not has_state and set(change_batch.fresh) != set(change_batch.groups):
            self._forget_groups()
            (self._folder / "lots" / f"{change_batch.number}.json").unlink()
            return None
        return change_batch

    def _forget_groups(self) -> None:
        """All groups load their rows again."""
        progress = self._progress
        self._progress = ChangeProgress(progress.number, progress.decided, (), progress.point)

    def _is_time_to_expire(self, groups: Mapping[str, JoinGroup]) -> bool:
        keeps = all(group.keeps_forever for group in groups.values())
        return not keeps and time.monotonic() - self._expired_at > EXPIRE_S

    def _history(
        self, fresh: Sequence[str], groups: Mapping[str, JoinGroup]
    ) -> tuple[ChangeFile, ...]:
        """All stored files of the tables of these groups, up to the last processed instant."""
        if not fresh:
            return ()
        tables = {table.source for name in fresh for table in groups[name].tables}
        self._context.note(f"reading the rows of {len(tables):,} tables from the log")
        return self._changes(0, self.point.position, tables)

    def _changes(self, start: int, end: int, tables: set[str]) -> tuple[ChangeFile, ...]:
        """The changes of these tables between two positions, in their order."""
        folder, state = self._context.folder, self._context.log.state
        files = (
            _change_file(folder, file, start, end, tables)
            for file in state.files_between(start, end)
        )
        return tuple(file for file in files if file is not None)

    def _delivered_feeds_file(self, plans: CurrentPlans) -> str:
        """The file with the numbers of the feeds whose results are delivered; empty if there are
        none. It is written again only after a change."""
        feeds = self._subscribed_feeds(plans)
        key = self._feeds_file_key
        if key is not None and key[0] is feeds and key[1] == plans.path:
            return self._feeds_file
        names = set(feeds)
        numbers = [number for number, name in plans.names.items() if name in names]
        self._feeds_file = ""
        if numbers:
            ascending = np.array(sorted(numbers), np.int32)
            name = write_numbers(self._context.folder.plans, ascending)
            self._context.planner.published.publish([name])
            self._feeds_file = name
        self._feeds_file_key = feeds, plans.path
        return self._feeds_file

    def _subscribed_feeds(self, plans: CurrentPlans) -> Sequence[str]:
        """Feeds with subscribers, and feeds that are materialised. The same object is returned
        while the catalog has not changed, for at most SUBSCRIBED_S."""
        version, now = self._context.catalog.version(), time.monotonic()
        if version != self._subscribed_at[0] or now > self._subscribed_at[1] + SUBSCRIBED_S:
            sources = plans.sources.items()
            materialised = [name for name, source in sources if isinstance(source, MaterializeFeed)]
            self._subscribed = [*self._context.catalog.subscribed(), *materialised]
            self._subscribed_at = version, now
        return self._subscribed

    def _store(
        self, change_batch: ChangeBatch, summaries: Sequence[BucketSummary]
    ) -> list[PartitionSummary]:
        """Write the results that pass the residual filters to the log's data, on workers."""
        tested = {feed for each in summaries for feed in json.loads(each.tested)}
        plans = self._context.planner.plans_of(sorted(tested)) if tested else {}
        stage = _store_results(self._context.folder, change_batch.snapshot, summaries, plans)
        tasks = self._session.range(0, len(summaries), 1, len(summaries))
        frame = tasks.mapInArrow(stage, ddl(PartitionSummary))
        return from_table(PartitionSummary, frame.toArrow())

    def _write(self, number: int, groups: tuple[str, ...]) -> None:
        decided = instant_of(self.point.arrived_us)
        self._progress = ChangeProgress(number, decided, groups, self.point)
        write_change_progress(self._folder, self._progress)
        self._written_at = time.monotonic()


def _change_file(
    folder: DataFolder, file: LogFile, start: int, end: int, tables: set[str]
) -> ChangeFile | None:
    """The rows of a file between two positions; None if it has no changes of these tables."""
    segment = open_placed(folder.storage, file)
    changed = tables.intersection(segment.source_names)
    first, last = (segment.runs.first_row_at(each, file.rows) for each in (start, end))
    if not changed or first == last:
        return None
    return ChangeFile(file.items, tuple(sorted(changed)), first, last)


def _store_results(
    folder: DataFolder,
    snapshot: str,
    summaries: Sequence[BucketSummary],
    plans: Mapping[int, Plan],
) -> Stage:
    """The function for `mapInArrow`: a row is the number of a summary."""

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_garbage()
        groups = open_snapshot(folder, snapshot).groups
        filters = ResidualFilters(lambda numbers: {n: plans[n] for n in numbers if n in plans})
        for batch in batches:
            for number in batch.column(0).to_pylist():
                summary = summaries[number]
                group = groups[summary.group]
                results = filters.tested(pq.read_table(summary.results_path), group)
                writer = LogFileWriter(folder.storage, f"{TABLES}{group_of(group.schema)}")
                for rows in results.combine_chunks().to_batches():
                    writer.write(rows.drop_columns([FEEDS, INNER]), {"feeds": rows.column(FEEDS)})
                yield to_batch([PartitionSummary(tuple(writer.close()))])

    return stage
