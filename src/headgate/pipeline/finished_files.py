"""Files of finished batches that the joins of a run have not read yet.

a batch finishes ──► add ──► take(until) ──► files that arrived up to then, once
at the start     ──► recover: files that an earlier process has stored and not read
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
    """`add` may be called by any thread."""

    store: Path
    journal: BatchJournal
    _files: list[FinishedFile] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, arrived: datetime, parts: Iterable[PartitionSummary]) -> None:
        """A batch that arrived at this instant has stored these."""
        with self._lock:
            self._files += [
                FinishedFile(arrived, each.path, frozenset(each.sources)) for each in parts
            ]

    def take(self, until: datetime, sources: Collection[str]) -> list[FinishedFile]:
        """The files that arrived up to an instant and have items of these sources. All files up to
        then are removed from here."""
        with self._lock:
            taken = [each for each in self._files if each.arrived <= until]
            self._files = [each for each in self._files if each.arrived > until]
        return [each for each in taken if each.sources & set(sources)]

    def recover(self, since: datetime) -> None:
        """Add the files that an earlier process has stored after an instant."""
        found = self.stored(since)
        with self._lock:
            known = {each.path for each in self._files}
            self._files = [each for each in found if each.path not in known] + self._files

    def stored(
        self,
        since: datetime,
        *,
        until: datetime | None = None,
        schemas: Collection[str] | None = None,
    ) -> list[FinishedFile]:
        """Files of finished batches; with `schemas`, only of sources with one of them."""
        pending = self.journal.pending()
        found: list[FinishedFile] = []
        for file in stored_files(self.store, since=since.date(), pending=pending):
            if file.group.startswith(JOINED):
                continue
            if schemas is not None and not may_hold(file.group, schemas):
                continue
            table = pq.read_table(file.path, columns=[SOURCE, "@arrived"], partitioning=None)
            arrived = pc.max(table.column("@arrived")).as_py()
            if arrived > since and (until is None or arrived <= until):
                sources = frozenset(table.column(SOURCE).unique().to_pylist())
                found.append(FinishedFile(arrived, file.path, sources))
        return found
