"""What each micro-batch uses, written down before it runs, and how far all of them are.

    begin ──► batches/<group>/17.json ──► the batch runs ──► finish ──► 17.done.json
               snapshot, arrived           again, if it was cut off: with the same record

A batch has one snapshot, whatever is registered while it runs, and a replay has the same. It also
has one moment at which its items *arrived*. No two moments are equal, and none is earlier than what
is already known to be complete:

    complete   a moment up to which every batch of every group is finished

Whoever waits for items of several groups (the window joins) may decide up to there, and what it
decides follows from the records alone, so that it is the same after a crash.

Cost: two files' names and one fsync for a batch. Records of finished batches are removed when they
are old; the last ones are kept, as Spark may ask for the last one again.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from headgate.model.errors import PipelineError
from headgate.store.whole_files import rename_whole, write_whole

KEPT = 100
_STEP = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class BatchRecord:
    group: str
    number: int
    snapshot: str
    """The name of the snapshot's file."""
    arrived: datetime
    replayed: bool = False
    """Whether it had begun before."""
    finished: bool = False
    """Whether it had even ended before."""


class BatchJournal:
    """Thread-safe; one process writes, the one that holds the outbox.

    `decided` is a moment that an earlier process took for complete and has acted upon.
    """

    def __init__(self, folder: Path, *, decided: datetime | None = None) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._running: dict[tuple[str, int], datetime] = {}
        self._latest = decided or datetime.min.replace(tzinfo=UTC)
        for record in self._stored():
            self._latest = max(self._latest, record.arrived)
            if not record.finished:
                self._running[record.group, record.number] = record.arrived

    def begin(self, group: str, number: int, snapshot: str, now: datetime) -> BatchRecord:
        """The record of a batch: a new one, or, if it had begun before, the old one."""
        path = self._path(group, number)
        with self._lock:
            for known in (path, _done(path)):
                if known.exists():
                    record = _read(known, group)
                    self._running[group, number] = record.arrived
                    return record
            arrived = self._latest = max(now, self._latest + _STEP)
            self._running[group, number] = arrived
            content = {"snapshot": snapshot, "arrived": arrived.isoformat()}
            write_whole(path, json.dumps(content).encode())
        return BatchRecord(group, number, snapshot, arrived)

    def finish(self, record: BatchRecord) -> None:
        path = self._path(record.group, record.number)
        if path.exists():
            rename_whole(path, _done(path))
        old = _done(self._path(record.group, record.number - KEPT))
        old.unlink(missing_ok=True)
        with self._lock:
            self._running.pop((record.group, record.number), None)

    def complete(self, now: datetime) -> datetime:
        """All items that arrived up to this moment are in the store, and no more will come."""
        with self._lock:
            complete = min(self._running.values(), default=now + _STEP) - _STEP
            # A batch that begins from now on arrives later.
            self._latest = max(self._latest, complete)
            return complete

    def pending(self) -> set[tuple[str, int]]:
        """The batches that have begun and not ended, also those of an earlier process."""
        with self._lock:
            return set(self._running)

    def forget(self, group: str) -> None:
        """The group's query has ended for good, and its last batch will never be run again."""
        with self._lock:
            for key in [each for each in self._running if each[0] == group]:
                del self._running[key]
                self._path(*key).unlink(missing_ok=True)

    def _path(self, group: str, number: int) -> Path:
        return self._folder / group / f"{number}.json"

    def _stored(self) -> list[BatchRecord]:
        return [
            _read(path, path.parent.name)
            for path in sorted(self._folder.glob("*/*.json"))
            if not path.name.startswith(".")
        ]


def read_record(folder: Path, group: str, number: int) -> BatchRecord:
    """The record of a batch that has begun: workers read it too."""
    path = folder / group / f"{number}.json"
    for known in (path, _done(path)):
        if known.exists():
            return _read(known, group)
    raise PipelineError(f"batch {number} of {group} has no record: it must begin before it runs")


def _done(path: Path) -> Path:
    return path.with_name(f"{path.stem}.done.json")


def _read(path: Path, group: str) -> BatchRecord:
    try:
        found = json.loads(path.read_bytes())
        number, arrived = int(path.name.split(".")[0]), datetime.fromisoformat(found["arrived"])
        finished = path.name.endswith(".done.json")
        return BatchRecord(group, number, str(found["snapshot"]), arrived, True, finished)
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"the batch record '{path}' is damaged: {error}") from None
