"""Upkeep of the store: small files of past days are merged, and old days are removed.

A batch a second makes 86,400 files a day. Merging the files of a day:

    17-0.parquet  17-1.parquet  18-0.parquet  …          at first
    19-merged-4f0c.parquet.names                         1  the list of the files to be replaced
    19-merged-4f0c.parquet                               2  renamed into place: from now on readers
                                                            ignore the files in the list
    (the small files are removed by the next call)       3  as readers may still have them open

Invariant: at any time, and after a crash at any time, a reader that lists a folder sees every row
once. Rows keep the order of their batches. Callers merge only days that are over and that the
window joins have read, so no replay or join asks for a merged batch by its number.

Cost: each row is read and written once more. Large files are left as they are.
"""

from __future__ import annotations

import secrets
from datetime import date, datetime
from pathlib import Path

import pyarrow.parquet as pq

from headgate.store.item_files import (
    MATERIALISED,
    MERGED,
    NAMES,
    StoredFile,
    day_folders,
    path_of,
    stored_files,
)
from headgate.store.whole_files import WholeParquet, write_whole

SMALL_BYTES = 16_000_000
FEWEST = 8
"""Fewer small files than this are not merged."""


def merge_days(store: Path, *, before: date) -> int:
    """Merge the small files of all days before this one; return how many were merged."""
    by_folder: dict[Path, list[StoredFile]] = {}
    for file in stored_files(store):
        if file.day < before:
            by_folder.setdefault(file.path.parent, []).append(file)
    merged = 0
    for folder, files in by_folder.items():
        _remove_merged(folder)
        small = [file for file in files if file.path.stat().st_size < SMALL_BYTES]
        if len(small) >= FEWEST:
            _merge(folder, small)
            merged += len(small)
    return merged


def _merge(folder: Path, small: list[StoredFile]) -> None:
    target = folder / f"{small[-1].batch}{MERGED}{secrets.token_hex(4)}.parquet"
    writer = WholeParquet(target)
    try:
        _write(writer, [file.path for file in small])
        names = "\n".join(file.path.name for file in small)
        write_whole(target.with_name(target.name + NAMES), names.encode())
        writer.close()
    except BaseException:
        writer.abandon()
        raise


def _write(writer: WholeParquet, paths: list[Path]) -> None:
    """One row group at a time is in memory."""
    names = pq.read_schema(paths[0]).names
    for path in paths:
        writer.write(pq.read_table(path, partitioning=None).select(names))


def _remove_merged(folder: Path) -> None:
    """Remove the files that an earlier merge has replaced, or the list of an unfinished one."""
    for names in folder.glob(f"*{NAMES}"):
        if names.with_name(names.name.removesuffix(NAMES)).exists():
            for name in names.read_text().splitlines():
                (folder / Path(name).name).unlink(missing_ok=True)
        names.unlink()


def remove_before(store: Path, day: date) -> int:
    """Remove the items that arrived before this day; return how many files that were."""
    old = [file for file in stored_files(store) if file.day < day]
    for file in old:
        file.path.unlink(missing_ok=True)
    for folder in {file.path.parent for file in old}:
        for rest in folder.glob("*"):
            rest.unlink(missing_ok=True)
        folder.rmdir()
    return len(old)


def remove_messages(messages: Path, before: date) -> None:
    """Remove the messages of table joins from before this day."""
    for _, day, folder in day_folders(messages):
        if day < before:
            for path in folder.iterdir():
                path.unlink(missing_ok=True)
            folder.rmdir()


def remove_batch(store: Path, group: str, arrived: datetime, batch: int) -> None:
    """Remove what an interrupted attempt has left: its replay may have fewer partitions."""
    for name in (group, f"{MATERIALISED}{group}"):
        folder = path_of(store, name, arrived, batch, "").parent
        for path in folder.glob(f"{batch}-*.parquet"):
            path.unlink(missing_ok=True)
