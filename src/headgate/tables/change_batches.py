"""Change batches: which changes the table joins process next, written before they are processed.

    the log ──────────► tables/lots/17.json ──► one micro-batch of the query ──► progress: 17
                         snapshot, instant, files

A change batch fixes all that a micro-batch depends on: the files of changes, in order; the
snapshot, and with it the subscriptions; the instant by which rows expire; the feeds whose results
are delivered. Batch 17 is offset 17 of the query, so a replay processes the same changes with the
same subscriptions.

A new group (or one that comes back) first loads its rows from the `history`, all stored files,
without messages. Messages are written for what arrives from then on.

On disk the batches are in the folder `lots`, with the keys of earlier versions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from headgate.model.errors import PipelineError
from headgate.store.log_state import START, LogPoint
from headgate.store.whole_files import write_whole

KEPT = 100
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ChangeFile:
    """A file of the log, the joined tables that it has changes of, and which of its rows count."""

    path: str
    tables: tuple[str, ...]
    first_row: int = 0
    end_row: int | None = None


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    number: int
    snapshot: str
    instant: datetime
    """All changes that arrived until then are processed with this batch."""
    files: tuple[ChangeFile, ...] = ()
    history: tuple[ChangeFile, ...] = ()
    fresh: tuple[str, ...] = ()
    """The names of groups that have no rows yet: new ones, and ones that came back."""
    groups: tuple[str, ...] = ()
    """The names of all groups."""
    ended: tuple[str, ...] = ()
    """The names of groups that no longer exist."""
    wanted: str = ""
    """The file with the numbers of the feeds whose results are delivered."""
    end: LogPoint = START
    """Where the log is when these changes have been processed."""


@dataclass(frozen=True, slots=True)
class ChangeProgress:
    """The last batch that was processed, its instant, the groups that have rows since, and where
    the log was."""

    number: int = 0
    decided: datetime = NEVER
    groups: tuple[str, ...] = field(default=())
    point: LogPoint = START


def write_change_batch(folder: Path, batch: ChangeBatch) -> None:
    content = {
        "snapshot": batch.snapshot,
        "moment": batch.instant.isoformat(),
        "files": [astuple(each) for each in batch.files],
        "history": [astuple(each) for each in batch.history],
        "fresh": batch.fresh,
        "groups": batch.groups,
        "ended": batch.ended,
        "wanted": batch.wanted,
        "end": batch.end,
    }
    write_whole(_path(folder, batch.number), json.dumps(content).encode())
    _path(folder, batch.number - KEPT).unlink(missing_ok=True)


def read_change_batch(folder: Path, number: int) -> ChangeBatch:
    path = _path(folder, number)
    try:
        content = json.loads(path.read_bytes())
        return ChangeBatch(
            number,
            str(content["snapshot"]),
            datetime.fromisoformat(content["moment"]),
            _files(content["files"]),
            _files(content["history"]),
            tuple(map(str, content["fresh"])),
            tuple(map(str, content["groups"])),
            tuple(map(str, content["ended"])),
            str(content["wanted"]),
            LogPoint(*map(int, content["end"])),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"the change batch '{path}' cannot be read: {error}") from None


def last_change_batch(folder: Path, *, after: int) -> int:
    """The number of the last batch; batches are written one by one."""
    number = after
    while _path(folder, number + 1).exists():
        number += 1
    return number


def read_change_progress(folder: Path) -> ChangeProgress:
    path = folder / "progress.json"
    if not path.exists():
        return ChangeProgress()
    try:
        content = json.loads(path.read_bytes())
        decided = datetime.fromisoformat(content["decided"])
        point = LogPoint(*map(int, content["point"]))
        groups = tuple(map(str, content["groups"]))
        return ChangeProgress(int(content["number"]), decided, groups, point)
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"'{path}' is damaged: {error}") from None


def write_change_progress(folder: Path, progress: ChangeProgress) -> None:
    content = {
        "number": progress.number,
        "decided": progress.decided.isoformat(),
        "groups": progress.groups,
        "point": progress.point,
    }
    write_whole(folder / "progress.json", json.dumps(content).encode())


def _path(folder: Path, number: int) -> Path:
    return folder / "lots" / f"{number}.json"


def _files(entries: Sequence[tuple[str, Sequence[str], int, int | None]]) -> tuple[ChangeFile, ...]:
    return tuple(
        ChangeFile(str(path), tuple(map(str, tables)), first, end)
        for path, tables, first, end in entries
    )
