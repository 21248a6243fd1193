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
second entry. A stage reads entries from `start` to `end` (both are sequence numbers) and commits
its output with this range; it never commits a range twice.

*Two drivers.* Each sequencer has a nonce. A new one first appends a tick of its own. An older one
that still runs finds its next number taken by a foreign nonce, and stops with `LogFenced`.

*Recovery* reads the newest checkpoint (the state at some entry), then the entries behind it.
Folders of data are never listed to find out what exists: a file that no entry names does not exist,
so a task that was declared lost and writes nevertheless changes nothing.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Literal

from headgate.match.batch import microseconds
from headgate.model.errors import LogError, LogFenced
from headgate.store.log_storage import LogStorage

Kind = Literal["batch", "tick", "merge", "trim"]
CHECKPOINT_EVERY = 256
VERSION = 1


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file of items and its segment, as the task that wrote them describes it."""

    items: str
    segment: str
    group: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of items in the log. Its items lie in the positions from `first` to before `end`; in a
    merged file, those of other groups may lie in between (segment.Runs)."""

    items: str
    segment: str
    group: str
    rows: int
    bytes: int
    first: int
    end: int
    arrived_us: int
    """When its first item arrived."""
    level: int = 0
    """0 for files of batches, one more for merged ones."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who commits a batch. `epoch` is the id of the query's Spark checkpoint. A stage also says
    which entries it has read: those behind `start`, up to and with `end`."""

    query: str
    epoch: str
    batch: int
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class LogEntry:
    seq: int
    kind: Kind
    writer: str
    arrived_us: int
    base: int
    """The position of the first item of a batch; of other entries, the next position."""
    origin: Origin | None = None
    snapshot: str = ""
    files: tuple[LogFile, ...] = ()
    replaces: tuple[str, ...] = ()
    """Of a merge: the files of items that `files` replace."""
    first: int = 0
    """Of a trim: the first position that is kept."""

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.files) if self.kind == "batch" else 0


