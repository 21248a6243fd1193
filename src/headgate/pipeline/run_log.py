"""The log of a run in its driver: one sequencer for all queries and stages, and who waits for it.

    queries, stages ── commit ──► RunLog ──► log/<seq>.json
                                    │
                                    └──► wakes the threads of stages and delivery

A stage is a thread that reads the log from the point where it stopped and appends to it
(`LogFollower`). How far a stage has come is part of the entries that it appends, so there is no
other record of it. A stage without output says now and then how far it has come, with an entry
without files: where it goes on after a restart, and what retention may remove.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from headgate.model.errors import LogFenced
from headgate.store.log import Sequencer, read_entry
from headgate.store.log_state import (
    START,
    LogEntry,
    LogFile,
    LogPoint,
    LogState,
    Origin,
    WrittenFile,
)
from headgate.store.log_storage import LogStorage
from headgate.store.log_upkeep import live_names

ROWS_AT_ONCE = 1_000_000
PROGRESS_S = 300.0
"""How often a stage without output says how far it has come."""


class RunLog:
    """Thread-safe."""

    def __init__(self, storage: LogStorage) -> None:
        self.storage = storage
        self.sequencer = Sequencer(storage)
        self.fenced = ""
        """Why this run must stop: another one has taken over the log."""
        self._appended = threading.Condition()

    @property
    def state(self) -> LogState:
        return self.sequencer.state

    def commit(
        self, origin: Origin, files: Sequence[WrittenFile], *, snapshot: str = ""
    ) -> LogEntry | None:
        """Append a batch; None if it was committed before: then its files are removed."""
        entry = self._appending(lambda: self.sequencer.commit(origin, files, snapshot=snapshot))
        if entry is None:
            self._drop(files)
        return entry

    def _drop(self, files: Sequence[WrittenFile]) -> None:
        """Remove files that were not committed. Those of an attempt whose outcome was unknown may
        have been; what cannot be removed now is removed by the next sweep."""
        live = live_names(self.state)
        for name in (name for file in files for name in (file.items, file.segment)):
            if name not in live:
                with suppress(OSError):
                    self.storage.remove(name)

    def tick(self) -> None:
        """Append an entry without items: its instant has passed."""
        self._appending(self.sequencer.tick)

    def wait(self, beyond: int, timeout_s: float) -> bool:
        """Wait until there is an entry behind this one, or someone calls `wake`."""
        with self._appended:
            if self.state.seq <= beyond:
                self._appended.wait(timeout_s)
        return self.state.seq > beyond

    def wake(self) -> None:
        """End all waiting."""
        with self._appended:
            self._appended.notify_all()

    def _appending(self, append: Callable[[], LogEntry | None]) -> LogEntry | None:
        try:
            entry = append()
        except LogFenced as error:
            self.fenced = str(error)
            raise
        self.wake()
        return entry


@dataclass(frozen=True, slots=True)
class LogPart:
    """A part of the log that a stage has not read yet."""

    start: LogPoint
    end: LogPoint
    files: Sequence[LogFile]
    """Those with items between the two; a merged one may have others too."""


class LogFollower:
    """How far a stage has read, and what it commits. For one thread."""

    def __init__(self, log: RunLog, name: str) -> None:
        self.log, self.name = log, name
        self._committed = self.point = log.state.ends.get(name, START)
        self._committed_at = time.monotonic()
        self.finished_s: float | None = None
        """When the last part was finished, in seconds since 1970; None before the first."""
        self._is_unsure = False
        """Whether the last commit has failed, and may have been carried out nevertheless."""

    def next_part(self) -> LogPart | None:
        """What was appended behind the point that was reached; None if nothing was. A stage that is
        far behind gets some of it, about ROWS_AT_ONCE items."""
        self._settle()
        state = self.log.state
        if state.seq <= self.point.seq:
            return None
        end = state.point
        if end.position - self.point.position > ROWS_AT_ONCE:
            end = self._point_behind(self.point, ROWS_AT_ONCE) or end
        files = state.files_between(self.point.position, end.position)
        return LogPart(self.point, end, files)

    def _point_behind(self, point: LogPoint, rows: int) -> LogPoint | None:
        """The first point with so many items between; None if old entries were removed."""
        seq, position = point.seq, point.position
        while (entry := read_entry(self.log.storage, seq + 1)) is not None:
            seq, position = entry.seq, max(position, entry.base + entry.rows)
            if position - point.position >= rows:
                return LogPoint(seq, position, entry.arrived_us)
        return None

    def reached(
        self, end: LogPoint, files: Sequence[WrittenFile] = (), *, snapshot: str = ""
    ) -> LogEntry | None:
        """The stage has read up to a point, and these are its outputs."""
        self.finished_s = time.time()
        due = time.monotonic() > self._committed_at + PROGRESS_S
        if files or due:
            return self._commit(end, files, snapshot)
        self.point = end
        return None

    def commit(self) -> None:
        """Record the point that was reached."""
        self._settle()
        if self.point != self._committed:
            self._commit(self.point, (), "")

    def _commit(
        self, end: LogPoint, files: Sequence[WrittenFile], snapshot: str
    ) -> LogEntry | None:
        """If this fails, the stage goes on from what the log has of it, which is what the next
        call of `next_part` gives."""
        self._settle()
        origin = Origin(self.name, start=self._committed, end=end)
        self._is_unsure = True
        entry = self.log.commit(origin, files, snapshot=snapshot)
        self._is_unsure = False
        self._committed = self.point = end
        self._committed_at = time.monotonic()
        return entry

    def _settle(self) -> None:
        """Find out what became of a commit that has failed. A tick that was appended after it has
        the number that the commit could have had, or a later one."""
        if self._is_unsure:
            self.log.tick()
            self._committed = self.point = self.log.state.ends.get(self.name, START)
            self._is_unsure = False
