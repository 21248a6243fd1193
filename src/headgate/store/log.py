"""The log: finished batches of items in one order, given at commit by one sequencer.

    tasks write data/…  ──►  summaries  ──►  Sequencer.commit  ──►  log/<seq>.json  ──►  readers
    nothing is visible                        position, instant      now it exists

An *entry* gives its items their *positions* (consecutive numbers from `base` on) and one instant of
arrival. Positions and instants grow together, so everything that arrived until an entry's instant
lies at or before it. Entries are created once and never change:

    batch    a micro-batch of a source query, or the output of a stage: files with their rows
    tick     no items: an instant has passed, for stages that wait for time; or a new sequencer
    merge    files that replace others with the same items under the same positions
    trim     the first position that is kept

Who committed what is part of the entry (`Origin`): a replayed batch is recognised and gets no
second entry. A stage reads the log from one point to another and commits its output with these two
points; it never commits a part of the log twice.

*Two drivers.* Each sequencer has a nonce. A new one first appends a tick of its own. An older one
that still runs finds its next number taken by a foreign nonce, and stops with `LogFenced`.

*Recovery* reads the newest checkpoint (the state at some entry), then the entries behind it.
Folders of data are never listed to find out what exists: a file that no entry names does not exist,
so a task that was declared lost and writes nevertheless changes nothing.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import pairwise

from headgate.match.batch import microseconds
from headgate.model.errors import LogError, LogFenced
from headgate.store.log_state import (
    Kind,
    LogEntry,
    LogFile,
    LogState,
    Origin,
    WrittenFile,
    decode_entry,
    decode_state,
    encode_entry,
    encode_state,
)
from headgate.store.log_storage import LogStorage

CHECKPOINT_EVERY = 256
READ_AHEAD_MAX = 32
BEHIND_S = 60.0
"""A reader that finds nothing new for so long looks for a newer checkpoint."""


# --- reading --------------------------------------------------------------------------------------


class LogReader:
    """A view of the log that `refresh` brings up to date. For one thread, in any process."""

    def __init__(self, storage: LogStorage) -> None:
        self.storage = storage
        self.state = _recover(storage)
        self._checked_at = time.monotonic()

    def refresh(self) -> list[LogEntry]:
        """The entries that were appended since the last call; not those before a checkpoint to
        which a reader had to jump because it was far behind."""
        entries = self._read_on()
        if not entries and time.monotonic() > self._checked_at + BEHIND_S:
            # The next entry does not exist yet, or does not exist any more (`prune_entries`).
            self._checked_at = time.monotonic()
            newest = _recover(self.storage)
            if newest.seq > self.state.seq:
                self.state = newest
                entries = self._read_on()
        return entries

    def _read_on(self) -> list[LogEntry]:
        """The more there was, the more is read at once: at a URL each request takes long."""
        entries: list[LogEntry] = []
        count = 1
        while True:
            first = self.state.seq + 1
            names = [_entry_name(seq) for seq in range(first, first + count)]
            for name, content in zip(names, self.storage.read_many(names), strict=True):
                if content is None:
                    return entries
                entry = decode_entry(content, name)
                self.state = self.state.after(entry)
                entries.append(entry)
            count = min(2 * count, READ_AHEAD_MAX)


def read_entry(storage: LogStorage, seq: int) -> LogEntry | None:
    content = storage.read(_entry_name(seq))
    return None if content is None else decode_entry(content, _entry_name(seq))


def _recover(storage: LogStorage) -> LogState:
    """The state of the newest checkpoint; `refresh` reads the entries behind it."""
    names = [each for each in storage.names("log") if _CHECKPOINT in each]
    for name in sorted(names, reverse=True):
        content = storage.read(name)
        if content is not None:  # a newer checkpoint may have replaced it meanwhile
            return decode_state(content, name)
    return LogState()


def prune_entries(storage: LogStorage, *, before_us: int) -> int:
    """Remove the entries and checkpoints that lie before a checkpoint of this instant or earlier:
    readers begin with a later one. The number of objects that are gone."""
    names = sorted(storage.names("log"))
    kept_from = 0
    for name in (each for each in names if _CHECKPOINT in each):
        content = storage.read(name)
        if content is not None and (state := decode_state(content, name)).arrived_us <= before_us:
            kept_from = state.seq
    old = [name for name in names if _seq_of(name) < kept_from]
    for name in old:
        storage.remove(name)
    return len(old)


# --- writing --------------------------------------------------------------------------------------


class Sequencer:
    """The one writer of a log. Thread-safe."""

    def __init__(
        self,
        storage: LogStorage,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        checkpoint_every: int = CHECKPOINT_EVERY,
    ) -> None:
        self._storage, self._now = storage, now
        self._every = checkpoint_every
        self._nonce = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._reader = LogReader(storage)
        self._claim()

    @property
    def state(self) -> LogState:
        return self._reader.state

    def _claim(self) -> None:
        """Append a tick: whoever wrote before is fenced from then on."""
        while True:
            self._reader.refresh()
            try:
                self.tick()
            except LogFenced:
                continue  # another one was faster; the last one to start wins
            return

    def commit(
        self, origin: Origin, files: Sequence[WrittenFile], *, snapshot: str = ""
    ) -> LogEntry | None:
        """Append a batch; None if it was committed before, and then its files must be dropped."""
        with self._lock:
            return self._append(lambda: self._batch(origin, files, snapshot))

    def _batch(
        self, origin: Origin, files: Sequence[WrittenFile], snapshot: str
    ) -> LogEntry | None:
        if self.state.has(origin):
            return None
        if origin.end is not None:
            last = self.state.ends.get(origin.query, origin.start)
            if last != origin.start:
                raise LogError(f"'{origin.query}' has read up to {last}, and must go on from there")
        arrived_us, base = self._next_instant(), self.state.next_position
        placed: list[LogFile] = []
        for each in files:
            first = placed[-1].end if placed else base
            end = first + each.rows
            placed.append(LogFile(**asdict(each), first=first, end=end, arrived_us=arrived_us))
        return LogEntry(
            seq=self.state.seq + 1,
            kind="batch",
            writer=self._nonce,
            arrived_us=arrived_us,
            base=base,
            origin=origin,
            snapshot=snapshot,
            files=tuple(placed),
        )

    def tick(self) -> LogEntry:
        """Append an entry without items: its instant has passed."""
        with self._lock:
            entry = self._append(lambda: self._empty("tick"))
            assert entry is not None, "there is always something to append"
            return entry

    def merge(self, replaced: Sequence[LogFile], merged: WrittenFile) -> LogEntry | None:
        """Replace files by one with the same rows in the same order; None if one of them is no
        longer live, and then the merged file must be dropped."""
        with self._lock:
            return self._append(lambda: self._merge(replaced, merged))

    def _merge(self, replaced: Sequence[LogFile], merged: WrittenFile) -> LogEntry | None:
        live = {each.items for each in self.state.files}
        if not all(each.items in live for each in replaced):
            return None
        ascending = all(a.end <= b.first for a, b in pairwise(replaced))
        assert ascending, "files are merged in the order of their positions"
        rows = sum(each.rows for each in replaced)
        assert rows == merged.rows, f"{merged.items} has {merged.rows} rows instead of {rows}"
        file = LogFile(
            **asdict(merged),
            first=replaced[0].first,
            end=replaced[-1].end,
            arrived_us=replaced[0].arrived_us,
            level=1 + max(each.level for each in replaced),
        )
        names = tuple(each.items for each in replaced)
        return replace(self._empty("merge"), files=(file,), replaces=names)

    def trim(self, first: int) -> LogEntry | None:
        """Forget the items below a position; None if there is nothing to forget."""
        with self._lock:
            return self._append(lambda: self._trim(first))

    def _trim(self, first: int) -> LogEntry | None:
        if first <= self.state.first_position:
            return None
        assert first <= self.state.next_position, "items that are yet to come cannot be trimmed"
        return replace(self._empty("trim"), first=first)

    def _empty(self, kind: Kind) -> LogEntry:
        return LogEntry(
            self.state.seq + 1, kind, self._nonce, self._next_instant(), self.state.next_position
        )

    def _next_instant(self) -> int:
        """Instants grow, whatever the clock does."""
        return max(microseconds(self._now()), self.state.arrived_us + 1)

    def _append(self, make: Callable[[], LogEntry | None]) -> LogEntry | None:
        """Append the entry that `make` gives for the state as it is; None if it gives none.

        The outcome of an earlier attempt may have been unknown: its request got no answer, and was
        carried out nevertheless, perhaps only now. Then that entry has the number. It counts, and
        `make` is called again for the state behind it."""
        while (entry := make()) is not None:
            stored = self._created(entry)
            self._reader.state = self.state.after(stored)
            if stored.seq % self._every == 0:
                with suppress(OSError):  # the next checkpoint serves as well
                    self._storage.create(_checkpoint_name(stored.seq), encode_state(self.state))
            if stored == entry:
                return entry
        return None

    def _created(self, entry: LogEntry) -> LogEntry:
        """Create an entry; the one that has its number then, which is of this sequencer."""
        try:
            if self._storage.create(_entry_name(entry.seq), encode_entry(entry)):
                return entry
            stored = read_entry(self._storage, entry.seq)
        except OSError:
            # It may have been written all the same: then it counts.
            stored = read_entry(self._storage, entry.seq)
            if stored is None:
                raise
        if stored is None or stored.writer != self._nonce:
            raise LogFenced("another process writes to this log; this one must stop")
        return stored


# --- names ----------------------------------------------------------------------------------------

_CHECKPOINT = "/checkpoint-"


def _seq_of(name: str) -> int:
    return int(name.rpartition("/")[2].removeprefix("checkpoint-").removesuffix(".json"))


def _entry_name(seq: int) -> str:
    return f"log/{seq:020}.json"


def _checkpoint_name(seq: int) -> str:
    return f"log/checkpoint-{seq:020}.json"
