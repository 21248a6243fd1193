"""Which items would a feed have had, if it had been registered in the past?

    statement ──► check, compose, normalise ──► source plans            (backtest_query.py)
    files of the log ──► match stage ──► counts by day, samples         BacktestJob, per part
                     ──► join inputs ──► join stage                     (backtest_query.py)

Plans, match stage and join stage are those of a run, so a backtest gives the results of a run. An
item counts on the day of its arrival; if a join put it into the feed, on the day of the decision.

Invariant: an item is counted if and only if the naive evaluator puts it into the feed.

The leaves of a plan are its filters on sources. *Matched* items are in the feed; *further* items
are inputs of its joins, patterns or operators. The log alone does not decide operators and joins
of tables. For feeds with these only the items that pass the leaves are counted, as `further`, and
`only_leaves` gives the reason.

The rows that a part returns, with the columns that each kind fills:

    count     source, day, items, matched, further     one row per source and day
    place     position, direct                         the position of a sample or join input
    damaged   file, note                               a file that cannot be read

Of matched items only the positions of the newest few are returned, as samples; of join inputs all,
if there is a join to replay.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.batch import EPOCH, microseconds
from headgate.match.bit_rows import Longs
from headgate.match.item_columns import FEEDS, INNER, SOURCE
from headgate.pipeline.jobs.backtest_query import POSITIONS_MAX, BacktestQuery, JoinReplay
from headgate.pipeline.jobs.job import LogPart, Note, Runner
from headgate.pipeline.jobs.stored_batches import ARRIVED, POSITION, StoredRowReader
from headgate.pipeline.match_stage import MatchConfig, match_batch
from headgate.pipeline.source_plan import write_source_plan
from headgate.store.file_ranges import FileRange, ranges_since
from headgate.store.log_items import LoggedItem
from headgate.store.log_storage import LogStorage
from headgate.store.log_view import LogView

ORIGINAL_SOURCE = "@own"
"""The column with the source of a row, while SOURCE holds the path of its plan."""
DAY_US = 86_400_000_000
RESULT = pa.schema(
    [
        pa.field("kind", pa.string()),
        pa.field("file", pa.string()),
        pa.field("source", pa.string()),
        pa.field("day", pa.int64()),
        pa.field("items", pa.int64()),
        pa.field("matched", pa.int64()),
        pa.field("further", pa.int64()),
        pa.field("position", pa.int64()),
        pa.field("direct", pa.bool_()),
        pa.field("note", pa.string()),
    ]
)
SourceDay = tuple[str, int]
Bools = np.ndarray[tuple[int], np.dtype[np.bool_]]


# One part of the files


@dataclass(frozen=True, slots=True)
class BacktestJob:
    reader: StoredRowReader
    plans: Mapping[str, str]
    """For each source the path of its plan. Sources with the same filters share a plan."""
    count_since_us: int
    """Earlier rows are not counted; they are inputs of joins, whose windows reach back."""
    samples: int
    join_inputs: bool
    """Whether the positions of all join inputs are returned."""

    @property
    def result(self) -> pa.Schema:
        return RESULT

    def run(self, part: LogPart) -> Iterator[pa.RecordBatch]:
        counts = _PartCounts(self)
        damaged: dict[str, str] = {}
        for batch in self.reader.batches(part, damaged):
            yield from counts.add(batch)
        yield from counts.rows()
        if damaged:
            yield _rows("damaged", len(damaged), file=list(damaged), note=list(damaged.values()))


class _PartCounts:
    """The counts and samples of one part."""

    def __init__(self, job: BacktestJob) -> None:
        self._job = job
        plans = {path: [path] for path in job.plans.values()}
        self._config = MatchConfig(plans, keep=[ORIGINAL_SOURCE, ARRIVED, POSITION])
        self._sources = pa.array(job.plans, pa.string())
        self._plan_paths = pa.array(job.plans.values(), pa.string())
        self._items: Counter[SourceDay] = Counter()
        self._matched: Counter[SourceDay] = Counter()
        self._further: Counter[SourceDay] = Counter()
        self._newest: Longs = np.zeros(0, np.int64)
        """The positions of the newest matched items."""

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Counts the rows of a batch, and returns the positions of join inputs."""
        by_plan = self._by_plan(batch)
        is_counted = np.asarray(by_plan.column(ARRIVED)) >= self._job.count_since_us
        _count(self._items, by_plan, is_counted)
        for matched in match_batch(by_plan, self._config):
            is_counted = np.asarray(matched.column(ARRIVED)) >= self._job.count_since_us
            is_direct, is_input = (_has_any(matched, name) for name in (FEEDS, INNER))
            _count(self._matched, matched, is_counted & is_direct)
            _count(self._further, matched, is_counted & is_input)
            positions = np.asarray(matched.column(POSITION))
            self._keep_newest(positions[is_direct & is_counted])
            if self._job.join_inputs and is_input.any():
                yield _positions(positions[is_input], is_direct[is_input])

    def _by_plan(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with the path of their plan as the source, so that one call of the matcher
        serves all sources with the same plan."""
        index = batch.schema.get_field_index(SOURCE)
        plans = self._plan_paths.take(pc.index_in(batch.column(index), self._sources))
        with_source = batch.append_column(ORIGINAL_SOURCE, batch.column(index))
        return with_source.set_column(index, SOURCE, plans)

    def rows(self) -> Iterator[pa.RecordBatch]:
        keys = sorted(self._items)
        if keys:
            yield _rows(
                "count",
                len(keys),
                source=[source for source, _ in keys],
                day=[day for _, day in keys],
                items=[self._items[key] for key in keys],
                matched=[self._matched[key] for key in keys],
                further=[self._further[key] for key in keys],
            )
        if self._newest.size:
            yield _positions(self._newest, np.ones(self._newest.size, bool))

    def _keep_newest(self, positions: Longs) -> None:
        """Keep the newest few of these and of the earlier ones."""
        candidates = np.sort(np.concatenate([self._newest, positions]), kind="mergesort")
        self._newest = candidates[max(0, candidates.size - self._job.samples) :]


def _positions(positions: Longs, is_direct: Bools) -> pa.RecordBatch:
    return _rows("place", positions.size, position=positions, direct=is_direct)


def _has_any(batch: pa.RecordBatch, name: str) -> Bools:
    """For each row, whether its list in this column has elements."""
    return np.diff(np.asarray(batch.column(name).offsets)) > 0


def _count(counter: Counter[SourceDay], batch: pa.RecordBatch, mask: Bools) -> None:
    """Count the rows of the mask by source and day."""
    rows = batch.filter(pa.array(mask))
    if not rows.num_rows:
        return
    days = pa.array(np.asarray(rows.column(ARRIVED)) // DAY_US)
    table = pa.table({"source": rows.column(ORIGINAL_SOURCE), "day": days})
    counts = table.group_by(["source", "day"]).aggregate([([], "count_all")])
    columns = (counts.column(name).to_pylist() for name in ("source", "day", "count_all"))
    for source, day, number in zip(*columns, strict=True):
        counter[source, day] += number


def _rows(kind: str, count: int, **columns: object) -> pa.RecordBatch:
    """Rows of one kind; the other columns are null."""
    values: dict[str, object] = {"kind": [kind] * count, **columns}
    arrays = [
        pa.array(values[field.name], field.type)
        if field.name in values
        else pa.nulls(count, field.type)
        for field in RESULT
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=RESULT)


# The whole backtest


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
        # In the data folder, where workers on other machines can read the plans.
        shared = view.folder.path if view.folder.path.is_dir() else None
        plan_folder = Path(tempfile.mkdtemp(prefix=".backtest-", dir=shared))
        try:
            # Without the source's name, plans with the same filters are the same file.
            paths = {
                source: str(write_source_plan(plan_folder, replace(plan, source="")).absolute())
                for source, plan in self.query.plans.items()
            }
            table = runner.run(self._job(paths, view.storage), self.ranges, note)
        finally:
            shutil.rmtree(plan_folder, ignore_errors=True)
        result = self._result(table, view, note)
        result.damaged |= view.damaged
        return result

    def _job(self, plans: Mapping[str, str], storage: LogStorage) -> BacktestJob:
        read_us = 0 if self.read_since is None else microseconds(self.read_since)
        return BacktestJob(
            StoredRowReader(storage, frozenset(plans), self.query.attributes, read_us),
            plans,
            count_since_us=microseconds(self.since),
            samples=self.samples,
            join_inputs=self.replay is not None and not self.replay.unsupported,
        )

    def _result(self, table: pa.Table, view: LogView, note: Note) -> Backtest:
        """The sum over all parts, and the results of joins."""
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
        result.samples += self._samples(view, direct, joined)
        return result

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
        """The newest items; of those that are join inputs too, some may be too early to count."""
        since_us = microseconds(self.since)

        def newest() -> list[LoggedItem]:
            places = view.places(sorted(direct))
            counted = {place.position for place in places if place.arrived_us >= since_us}
            wanted = sorted({*counted, *joined}, reverse=True)[: self.samples]
            return view.read(view.places(wanted))[::-1]

        return view.ask(newest)


def _of_kind(table: pa.Table, kind: str) -> pa.Table:
    return table.filter(pc.equal(table.column("kind"), kind))
