"""Small files of days that are over become one: a batch a second makes 86,400 files a day.

    17-0.parquet  17-1.parquet  18-0.parquet  …          at first
    19-merged-4f0c.parquet.names                         1  what is going to be in it
    19-merged-4f0c.parquet                               2  renamed into place: from this moment on,
                                                            readers leave out what is named
    (the small ones are removed an hour later)           3  as somebody may be reading them

Law: at every moment, and after a crash at any, a reader that lists a folder finds every row once.
Rows keep their order of batches. Nothing is merged that a replay or a join may still ask for by its
batch: only days that are over, and that the window joins have taken in.

Cost: each row is read and written once more. Files that are large already are left as they are.
"""

from __future__ import annotations

import os
import secrets
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.store.item_files import MERGED, NAMES, ROW_GROUP, StoredFile, stored_files
from headgate.store.whole_files import rename_whole, write_whole

SMALL_BYTES = 16_000_000
FEWEST = 8
"""Fewer small files than this are not worth the work."""


def merge_days(store: Path, *, before: date) -> int:
    """Merge the small files of all days before this one: how many were merged."""
    by_folder: dict[Path, list[StoredFile]] = {}
    for each in stored_files(store):
        if each.day < before:
            by_folder.setdefault(each.path.parent, []).append(each)
    merged = 0
    for folder, files in by_folder.items():
        _remove_merged(folder)
        small = [each for each in files if each.path.stat().st_size < SMALL_BYTES]
        if len(small) >= FEWEST:
            _merge(folder, small)
            merged += len(small)
    return merged


def _merge(folder: Path, small: list[StoredFile]) -> None:
    target = folder / f"{small[-1].batch}{MERGED}{secrets.token_hex(4)}.parquet"
    fresh = folder / f".{target.name}.{os.getpid()}"
    try:
        _write(fresh, [each.path for each in small])
        names = "\n".join(each.path.name for each in small)
        write_whole(target.with_name(target.name + NAMES), names.encode())
        rename_whole(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)


def _write(fresh: Path, paths: list[Path]) -> None:
    """Row groups of many small files; one at a time is in memory."""
    schema = pq.read_schema(paths[0])
    with pq.ParquetWriter(fresh, schema, compression="zstd") as writer:
        waiting: list[pa.Table] = []
        for path in paths:
            waiting.append(pq.read_table(path, partitioning=None).select(schema.names))
            if sum(each.num_rows for each in waiting) >= ROW_GROUP:
                writer.write_table(pa.concat_tables(waiting).combine_chunks())
                waiting.clear()
        if waiting:
            writer.write_table(pa.concat_tables(waiting).combine_chunks())
    with fresh.open("rb") as file:
        os.fsync(file.fileno())


def _remove_merged(folder: Path) -> None:
    """Remove what an earlier merge has made superfluous, or has left unfinished."""
    for names in folder.glob(f"*{NAMES}"):
        if names.with_name(names.name.removesuffix(NAMES)).exists():
            for name in names.read_text().splitlines():
                (folder / Path(name).name).unlink(missing_ok=True)
        names.unlink()
