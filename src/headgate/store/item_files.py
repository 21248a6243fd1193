"""The store: every item that came, with the feeds that have it, as Parquet by day.

    store/<group>/day=2026-11-16/17-0.parquet      batch 17, partition 0
          @source @id @time  attributes …  @feeds  @inner  @arrived

The day is that of arrival: an item that says it is from 1999 makes no folder of its own. Items and
matches are one table, so they never disagree; feeds are lists of numbers, never exploded into
pairs. A file is written whole and then renamed; its name says batch and partition, so a replay
replaces what the first attempt has left.

Files whose names begin with a dot are not finished. Those of a batch that is not finished may be
replaced: who wants only what is certain leaves out `pending` batches.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.store.whole_files import rename_whole

MATERIALISED = "materialised."
"""Before the name of a group: what materialised feeds have made in its batches."""
JOINED = "joined."
"""Before a name made of a schema: what window joins have found, in batches of `joined`."""
TABLES = f"{JOINED}tables."
"""Before a name made of a schema: what joins of tables have found, in batches of `tables`."""

ARRIVED = pa.field("@arrived", pa.timestamp("us", tz="UTC"), nullable=False)
ROW_GROUP = 100_000
MERGED, NAMES = "-merged-", ".names"
"""In the name of a file that is made of several; behind it, that of the list of their names."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    path: Path
    group: str
    day: date
    batch: int


class ItemsWriter:
    """Writes one file; nothing is there under its name before `close`. Empty files are not made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fresh = path.with_name(f".{path.name}.{os.getpid()}")
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def write(self, batch: pa.RecordBatch, arrived: datetime) -> None:
        moment = pa.scalar(arrived, ARRIVED.type)
        stamped = batch.append_column(ARRIVED, pa.repeat(moment, batch.num_rows))
        self._waiting.append(stamped)
        self._rows += batch.num_rows
        if self._rows >= ROW_GROUP:
            self._flush()

    def close(self) -> bool:
        """Whether there is a file now."""
        self._flush()
        if self._writer is None:
            return False
        self._writer.close()
        with self._fresh.open("rb") as file:
            os.fsync(file.fileno())
        rename_whole(self._fresh, self._path)
        return True

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._fresh.unlink(missing_ok=True)

    def _flush(self) -> None:
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self._fresh, table.schema, compression="zstd")
        self._writer.write_table(table)
        self._waiting.clear()
        self._rows = 0


def record_group(group: str) -> str:
    """The group whose batches a folder of the store belongs to.

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


def stored_files(
    store: Path,
    *,
    groups: Collection[str] | None = None,
    since: date | None = None,
    on: date | None = None,
    pending: Collection[tuple[str, int]] = (),
) -> list[StoredFile]:
    """The files of these groups, by day and batch; other days than those asked for are not
    looked into."""
    found = (
        each
        for group, day, folder in _day_folders(store)
        if (groups is None or group in groups)
        and (since is None or day >= since)
        and (on is None or day == on)
        for each in _files_in(folder, group, day)
        if (record_group(each.group), each.batch) not in pending
    )
    return sorted(found, key=lambda each: (each.day, each.group, each.batch, each.path))


def stored_days(store: Path) -> list[date]:
    """The days that have files, the first one first."""
    return sorted({day for _, day, _ in _day_folders(store)})


def remove_before(store: Path, day: date) -> int:
    """Forget what arrived before this day: how many files that were."""
    old = [each for each in stored_files(store) if each.day < day]
    for each in old:
        each.path.unlink(missing_ok=True)
    for folder in {each.path.parent for each in old}:
        for rest in folder.glob("*"):
            rest.unlink(missing_ok=True)
        folder.rmdir()
    return len(old)


def remove_messages(messages: Path, day: date) -> None:
    """Forget what joins of tables told before this day."""
    for _, own, folder in _day_folders(messages):
        if own < day:
            for path in folder.iterdir():
                path.unlink(missing_ok=True)
            folder.rmdir()


def remove_batch(store: Path, group: str, arrived: datetime, batch: int) -> None:
    """What an attempt that was cut off has left: a replay may have fewer partitions."""
    for each in (group, f"{MATERIALISED}{group}"):
        folder = path_of(store, each, arrived, batch, "").parent
        for path in folder.glob(f"{batch}-*.parquet"):
            path.unlink(missing_ok=True)


def _day_folders(store: Path) -> Iterator[tuple[str, date, Path]]:
    for folder in store.glob("*/day=*"):
        try:
            day = date.fromisoformat(folder.name.removeprefix("day="))
        except ValueError:
            continue  # somebody else's
        yield folder.parent.name, day, folder


def _files_in(folder: Path, group: str, day: date) -> Iterator[StoredFile]:
    """A store has very many small files: no more is asked of one than its name."""
    names = os.listdir(folder)
    merged = {each for name in names if MERGED in name for each in _merged_into(folder / name)}
    for name in names:
        number, _, _ = name.partition("-")
        if number.isdecimal() and name.endswith(".parquet") and name not in merged:
            yield StoredFile(folder / name, group, day, int(number))


def _merged_into(path: Path) -> list[str]:
    """The names of files whose rows are in this one too (merge_files.py)."""
    try:
        return path.with_name(path.name + NAMES).read_text().splitlines()
    except OSError:
        return []  # they are gone already


# === part: headgate.store.item_files
# Which batches are finished, so that their files stay as they are.
#
#     batches/feeds-1f0c…/16.done.json      finished
#                         17.json           not yet: what lies in the store may be replaced
#
# Whoever reads while a run goes on asks here *first* and lists files then. What has begun since ..
# greater number than every record that was seen, and is left out too; so a batch is seen with all
# of its files or with none. Where a group has no records at all there is no run, only its store.
#
# The records are pipeline/journal.py's. Only their names are looked at: one listing of small fol..


@dataclass(frozen=True, slots=True)
class GroupBatches:
    last: int
    """The greatest number that has a record."""
    pending: frozenset[int]


@dataclass(frozen=True, slots=True)
class FinishedBatches:
    groups: Mapping[str, GroupBatches] = field(default_factory=dict)

    def has(self, group: str, batch: int) -> bool:
        state = self.groups.get(record_group(group))
        return state is None or (batch <= state.last and batch not in state.pending)

    def only(self, files: Iterable[StoredFile]) -> list[StoredFile]:
        return [each for each in files if self.has(each.group, each.batch)]


def finished_batches(batches: Path) -> FinishedBatches:
    """As the records in this folder say at the moment."""
    if not batches.is_dir():
        return FinishedBatches()
    found = {folder.name: _state(folder) for folder in batches.iterdir() if folder.is_dir()}
    return FinishedBatches({group: state for group, state in found.items() if state is not None})


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
