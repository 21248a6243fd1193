"""The journal of micro-batches: what each one uses, written before it runs, and which are finished.

    begin ──► batches/<group>/17.json ──► the batch runs ──► finish ──► 17.done.json
               snapshot, arrived           a replay finds the same record

A batch uses one snapshot, whatever is registered while it runs, and a replay uses the same one. All
items of a batch have one *arrival instant*. Arrival instants are unique, and never earlier than an
instant that was reported as complete:

    complete   the instant up to which every batch of every group is finished

The joins, which read the items of several groups, process what arrived up to this instant. It
follows from the records alone, so the result is the same after a crash.

Cost: a file, a rename and an fsync for each batch. Records of finished batches are removed when
they are old. The last ones are kept, since Spark may run the last batch of a query again.
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
    """The file name of the snapshot."""
    arrived: datetime
    """The arrival instant of all items of the batch."""
    replayed: bool = False
    """Whether the batch was begun before and is run again."""
    finished: bool = False
    """Whether it was finished before."""


class BatchJournal:
    """Thread-safe. Only one process writes: the one that holds the outbox.

    `decided` is the instant up to which an earlier process has processed joins; new batches arrive
    after it.
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
        """The record of a batch: a new one, or the existing one if the batch is run again."""
        path = self._path(group, number)
        with self._lock:
            for record_path in (path, _done_path(path)):
                if record_path.exists():
                    record = _read(record_path, group)
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
            rename_whole(path, _done_path(path))
        old = _done_path(self._path(record.group, record.number - KEPT))
        old.unlink(missing_ok=True)
        with self._lock:
            self._running.pop((record.group, record.number), None)

    def complete(self, now: datetime) -> datetime:
        """The instant up to which all items are in the store: no batch will arrive before it."""
        with self._lock:
            complete = min(self._running.values(), default=now + _STEP) - _STEP
            # Batches that begin from now on get a later instant.
            self._latest = max(self._latest, complete)
            return complete

    def pending(self) -> set[tuple[str, int]]:
        """The batches that have begun and are not finished, also those of an earlier process."""
        with self._lock:
            return set(self._running)

    def forget(self, group: str) -> None:
        """Remove the unfinished batches of a group whose query has ended for good."""
        with self._lock:
            for key in [key for key in self._running if key[0] == group]:
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
    """The record of a batch that has begun. For workers."""
    path = folder / group / f"{number}.json"
    for record_path in (path, _done_path(path)):
        if record_path.exists():
            return _read(record_path, group)
    raise PipelineError(f"batch {number} of {group} has no record: it must begin before it runs")


def _done_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.done.json")


def _read(path: Path, group: str) -> BatchRecord:
    try:
        content = json.loads(path.read_bytes())
        number, arrived = int(path.name.split(".")[0]), datetime.fromisoformat(content["arrived"])
        finished = path.name.endswith(".done.json")
        return BatchRecord(group, number, str(content["snapshot"]), arrived, True, finished)
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"the batch record '{path}' is damaged: {error}") from None
