"""The joins of tables of a run: lots for their query, and results to subscribers.

    finished batches ──► step: a lot ──► the query takes it (select_join_stage.py)
                                             │
    store, outbox, materialised feeds ◄── finish: results, tested ◄──┘ ──► progress ──► next lot

There is one lot at a time: what arrives meanwhile is in the next one. All steps can be done again.
A lot is a file before the query sees it; its results are put under a record of the journal, which
is the same in a replay; then progress is written; then the record is finished. What the outbox has
already it does not take again.

A feed that is new, or has new subscribers, gets the results that changes make from now on.
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
"""How often rows are looked for that are kept no longer, where nothing else happens."""
PROGRESS_S = 5.0
SUBSCRIBED_S = 60.0
"""For how long the list of subscribed feeds is used: subscriptions expire with time."""


class TableJoinRunner:
    """`announced` may be called by any thread, `finish` by the query's, all else by one."""

    def __init__(
        self, context: RunContext, batches: BatchRunner, *, tests: ResidualFilters, has_state: bool
    ) -> None:
        """`has_state` says whether the query has rows of earlier lots."""
        self._context, self._batches, self._tests = context, batches, tests
        self._subscribed: Sequence[str] = ()
        self._subscribed_at = -1, 0.0
        self._wanted_for: tuple[Sequence[str], Path] | None = None
        self._wanted_last = ""
        self._folder = context.folder.tables
        self._progress = read_change_progress(self._folder)
        if self._progress.decided == NEVER:
            now = context.journal.complete(datetime.now(UTC))
            self._progress = ChangeProgress(self._progress.number, now, self._progress.groups)
        self._finished = FinishedFiles(context.folder.store, context.journal)
        self._has_recovered = False
        self._written_at = self._expired_at = time.monotonic()
        self.problems: dict[str, str] = {}
        """What is wrong with changes of tables, by table."""
        self._unknown: Counter[tuple[str, str]] = Counter()
        self.wake = threading.Event()
        self.files = threading.Lock()
        """Held by whoever merges or removes files of the store, and while a lot is made of them."""
        self._lot = self._open_lot(has_state=has_state)
        context.finished_readers.append(self.announced)
        write_change_progress(self._folder, self._progress)
        for group, number in context.journal.pending():
            if group == GROUP and number <= self._progress.number:
                context.journal.finish(context.journal.begin(group, number, "", NEVER))

    @property
    def decided(self) -> datetime:
        """What arrived until this moment is taken in."""
        return self._progress.decided

    @property
    def reads_history(self) -> bool:
        """Whether a lot is being taken that needs all files of the store as they are."""
        lot = self._lot
        return lot is not None and bool(lot.history)

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of groups whose rows are known."""
        return self._progress.groups

    @property
    def is_needed(self) -> bool:
        """Whether there is something for the query to do, now or at any time."""
        return self._lot is not None or bool(self._context.plans.snapshot.groups)

    def announced(self, arrived: datetime, parts: Sequence[PartitionSummary]) -> None:
        """A batch has stored these partitions."""
        self._finished.add(arrived, parts)
        self.wake.set()

    def step(self) -> None:
        """Make the next lot, if the last one is taken and there is something for it."""
        self.wake.clear()
        if self._lot is not None:
            return
        planned = self._context.plans
        groups = planned.snapshot.groups
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
                lot = ChangeBatch(
                    self._progress.number + 1,
                    planned.path.name,
                    complete,
                    tuple(_lot_file(each, tables) for each in _in_order(files)),
                    self._history(fresh, groups),
                    fresh,
                    tuple(groups),
                    ended,
                    self._wanted_file(planned),
                )
                write_change_batch(self._folder, lot)
                self._lot = lot
            return
        self._progress = ChangeProgress(self._progress.number, complete, self._progress.groups)
        if time.monotonic() - self._written_at > PROGRESS_S:
            self._write(self._progress)

    def finish(self, told: Sequence[BucketSummary]) -> None:
        """All buckets have taken a lot: deliver its results."""
        number = max(each.lot for each in told)
        if number <= self._progress.number:
            return  # Spark was cut off before it had noted that it was done
        lot = read_change_batch(self._folder, number)
        found = [each for each in told if each.results]
        self._note_unknown(told)
        self._context.meters.add(joined=sum(each.results for each in found))
        if found:
            self._put(lot, found)
        self._write(ChangeProgress(number, lot.moment, lot.groups))
        for each in found:
            Path(each.results_path).unlink(missing_ok=True)
        if found:
            record = self._context.journal.begin(GROUP, number, lot.snapshot, NEVER)
            self._context.journal.finish(record)
        self._lot = None
        self.wake.set()

    def _note_unknown(self, told: Sequence[BucketSummary]) -> None:
        for each in told:
            for table, word, count in json.loads(each.unknown or "[]"):
                self._unknown[table, word] += count
                self.problems[table] = (
                    f"{self._unknown[table, word]:,} rows are left out: "
                    f"'{word}' says nothing about a row"
                )

    def _open_lot(self, *, has_state: bool) -> ChangeBatch | None:
        """The lot that an earlier process has left; without a state it begins with the history."""
        progress = self._progress
        if last_change_batch(self._folder, after=progress.number) == progress.number:
            if not has_state:
                self._progress = ChangeProgress(progress.number, progress.decided)
            return None
        lot = read_change_batch(self._folder, progress.number + 1)
        if not has_state and set(lot.fresh) != set(lot.groups):
            self._progress = ChangeProgress(progress.number, progress.decided)
            (self._folder / "lots" / f"{lot.number}.json").unlink()
            return None
        return lot

    def _is_time_to_expire(self, groups: Mapping[str, JoinGroup]) -> bool:
        keeps = all(group.keeps_forever for group in groups.values())
        return not keeps and time.monotonic() - self._expired_at > EXPIRE_S

    def _history(
        self, fresh: Sequence[str], groups: Mapping[str, JoinGroup]
    ) -> tuple[ChangeFile, ...]:
        """All that is stored of the tables of these groups, until what is taken in already."""
        if not fresh:
            return ()
        tables = {table.source for name in fresh for table in groups[name].tables}
        schemas = self._context.plans.schemas
        named = {group_of(schemas[table]) for table in tables if table in schemas}
        self._context.note(f"reading the rows of {len(tables):,} tables from the store")
        files = self._finished.stored(NEVER, until=self._progress.decided, schemas=named)
        return tuple(_lot_file(each, tables) for each in _in_order(files) if each.sources & tables)

    def _wanted_file(self, planned: CurrentPlans) -> str:
        """The file with the numbers of feeds whose results are to be found; empty if none are."""
        wanted = self._subscribed_feeds(planned)
        last = self._wanted_for
        if last is not None and last[0] is wanted and last[1] == planned.path:
            return self._wanted_last
        self._wanted_for = wanted, planned.path
        names = set(wanted)
        numbers = [number for number, name in planned.names.items() if name in names]
        self._wanted_last = ""
        if numbers:
            ordered = np.array(sorted(numbers), np.int32)
            self._wanted_last = write_numbers(self._context.folder.plans, ordered)
        return self._wanted_last

    def _subscribed_feeds(self, plans: CurrentPlans) -> Sequence[str]:
        """Feeds with subscribers, and feeds that are materialised. The same object is returned
        while the catalog has not changed, for at most SUBSCRIBED_S."""
        version, now = self._context.catalog.version(), time.monotonic()
        if version != self._subscribed_at[0] or now > self._subscribed_at[1] + SUBSCRIBED_S:
            sources = plans.sources.items()
            materialised = [name for name, each in sources if isinstance(each, MaterializeFeed)]
            self._subscribed = [*self._context.catalog.subscribed(), *materialised]
            self._subscribed_at = version, now
        return self._subscribed

    def _put(self, lot: ChangeBatch, told: Sequence[BucketSummary]) -> None:
        context, plans, now = self._context, self._context.plans, datetime.now(UTC)
        record = context.journal.begin(GROUP, lot.number, lot.snapshot, now)
        groups = open_snapshot(str(context.folder.plans / lot.snapshot)).groups
        found: list[FeedMatch] = []
        for at, each in enumerate(told):
            group = groups[each.group]
            tested = self._tests.tested(pq.read_table(each.results_path), group)
            self._store(tested, group.schema, record, str(at))
            found += _found(tested, group.schema, plans.names)
        task = batch_task(context.folder, record)
        parts = self._batches.dispatch_matches(found, task, plans, now)
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
    """By arrival; parts of a batch, which arrive together, by their numbers."""
    return sorted(files, key=lambda each: (each.arrived, len(each.path.name), each.path))


def _lot_file(file: FinishedFile, tables: set[str]) -> ChangeFile:
    return ChangeFile(str(file.path), tuple(sorted(file.sources & tables)))


def _found(results: pa.Table, schema: Schema, names: Mapping[int, str]) -> Iterator[FeedMatch]:
    for batch in results.combine_chunks().to_batches():
        feeds = batch.column(FEEDS).to_pylist()
        for item, own in zip(items_from_arrow(batch, schema), feeds, strict=True):
            yield from (FeedMatch(names[feed], item) for feed in own if feed in names)
