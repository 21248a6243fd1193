"""The folder that a run keeps everything in that must survive it.

plans/        source plans and snapshots, named by their content
lists/        which sources each group has at the moment
batches/      which snapshot each micro-batch uses, and when it began
checkpoints/  Spark's own record of each query
sources/      what the sources keep: fetched bodies, what was seen, what was rejected
store/        items with their matches as Parquet, by day
tables/       what changes of tables the joins of tables take next, and how far they have come
messages/     what joins of tables tell clients and relays, as Parquet by day
joins.json    how far the window joins have come
operators.json  what operators cost, and how often they are true
outbox.db     what is to be delivered, and what was
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class DataFolder:
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
    def tables(self) -> Path:
        return self.path / "tables"

    @property
    def messages(self) -> Path:
        return self.path / "messages"

    @property
    def operators(self) -> Path:
        return self.path / "operators.json"

    @property
    def outbox(self) -> Path:
        return self.path / "outbox.db"

    def make(self) -> DataFolder:
        for each in (self.plans, self.lists, self.batches, self.checkpoints, self.sources):
            each.mkdir(parents=True, exist_ok=True)
        self.store.mkdir(exist_ok=True)
        return self
