"""The window joins of a run: a stage of its own behind the store (docs/design/…-window-joins.md).

    finished batches ──► their stored items ──► JoinStage ──► outputs ──► store, outbox,
                         up to what is complete      ▲                    materialised feeds
    restart, new joins ──► stored items of their windows (join_layers.py)

The store is the only state on disk. What is decided follows from items and their recorded moments
of arrival alone (windows/stage.py), so a run that died resumes from its last progress and decides
the same: what it had put into the outbox already is there already.

A join that is new looks at what its windows hold from the store, but decides only on what arrives
from now on.

A lot of outputs is a batch of the group `joined`, with a record in the journal like all others:
materialised feeds over joins make items of it, which arrive at the record's moment. At the end of a
lot, outputs are stored and put, then progress is written, then the record is finished. A crash
before the progress replays the lot under the same record; after it, the record is finished at the
next start.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.match.item_columns import SOURCE, items_of_batch
from headgate.model.schema import Schema
from headgate.pipeline.batch_stage import Stored, task_of
from headgate.pipeline.deliveries import Found
from headgate.pipeline.ended_files import EndedFile, EndedFiles
from headgate.pipeline.join_layers import JoinLayers
from headgate.pipeline.joined import write_joined
from headgate.pipeline.planner import Planned
from headgate.pipeline.run_batch import BatchRunner
from headgate.plan.algebra import Plan
from headgate.store.item_files import JOINED, stored_files
from headgate.tables.join_progress import NEVER, JoinProgress, read_progress, write_progress
from headgate.windows.arrivals import Arrival, Output
from headgate.windows.rebuild import rebuild
from headgate.windows.stage import JoinStage

GROUP = JOINED.rstrip(".")
PROGRESS_EVERY_S = 5.0


class JoinRunner:
    """`ended` may be called by any thread, all else by one."""

    def __init__(
        self,
        runner: BatchRunner,
        planned: Callable[[], Planned],
        *,
        lateness_s: float,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._runner, self._planned, self._note = runner, planned, note
        self._lateness_s = lateness_s
        self._path = runner.folder.joins
        self._progress = read_progress(self._path)
        if self._progress.decided == NEVER:
            self._progress = JoinProgress(runner.journal.complete(datetime.now(UTC)))
        self._write(self._progress)
        self._ended = EndedFiles(runner.folder.store, runner.journal)
        self.layers = JoinLayers(self._stage)
        self._has_looked = False
        self.wake = threading.Event()
        for group, number in runner.journal.pending():
            if group == GROUP and number < self._progress.number:
                record = runner.journal.begin(group, number, "", NEVER)
                runner.journal.finish(record)

    @property
    def decided(self) -> datetime:
        """What arrived until this moment is taken in."""
        return self._progress.decided

    @property
    def unsupported(self) -> Mapping[str, str]:
        return self.layers.unsupported

    def ended(self, arrived: datetime, parts: Iterable[Stored]) -> None:
        """A batch has stored these."""
        self._ended.add(arrived, parts)
        self.wake.set()

    def step(self) -> None:
        """Take in what has come, and decide what can be decided."""
        self.wake.clear()
        planned = self._planned()
        self.layers.follow(planned.above)
        if planned.above and not self._has_looked:
            self._ended.look(self._progress.decided)
            self._has_looked = True
        complete = self._runner.journal.complete(datetime.now(UTC))
        ended = self._ended.taken(complete, self.layers.sources)
        if complete <= self._progress.decided:
            return
        sources = self.layers.sources
        self.layers.push([each for file in ended for each in self._arrivals(file, sources)])
        outputs = self.layers.advance(complete)
        fresh = JoinProgress(complete, self._progress.number + bool(outputs))
        if outputs:
            self._put(outputs, planned, fresh)
        elif time.monotonic() - self._written_at > PROGRESS_EVERY_S:
            self._write(fresh)
        self._progress = fresh

    def wait_s(self, most_s: float) -> float:
        """How long nothing will have to be decided, unless something comes."""
        due = self.layers.next_decision()
        if due is None:
            return most_s
        return min(max((due - datetime.now(UTC)).total_seconds(), 0.01), most_s)

    def _stage(self, plans: Mapping[str, Plan]) -> JoinStage:
        """A stage for these joins, as if it had always been there."""
        stage = JoinStage(plans, self._planned().schemas, lateness_s=self._lateness_s)
        decided = self._progress.decided
        # After a crash too, what arrived before a join was there is none of its business.
        self._write(self._progress)
        self._note(f"reading the windows of {len(plans):,} joins from the store")
        rebuild(stage, lambda since: self._stored(since, until=decided), decided)
        return stage

    def _put(self, outputs: Sequence[Output], planned: Planned, fresh: JoinProgress) -> None:
        runner, now = self._runner, datetime.now(UTC)
        number = self._progress.number
        record = runner.journal.begin(GROUP, number, planned.path.name, now)
        numbers = {name: each for each, name in planned.names.items()}
        write_joined(
            runner.folder.store,
            number,
            record.arrived,
            outputs,
            schemas=planned.schemas,
            numbers=numbers,
        )
        found = [Found(feed, each.item) for each in outputs for feed in each.feeds]
        task = task_of(runner.folder, record, runner.operators)
        parts = runner.dispatch_found(found, task, planned, now)
        runner.meters.add(joined=len(outputs))
        self.ended(record.arrived, parts)
        self._write(fresh)
        runner.journal.finish(record)

    def _write(self, progress: JoinProgress) -> None:
        write_progress(self._path, progress)
        self._written_at = time.monotonic()

    def _stored(
        self, since: Mapping[str, datetime | None], *, until: datetime
    ) -> Iterator[Arrival]:
        """The stored items of these sources from their times on, that arrived until a moment."""
        known = [each for each in since.values() if each is not None]
        first = min(known).date() if len(known) == len(since) and known else None
        pending = self._runner.journal.pending()
        for file in stored_files(self._runner.folder.store, since=first, pending=pending):
            if not file.group.startswith(JOINED):
                whole = EndedFile(until, file.path, frozenset(since))
                for each in self._arrivals(whole, frozenset(since)):
                    start = since.get(each.item.source)
                    if each.arrived <= until and (start is None or each.item.time > start):
                        yield each

    def _arrivals(self, file: EndedFile, wanted: frozenset[str]) -> Iterator[Arrival]:
        """The items of a file that are of these sources."""
        schemas = self._planned().schemas
        names = [each for each in file.sources & wanted if each in schemas]
        table = pq.read_table(
            file.path, partitioning=None, filters=pc.field(SOURCE).isin(names or [""])
        )
        for batch in table.combine_chunks().to_batches():
            yield from _of_batch(batch, schemas)


def _of_batch(batch: pa.RecordBatch, schemas: Mapping[str, Schema]) -> Iterator[Arrival]:
    if batch.num_rows:
        source = batch.column(SOURCE)[0].as_py()
        moments = batch.column("@arrived").to_pylist()
        for item, arrived in zip(items_of_batch(batch, schemas[source]), moments, strict=True):
            yield Arrival(item, arrived.astimezone(UTC))
