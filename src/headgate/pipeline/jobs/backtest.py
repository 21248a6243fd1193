"""What one part of a backtest tells: counts by source and day, and where matched rows lie.

    kind      path  source  day  items  matched  further   arrived  row  direct  note
    count           …       …    …      …        …
    place     …                                            …        …    …
    damaged   …                                                                  …

`matched` are items that the feed has; `further` those that its joins, patterns or operators look
at. Of matched items the newest few are told, as samples; of the others all, if they are asked for:
joins need them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.bit_rows import Longs
from headgate.match.item_columns import FEEDS, INNER, SOURCE
from headgate.pipeline.jobs.backtest_query import PLACES_MAX, BacktestQuery, Replay
from headgate.pipeline.jobs.job import Note, Part, Runner
from headgate.pipeline.jobs.stored_batches import FILE, ROW, Looked, arrived_us
from headgate.pipeline.match_stage import MatchConfig, match_batch
from headgate.pipeline.source_plan import write_source_plan
from headgate.store.data_folder import DataFolder
from headgate.store.item_files import ARRIVED, StoredFile, finished_batches, stored_files
from headgate.store.read_store import EPOCH, RowLocation, StoredRow, read_rows, to_microseconds

OWN_SOURCE = "@own"
DAY_US = 86_400_000_000
RESULT = pa.schema(
    [
        pa.field("kind", pa.string()),
        pa.field("path", pa.string()),
        pa.field("source", pa.string()),
        pa.field("day", pa.int64()),
        pa.field("items", pa.int64()),
        pa.field("matched", pa.int64()),
        pa.field("further", pa.int64()),
        pa.field("arrived", pa.int64()),
        pa.field("row", pa.int64()),
        pa.field("direct", pa.bool_()),
        pa.field("note", pa.string()),
    ]
)
SourceDay = tuple[str, int]


@dataclass(frozen=True, slots=True)
class BacktestJob:
    looked: Looked
    plans: Mapping[str, str]
    """For each source the path of its plan; sources of which the same is asked have the same."""
    count_since_us: int
    """Earlier rows are only looked at for joins: their windows reach back."""
    samples: int
    places: bool
    """Whether all rows that are looked further at are told."""

    @property
    def result(self) -> pa.Schema:
        return RESULT

    def run(self, part: Part) -> Iterator[pa.RecordBatch]:
        tally = _Tally(self, part)
        damaged: dict[str, str] = {}
        for batch in self.looked.batches(part, damaged):
            yield from tally.add(batch)
        yield from tally.rows()
        if damaged:
            yield _rows("damaged", len(damaged), path=list(damaged), note=list(damaged.values()))


class _Tally:
    def __init__(self, job: BacktestJob, part: Part) -> None:
        self._job, self._part = job, part
        plans = {path: [path] for path in job.plans.values()}
        self._asked = MatchConfig(plans, keep=[OWN_SOURCE, ARRIVED.name, FILE, ROW])
        self._sources = pa.array(job.plans, pa.string())
        self._paths = pa.array(job.plans.values(), pa.string())
        self._items: Counter[SourceDay] = Counter()
        self._matched: Counter[SourceDay] = Counter()
        self._further: Counter[SourceDay] = Counter()
        self._newest: Longs = np.zeros((3, 0), np.int64)

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Counts the rows; those that are looked further at are told at once."""
        asked = self._by_plan(batch)
        _count(self._items, asked, np.asarray(arrived_us(asked)) >= self._job.count_since_us)
        for found in match_batch(asked, self._asked):
            arrived = np.asarray(arrived_us(found))
            counted = arrived >= self._job.count_since_us
            direct, inner = (_has_any(found, name) for name in (FEEDS, INNER))
            _count(self._matched, found, counted & direct)
            _count(self._further, found, counted & inner)
            files, rows = (np.asarray(found.column(name)) for name in (FILE, ROW))
            places = np.stack([arrived, files, rows])
            self._keep(places[:, direct & counted])
            if self._job.places and inner.any():
                yield self._places(places[:, inner], direct[inner])

    def _by_plan(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows as if all that are asked the same were of one source: one call for all."""
        at = batch.schema.get_field_index(SOURCE)
        plans = self._paths.take(pc.index_in(batch.column(at), self._sources))
        own = batch.append_column(OWN_SOURCE, batch.column(at))
        return own.set_column(at, SOURCE, plans)

    def _places(
        self, places: Longs, direct: np.ndarray[tuple[int], np.dtype[np.bool_]]
    ) -> pa.RecordBatch:
        arrived, files, rows = places
        paths = [self._part[each] for each in files.tolist()]
        return _rows("place", len(rows), path=paths, arrived=arrived, row=rows, direct=direct)

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
            yield self._places(self._newest, np.ones(self._newest.shape[1], bool))

    def _keep(self, places: Longs) -> None:
        """The newest few of these and of those before."""
        both = np.concatenate([self._newest, places], axis=1)
        arrived, files, rows = both
        newest = np.lexsort((rows, files, arrived))[::-1][: self._job.samples]
        self._newest = both[:, newest]


def _has_any(found: pa.RecordBatch, name: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.diff(np.asarray(found.column(name).offsets)) > 0


def _count(
    counter: Counter[SourceDay],
    batch: pa.RecordBatch,
    chosen: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> None:
    rows = batch.filter(pa.array(chosen))
    if not rows.num_rows:
        return
    days = pa.array(np.asarray(arrived_us(rows)) // DAY_US)
    table = pa.table({"source": rows.column(OWN_SOURCE), "day": days})
    counts = table.group_by(["source", "day"]).aggregate([([], "count_all")])
    columns = (counts.column(name).to_pylist() for name in ("source", "day", "count_all"))
    for source, day, number in zip(*columns, strict=True):
        counter[source, day] += number


def _rows(kind: str, count: int, **columns: object) -> pa.RecordBatch:
    """So many rows of a kind; what is not given is null."""
    given: dict[str, object] = {"kind": [kind] * count, **columns}
    arrays = [
        pa.array(given[field.name], field.type)
        if field.name in given
        else pa.nulls(count, field.type)
        for field in RESULT
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=RESULT)


# === part: headgate.pipeline.jobs.backtest
# What would a feed have had, had it been there? (DESIGN.md §6, jobs)
#
#     statement ──► check, compose, normalise ──► source plans               (backtest_question.py)
#     stored files ──► the match stage on these ──► counts by day, samples   (backtest_job.py)
#                  ──► what is looked further at ──► the join stage          (replay_joins.py)
#
# Plans, match stage and join stage are those of a run, so a backtest says what a run would have
# said.
# An item counts on the day on which it arrived or, behind a join, on which it was decided.
#
# Law: an item is counted exactly if the naive evaluator says that the feed has it.
#
# What the store cannot tell is told as such: for feeds with operators or joins of tables only what
# their leaves let through is counted, as `further`, and `only_leaves` says why.


@dataclass(slots=True)
class BacktestSourceCounts:
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
    sources: dict[str, BacktestSourceCounts]
    samples: list[StoredRow] = field(default_factory=list)
    """The newest first."""
    only_leaves: str = ""
    """Why what stands above the leaves was left out, if it was."""
    damaged: dict[Path, str] = field(default_factory=dict)
    ran: str = ""
    """Where the job ran."""

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

    question: BacktestQuery
    since: datetime
    until: datetime
    samples: int
    files: Sequence[StoredFile]
    replay: Replay | None
    read_since: datetime | None

    @classmethod
    def prepare(
        cls,
        question: BacktestQuery,
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
        sources = {name: BacktestSourceCounts() for name in sorted(self.question.plans)}
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
