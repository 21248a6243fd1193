"""Where a log lives: named objects under one root, with *create if absent* as the only commit.

    log/00000000000000000017.json     entries and checkpoints, small, created once, never changed
    data/<group>/<uuid>.parquet       items, written whole before an entry names them
    data/<group>/<uuid>.segment       their index

`create` succeeds for one caller only, whoever races: a synced file is linked under its name, which
fails if the name exists. Data needs no such care, because its names are unique.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
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

    def map(self, name: str) -> pa.Buffer:
        """The content, mapped into memory where possible; FileNotFoundError if it is gone."""

    def names(self, folder: str) -> Iterator[str]:
        """The names in a folder and below it, in no particular order."""

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

    def map(self, name: str) -> pa.Buffer:
        with pa.memory_map(str(self.root / name)) as file:
            return file.read_buffer()

    def names(self, folder: str) -> Iterator[str]:
        for path in (self.root / folder).rglob("*"):
            if path.is_file() and not path.name.startswith("."):
                yield path.relative_to(self.root).as_posix()

    def remove(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)
