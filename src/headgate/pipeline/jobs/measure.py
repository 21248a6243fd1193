"""Which atoms are measured: all that feeds ask of sources.

An atom that is written in two ways ('Rock', 'rock') is one atom: it is counted once and kept under
both texts, so that whoever has either finds it. Operators are not among them (plan/leaves.py): they
cost time, and a store has no answers of theirs.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
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
from headgate.match.batch import batch_of_arrow
from headgate.match.bit_rows import Longs
from headgate.match.item_columns import SOURCE, group_of, may_hold
from headgate.match.matcher import ProgramMatcher
from headgate.model.atoms import Atom
from headgate.model.errors import HeadgateError
from headgate.model.filters import Filter, atoms_of
from headgate.model.schema import Schema
from headgate.pipeline.jobs.job import Note, Part, Runner
from headgate.pipeline.jobs.stored_batches import Looked, arrived_us, columns_read
from headgate.pipeline.match_stage import BATCH
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
from headgate.store.data_folder import DataFolder
from headgate.store.item_files import JOINED, StoredFile, finished_batches, stored_files
from headgate.store.read_store import to_microseconds


@dataclass(slots=True)
class SourceAtoms:
    """The distinct atoms of a source, in the order in which they are counted; all their texts."""

    schema: Schema
    atoms: dict[Atom, int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    """For each text the number of its atom."""

    def add(self, filters: Iterable[Filter]) -> None:
        seen: set[tuple[Atom, object]] = set()
        for atom in (atom for filter_ in filters for atom in atoms_of(filter_)):
            # Atoms are equal whatever the case of their texts.
            key = atom, getattr(atom, "text", getattr(atom, "prefix", None))
            if key not in seen:
                seen.add(key)
                number = self.atoms.setdefault(atom, len(self.atoms))
                self.texts[unparse_filter(atom)] = number


@dataclass(slots=True)
class AskedOfAll:
    by_source: dict[str, SourceAtoms] = field(default_factory=dict)
    """Sources of which nothing is asked, too: they have a rate."""
    refused: dict[str, str] = field(default_factory=dict)
    """Feeds that have no plan within the limits, each with the reason."""


def asked_of_all(definitions: CatalogDefinitions) -> AskedOfAll:
    found = AskedOfAll()
    feeds: list[str] = []
    for name in definitions:
        entry = definitions.entry(name)
        assert entry is not None, "it is listed"
        if entry.kind in SOURCE_KINDS:
            schema = next(iter(schemas_of(name, definitions)))
            found.by_source[name] = SourceAtoms(schema)
        if entry.kind in (DefinitionKind.FEED, DefinitionKind.MATERIALIZED):
            feeds.append(name)
    plans = _plans(feeds, definitions, found.refused)
    for source, leaves in leaves_by_source(plans).items():
        found.by_source[source].add(leaves)
    return found


def _plans(
    names: list[str], definitions: CatalogDefinitions, refused: dict[str, str]
) -> Mapping[str, Plan]:
    """The plans of all that have one; those that have none are found by halving."""
    try:
        return normalize_all(compose_all(names, definitions))
    except HeadgateError as error:
        if len(names) == 1:
            refused[names[0]] = str(error)
            return {}
    half = len(names) // 2
    first = _plans(names[:half], definitions, refused)
    return {**first, **_plans(names[half:], definitions, refused)}


# === part: headgate.pipeline.jobs.measure
# What one part of measuring tells: for each source how many items came, when, and how many of them
# satisfy each of its atoms.
#
# All atoms of a source are one program, each a subscription of its own, so that one pass over a
# batch
# answers them all (match/program.py).

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


# === part: headgate.pipeline.jobs.measure
# Measuring: how often each atom of each feed is true on its source, and how much comes from each.
#
#     feeds ──► leaves ──► distinct atoms by source (atoms_to_measure.py) ──► a program of each
#     source
#     stored files ──► counts (measure_job.py) ──► the catalog's statistics ──► the optimisers
#
# The span of a source is from its first item to the last item of any source: a source that fell
# silent has a lower rate, not a shorter life. Where that is 0 there is no rate.


@dataclass(frozen=True, slots=True)
class Measured:
    statistics: Sequence[SourceStatistics]
    """Of the sources of which something came."""
    damaged: Mapping[Path, str]
    kept: int = 0
    """How many sources the catalog keeps statistics of now."""
    ran: str = ""
    """Where the job ran."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Feeds without a plan, each with the reason."""


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
                leaves: dict[Filter, FilterUsers] = {atom: FilterUsers() for atom in own.atoms}
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
