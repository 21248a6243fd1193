"""The driver's part of the table joins: makes change batches for their query, delivers the results.

    finished batches ──► step: a change batch ──► the query processes it (table_join_stage.py)
                                                         │ results
    store, outbox, materialised feeds ◄── finish: residual filters ──► progress ──► next batch

There is one change batch at a time; changes that arrive in the meantime go into the next one. All
steps are idempotent. A change batch is written to a file before the query reads it. Its results are
delivered under a record of the journal, which is the same in a replay; then progress is written;
then the record is finished. The outbox ignores deliveries that it already has.

A new feed, and a new subscriber, receive the results of changes from then on.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.language.statements import MaterializeFeed
from headgate.match.item_columns import FEEDS, group_of, items_from_arrow
from headgate.model.schema import Schema
from headgate.pipeline.batch_stage import PartitionSummary, batch_task
from headgate.pipeline.deliveries import FeedMatch
from headgate.pipeline.finished_files import FinishedFile, FinishedFiles
from headgate.pipeline.journal import BatchRecord
from headgate.pipeline.planner import CurrentPlans
from headgate.pipeline.run_batch import BatchRunner
from headgate.pipeline.run_context import RunContext
from headgate.pipeline.snapshot import open_snapshot, write_numbers
from headgate.pipeline.table_join_stage import BucketSummary
from headgate.store.item_files import TABLES, path_of, with_arrival
from headgate.store.whole_files import WholeParquet
from headgate.tables.change_batches import (
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
from headgate.windows.progress import NEVER

GROUP = "tables"
EXPIRE_S = 60.0
"""How often expired rows are removed when no changes arrive."""
PROGRESS_S = 5.0
SUBSCRIBED_S = 60.0
"""How long the list of subscribed feeds is used; subscriptions expire with time."""


class TableJoinRunner:
    """`announced` is thread-safe; `finish` is called by the thread of the query; all other methods
    are for one thread."""

    def __init__(
        self, context: RunContext, batches: BatchRunner, *, tests: ResidualFilters, has_state: bool
    ) -> None:
        """`has_state` says whether the query has rows of earlier change batches."""
        self._context, self._batches, self._tests = context, batches, tests
        self._subscribed: Sequence[str] = ()
        self._subscribed_at = -1, 0.0
        self._feeds_file_key: tuple[Sequence[str], Path] | None = None
        self._feeds_file = ""
        self._folder = context.folder.tables
        self._progress = read_change_progress(self._folder)
        if self._progress.decided == NEVER:
            now = context.journal.complete(datetime.now(UTC))
            self._progress = ChangeProgress(self._progress.number, now, self._progress.groups)
        self._finished = FinishedFiles(context.folder.store, context.journal)
        self._has_recovered = False
        self._written_at = self._expired_at = time.monotonic()
        self.problems: dict[str, str] = {}
        """Problems with the changes of a table, by table."""
        self._unknown: Counter[tuple[str, str]] = Counter()
        self.wake = threading.Event()
        self.files = threading.Lock()
        """Held while store files are merged or removed, and while a change batch is made."""
        self._batch_in_work = self._interrupted_batch(has_state=has_state)
        context.finished_readers.append(self.announced)
        write_change_progress(self._folder, self._progress)
        for group, number in context.journal.pending():
            if group == GROUP and number <= self._progress.number:
                context.journal.finish(context.journal.begin(group, number, "", NEVER))

    @property
    def decided(self) -> datetime:
        """The instant up to which all changes have been processed."""
        return self._progress.decided

    @property
    def reads_history(self) -> bool:
        """Whether the batch in work reads the history: files of the store must not change then."""
        change_batch = self._batch_in_work
        return change_batch is not None and bool(change_batch.history)

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of groups whose rows are in the state."""
        return self._progress.groups

    @property
    def is_needed(self) -> bool:
        """Whether the query has to run: there is a change batch in work, or a table join."""
        return self._batch_in_work is not None or bool(self._context.plans.snapshot.groups)

    def announced(self, arrived: datetime, parts: Sequence[PartitionSummary]) -> None:
        """A batch has stored these partitions."""
        self._finished.add(arrived, parts)
        self.wake.set()

    def step(self) -> None:
        """Make the next change batch, if the last one is finished and there is work for it."""
        self.wake.clear()
        if self._batch_in_work is not None:
            return
        plans = self._context.plans
        groups = plans.snapshot.groups
        if groups and not self._has_recovered:
            self._finished.recover(self._progress.decided)
            self._has_recovered = True
        complete = self._context.journal.complete(datetime.now(UTC))
        if complete <= self._progress.decided:
            return
        tables = {table.source for group in groups.values() for table in group.tables}
        files = self._finished.take(complete, tables)
        fresh = tuple(name for name in groups if name not in self._progress.groups)
        ended = tuple(name for name in self._progress.groups if name not in groups)
        if files or fresh or ended or self._is_time_to_expire(groups):
            self._expired_at = time.monotonic()
            with self.files:
                change_batch = ChangeBatch(
                    self._progress.number + 1,
                    plans.path.name,
                    complete,
                    tuple(_change_file(file, tables) for file in _in_order(files)),
                    self._history(fresh, groups),
                    fresh,
                    tuple(groups),
                    ended,
                    self._delivered_feeds_file(plans),
                )
                write_change_batch(self._folder, change_batch)
                self._batch_in_work = change_batch
            return
        self._progress = ChangeProgress(self._progress.number, complete, self._progress.groups)
        if time.monotonic() - self._written_at > PROGRESS_S:
            self._write(self._progress)

    def finish(self, summaries: Sequence[BucketSummary]) -> None:
        """All buckets have processed a change batch: deliver its results."""
        number = max(summary.batch for summary in summaries)
        if number <= self._progress.number:
            return  # a replay: Spark was stopped before it recorded its commit
        change_batch = read_change_batch(self._folder, number)
        with_results = [summary for summary in summaries if summary.results]
        self._note_unknown(summaries)
        self._context.meters.add(joined=sum(summary.results for summary in with_results))
        if with_results:
            self._deliver(change_batch, with_results)
        self._write(ChangeProgress(number, change_batch.instant, change_batch.groups))
        for summary in with_results:
            Path(summary.results_path).unlink(missing_ok=True)
        if with_results:
            record = self._context.journal.begin(GROUP, number, change_batch.snapshot, NEVER)
            self._context.journal.finish(record)
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
                self._progress = ChangeProgress(progress.number, progress.decided)
            return None
        change_batch = read_change_batch(self._folder, progress.number + 1)
        if not has_state and set(change_batch.fresh) != set(change_batch.groups):
            self._progress = ChangeProgress(progress.number, progress.decided)
            (self._folder / "lots" / f"{change_batch.number}.json").unlink()
            return None
        return change_batch

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
        schemas = self._context.plans.schemas
        schema_names = {group_of(schemas[table]) for table in tables if table in schemas}
        self._context.note(f"reading the rows of {len(tables):,} tables from the store")
        files = self._finished.stored(NEVER, until=self._progress.decided, schemas=schema_names)
        return tuple(
            _change_file(file, tables) for file in _in_order(files) if file.sources & tables
        )

    def _delivered_feeds_file(self, plans: CurrentPlans) -> str:
        """The file with the numbers of the feeds whose results are delivered; empty if there are
        none. It is written again only after a change."""
        feeds = self._subscribed_feeds(plans)
        key = self._feeds_file_key
        if key is not None and key[0] is feeds and key[1] == plans.path:
            return self._feeds_file
        self._feeds_file_key = feeds, plans.path
        names = set(feeds)
        numbers = [number for number, name in plans.names.items() if name in names]
        self._feeds_file = ""
        if numbers:
            ascending = np.array(sorted(numbers), np.int32)
            self._feeds_file = write_numbers(self._context.folder.plans, ascending)
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

    def _deliver(self, change_batch: ChangeBatch, summaries: Sequence[BucketSummary]) -> None:
        """Test the results with the residual filters; store and deliver those that pass."""
        context, plans, now = self._context, self._context.plans, datetime.now(UTC)
        record = context.journal.begin(GROUP, change_batch.number, change_batch.snapshot, now)
        groups = open_snapshot(str(context.folder.plans / change_batch.snapshot)).groups
        matches: list[FeedMatch] = []
        for part, summary in enumerate(summaries):
            group = groups[summary.group]
            results = self._tests.tested(pq.read_table(summary.results_path), group)
            self._store(results, group.schema, record, str(part))
            matches += _matches_of(results, group.schema, plans.names)
        task = batch_task(context.folder, record)
        parts = self._batches.dispatch_matches(matches, task, plans, now)
        context.announce(record.arrived, parts)

    def _store(self, results: pa.Table, schema: Schema, record: BatchRecord, part: str) -> None:
        name = f"{TABLES}{group_of(schema)}"
        path = path_of(self._context.folder.store, name, record.arrived, record.number, part)
        writer = WholeParquet(path)
        for batch in results.combine_chunks().to_batches():
            writer.write(with_arrival(batch, record.arrived))
        writer.close()

    def _write(self, progress: ChangeProgress) -> None:
        write_change_progress(self._folder, progress)
        self._progress = progress
        self._written_at = time.monotonic()


def _in_order(files: Iterable[FinishedFile]) -> list[FinishedFile]:
    """By arrival instant; parts of one batch, which have the same instant, by number."""
    return sorted(files, key=lambda file: (file.arrived, len(file.path.name), file.path))


def _change_file(file: FinishedFile, tables: set[str]) -> ChangeFile:
    return ChangeFile(str(file.path), tuple(sorted(file.sources & tables)))


def _matches_of(results: pa.Table, schema: Schema, names: Mapping[int, str]) -> Iterator[FeedMatch]:
    for batch in results.combine_chunks().to_batches():
        feeds = batch.column(FEEDS).to_pylist()
        for item, item_feeds in zip(items_from_arrow(batch, schema), feeds, strict=True):
            yield from (FeedMatch(names[feed], item) for feed in item_feeds if feed in names)
