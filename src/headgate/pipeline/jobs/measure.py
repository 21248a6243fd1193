"""Measuring: how often each atom of each feed is true on its source, and how much comes from each.

    feeds ──► leaves ──► distinct atoms by source (atoms_to_measure.py) ──► a program of each source
    stored files ──► counts (measure_job.py) ──► the catalog's statistics ──► the optimisers

The span of a source is from its first item to the last item of any source: a source that fell
silent has a lower rate, not a shorter life. Where that is 0 there is no rate.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from headgate.catalog.statistics import SourceStatistics
from headgate.match.item_columns import group_of, may_hold
from headgate.match.kernels import Longs
from headgate.model.filters import Filter
from headgate.pipeline.jobs.atoms_to_measure import SourceAtoms
from headgate.pipeline.jobs.choose_runner import Runner
from headgate.pipeline.jobs.measure_job import MeasureJob
from headgate.pipeline.jobs.over_files import Note
from headgate.pipeline.jobs.stored_batches import Looked, columns_read
from headgate.pipeline.source_plan import source_plan, write_source_plan
from headgate.plan.leaves import Askers
from headgate.store.data_folder import DataFolder
from headgate.store.item_files import JOINED, StoredFile, finished_batches, stored_files
from headgate.store.read_store import to_microseconds


@dataclass(frozen=True, slots=True)
class Measured:
    statistics: Sequence[SourceStatistics]
    """Of the sources of which something came."""
    damaged: Mapping[Path, str]


@dataclass(frozen=True, slots=True)
class Measurer:
    """What is to be measured, and the files that have the answer."""

    asked: Mapping[str, SourceAtoms]
    since: datetime
    files: Sequence[StoredFile]

    @classmethod
    def prepare(
        cls, asked: Mapping[str, SourceAtoms], folder: DataFolder, *, since: datetime
    ) -> Measurer:
        certain = finished_batches(folder.batches)
        listed = stored_files(folder.store, since=since.astimezone(UTC).date())
        groups = {group_of(each.schema) for each in asked.values()}
        files = [
            each
            for each in certain.only(listed)
            # What joins have found is there a second time; it is no further item.
            if may_hold(each.group, groups) and not each.group.startswith(JOINED)
        ]
        return cls(asked, since, files)

    def run(self, runner: Runner, folder: DataFolder, note: Note) -> Measured:
        # Workers on other machines find the programs here, as they find the store.
        plans = Path(tempfile.mkdtemp(prefix=".measure-", dir=folder.path))
        try:
            paths = self._write_programs(plans)
            table = runner.run(MeasureJob(self._looked(), paths), self.files, note)
        finally:
            shutil.rmtree(plans, ignore_errors=True)
        return self._put_together(table)

    def _write_programs(self, folder: Path) -> dict[str, str]:
        paths: dict[str, str] = {}
        for source, own in self.asked.items():
            if own.atoms:
                leaves: dict[Filter, Askers] = {atom: Askers() for atom in own.atoms}
                plan = source_plan(source, own.schema, leaves, number_of={})
                paths[source] = str(write_source_plan(folder, plan).absolute())
        return paths

    def _looked(self) -> dict[str, Looked]:
        """Groups of another name than their schema's may have any source."""
        since_us, looked = to_microseconds(self.since), {}
        for group in {each.group for each in self.files}:
            own = {
                source: each
                for source, each in self.asked.items()
                if may_hold(group, {group_of(each.schema)})
            }
            read = {name for each in own.values() for name in columns_read(each.atoms, each.schema)}
            looked[group] = Looked(frozenset(own), frozenset(read), since_us)
        return looked

    def _put_together(self, table: pa.Table) -> Measured:
        totals: dict[str, _Total] = {}
        damaged: dict[Path, str] = {}
        for row in _rows(table):
            source = row["source"].as_py()
            if source is None:
                damaged[Path(row["damaged"].as_py())] = row["note"].as_py()
            else:
                totals.setdefault(source, _Total()).add(row)
        last_us = max((each.last_us for each in totals.values()), default=0)
        measured = [
            SourceStatistics(
                source,
                each.items,
                (last_us - each.first_us) / 1e6,
                {text: int(each.matched[at]) for text, at in self.asked[source].texts.items()},
            )
            for source, each in sorted(totals.items())
        ]
        return Measured(measured, damaged)


@dataclass(slots=True)
class _Total:
    """The sum over all parts."""

    items: int = 0
    first_us: int = 2**62
    last_us: int = -(2**62)
    matched: Longs = field(default_factory=lambda: np.zeros(1, np.int64))

    def add(self, row: Mapping[str, pa.Scalar]) -> None:
        self.items += row["items"].as_py()
        self.first_us = min(self.first_us, row["first"].as_py())
        self.last_us = max(self.last_us, row["last"].as_py())
        # Not as a list of Python's: there may be a million atoms.
        self.matched = self.matched + np.asarray(row["matched"].values)


def _rows(table: pa.Table) -> Iterator[dict[str, pa.Scalar]]:
    for batch in table.to_batches():
        for at in range(batch.num_rows):
            yield {name: batch.column(name)[at] for name in batch.schema.names}
