"""Atomic files: a reader, or a crash at any time, sees the old content or the new one.

    content ──► .name.<unique> ──► fsync ──► rename ──► fsync of the folder

The folder is synced too, because the new name is stored in the folder. `write_whole` writes bytes;
`WholeParquet` is the one writer of Parquet files: items of the store, merged files, results of
table joins and of network jobs.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROW_GROUP_ROWS, ROW_GROUP_BYTES = 100_000, 64_000_000


def write_whole(path: Path, content: bytes | pa.Buffer, *, mode: int | None = None) -> None:
    """`mode` are the permissions of the file, if they are not those that the umask leaves."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = fresh_name(path)
    try:
        if mode is not None:
            fresh.touch(mode=mode)
        write_synced(fresh, content)
        rename_whole(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def fresh_name(path: Path) -> Path:
    """A temporary name that no other process of any host has. It begins with a dot: all readers of
    folders ignore such files."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}")


def write_synced(path: Path, content: bytes | pa.Buffer) -> None:
    """The content survives a loss of power, but not yet the name."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def rename_whole(fresh: Path, path: Path) -> None:
    """Rename a synced file; the new name survives a loss of power."""
    fresh.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class WholeParquet:
    """Writes one Parquet file, which appears under its name in `close`.

    Without rows there is no file after `close`, not even an earlier one, unless a schema is given.
    Rows are gathered into row groups of 100,000 rows or 64 MB. Only `dictionary_columns` are
    dictionary-encoded if there are any; by default all columns are, as in Arrow.
    """

    def __init__(
        self,
        path: Path,
        *,
        schema: pa.Schema | None = None,
        compression: str = "zstd",
        dictionary_columns: Sequence[str] = (),
    ) -> None:
        self._path, self._fresh = path, fresh_name(path)
        self._compression = compression
        self._dictionary_columns = list(dictionary_columns)
        self._schema = schema
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self._rows = self._bytes = 0

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        if not rows.num_rows:
            return
        is_batch = isinstance(rows, pa.RecordBatch)
        self._waiting.append(pa.Table.from_batches([rows]) if is_batch else rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= ROW_GROUP_ROWS or self._bytes >= ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> bool:
        """Sync and rename; whether there is a file now."""
        self._flush()
        if self._writer is None and self._schema is not None:
            self._writer = self._open(self._schema)
        if self._writer is None:
            self._path.unlink(missing_ok=True)
            return False
        self._writer.close()
        with self._fresh.open("rb") as file:
            os.fsync(file.fileno())
        rename_whole(self._fresh, self._path)
        return True

    def abandon(self) -> None:
        """Leave nothing behind, after an error."""
        if self._writer is not None:
            self._writer.close()
        self._fresh.unlink(missing_ok=True)

    def _flush(self) -> None:
        if not self._waiting:
            return
        table = pa.concat_tables(self._waiting)
        if self._writer is None:
            self._writer = self._open(self._schema or table.schema)
        self._writer.write_table(table)
        self._waiting, self._rows, self._bytes = [], 0, 0

    def _open(self, schema: pa.Schema) -> pq.ParquetWriter:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        return pq.ParquetWriter(
            self._fresh,
            schema,
            compression=self._compression,
            use_dictionary=self._dictionary_columns or True,
        )
