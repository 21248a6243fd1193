"""What would a feed have had, had it been there? (DESIGN.md §6, jobs)

    statement ──► check, compose, normalise ──► source plans               (backtest_question.py)
    stored files ──► the match stage on these ──► counts by day, samples   (backtest_job.py)
                 ──► what is looked further at ──► the join stage          (replay_joins.py)

Plans, match stage and join stage are those of a run, so a backtest says what a run would have said.
An item counts on the day on which it arrived or, behind a join, on which it was decided.

Law: an item is counted exactly if the naive evaluator says that the feed has it.

What the store cannot tell is told as such: for feeds with operators or joins of tables only what
their leaves let through is counted, as `further`, and `only_leaves` says why.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from headgate.pipeline.jobs.backtest_job import BacktestJob
from headgate.pipeline.jobs.backtest_question import Question
from headgate.pipeline.jobs.choose_runner import Runner
from headgate.pipeline.jobs.over_files import Note
from headgate.pipeline.jobs.replay_joins import PLACES_MAX, Replay
from headgate.pipeline.jobs.stored_batches import Looked
from headgate.pipeline.source_plan import write_source_plan
from headgate.store.data_folder import DataFolder
from headgate.store.item_files import StoredFile, finished_batches, stored_files
from headgate.store.read_store import EPOCH, RowLocation, StoredRow, read_rows, to_microseconds


@dataclass(slots=True)
class SourceCounts:
    """By the day of arrival or decision."""

    items: Counter[date] = field(default_factory=Counter)
    matched: Counter[date] = field(default_factory=Counter)
    further: Counter[date] = field(default_factory=Counter)
    """Items that something above the leaves looks at."""


@dataclass(slots=True)
class Backtest:
    feed: str
    since: datetime
    until: datetime
    sources: dict[str, SourceCounts]
    samples: list[StoredRow] = field(default_factory=list)
    """The newest first."""
    only_leaves: str = ""
    """Why what stands above the leaves was left out, if it was."""
    damaged: dict[Path, str] = field(default_factory=dict)

    @property
    def by_day(self) -> dict[date, int]:
        """Every day from the first to the last, also those on which nothing came."""
        matched = sum((each.matched for each in self.sources.values()), Counter[date]())
        first = self.since.date()
        count = (self.until.date() - first).days + 1
        return {day: matched[day] for day in (first + timedelta(n) for n in range(count))}

    @property
    def items(self) -> int:
        return sum(each.items.total() for each in self.sources.values())

    @property
    def matched(self) -> int:
        return sum(each.matched.total() for each in self.sources.values())

    @property
    def further(self) -> int:
        return sum(each.further.total() for each in self.sources.values())

    @property
    def span_s(self) -> float:
        return (self.until - self.since).total_seconds()


@dataclass(frozen=True, slots=True)
class Backtester:
    """A question, and the files that have the answer."""

    question: Question
    since: datetime
    until: datetime
    samples: int
    files: Sequence[StoredFile]
    replay: Replay | None
    read_since: datetime | None

    @classmethod
    def prepare(
        cls,
        question: Question,
        folder: DataFolder,
        *,
        since: datetime,
        until: datetime,
        samples: int,
    ) -> Backtester:
        replay: Replay | None = None
        read_since: datetime | None = since
        if question.looks_further:
            replay = Replay(question.feed, question.plan, question.schemas)
            if not replay.unsupported:
                read_since = replay.read_from(since)
        certain = finished_batches(folder.batches)
        day = None if read_since is None else read_since.astimezone(UTC).date()
        listed = stored_files(folder.store, since=day)
        files = [each for each in certain.only(listed) if question.may_be_in(each.group)]
        return cls(question, since, until, samples, files, replay, read_since)

    def run(self, runner: Runner, folder: DataFolder, note: Note) -> Backtest:
        # Workers on other machines find the plans here, as they find the store.
        plans = Path(tempfile.mkdtemp(prefix=".backtest-", dir=folder.path))
        try:
            # Without the source's name, plans that ask the same are the same file.
            paths = {
                source: str(write_source_plan(plans, replace(plan, source="")).absolute())
                for source, plan in self.question.plans.items()
            }
            table = runner.run(self._job(paths), self.files, note)
        finally:
            shutil.rmtree(plans, ignore_errors=True)
        return self._put_together(table, note)

    def _job(self, plans: Mapping[str, str]) -> BacktestJob:
        read_us = 0 if self.read_since is None else to_microseconds(self.read_since)
        return BacktestJob(
            Looked(frozenset(plans), self.question.attributes, read_us),
            plans,
            count_since_us=to_microseconds(self.since),
            samples=self.samples,
            places=self.replay is not None and not self.replay.unsupported,
        )

    def _put_together(self, table: pa.Table, note: Note) -> Backtest:
        sources = {name: SourceCounts() for name in sorted(self.question.plans)}
        found = Backtest(self.question.feed, self.since, self.until, sources)
        for row in _of_kind(table, "count").to_pylist():
            counts, day = sources[row["source"]], EPOCH.date() + timedelta(days=row["day"])
            counts.items[day] += row["items"]
            counts.matched[day] += row["matched"]
            counts.further[day] += row["further"]
        damaged = _of_kind(table, "damaged").select(["path", "note"]).to_pylist()
        found.damaged |= {Path(row["path"]): row["note"] for row in damaged}
        direct, candidates = _places(_of_kind(table, "place"))
        joined = self._joined(found, direct, candidates, note)
        since_us = to_microseconds(self.since)
        own = {each for each in direct if each.arrived_us >= since_us}
        newest = sorted({*own, *joined}, reverse=True)[: self.samples]
        found.samples += [row for _, row in read_rows(newest, found.damaged)]
        return found

    def _joined(
        self,
        found: Backtest,
        direct: set[RowLocation],
        candidates: Sequence[RowLocation],
        note: Note,
    ) -> list[RowLocation]:
        """Counts what joins and patterns have found, and where that lies."""
        if self.replay is None:
            return []
        found.only_leaves = self.replay.unsupported
        if len(candidates) > PLACES_MAX:
            found.only_leaves = f"its leaves let through more than {PLACES_MAX:,} items"
        if found.only_leaves:
            return []
        places: list[RowLocation] = []
        for each in self.replay.run(candidates, self.until, found.damaged, note):
            # An item that also a leaf has found alone is counted.
            if each.decided_at >= self.since and each.place not in direct:
                found.sources[each.source].matched[each.decided_at.date()] += 1
                places.append(each.place)
        return places


def _of_kind(table: pa.Table, kind: str) -> pa.Table:
    return table.filter(pc.equal(table.column("kind"), kind))


def _places(rows: pa.Table) -> tuple[set[RowLocation], list[RowLocation]]:
    """Those that leaves have found alone, as far as they are told; and all that are looked at."""
    columns = (rows.column(name).to_pylist() for name in ("arrived", "path", "row", "direct"))
    direct: set[RowLocation] = set()
    places: dict[RowLocation, None] = {}
    for arrived, path, row, is_direct in zip(*columns, strict=True):
        place = RowLocation(arrived, path, row)
        places[place] = None
        if is_direct:
            direct.add(place)
    return direct, list(places)
