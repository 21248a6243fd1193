"""The folder of a run: everything that must survive it.

plans/        source plans and snapshots, named by their content
lists/        which sources each group has at the moment
batches/      which snapshot each micro-batch uses, and when it began
checkpoints/  Spark's own record of each query
sources/      state of the sources: fetched bodies, seen entries, rejected input
store/        items with their matches as Parquet, by day
tables/       the next batches of table changes for table joins, and their progress
messages/     messages of table joins for clients and relays, as Parquet by day
joins.json    progress of the window joins
operators.json  measured cost and selectivity of operators
outbox.db     pending and finished deliveries (deliver/outbox.py)
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
