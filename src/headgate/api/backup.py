"""Backup of a catalog and the folder of its run, while the run goes on.

Each part is copied at another instant, so the order decides what a restored system does.
**Invariant: delivery ≤ log ≤ catalog, checkpoints = log ≤ sources**, where a ≤ b means that a knows
of nothing that b does not know:

    1  deliver.db        cursors are not beyond the log: nothing new would lie behind a cursor, and
                         not be delivered. What was sent between 1 and 3 is sent again, under the
                         same ids; so the two follow each other at once
    2  commits, tables/  which batches Spark has finished; what table joins have taken of the log
    3  the log           its state at one entry, as a checkpoint of the log. Entries are not needed
    4  checkpoints/      of Spark, cut back to the batches of 2 and 3. One beyond the log would
                         pass over items; one behind it would give new items the number of a batch
                         that the log has, and they would be dropped
    5  sources/          spools, inboxes: what comes behind the checkpoints can be read again
    6  data/             the files that 3 names: they never change. Replaced ones stay for 15
                         minutes; if one is gone, the backup has failed and says so
    7  catalog, key      not behind the log: numbers of feeds in it must not be given again
    8  backup.json       every file with its size and hash. Without it, it is no backup

SQLite files are copied by SQLite's own backup, all others as bytes. Hard links would cost no room,
and one damaged block would damage both; so files are copied. Stopping the run for a moment
was rejected: it may take minutes until a batch has ended.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from headgate import __version__
from headgate.catalog.database import sqlite_file
from headgate.model.errors import InvalidValue, StateError
from headgate.store.data_folder import DELIVERIES, find_folder, make_private_folder
from headgate.store.log import LogReader
from headgate.store.log_state import LogState, encode_state
from headgate.store.whole_files import write_whole

MANIFEST = "backup.json"
FORMAT = 1
CATALOG, KEY, FOLDER = "catalog.db", "catalog.key", "folder"
CHUNK_BYTES = 1 << 20
NOT_COPIED = {"run.lock", "status.json", "lock"}
"""What is about a process, not about its data."""
SMALL_FILES = ("data.root", "state.url", "operators.json", "feed-costs.json")
_DATABASES = (".db", ".sqlite")
_JOURNALS = ("-wal", "-shm", "-journal")
_NUMBERED = ("commits", "offsets")


@dataclass(frozen=True, slots=True)
class CopiedFile:
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """What a backup has."""

    headgate: str
    made_at: str
    entry: int
    """The number of the last entry of the log."""
    position: int
    """Items below this position are in it."""
    files: Mapping[str, CopiedFile]
    notes: tuple[str, ...] = ()
    """What is kept elsewhere, and must be kept by other means."""
    format: int = FORMAT

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.files.values())


def back_up(catalog_url: str, folder: Path, target: Path, *, log: str = "") -> BackupManifest:
    """Copy everything into a new folder. The run may go on meanwhile."""
    place = find_folder(folder, log)
    if place.log:
        raise InvalidValue(
            f"the log is at '{place.log}': back it up there (versions of the bucket, or a copy of "
            "it), then the folder and the databases by their own tools; see docs/operating.md"
        )
    if not folder.is_dir():
        raise InvalidValue(f"there is no folder '{folder}': name the folder of the run by --folder")
    if target.exists() and any(target.iterdir()):
        raise InvalidValue(f"'{target}' is not empty: name a new folder for the backup")
    make_private_folder(target)
    copies = _Copies(target)
    if (folder / DELIVERIES).exists():
        copies.take(folder / DELIVERIES, f"{FOLDER}/{DELIVERIES}")
    elif place.state:
        copies.notes.append("deliveries are in another database: dump it before each backup")
    finished = {path.name: _newest(path / "commits") for path in _folders(place.checkpoints)}
    copies.take_all(folder, "tables")
    state = _state_of(LogReader(place.storage))
    name = f"{FOLDER}/log/checkpoint-{state.seq:020}.json"
    copies.write(name, encode_state(state))
    for path in _folders(place.checkpoints):
        _take_checkpoint(copies, path, finished.get(path.name, -1), state)
    for name in ("sources", "lists", "plans", "messages"):
        copies.take_all(folder, name)
    for name in SMALL_FILES:
        with suppress(FileNotFoundError):
            copies.take(folder / name, f"{FOLDER}/{name}")
    _take_data(copies, folder, state)
    _take_catalog(copies, catalog_url)
    return copies.finish(state)


def _state_of(reader: LogReader) -> LogState:
    reader.refresh()
    return reader.state


def _take_checkpoint(copies: _Copies, path: Path, finished: int, state: LogState) -> None:
    """Of Spark's record of a query, the batches that it had finished before the state of the log
    was read, and those that the log has."""
    epoch = _epoch_of(path)
    kept = max(finished, state.batches.get((path.name, epoch), -1))
    for name in _NUMBERED:
        numbers = [each for each in _numbers(path / name) if each <= kept]
        for number in numbers:
            with suppress(FileNotFoundError):  # Spark keeps the last hundred
                copies.take(
                    path / name / str(number), f"{FOLDER}/checkpoints/{path.name}/{name}/{number}"
                )
    if kept >= 0 and f"{FOLDER}/checkpoints/{path.name}/offsets/{kept}" not in copies.files:
        raise StateError(
            f"batch {kept} of '{path.name}' was gone before it could be copied: try again"
        )
    copies.take_all(path.parents[1], f"checkpoints/{path.name}", without=_NUMBERED)


def _epoch_of(checkpoint: Path) -> str:
    """The id of a query: one that has lost its checkpoint has another, and counts from 0 again."""
    try:
        return str(json.loads((checkpoint / "metadata").read_bytes())["id"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return ""  # it was never started


def _take_data(copies: _Copies, folder: Path, state: LogState) -> None:
    for file in state.files:
        for name in (file.items, file.segment):
            try:
                copies.take(folder / name, f"{FOLDER}/{name}")
            except FileNotFoundError:
                raise StateError(
                    f"'{name}' was merged away before it could be copied: try again, to a faster "
                    "disk if it takes more than 15 minutes"
                ) from None


def _take_catalog(copies: _Copies, url: str) -> None:
    path = sqlite_file(url)
    if path is None:
        copies.notes.append("the catalog is in PostgreSQL: dump it after each backup (pg_dump)")
        copies.notes.append("its key is a file of its own, or a variable: keep it, too")
        return
    if not path.is_file():
        raise InvalidValue(f"there is no catalog '{path}': name it by --catalog")
    copies.take(path, CATALOG)
    key = path.with_name(f"{path.name}.key")
    if key.exists():
        copies.take(key, KEY)
    else:
        copies.notes.append("the key of the installation is no file: keep HEADGATE_WEBHOOK_KEY")


def _newest(folder: Path) -> int:
    return max(_numbers(folder), default=-1)


def _numbers(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return sorted(int(each.name) for each in folder.iterdir() if each.name.isdecimal())


def _folders(path: Path) -> list[Path]:
    return sorted(each for each in path.iterdir() if each.is_dir()) if path.is_dir() else []


@dataclass(slots=True)
class _Copies:
    """The files of a backup, as they are written."""

    target: Path
    files: dict[str, CopiedFile] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def take(self, source: Path, name: str) -> None:
        """Copy one file; FileNotFoundError if it is gone."""
        path = self.target / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if source.suffix in _DATABASES or name == CATALOG:
            copy_database(source, path)
            self.files[name] = digest_of(path)
        else:
            self.files[name] = copy_file(source, path)

    def take_all(self, folder: Path, name: str, *, without: Collection[str] = ()) -> None:
        """Copy all files below a folder that are there; it may change meanwhile."""
        for path in _ordered(folder / name, without):
            with suppress(FileNotFoundError):
                self.take(path, f"{FOLDER}/{path.relative_to(folder).as_posix()}")

    def write(self, name: str, content: bytes) -> None:
        write_whole(self.target / name, content, mode=0o600)
        self.files[name] = digest_of(self.target / name)

    def finish(self, state: LogState) -> BackupManifest:
        made_at = datetime.now(UTC).isoformat(timespec="seconds")
        manifest = BackupManifest(
            __version__, made_at, state.seq, state.next_position, self.files, tuple(self.notes)
        )
        content = json.dumps(asdict(manifest), indent=1).encode()
        write_whole(self.target / MANIFEST, content, mode=0o600)
        return manifest


def _ordered(folder: Path, without: Collection[str]) -> Iterator[Path]:
    """The files of a folder: what names others first. A spool's `synced` must not be beyond its
    segments, nor an inbox's database beyond its files; what is appended meanwhile is harmless."""
    with suppress(FileNotFoundError, NotADirectoryError):
        found = sorted(each for each in folder.iterdir() if not each.name.startswith("."))
        first = [each for each in found if each.name == "synced" or each.suffix in _DATABASES]
        yield from (each for each in first if each.is_file())
        yield from _rest(folder, first, without)


