"""Measure how often each atom of the feeds is true on its source, and the rate of each source.

    feeds ──► leaves ──► distinct atoms of each source ──► one program per source
    files of the log ──► counts per part ──► statistics in the catalog ──► optimisers

All atoms of a source form one program, in which each atom is a subscription. So one pass over a
batch counts them all (match/program.py).

An atom that is written in two ways ('Rock', 'rock') is one atom. It is counted once and recorded
under both texts, so that a lookup by either text succeeds. Operators are not measured
(plan/leaves.py): they take time, and the log does not hold their results.

The time span of a source is from its first item to the last item of any source. So a source that
has stopped has a lower rate, not a shorter span. A span of 0 gives no rate.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.catalog.definitions import SOURCE_KINDS, CatalogDefinitions, DefinitionKind
from headgate.catalog.statistics import SourceStatistics
from headgate.language.schemas import schemas_of
from headgate.language.unparse import unparse_filter
from headgate.match.batch import batch_of_arrow, microseconds
from headgate.match.bit_rows import Longs
from headgate.match.item_columns import SOURCE, group_of, may_hold
from headgate.match.matcher import BATCH_ROWS, ProgramMatcher
from headgate.model.atoms import Atom
from headgate.model.errors import HeadgateError
from headgate.model.filters import Filter, atoms_of
from headgate.model.schema import Schema
from headgate.pipeline.jobs.job import LogPart, Note, Runner
from headgate.pipeline.jobs.stored_batches import ARRIVED, StoredRowReader, columns_read
from headgate.pipeline.source_plan import (
    SourcePlan,
    open_source_plan,
    source_plan,
    write_source_plan,
)
from headgate.plan.algebra import Plan
from headgate.plan.leaves import FilterUsers, leaves_by_source
from headgate.plan.normalize import normalize_all
from headgate.plan.translate import compose_all
from headgate.store.file_ranges import FileRange, ranges_since
from headgate.store.log_storage import LogStorage
from headgate.store.log_view import LogView
from headgate.store.log_writer import JOINED

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
"""A row of a part has the counts of a source, or a damaged file with the reason."""


# The atoms to measure


@dataclass(slots=True)
class SourceAtoms:
    """The distinct atoms of a source, numbered in the order of counting, and all their texts."""

    schema: Schema
    atoms: dict[Atom, int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    """For each text the number of its atom."""

    def add(self, filters: Iterable[Filter]) -> None:
        seen: set[tuple[Atom, object]] = set()
        for atom in (atom for filter_ in filters for atom in atoms_of(filter_)):
            # Equality of atoms ignores the case of their texts.
            key = atom, getattr(atom, "text", getattr(atom, "prefix", None))
            if key not in seen:
                seen.add(key)
                number = self.atoms.setdefault(atom, len(self.atoms))
                self.texts[unparse_filter(atom)] = number


@dataclass(slots=True)
class AtomsToMeasure:
    by_source: dict[str, SourceAtoms] = field(default_factory=dict)
    """Sources without atoms are included, as they have a rate."""
    refused: dict[str, str] = field(default_factory=dict)
    """Feeds that exceed the limits of a plan, each with the reason."""


def asked_of_all(definitions: CatalogDefinitions) -> AtomsToMeasure:
    """The atoms of all registered feeds, by source."""
    atoms = AtomsToMeasure()
    feeds: list[str] = []
    for name in definitions:
        entry = definitions.entry(name)
        assert entry is not None, "it is listed"
        if entry.kind in SOURCE_KINDS:
            schema = next(iter(schemas_of(name, definitions)))
            atoms.by_source[name] = SourceAtoms(schema)
        if entry.kind in (DefinitionKind.FEED, DefinitionKind.MATERIALIZED):
            feeds.append(name)
    plans = _plans(feeds, definitions, atoms.refused)
    for source, leaves in leaves_by_source(plans).items():
        atoms.by_source[source].add(leaves)
    return atoms


def _plans(
    names: list[str], definitions: CatalogDefinitions, refused: dict[str, str]
) -> Mapping[str, Plan]:
    """The plans of these feeds. Feeds without a plan are isolated by bisection."""
    try:
        return normalize_all(compose_all(names, definitions))
    except HeadgateError as error:
        if len(names) == 1:
            refused[names[0]] = str(error)
            return {}
    middle = len(names) // 2
    first = _plans(names[:middle], definitions, refused)
    return {**first, **_plans(names[middle:], definitions, refused)}


# One part of the files


@dataclass(frozen=True, slots=True)
class MeasureJob:
    readers: Mapping[str, StoredRowReader]
    """Which rows and columns are read of the files of each group."""
    plans: Mapping[str, str]
    """For each source with atoms the path of their program."""

    @property
    def result(self) -> pa.Schema:
        return RESULT

    def run(self, part: LogPart) -> Iterator[pa.RecordBatch]:
        counts: dict[str, _Counts] = {}
        damaged: dict[str, str] = {}
        for group, ranges in groupby(part, key=lambda each: each.file.group):
            for batch in self.readers[group].batches(tuple(ranges), damaged):
                self._count(batch, counts)
        for path, reason in damaged.items():
            yield _row(damaged=path, note=reason)
        for source, count in sorted(counts.items()):
            yield _row(
                source=source,
                items=count.items,
                first=count.first_us,
                last=count.last_us,
                matched=count.matched,
            )

    def _count(self, batch: pa.RecordBatch, counts: dict[str, _Counts]) -> None:
        for source, rows in _by_source(batch):
            path = self.plans.get(source)
            plan = None if path is None else _opened(path)
            counts.setdefault(source, _Counts()).add(rows, plan)


@dataclass(slots=True)
class _Counts:
    """The items of a source, the first and the last arrival, and the items that satisfy each atom;
    of one part."""

    items: int = 0
    first_us: int = 2**62
    last_us: int = -(2**62)
    matched: Longs = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, rows: pa.RecordBatch, plan: SourcePlan | None) -> None:
        arrived = np.asarray(rows.column(ARRIVED))
        self.items += rows.num_rows
        self.first_us = min(self.first_us, int(arrived.min()))
        self.last_us = max(self.last_us, int(arrived.max()))
        if plan is None:
            return
        if not self.matched.size:
            self.matched = np.zeros(plan.program.subscription_count, np.int64)
        for start in range(0, rows.num_rows, BATCH_ROWS):
            chunk = batch_of_arrow(rows.slice(start, BATCH_ROWS), plan.schema)
            self.matched += ProgramMatcher(plan.program).count(chunk).by_subscription()


def _by_source(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each source; one sort for all sources."""
    ordered = batch.sort_by(SOURCE)
    runs = pc.run_end_encode(ordered.column(SOURCE))
    start = 0
    for source, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield source, ordered.slice(start, end - start)
        start = end