@dataclass(frozen=True, slots=True)
class LogState:
    """What the entries up to `seq` amount to."""

    seq: int = 0
    next_position: int = 0
    first_position: int = 0
    arrived_us: int = 0
    files: tuple[LogFile, ...] = ()
    """The live files, ordered by their first positions."""
    batches: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The last batch of each query and epoch."""
    ends: Mapping[str, int] = field(default_factory=dict)
    """For each stage the last entry that it has read and committed."""

    def has(self, origin: Origin) -> bool:
        """Whether this batch was committed already."""
        if origin.end is not None and origin.end <= self.ends.get(origin.query, 0):
            return True
        return origin.batch <= self.batches.get((origin.query, origin.epoch), -1)

    def after(self, entry: LogEntry) -> LogState:
        assert entry.seq == self.seq + 1, f"entry {entry.seq} does not follow {self.seq}"
        state = replace(self, seq=entry.seq, arrived_us=entry.arrived_us)
        match entry.kind:
            case "batch":
                assert entry.origin is not None
                origin = entry.origin
                batches = {**self.batches, (origin.query, origin.epoch): origin.batch}
                ends = self.ends if origin.end is None else {**self.ends, origin.query: origin.end}
                return replace(
                    state,
                    next_position=entry.base + entry.rows,
                    files=(*self.files, *entry.files),
                    batches=batches,
                    ends=ends,
                )
            case "merge":
                gone = set(entry.replaces)
                kept = [each for each in self.files if each.items not in gone]
                files = sorted([*kept, *entry.files], key=lambda each: each.first)
                return replace(state, files=tuple(files))
            case "trim":
                kept = [each for each in self.files if each.end > entry.first]
                return replace(state, first_position=entry.first, files=tuple(kept))
        return state


# --- reading --------------------------------------------------------------------------------------


class LogReader:
    """A view of the log that `refresh` brings up to date. For one thread, in any process."""

    def __init__(self, storage: LogStorage) -> None:
        self.storage = storage
        self.state = _recover(storage)

    def refresh(self) -> list[LogEntry]:
        """The entries that were appended since the last call."""
        entries: list[LogEntry] = []
        while (entry := read_entry(self.storage, self.state.seq + 1)) is not None:
            self.state = self.state.after(entry)
            entries.append(entry)
        return entries


def read_entry(storage: LogStorage, seq: int) -> LogEntry | None:
    content = storage.read(_entry_name(seq))
    return None if content is None else _decoded(content, _entry_name(seq))


def _recover(storage: LogStorage) -> LogState:
    """The state of the newest checkpoint; `refresh` reads the entries behind it."""
    names = [each for each in storage.names("log") if "/checkpoint-" in each]
    for name in sorted(names, reverse=True):
        content = storage.read(name)
        if content is not None:  # a newer checkpoint may have replaced it meanwhile
            return _decoded_state(content, name)
    return LogState()


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
            if self.state.has(origin):
                return None
            arrived_us, base = self._next_instant(), self.state.next_position
            placed: list[LogFile] = []
            for each in files:
                first = placed[-1].end if placed else base
                end = first + each.rows
                placed.append(LogFile(**asdict(each), first=first, end=end, arrived_us=arrived_us))
            return self._append(
                LogEntry(
                    seq=self.state.seq + 1,
                    kind="batch",
                    writer=self._nonce,
                    arrived_us=arrived_us,
                    base=base,
                    origin=origin,
                    snapshot=snapshot,
                    files=tuple(placed),
                )
            )

    def tick(self) -> LogEntry:
        """Append an entry without items: its instant has passed."""
        with self._lock:
            return self._append(self._empty("tick"))

    def merge(self, replaced: Sequence[LogFile], merged: WrittenFile) -> LogEntry | None:
        """Replace files by one with the same rows in the same order; None if one of them is no
        longer live, and then the merged file must be dropped."""
        with self._lock:
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
            return self._append(replace(self._empty("merge"), files=(file,), replaces=names))

    def trim(self, first: int) -> LogEntry | None:
        """Forget the items below a position; None if there is nothing to forget."""
        with self._lock:
            if first <= self.state.first_position:
                return None
            assert first <= self.state.next_position, "items that are yet to come cannot be trimmed"
            return self._append(replace(self._empty("trim"), first=first))

    def _empty(self, kind: Kind) -> LogEntry:
        return LogEntry(
            self.state.seq + 1, kind, self._nonce, self._next_instant(), self.state.next_position
        )

    def _next_instant(self) -> int:
        """Instants grow, whatever the clock does."""
        return max(microseconds(self._now()), self.state.arrived_us + 1)

    def _append(self, entry: LogEntry) -> LogEntry:
        name = _entry_name(entry.seq)
        try:
            created = self._storage.create(name, _encoded(entry))
        except OSError:
            # It may have been written all the same: then it counts.
            stored = read_entry(self._storage, entry.seq)
            if stored is None:
                raise
            created = stored.writer == self._nonce
        if not created:
            stored = read_entry(self._storage, entry.seq)
            if stored is None or stored != entry:
                raise LogFenced("another process writes to this log; this one must stop")
        self._reader.state = self.state.after(entry)
        if entry.seq % self._every == 0:
            self._storage.create(_checkpoint_name(entry.seq), _encoded_state(self.state))
        return entry


# --- encoding -------------------------------------------------------------------------------------


def _entry_name(seq: int) -> str:
    return f"log/{seq:020}.json"


def _checkpoint_name(seq: int) -> str:
    return f"log/checkpoint-{seq:020}.json"


def _encoded(entry: LogEntry) -> bytes:
    return json.dumps({"version": VERSION, **asdict(entry)}, separators=(",", ":")).encode()


def _decoded(content: bytes, name: str) -> LogEntry:
    try:
        stored = json.loads(content)
        _check_version(stored, name)
        stored["origin"] = None if stored["origin"] is None else Origin(**stored["origin"])
        stored["files"] = _files(stored["files"])
        stored["replaces"] = tuple(stored["replaces"])
        return LogEntry(**stored)
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(f"the log entry '{name}' is damaged: {error}") from None


def _encoded_state(state: LogState) -> bytes:
    stored = {
        "version": VERSION,
        **{name: getattr(state, name) for name in _NUMBERS},
        "files": [asdict(each) for each in state.files],
        "batches": [[*key, batch] for key, batch in state.batches.items()],
        "ends": dict(state.ends),
    }
    return json.dumps(stored, separators=(",", ":")).encode()


_NUMBERS = ("seq", "next_position", "first_position", "arrived_us")


def _decoded_state(content: bytes, name: str) -> LogState:
    try:
        stored = json.loads(content)
        _check_version(stored, name)
        return LogState(
            **{each: int(stored[each]) for each in _NUMBERS},
            files=_files(stored["files"]),
            batches={(query, epoch): int(batch) for query, epoch, batch in stored["batches"]},
            ends={str(query): int(end) for query, end in stored["ends"].items()},
        )
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(f"the checkpoint '{name}' of the log is damaged: {error}") from None


def _check_version(stored: dict[str, Any], name: str) -> None:
    version = stored.pop("version")
    if version != VERSION:
        raise LogError(f"'{name}' has version {version} of the log; this program reads {VERSION}")


def _files(stored: Iterable[dict[str, Any]]) -> tuple[LogFile, ...]:
    return tuple(LogFile(**each) for each in stored)
