"""What the log consists of: entries, the state that they give, and both as JSON.

    LogEntry  ──►  log/<seq>.json               created once, never changed
    LogState  ──►  log/checkpoint-<seq>.json    what the entries up to `seq` amount to

`LogState.after(entry)` is the whole meaning of an entry; readers and the sequencer (log.py) have no
other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple

from headgate.model.errors import LogError

Kind = Literal["batch", "tick", "merge", "trim"]
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


class LogPoint(NamedTuple):
    """A place between two entries. What lies before it: entries up to and with `seq`, items below
    `position`, and everything that arrived until `arrived_us`."""

    seq: int = 0
    position: int = 0
    arrived_us: int = 0


START = LogPoint()


@dataclass(frozen=True, slots=True)
class Origin:
    """Who commits a batch: a query, by the id of its Spark checkpoint (`epoch`) and its number of
    the batch; or a stage, by the part of the log that it has read, from `start` to `end`."""

    query: str
    epoch: str = ""
    batch: int = 0
    start: LogPoint | None = None
    end: LogPoint | None = None


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
    ends: Mapping[str, LogPoint] = field(default_factory=dict)
    """How far each stage has read and committed."""

    @property
    def point(self) -> LogPoint:
        """The end of the log."""
        return LogPoint(self.seq, self.next_position, self.arrived_us)

    def has(self, origin: Origin) -> bool:
        """Whether this batch was committed already."""
        if origin.end is not None:
            return origin.end.seq <= self.ends.get(origin.query, START).seq
        return origin.batch <= self.batches.get((origin.query, origin.epoch), -1)

    def files_between(self, start: int, end: int) -> list[LogFile]:
        """The files with items at positions from `start` to before `end`; a merged one may have
        others too."""
        return [each for each in self.files if each.first < end and each.end > start]

    def after(self, entry: LogEntry) -> LogState:
        assert entry.seq == self.seq + 1, f"entry {entry.seq} does not follow {self.seq}"
        state = replace(self, seq=entry.seq, arrived_us=entry.arrived_us)
        match entry.kind:
            case "batch":
                assert entry.origin is not None
                origin, batches, ends = entry.origin, self.batches, self.ends
                if origin.end is None:
                    batches = {**batches, (origin.query, origin.epoch): origin.batch}
                else:
                    ends = {**ends, origin.query: origin.end}
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


# --- encoding -------------------------------------------------------------------------------------


def encode_entry(entry: LogEntry) -> bytes:
    return json.dumps({"version": VERSION, **asdict(entry)}, separators=(",", ":")).encode()


def decode_entry(content: bytes, name: str) -> LogEntry:
    try:
        stored = json.loads(content)
        _check_version(stored, name)
        stored["origin"] = None if stored["origin"] is None else _origin(stored["origin"])
        stored["files"] = _files(stored["files"])
        stored["replaces"] = tuple(stored["replaces"])
        return LogEntry(**stored)
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(f"the log entry '{name}' is damaged: {error}") from None


def _origin(stored: dict[str, Any]) -> Origin:
    points = {name: stored[name] and LogPoint(*stored[name]) for name in ("start", "end")}
    return Origin(**{**stored, **points})


def encode_state(state: LogState) -> bytes:
    stored = {
        "version": VERSION,
        **{name: getattr(state, name) for name in _NUMBERS},
        "files": [asdict(each) for each in state.files],
        "batches": [[*key, batch] for key, batch in state.batches.items()],
        "ends": dict(state.ends),
    }
    return json.dumps(stored, separators=(",", ":")).encode()


_NUMBERS = ("seq", "next_position", "first_position", "arrived_us")


def decode_state(content: bytes, name: str) -> LogState:
    try:
        stored = json.loads(content)
        _check_version(stored, name)
        return LogState(
            **{each: int(stored[each]) for each in _NUMBERS},
            files=_files(stored["files"]),
            batches={(query, epoch): int(batch) for query, epoch, batch in stored["batches"]},
            ends={str(query): LogPoint(*map(int, end)) for query, end in stored["ends"].items()},
        )
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(f"the checkpoint '{name}' of the log is damaged: {error}") from None


def _check_version(stored: dict[str, Any], name: str) -> None:
    version = stored.pop("version")
    if version != VERSION:
        raise LogError(f"'{name}' has version {version} of the log; this program reads {VERSION}")


def _files(stored: Iterable[dict[str, Any]]) -> tuple[LogFile, ...]:
    return tuple(LogFile(**each) for each in stored)
