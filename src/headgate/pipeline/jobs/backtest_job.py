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

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.item_columns import FEEDS, INNER, SOURCE
from headgate.match.kernels import Longs
from headgate.pipeline.jobs.over_files import Part
from headgate.pipeline.jobs.stored_batches import FILE, ROW, Looked, arrived_us
from headgate.pipeline.match_stage import Asked, match_batch
from headgate.store.item_files import ARRIVED

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
        self._asked = Asked(plans, keep=[OWN_SOURCE, ARRIVED.name, FILE, ROW])
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
