"""Lots: which changes the joins of tables take next, written down before they are taken.

    finished batches ──► tables/lots/17.json ──► one micro-batch of the query ──► progress: 17
                          snapshot, moment, files

A lot has what a micro-batch depends on: the files whose changes it takes, in order; the snapshot,
and so the subscriptions; the moment, by which rows expire; who wants results. Lot 17 is offset 17
of the query, so a replay takes the same changes with the same subscriptions.

A group that is new, or comes back, is *fresh*: its rows are first read from the `history`, all that
is stored, without telling anybody. What arrives from now on is told.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from headgate.model.errors import PipelineError
from headgate.store.whole_files import write_whole
from headgate.tables.join_progress import NEVER

KEPT = 100


@dataclass(frozen=True, slots=True)
class LotFile:
    """A file of the store, and which of its sources are tables that are joined."""

    path: str
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lot:
    number: int
    snapshot: str
    moment: datetime
    """Everything that arrived until then has been taken, with this lot."""
    files: tuple[LotFile, ...] = ()
    history: tuple[LotFile, ...] = ()
    fresh: tuple[str, ...] = ()
    """The names of groups that have no rows yet."""
    groups: tuple[str, ...] = ()
    """The names of all groups that there are."""
    ended: tuple[str, ...] = ()
    """Those that there are no more."""
    wanted: str = ""
    """The file with the numbers of feeds whose results somebody wants."""


@dataclass(frozen=True, slots=True)
class LotProgress:
    """The last lot that was taken, until which moment, and the groups that have rows since."""

    number: int = 0
    decided: datetime = NEVER
    groups: tuple[str, ...] = field(default=())


def write_lot(folder: Path, lot: Lot) -> None:
    content = {
        "snapshot": lot.snapshot,
        "moment": lot.moment.isoformat(),
        "files": [[each.path, each.tables] for each in lot.files],
        "history": [[each.path, each.tables] for each in lot.history],
        "fresh": lot.fresh,
        "groups": lot.groups,
        "ended": lot.ended,
        "wanted": lot.wanted,
    }
    write_whole(_path(folder, lot.number), json.dumps(content).encode())
    _path(folder, lot.number - KEPT).unlink(missing_ok=True)


def read_lot(folder: Path, number: int) -> Lot:
    path = _path(folder, number)
    try:
        found = json.loads(path.read_bytes())
        return Lot(
            number,
            str(found["snapshot"]),
            datetime.fromisoformat(found["moment"]),
            _files(found["files"]),
            _files(found["history"]),
            tuple(map(str, found["fresh"])),
            tuple(map(str, found["groups"])),
            tuple(map(str, found["ended"])),
            str(found["wanted"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"the lot '{path}' cannot be read: {error}") from None


def last_lot(folder: Path, *, after: int) -> int:
    """The greatest number of a lot that there is, from a number on: lots come one by one."""
    number = after
    while _path(folder, number + 1).exists():
        number += 1
    return number


def lots_decided(folder: Path) -> datetime:
    """The moment that the last lot took for complete: nothing may arrive until then any more."""
    progress = read_lot_progress(folder)
    if last_lot(folder, after=progress.number) > progress.number:
        return read_lot(folder, progress.number + 1).moment
    return progress.decided


def read_lot_progress(folder: Path) -> LotProgress:
    path = folder / "progress.json"
    if not path.exists():
        return LotProgress()
    try:
        found = json.loads(path.read_bytes())
        decided = datetime.fromisoformat(found["decided"])
        return LotProgress(int(found["number"]), decided, tuple(map(str, found["groups"])))
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"'{path}' is damaged: {error}") from None


def write_lot_progress(folder: Path, progress: LotProgress) -> None:
    content = {
        "number": progress.number,
        "decided": progress.decided.isoformat(),
        "groups": progress.groups,
    }
    write_whole(folder / "progress.json", json.dumps(content).encode())


def _path(folder: Path, number: int) -> Path:
    return folder / "lots" / f"{number}.json"


def _files(found: Sequence[tuple[str, Sequence[str]]]) -> tuple[LotFile, ...]:
    return tuple(LotFile(str(path), tuple(map(str, tables))) for path, tables in found)
