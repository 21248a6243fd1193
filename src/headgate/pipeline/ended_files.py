"""Files of finished batches that have not been taken in yet, for joins of all kinds.

a batch ends ──► add ──► taken(until) ──► those that arrived until then, once
start        ──► look: what an earlier process has stored and not taken in
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
from headgate.pipeline.batch_stage import Stored
from headgate.pipeline.journal import Journal
from headgate.store.item_files import JOINED, stored_files


@dataclass(frozen=True, slots=True)
class EndedFile:
    arrived: datetime
    path: Path
    sources: frozenset[str]


@dataclass(slots=True)
class EndedFiles:
    """`add` may be called by any thread."""

    store: Path
    journal: Journal
    _files: list[EndedFile] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, arrived: datetime, parts: Iterable[Stored]) -> None:
        """A batch has stored these."""
        with self._lock:
            self._files += [
                EndedFile(arrived, each.path, frozenset(each.sources)) for each in parts
            ]

    def taken(self, until: datetime, sources: Collection[str]) -> list[EndedFile]:
        """Those that arrived until a moment and have items of these sources; all until then are
        done with."""
        with self._lock:
            taken = [each for each in self._files if each.arrived <= until]
            self._files = [each for each in self._files if each.arrived > until]
        return [each for each in taken if each.sources & set(sources)]

    def look(self, since: datetime) -> None:
        """What an earlier process has stored after a moment."""
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
    ) -> list[EndedFile]:
        """Of batches that have ended, and of sources with these schemas, if they are named."""
        pending = self.journal.pending()
        found: list[EndedFile] = []
        for file in stored_files(self.store, since=since.date(), pending=pending):
            if file.group.startswith(JOINED):
                continue
            if schemas is not None and not may_hold(file.group, schemas):
                continue
            table = pq.read_table(file.path, columns=[SOURCE, "@arrived"], partitioning=None)
            arrived = pc.max(table.column("@arrived")).as_py()
            if arrived > since and (until is None or arrived <= until):
                sources = frozenset(table.column(SOURCE).unique().to_pylist())
                found.append(EndedFile(arrived, file.path, sources))
        return found
