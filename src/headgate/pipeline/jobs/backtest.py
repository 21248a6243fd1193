"""Which items would a feed have had, if it had been registered in the past?

    statement ──► check, compose, normalise ──► source plans            (backtest_query.py)
    files of the log ──► match stage ──► counts by day, samples         (backtest_job.py)
                     ──► join inputs ──► join stage                     (backtest_query.py)

Plans, match stage and join stage are those of a run, so a backtest gives the results of a run. An
item counts on the day of its arrival; if a join put it into the feed, on the day of the decision.

Invariant: an item is counted if and only if the naive evaluator puts it into the feed.

The leaves of a plan are its filters on sources. *Matched* items are in the feed; *further* items
are inputs of its joins, patterns or operators. The log alone does not decide operators and joins
of tables. For feeds with these only the items that pass the leaves are counted, as `further`, and
`only_leaves` gives the reason.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.batch import EPOCH, microseconds
from headgate.pipeline.jobs.backtest_job import BacktestJob
from headgate.pipeline.jobs.backtest_query import POSITIONS_MAX, BacktestQuery, JoinReplay
from headgate.pipeline.jobs.job import Note, Runner
from headgate.pipeline.jobs.stored_batches import StoredRowReader
from headgate.pipeline.source_plan import write_source_plan
from headgate.store.file_ranges import FileRange, ranges_since
from headgate.store.log_items import LoggedItem
from headgate.store.log_storage import LogStorage
from headgate.store.log_view import LogView


@dataclass(slots=True)
class BacktestSourceCounts:
    """By the day of arrival or decision."""

    items: Counter[date] = field(default_factory=Counter)
    matched: Counter[date] = field(default_factory=Counter)
    further: Counter[date] = field(default_factory=Counter)
    """Inputs of joins, patterns and operators."""


@dataclass(slots=True)
class Backtest:
    feed: str
    since: datetime
    until: datetime
    sources: dict[str, BacktestSourceCounts]
    samples: list[LoggedItem] = field(default_factory=list)
    """The newest first."""
    only_leaves: str = ""
    """Why joins, patterns and operators were not evaluated, if they were not."""
    damaged: dict[str, str] = field(default_factory=dict)
    ran: str = ""
    """Where the job ran."""

    @property
    def by_day(self) -> dict[date, int]:
        """The matched items of each day, days without any included."""
        matched = sum((counts.matched for counts in self.sources.values()), Counter[date]())
        first = self.since.date()
        count = (self.until.date() - first).days + 1
        return {day: matched[day] for day in (first + timedelta(n) for n in range(count))}

    @property
    def items(self) -> int:
        return sum(counts.items.total() for counts in self.sources.values())

    @property
    def matched(self) -> int:
        return sum(counts.matched.total() for counts in self.sources.values())

    @property
    def further(self) -> int:
        return sum(counts.further.total() for counts in self.sources.values())

    @property
    def span_s(self) -> float:
        return (self.until - self.since).total_seconds()


@dataclass(frozen=True, slots=True)
class MatchedItems:
    """All that a feed would have had, by position, with the counts."""

    counts: Backtest
    positions: frozenset[int]

    @property
    def unknown(self) -> str:
        """Why the positions are not all, if they are not."""
        if self.counts.only_leaves:
            return self.counts.only_leaves
        is_cut = self.counts.matched > len(self.positions)
        return f"it has more than {POSITIONS_MAX:,} items" if is_cut else ""


@dataclass(frozen=True, slots=True)
class Backtester:
    """A query, and what it reads of the log."""

    query: BacktestQuery
    since: datetime
    until: datetime
    samples: int
    ranges: Sequence[FileRange]
    replay: JoinReplay | None
    """None for a feed without joins, patterns and operators."""
    read_since: datetime | None
    """Items that arrived earlier do not matter; None if all matter."""

    @classmethod
    def prepare(
        cls,
        query: BacktestQuery,
        view: LogView,
        *,
        since: datetime,
        until: datetime,
        samples: int,
    ) -> Backtester:
        replay: JoinReplay | None = None
        read_since: datetime | None = since
        if query.has_join_inputs:
            replay = JoinReplay(query.feed, query.plan, query.schemas)
            if not replay.unsupported:
                read_since = replay.read_from(since)
        read_us = 0 if read_since is None else microseconds(read_since)
        ranges = [each for each in ranges_since(view, read_us) if query.may_be_in(each.file.group)]
        return cls(query, since, until, samples, ranges, replay, read_since)

    def run(self, runner: Runner, view: LogView, note: Note) -> Backtest:
        """The counts, and the newest items as samples."""
        result, direct, joined = self._collect(self._table(runner, view, note), view, note)
        result.samples += self._samples(view, direct, joined)
        return result

    def run_whole(self, runner: Runner, view: LogView, note: Note) -> MatchedItems:
        """The counts, and the positions of all items. `samples` must be POSITIONS_MAX."""
        assert self.samples == POSITIONS_MAX
        result, direct, joined = self._collect(self._table(runner, view, note), view, note)
        return MatchedItems(result, frozenset([*self._counted(view, direct), *joined]))

    def _table(self, runner: Runner, view: LogView, note: Note) -> pa.Table:
        # In the data folder, where workers on other machines can read the plans.
        shared = view.folder.path if view.folder.path.is_dir() else None
        plan_folder = Path(tempfile.mkdtemp(prefix=".backtest-", dir=shared))
        try:
            # Without the source's name, plans with the same filters are the same file.
            paths = {
                source: str(write_source_plan(plan_folder, replace(plan, source="")).absolute())
                for source, plan in self.query.plans.items()
            }
            return runner.run(self._job(paths, view.storage), self.ranges, note)
        finally:
            shutil.rmtree(plan_folder, ignore_errors=True)

    def _job(self, plans: Mapping[str, str], storage: LogStorage) -> BacktestJob:
        read_us = 0 if self.read_since is None else microseconds(self.read_since)
        return BacktestJob(
            StoredRowReader(storage, frozenset(plans), self.query.attributes, read_us),
            plans,
            count_since_us=microseconds(self.since),
            until_us=microseconds(self.until),
            samples=self.samples,
            join_inputs=self.replay is not None and not self.replay.unsupported,
        )

    def _collect(
        self, table: pa.Table, view: LogView, note: Note
    ) -> tuple[Backtest, set[int], list[int]]:
        """The sum over all parts, the positions that leaves put into the feed, and those that joins
        did."""
        sources = {name: BacktestSourceCounts() for name in sorted(self.query.plans)}
        result = Backtest(self.query.feed, self.since, self.until, sources)
        for row in _of_kind(table, "count").to_pylist():
            counts, day = sources[row["source"]], EPOCH.date() + timedelta(days=row["day"])
            counts.items[day] += row["items"]
            counts.matched[day] += row["matched"]
            counts.further[day] += row["further"]
        damaged = _of_kind(table, "damaged").select(["file", "note"]).to_pylist()
        result.damaged |= {row["file"]: row["note"] for row in damaged}
        places = _of_kind(table, "place")
        positions = np.unique(np.asarray(places.column("position")))
        direct = set(places.filter(places.column("direct")).column("position").to_pylist())
        joined = self._replay_joins(result, direct, positions.tolist(), view, note)
        result.damaged |= view.damaged
        return result, direct, joined

    def _replay_joins(
        self,
        result: Backtest,
        direct: set[int],
        positions: Sequence[int],
        view: LogView,
        note: Note,
    ) -> list[int]:
        """Counts the items that joins and patterns put into the feed; returns their positions."""
        if self.replay is None:
            return []
        result.only_leaves = self.replay.unsupported
        if len(positions) > POSITIONS_MAX:
            result.only_leaves = f"its leaves let through more than {POSITIONS_MAX:,} items"
        if result.only_leaves:
            return []
        joined: list[int] = []
        for item in self.replay.run(positions, self.until, view, note):
            # An item that a leaf puts into the feed is counted already.
            if item.decided_at >= self.since and item.position not in direct:
                result.sources[item.source].matched[item.decided_at.date()] += 1
                joined.append(item.position)
        return joined

    def _samples(self, view: LogView, direct: set[int], joined: Sequence[int]) -> list[LoggedItem]:
        """The newest items."""
        wanted = sorted({*self._counted(view, direct), *joined}, reverse=True)[: self.samples]
        return view.ask(lambda: view.read(view.places(wanted))[::-1])

    def _counted(self, view: LogView, direct: set[int]) -> set[int]:
        """Those of the positions that count: of join inputs, some may be too early."""
        if self.replay is None:
            return direct
        since_us = microseconds(self.since)
        places = view.ask(lambda: view.places(sorted(direct)))
        return {place.position for place in places if place.arrived_us >= since_us}


def _of_kind(table: pa.Table, kind: str) -> pa.Table:
    return table.filter(pc.equal(table.column("kind"), kind))