def _row(**columns: object) -> pa.RecordBatch:
    """One row; the other columns are null."""
    arrays = [pa.array([columns.get(field.name)], field.type) for field in RESULT]
    return pa.RecordBatch.from_arrays(arrays, schema=RESULT)


@lru_cache(maxsize=256)
def _opened(path: str) -> SourcePlan:
    return open_source_plan(Path(path))


# The whole measurement


@dataclass(frozen=True, slots=True)
class Measured:
    statistics: Sequence[SourceStatistics]
    """Of all sources with stored items."""
    damaged: Mapping[str, str]
    kept: int = 0
    """The number of sources of which the catalog now has statistics."""
    ran: str = ""
    """Where the job ran."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Feeds without a plan, each with the reason."""


@dataclass(frozen=True, slots=True)
class Measurer:
    """The atoms to measure, and what is read of the log."""

    atoms: Mapping[str, SourceAtoms]
    """By source."""
    since: datetime
    ranges: Sequence[FileRange]

    @classmethod
    def prepare(
        cls, atoms: Mapping[str, SourceAtoms], view: LogView, *, since: datetime
    ) -> Measurer:
        groups = {group_of(source_atoms.schema) for source_atoms in atoms.values()}
        ranges = [
            each
            for each in ranges_since(view, microseconds(since))
            # Results of joins are stored in addition to their items; they are no further items.
            if may_hold(each.file.group, groups) and not each.file.group.startswith(JOINED)
        ]
        return cls(atoms, since, ranges)

    def run(self, runner: Runner, view: LogView, note: Note) -> Measured:
        # In the data folder, where workers on other machines can read the programs.
        shared = view.folder.path if view.folder.path.is_dir() else None
        plan_folder = Path(tempfile.mkdtemp(prefix=".measure-", dir=shared))
        try:
            paths = self._write_programs(plan_folder)
            job = MeasureJob(self._readers(view.storage), paths)
            table = runner.run(job, self.ranges, note)
        finally:
            shutil.rmtree(plan_folder, ignore_errors=True)
        return self._result(table)

    def _write_programs(self, folder: Path) -> dict[str, str]:
        paths: dict[str, str] = {}
        for source, source_atoms in self.atoms.items():
            if source_atoms.atoms:
                leaves: dict[Filter, FilterUsers] = {
                    atom: FilterUsers() for atom in source_atoms.atoms
                }
                plan = source_plan(source, source_atoms.schema, leaves, number_of={})
                paths[source] = str(write_source_plan(folder, plan).absolute())
        return paths

    def _readers(self, storage: LogStorage) -> dict[str, StoredRowReader]:
        """One for each group of files. A group that is not named after a schema may hold the items
        of any source."""
        since_us = microseconds(self.since)
        readers: dict[str, StoredRowReader] = {}
        for group in {each.file.group for each in self.ranges}:
            atoms = {
                source: source_atoms
                for source, source_atoms in self.atoms.items()
                if may_hold(group, {group_of(source_atoms.schema)})
            }
            columns = {
                name
                for source_atoms in atoms.values()
                for name in columns_read(source_atoms.atoms, source_atoms.schema)
            }
            readers[group] = StoredRowReader(
                storage, frozenset(atoms), frozenset(columns), since_us
            )
        return readers

    def _result(self, table: pa.Table) -> Measured:
        totals: dict[str, _Total] = {}
        damaged: dict[str, str] = {}
        for row in _rows(table):
            source = row["source"].as_py()
            if source is None:
                damaged[row["damaged"].as_py()] = row["note"].as_py()
            else:
                totals.setdefault(source, _Total()).add(row)
        last_us = max((total.last_us for total in totals.values()), default=0)
        statistics = [
            SourceStatistics(
                source,
                total.items,
                (last_us - total.first_us) / 1e6,
                {text: int(total.matched[atom]) for text, atom in self.atoms[source].texts.items()},
            )
            for source, total in sorted(totals.items())
        ]
        return Measured(statistics, damaged)


@dataclass(slots=True)
class _Total:
    """The counts of a source, added up over all parts."""

    items: int = 0
    first_us: int = 2**62
    last_us: int = -(2**62)
    matched: Longs = field(default_factory=lambda: np.zeros(1, np.int64))

    def add(self, row: Mapping[str, pa.Scalar]) -> None:
        self.items += row["items"].as_py()
        self.first_us = min(self.first_us, row["first"].as_py())
        self.last_us = max(self.last_us, row["last"].as_py())
        # As an array, not as a Python list: there may be a million atoms.
        self.matched = self.matched + np.asarray(row["matched"].values)


def _rows(table: pa.Table) -> Iterator[dict[str, pa.Scalar]]:
    for batch in table.to_batches():
        for row in range(batch.num_rows):
            yield {name: batch.column(name)[row] for name in batch.schema.names}
