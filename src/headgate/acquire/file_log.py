"""The file log: a number for each part of a file, and how far each file was taken.

    numbers   one row: the last number, and up to which number parts may be deleted
    parts     one row per number: a part of a file (file_parts.py), as JSON
    files     one row per source and file: up to which byte it was taken, and its state then
    forgotten one row per file that is gone: its generation, so that a later file of the same name
              gets other ids
    problems  one row per source that cannot be read as it is registered

The numbers of parts and the progress of their file change in one transaction, so a crash neither
repeats nor loses a byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from headgate.acquire.file_parts import FilePart
from headgate.model.errors import StateError
from headgate.store.database import DurableDatabase, Layout

MARGIN = 100
RELEASE_STEP = 50
FILE = "files.sqlite"
LAYOUT = Layout(
    "log of files",
    """
CREATE TABLE numbers (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    last INTEGER NOT NULL,
    released INTEGER NOT NULL
) STRICT;
INSERT INTO numbers VALUES (1, 0, 0);
CREATE TABLE parts (
    number INTEGER PRIMARY KEY,
    rows INTEGER NOT NULL,
    part TEXT NOT NULL
) STRICT;
CREATE TABLE files (
    source TEXT NOT NULL,
    path TEXT NOT NULL,
    seen TEXT NOT NULL,
    missing_since REAL,
    PRIMARY KEY (source, path)
) STRICT;
CREATE TABLE forgotten (
    source TEXT NOT NULL,
    path TEXT NOT NULL,
    generation INTEGER NOT NULL,
    PRIMARY KEY (source, path)
) STRICT, WITHOUT ROWID;
CREATE TABLE problems (source TEXT PRIMARY KEY, problem TEXT NOT NULL) STRICT;
""",
    1,
)

FileKey = tuple[str, str]
"""Source and path."""


@dataclass(frozen=True, slots=True)
class FileProgress:
    """How far a file was taken, and its state at that time."""

    size: int
    mtime_ns: int
    inode: int
    end: int
    next_line: int
    generation: int
    shape: str
    fingerprint: str
    header: tuple[str, ...] = ()
    continues: bool = False
    line_end: str = "\n"


class FileLog:
    """Thread-safe. One process has it open."""

    def __init__(self, folder: Path, *, wait_s: float = 0.0) -> None:
        self.folder = folder
        self._database = DurableDatabase(folder / FILE, LAYOUT, wait_s=wait_s)
        with self._database.reading() as connection:
            found = connection.execute("SELECT last, released FROM numbers").fetchone()
        self._last, self._released = int(found[0]), int(found[1])

    def close(self) -> None:
        self._database.close()

    @property
    def last(self) -> int:
        return self._last

    @property
    def released(self) -> int:
        return self._released

    def files(self) -> dict[FileKey, FileProgress]:
        with self._database.reading() as connection:
            found = connection.execute("SELECT source, path, seen FROM files").fetchall()
        return {(source, path): _seen(text) for source, path, text in found}

    def take(self, taken: Iterable[tuple[FileKey, FileProgress, Sequence[FilePart]]]) -> None:
        """Number the parts and store the progress of their files, in one transaction."""
        last = self._last
        with self._database.transaction() as connection:
            for (source, path), seen, parts in taken:
                for part in parts:
                    last += 1
                    text = json.dumps(asdict(replace(part, number=last)))
                    connection.execute(
                        "INSERT INTO parts VALUES (?, ?, ?)", (last, part.rows, text)
                    )
                connection.execute(
                    "INSERT OR REPLACE INTO files VALUES (?, ?, ?, NULL)",
                    (source, path, json.dumps(asdict(seen))),
                )
            connection.execute("UPDATE numbers SET last = ?", (last,))
        self._last = last

    def missing(self) -> dict[FileKey, float]:
        """Files that are missing, and since when."""
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT source, path, missing_since FROM files WHERE missing_since IS NOT NULL"
            ).fetchall()
        return {(source, path): since for source, path, since in found}

    def note_missing(self, changed: Mapping[FileKey, float | None]) -> None:
        """Store since when files are missing; None for files that are back."""
        with self._database.transaction() as connection:
            connection.executemany(
                "UPDATE files SET missing_since = ? WHERE source = ? AND path = ?",
                [(since, *key) for key, since in changed.items()],
            )

    def forget(self, files: Mapping[FileKey, FileProgress]) -> None:
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO forgotten VALUES (?, ?, ?)",
                [(*key, seen.generation) for key, seen in files.items()],
            )
            connection.executemany("DELETE FROM files WHERE source = ? AND path = ?", list(files))

    def generation(self, file: FileKey) -> int:
        """The generation of a forgotten file; 0 for an unknown one."""
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT generation FROM forgotten WHERE source = ? AND path = ?", file
            ).fetchone()
        return 0 if found is None else int(found[0])

    def set_problems(self, problems: dict[str, str]) -> None:
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM problems")
            connection.executemany("INSERT INTO problems VALUES (?, ?)", sorted(problems.items()))

    def end_within(self, start: int, *, rows_max: int | None, bytes_max: int | None = None) -> int:
        """The end of a batch that starts after `start`: at least one number, if there is one."""
        if rows_max is None or start >= self._last:
            return self._last
        end, total, size = start, 0, 0
        for number, rows, part_size in self._sizes(start, limit=rows_max):
            total, size = total + rows, size + part_size
            if end > start and (total > rows_max or (bytes_max is not None and size > bytes_max)):
                break
            end = number
        return end

    def _sizes(self, start: int, *, limit: int) -> list[tuple[int, int, int]]:
        """Number, rows and bytes of the parts after `start`."""
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT number, rows, part ->> 'end' - part ->> 'begin' FROM parts"
                " WHERE number > ? ORDER BY number LIMIT ?",
                (start, limit),
            ).fetchall()
        return [(int(number), int(rows), int(size)) for number, rows, size in found]

    def parts(self, start: int, end: int) -> list[FilePart]:
        """The parts after `start` up to `end`."""
        if start < end and (start < self._released or end > self._last):
            raise StateError(
                f"the log of files '{self.folder}' does not have the numbers {start + 1} to {end}: "
                "it does not go with the query's checkpoint; delete the checkpoint, or restore both"
            )
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT part FROM parts WHERE number > ? AND number <= ? ORDER BY number",
                (start, end),
            ).fetchall()
        return [_part(text) for (text,) in found]

    def release(self, number: int) -> None:
        """The reader needs no number up to this one any more."""
        until = number - MARGIN
        if until - self._released < RELEASE_STEP:
            return
        with self._database.transaction() as connection:
            connection.execute("UPDATE numbers SET released = ?", (until,))
            connection.execute("DELETE FROM parts WHERE number <= ?", (until,))
        self._released = until


def file_problems(folder: Path) -> dict[str, str]:
    """By source, why it cannot be read as registered. May be called by any process."""
    path = folder / FILE
    if not path.exists():
        return {}
    with (
        DurableDatabase(path, LAYOUT, read_only=True) as database,
        database.reading() as connection,
    ):
        return dict(connection.execute("SELECT source, problem FROM problems ORDER BY source"))


def _seen(text: str) -> FileProgress:
    found = json.loads(text)
    return FileProgress(**{**found, "header": tuple(found["header"])})


def _part(text: str) -> FilePart:
    found = json.loads(text)
    return FilePart(**{**found, "header": tuple(found["header"])})