def _rest(folder: Path, first: Iterable[Path], without: Collection[str]) -> Iterator[Path]:
    known = set(first)
    for path in sorted(folder.iterdir()):
        hidden = path.name.startswith(".") or path.name.endswith(_JOURNALS)
        if hidden or path in known or path.name in without or path.name in NOT_COPIED:
            continue
        if path.is_symlink():
            continue
        if path.is_dir():
            yield from _ordered(path, ())
        else:
            yield path


# --- files ----------------------------------------------------------------------------------------


def copy_database(source: Path, target: Path) -> None:
    """A database that others may be writing to, as it is at one instant."""
    if not source.is_file():
        raise FileNotFoundError(source)
    target.touch(mode=0o600)
    address = f"{source.absolute().as_uri()}?mode=ro"
    with (
        closing(sqlite3.connect(address, uri=True, timeout=60.0)) as reading,
        closing(sqlite3.connect(target)) as writing,
    ):
        reading.backup(writing)
        # One file: a journal beside it would be no part of the backup.
        writing.execute("pragma journal_mode=delete")
    _sync(target)


def copy_file(source: Path, target: Path) -> CopiedFile:
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as reading:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as writing:
            while chunk := reading.read(CHUNK_BYTES):
                digest.update(chunk)
                size += writing.write(chunk)
            writing.flush()
            os.fsync(writing.fileno())
    return CopiedFile(size, digest.hexdigest())


def digest_of(path: Path) -> CopiedFile:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return CopiedFile(size, digest.hexdigest())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
