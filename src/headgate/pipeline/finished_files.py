"""Files of finished batches that the joins of a run have not read yet.

a batch finishes ──► add ──► take(until) ──► each file that arrived up to then, once
at the start     ──► recover: files that an earlier process has stored but not read
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.match.item_columns import SOURCE, may_hold
from headgate.pipeline.batch_stage import PartitionSummary
from headgate.pipeline.journal import BatchJournal
from headgate.store.item_files import JOINED, stored_files


@dataclass(frozen=True, slots=True)
class FinishedFile:
    arrived: datetime
    path: Path
    sources: frozenset[str]


@dataclass(slots=True)
class FinishedFiles:
    """`add` is thread-safe; the other methods are for one thread."""

    store: Path
    journal: BatchJournal
    _files: list[FinishedFile] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, arrived: datetime, parts: Iterable[PartitionSummary]) -> None:
        """A batch with this arrival instant has stored these partitions."""
        with self._lock:
            self._files += [
                FinishedFile(arrived, part.path, frozenset(part.sources)) for part in parts
            ]

    def take(self, until: datetime, sources: Collection[str]) -> list[FinishedFile]:
        """Remove all files that arrived up to an instant; returns those of them with items of these
        sources."""
        with self._lock:
            taken = [file for file in self._files if file.arrived <= until]
            self._files = [file for file in self._files if file.arrived > until]
        return [file for file in taken if file.sources & set(sources)]

    def recover(self, since: datetime) -> None:
        """Add the files that an earlier process stored after an instant."""
        stored = self.stored(since)
        with self._lock:
            known = {file.path for file in self._files}
            self._files = [file for file in stored if file.path not in known] + self._files

    def stored(
        self,
        since: datetime,
        *,
        until: datetime | None = None,
        schemas: Collection[str] | None = None,
    ) -> list[FinishedFile]:
        """Stored files of finished batches that arrived after `since` and up to `until`. `schemas`
        limits them to sources with one of these schemas (names of match/item_columns.group_of)."""
        pending = self.journal.pending()
        finished: list[FinishedFile] = []
        for file in stored_files(self.store, since=since.date(), pending=pending):
            if file.group.startswith(JOINED):
                continue
            if schemas is not None and not may_hold(file.group, schemas):
                continue
            table = pq.read_table(file.path, columns=[SOURCE, "@arrived"], partitioning=None)
            arrived = pc.max(table.column("@arrived")).as_py()
            if arrived > since and (until is None or arrived <= until):
                sources = frozenset(table.column(SOURCE).unique().to_pylist())
                finished.append(FinishedFile(arrived, file.path, sources))
        return finished
