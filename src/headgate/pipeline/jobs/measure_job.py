"""What one part of measuring tells: for each source how many items came, when, and how many of them
satisfy each of its atoms.

All atoms of a source are one program, each a subscription of its own, so that one pass over a batch
answers them all (match/program.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.arrow import batch_of_arrow
from headgate.match.item_columns import SOURCE
from headgate.match.kernels import Longs
from headgate.match.matcher import ProgramMatcher
from headgate.pipeline.jobs.over_files import Part
from headgate.pipeline.jobs.stored_batches import Looked, arrived_us
from headgate.pipeline.match_stage import BATCH
from headgate.pipeline.source_plan import SourcePlan, open_source_plan

RESULT = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field("items", pa.int64()),
        pa.field("first", pa.int64()),
        pa.field("last", pa.int64()),
        pa.field("matched", pa.list_(pa.int64())),
        pa.field("damaged", pa.string()),
        pa.field("note", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class MeasureJob:
    looked: Mapping[str, Looked]
    """For each group of files which rows and columns of them; by the folder's name."""
    plans: Mapping[str, str]
    """For each source that has atoms the path of their program."""

    @property
    def result(self) -> pa.Schema:
        return RESULT

    def run(self, part: Part) -> Iterator[pa.RecordBatch]:
        measured: dict[str, _Measured] = {}
        damaged: dict[str, str] = {}
        for group, own in groupby(part, key=lambda path: Path(path).parent.parent.name):
            for batch in self.looked[group].batches(tuple(own), damaged):
                self._measure(batch, measured)
        for path, reason in damaged.items():
            yield _row(damaged=path, note=reason)
        for source, each in sorted(measured.items()):
            yield _row(
                source=source,
                items=each.items,
                first=each.first_us,
                last=each.last_us,
                matched=each.matched,
            )

    def _measure(self, batch: pa.RecordBatch, measured: dict[str, _Measured]) -> None:
        for source, rows in _by_source(batch):
            path = self.plans.get(source)
            plan = None if path is None else _opened(path)
            measured.setdefault(source, _Measured()).add(rows, plan)


@dataclass(slots=True)
class _Measured:
    items: int = 0
    first_us: int = 2**62
    last_us: int = -(2**62)
    matched: Longs = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, rows: pa.RecordBatch, plan: SourcePlan | None) -> None:
        arrived = np.asarray(arrived_us(rows))
        self.items += rows.num_rows
        self.first_us = min(self.first_us, int(arrived.min()))
        self.last_us = max(self.last_us, int(arrived.max()))
        if plan is None:
            return
        if not self.matched.size:
            self.matched = np.zeros(plan.program.subscription_count, np.int64)
        for start in range(0, rows.num_rows, BATCH):
            some = batch_of_arrow(rows.slice(start, BATCH), plan.schema)
            self.matched += ProgramMatcher(plan.program).count(some).by_subscription()


def _by_source(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Sorted once, however many sources there are."""
    ordered = batch.sort_by(SOURCE)
    ends = pc.run_end_encode(ordered.column(SOURCE))
    start = 0
    for source, end in zip(ends.values.to_pylist(), ends.run_ends.to_pylist(), strict=True):
        yield source, ordered.slice(start, end - start)
        start = end


def _row(**columns: object) -> pa.RecordBatch:
    """One row; what is not given is null."""
    arrays = [pa.array([columns.get(field.name)], field.type) for field in RESULT]
    return pa.RecordBatch.from_arrays(arrays, schema=RESULT)


@lru_cache(maxsize=256)
def _opened(path: str) -> SourcePlan:
    return open_source_plan(Path(path))
