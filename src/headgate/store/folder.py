"""The folder that a run keeps everything in that must survive it.

plans/        source plans and snapshots, named by their content
lists/        which sources each group has at the moment
batches/      which snapshot each micro-batch uses, and when it began
checkpoints/  Spark's own record of each query
sources/      what the sources keep: fetched bodies, what was seen, what was rejected
store/        items with their matches as Parquet, by day
joins.json    how far the window joins have come
outbox.db     what is to be delivered, and what was
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Folder:
    path: Path

    @property
    def plans(self) -> Path:
        return self.path / "plans"

    @property
    def lists(self) -> Path:
        return self.path / "lists"

    @property
    def batches(self) -> Path:
        return self.path / "batches"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def sources(self) -> Path:
        return self.path / "sources"

    @property
    def store(self) -> Path:
        return self.path / "store"

    @property
    def joins(self) -> Path:
        return self.path / "joins.json"

    @property
    def outbox(self) -> Path:
        return self.path / "outbox.db"

    def make(self) -> Folder:
        for each in (self.plans, self.lists, self.batches, self.checkpoints, self.sources):
            each.mkdir(parents=True, exist_ok=True)
        self.store.mkdir(exist_ok=True)
        return self


def write_whole(path: Path, content: bytes) -> None:
    """The file has this content from one moment to the next, and keeps it if power is lost."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    rename_whole(fresh, path)


def rename_whole(fresh: Path, path: Path) -> None:
    """The new name lasts too: that is in the folder, which has to be written by itself."""
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
