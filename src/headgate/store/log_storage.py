"""Where a log lives: named objects under one root, with *create if absent* as the only commit.

    log/00000000000000000017.json     entries and checkpoints, small, created once, never changed
    data/<group>/<uuid>.parquet       items, written whole before an entry names them
    data/<group>/<uuid>.segment       their index

    plans/<hash>.…                    plans and snapshots, where the log is not in the run's folder

`create` succeeds for one caller only, whoever races: a synced file is linked under its name, which
fails if the name exists. Data needs no such care, because its names are unique.

An OSError of `create` or `write` says nothing about whether the object exists now.

`FolderStorage` is one implementation; object_storage.py is the other, for URLs. open_storage.py
chooses.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from headgate.store.whole_files import fresh_name, sync_folder, write_synced, write_whole


class LogStorage(Protocol):
    def create(self, name: str, content: bytes) -> bool:
        """Store the content under a name; False, and no change, if the name exists."""

    def write(self, name: str, content: bytes | pa.Buffer) -> None:
        """Store content under a unique name; it survives a loss of power."""

    def read(self, name: str) -> bytes | None:
        """The content, or None if the name does not exist."""

    def read_many(self, names: Sequence[str]) -> list[bytes | None]:
        """The contents of several objects; where a request takes long, all at the same time."""

    def map(self, name: str) -> pa.Buffer:
        """The content, mapped into memory where possible; FileNotFoundError if it is gone."""

    def path(self, name: str) -> Path:
        """The object as a file of this machine; FileNotFoundError, now or later, if it is gone."""

    def names(self, folder: str) -> Iterator[str]:
        """The names in a folder and below it, in no particular order."""

    def ages_s(self, folder: str) -> Iterator[tuple[str, float]]:
        """The names in a folder and below it, and how long ago each was written."""

    def remove(self, name: str) -> None:
        """Remove an object; nothing happens if it is gone."""


class FolderStorage:
    """A folder of this machine, or one that all machines mount."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def create(self, name: str, content: bytes) -> bool:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = fresh_name(path)
        try:
            write_synced(fresh, content)
            os.link(fresh, path)
        except FileExistsError:
            return False
        finally:
            fresh.unlink(missing_ok=True)
        sync_folder(path.parent)
        return True

    def write(self, name: str, content: bytes | pa.Buffer) -> None:
        write_whole(self.root / name, content)

    def read(self, name: str) -> bytes | None:
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None

    def read_many(self, names: Sequence[str]) -> list[bytes | None]:
        return [self.read(name) for name in names]

    def map(self, name: str) -> pa.Buffer:
        with pa.memory_map(str(self.root / name)) as file:
            return file.read_buffer()

    def path(self, name: str) -> Path:
        return self.root / name

    def names(self, folder: str) -> Iterator[str]:
        # A day of batches has 86,400 entries: no stat for each.
        for path, _, names in os.walk(self.root / folder):
            place = Path(path).relative_to(self.root).as_posix()
            yield from (f"{place}/{name}" for name in names if not name.startswith("."))

    def ages_s(self, folder: str) -> Iterator[tuple[str, float]]:
        now_s = time.time()
        for path in (self.root / folder).rglob("*"):
            # Temporary files of tasks that were killed are among them.
            with suppress(FileNotFoundError):
                if path.is_file():
                    yield path.relative_to(self.root).as_posix(), now_s - path.stat().st_mtime

    def remove(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)
