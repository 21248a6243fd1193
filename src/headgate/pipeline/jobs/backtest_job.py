"""One part of a backtest: some files of the log through the match stage.

The rows that a part returns, with the columns that each kind fills:

    count     source, day, items, matched, further     one row per source and day
    place     position, direct                         the position of a sample or join input
    damaged   file, note                               a file that cannot be read

Of matched items only the positions of the newest few are returned, as samples; of join inputs all,
if there is a join to replay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.bit_rows import Longs
from headgate.match.item_columns import FEEDS, INNER, SOURCE
from headgate.pipeline.jobs.job import LogPart
from headgate.pipeline.jobs.stored_batches import ARRIVED, POSITION, StoredRowReader
from headgate.pipeline.match_stage import MatchConfig, match_batch

ORIGINAL_SOURCE = "@own"
"""The column with the source of a row, while SOURCE holds the path of its plan."""
DAY_US = 86_400_000_000
NEWEST_SLACK = 4_096
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


@dataclass(frozen=True, slots=True)
class BacktestJob:
    reader: StoredRowReader
    plans: Mapping[str, str]
    """For each source the path of its plan. Sources with the same filters share a plan."""
    count_since_us: int
    """Earlier rows are not counted; they are inputs of joins, whose windows reach back."""
    until_us: int
    """Rows that arrived then or later are left out."""
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
        self._newest: list[Longs] = []
        """The positions of the newest matched items, and of some older ones."""
        self._newest_count = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Counts the rows of a batch, and returns the positions of join inputs."""
        batch = batch.filter(pc.less(batch.column(ARRIVED), self._job.until_us))
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
        newest = self._only_newest()
        if newest.size:
            yield _positions(newest, np.ones(newest.size, bool))

    def _keep_newest(self, positions: Longs) -> None:
        """Keep at least the newest few of these and of the earlier ones."""
        self._newest.append(positions)
        self._newest_count += positions.size
        if self._newest_count > 2 * self._job.samples + NEWEST_SLACK:
            self._newest = [self._only_newest()]
            self._newest_count = self._newest[0].size

    def _only_newest(self) -> Longs:
        known = np.sort(np.concatenate([np.zeros(0, np.int64), *self._newest]), kind="mergesort")
        return known[max(0, known.size - self._job.samples) :]


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
