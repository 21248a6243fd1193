"""The files of the store: every item with the feeds that have it, as Parquet, by day of arrival.

    store/<group>/day=2026-11-16/17-0.parquet      batch 17, partition 0
          @source @id @time  attributes …  @feeds  @inner  @arrived

    batches/<group>/16.done.json                   batch 16 is finished
                    17.json                        batch 17 is not: its files may be replaced

A group is a set of sources with one schema. The day is that of arrival, so an item that claims to
be from 1999 makes no folder of its own. Items and their matches are one table and cannot disagree;
feeds are lists of numbers, never one row per pair. Files are written atomically (whole_files.py)
and named by batch and partition, so a replay replaces the files of the first attempt.

**Only finished batches are read.** A reader first takes the state of the batch records
(`finished_batches`) and then lists the files. A batch that begins in between has a greater number
than every record, so it is left out: a reader sees all files of a batch or none. A group without
records has no run, and all its files count. The records are written by pipeline/journal.py; here
only their names are read.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa

MATERIALISED = "materialised."
"""Prefix of a group: the items that materialised feeds have made in its batches."""
JOINED = "joined."
"""Prefix of a schema's name: results of window joins, in the batches of `joined`."""
TABLES = f"{JOINED}tables."
"""Prefix of a schema's name: results of table joins, in the batches of `tables`."""

ARRIVED = pa.field("@arrived", pa.timestamp("us", tz="UTC"), nullable=False)
MERGED, NAMES = "-merged-", ".names"
"""In the name of a merged file, and the suffix of the list of files that it replaces."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    path: Path
    group: str
    day: date
    batch: int


def with_arrival(batch: pa.RecordBatch, arrived: datetime) -> pa.RecordBatch:
    """The rows with the column `@arrived`, as the store keeps them."""
    instant = pa.scalar(arrived, ARRIVED.type)
    return batch.append_column(ARRIVED, pa.repeat(instant, batch.num_rows))


def record_group(group: str) -> str:
    """The group whose batch records decide about a folder of the store.

    >>> record_group("materialised.feeds-1f"), record_group("joined.1f"), record_group("feeds-1f")
    ('feeds-1f', 'joined', 'feeds-1f')
    >>> record_group("joined.tables.1f")
    'tables'
    """
    group = group.removeprefix(MATERIALISED)
    if group.startswith(TABLES):
        return "tables"
    return JOINED.rstrip(".") if group.startswith(JOINED) else group


def path_of(store: Path, group: str, arrived: datetime, batch: int, part: str) -> Path:
    return store / group / f"day={arrived.date().isoformat()}" / f"{batch}-{part}.parquet"


# --- which files there are ------------------------------------------------------------------------


def stored_files(
    store: Path,
    *,
    groups: Collection[str] | None = None,
    since: date | None = None,
    on: date | None = None,
    pending: Collection[tuple[str, int]] = (),
) -> list[StoredFile]:
    """The files of these groups and days, by day and batch, without those of pending batches."""
    files = (
        file
        for group, day, folder in day_folders(store)
        if (groups is None or group in groups)
        and (since is None or day >= since)
        and (on is None or day == on)
        for file in _files_in(folder, group, day)
        if (record_group(file.group), file.batch) not in pending
    )
    return sorted(files, key=lambda file: (file.day, file.group, file.batch, file.path))


def stored_days(store: Path) -> list[date]:
    """The days that have files, the earliest first."""
    return sorted({day for _, day, _ in day_folders(store)})


def day_folders(store: Path) -> Iterator[tuple[str, date, Path]]:
    """Group, day and path of each folder of a day; folders with other names are ignored."""
    for folder in store.glob("*/day=*"):
        try:
            day = date.fromisoformat(folder.name.removeprefix("day="))
        except ValueError:
            continue
        yield folder.parent.name, day, folder


def _files_in(folder: Path, group: str, day: date) -> Iterator[StoredFile]:
    """By names only: a store has very many small files, and a stat for each would be slow."""
    names = os.listdir(folder)
    replaced = {old for name in names if MERGED in name for old in _replaced_by(folder / name)}
    for name in names:
        number, _, _ = name.partition("-")
        if number.isdecimal() and name.endswith(".parquet") and name not in replaced:
            yield StoredFile(folder / name, group, day, int(number))


def _replaced_by(path: Path) -> list[str]:
    """The names of the files whose rows are in this merged file (maintenance.py)."""
    try:
        return path.with_name(path.name + NAMES).read_text().splitlines()
    except OSError:
        return []  # they were removed already


# --- which batches are finished -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupBatches:
    last: int
    """The greatest number that has a record."""
    pending: frozenset[int]


@dataclass(frozen=True, slots=True)
class FinishedBatches:
    """The state of all batch records at one instant."""

    groups: Mapping[str, GroupBatches] = field(default_factory=dict)

    def has(self, group: str, batch: int) -> bool:
        state = self.groups.get(record_group(group))
        return state is None or (batch <= state.last and batch not in state.pending)

    def only(self, files: Iterable[StoredFile]) -> list[StoredFile]:
        return [file for file in files if self.has(file.group, file.batch)]


def finished_batches(batches: Path) -> FinishedBatches:
    """The current state of the records in this folder."""
    if not batches.is_dir():
        return FinishedBatches()
    states = {folder.name: _state(folder) for folder in batches.iterdir() if folder.is_dir()}
    return FinishedBatches({group: state for group, state in states.items() if state is not None})


def _state(folder: Path) -> GroupBatches | None:
    done: set[int] = set()
    begun: set[int] = set()
    for path in folder.iterdir():
        number, _, rest = path.name.partition(".")
        if number.isdecimal() and rest in ("json", "done.json"):
            (begun if rest == "json" else done).add(int(number))
    if not done and not begun:
        return None
    # A record is renamed when its batch ends, and a listing may show both names.
    return GroupBatches(max(done | begun), frozenset(begun - done))
