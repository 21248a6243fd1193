"""Which files a source has, which of them are complete, and which parts of them are new.

**Complete** is a file

    that was renamed into place                          at first sight
    with lines of JSON, or CSV                           if it has not changed for 50 ms
    that looks complete: an array that ends with ']',    if it has not changed for `quick_s`
    Parquet with its footer, XML with the end of its
    root
    any other                                            if it has not changed for `settle_s`

A file that was renamed has a change time (ctime) after its modification time. That of a file that
was renamed within the tick of the clock in which it was written has not; so the other rules are for
those too. Lines and CSV may be taken while they are written: what is appended later is taken then;
they wait only to be taken together.
A last line without a line end may still be appended to: in JSON it is taken if it is a complete
object, otherwise, as in CSV, when the file has not changed for `tail_s`.

Rejected: asking the system whether somebody has the file open for writing (a lease). It works on
local disks only, and a writer that opens the file at that instant is held up or refused.

**New** is every part that was not taken before:

    unknown file                               all of it
    same length and content                    nothing (it was touched)
    longer, and the taken part is unchanged    of JSON lines and CSV the appended part
    otherwise                                  all of it, as the next *generation*

A rewritten file is new as a whole: a table of prices that is replaced each night changes each
night. Its items have other ids than those of the generation before.

Paths are relative to a base folder, and nothing outside of it is read, neither through '..' nor
through a symbolic link. Names that begin with '.' or '_' are ignored at any depth, and folders that
are links are not entered.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from headgate.acquire.file_log import FileKey, FileLog, FileProgress
from headgate.acquire.file_parts import (
    LINES,
    TABLE,
    FilePart,
    cut_parts,
    fingerprint,
    looks_complete,
    shape_of,
)
from headgate.acquire.source_list import ListedSource
from headgate.model.errors import HeadgateError, PipelineError, alternatives

FORMATS = {
    "stream": ("json", "csv", "parquet"),
    "table": ("json", "csv", "parquet"),
    "documents": ("xml",),
}
FILES_MAX = 100_000
FORGET_S = 86_400.0
TAKEN_PER_TRANSACTION = 100
APPENDABLE = (LINES, TABLE)
LINES_S = 0.05


class FileScanner:
    """Scans the files of all sources. Not thread-safe."""

    def __init__(
        self,
        file_log: FileLog,
        base: Path,
        *,
        settle_s: float = 1.0,
        quick_s: float = 0.2,
        tail_s: float = 10.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._log = file_log
        self._base = base.resolve()
        self._settle_s = settle_s
        self._quick_s = min(quick_s, settle_s)
        self._tail_s = tail_s
        self._clock = clock
        self._progress = file_log.files()
        self._missing = file_log.missing()
        self._observed: dict[FileKey, tuple[tuple[int, int, int], float]] = {}
        self._problems: dict[str, str] = {}

    def scan(self, sources: Sequence[ListedSource], *, at_once: bool = False) -> None:
        """Add new, complete parts to the log; with `at_once` every file counts as complete."""
        problems: dict[str, str] = {}
        present: set[FileKey] = set()
        waiting: list[tuple[FileKey, FileProgress, Sequence[FilePart]]] = []
        for source in sources:
            try:
                for path in files_of(self._base, source, problems):
                    present.add((source.name, path))
                    taken = self._scan_file(source, path, at_once=at_once, problems=problems)
                    waiting += [taken] if taken else []
                    if len(waiting) >= TAKEN_PER_TRANSACTION:
                        self._take(waiting)
                        waiting = []
            except (PipelineError, OSError) as error:
                problems[source.name] = str(error)
        self._take(waiting)
        self._forget_missing(present)
        if problems != self._problems:
            self._log.set_problems(problems)
            self._problems = problems

    def _take(self, taken: list[tuple[FileKey, FileProgress, Sequence[FilePart]]]) -> None:
        if taken:
            self._log.take(taken)
            self._progress.update((key, seen) for key, seen, _ in taken)

    def _forget_missing(self, present: set[FileKey]) -> None:
        """Record which files are missing or have come back; forget those missing for a day."""
        self._observed = {key: each for key, each in self._observed.items() if key in present}
        now = self._clock()
        gone_now = self._progress.keys() - present - self._missing.keys()
        changed: dict[FileKey, float | None] = dict.fromkeys(gone_now, now)
        changed |= dict.fromkeys(self._missing.keys() & present)
        if changed:
            self._log.note_missing(changed)
            self._missing |= {key: since for key, since in changed.items() if since is not None}
        for key in [key for key, since in changed.items() if since is None]:
            del self._missing[key]
        gone = [key for key, since in self._missing.items() if since < now - FORGET_S]
        if gone:
            self._log.forget({key: self._progress[key] for key in gone})
        for key in gone:
            del self._missing[key], self._progress[key]

    def _scan_file(
        self, source: ListedSource, path: str, *, at_once: bool, problems: dict[str, str]
    ) -> tuple[FileKey, FileProgress, Sequence[FilePart]] | None:
        key = source.name, path
        try:
            stat = (self._base / path).stat()
            stamp = stat.st_size, stat.st_mtime_ns, stat.st_ino
            progress = self._progress.get(key)
            same = (
                progress is not None and (progress.size, progress.mtime_ns, progress.inode) == stamp
            )
            if same and not (
                progress and progress.shape in APPENDABLE and progress.end < progress.size
            ):
                return None
            is_first_sight = key not in self._observed or self._observed[key][0][2] != stat.st_ino
            is_renamed = is_first_sight and stat.st_size > 0 and stat.st_ctime_ns > stat.st_mtime_ns
            unchanged_s = self._unchanged_s(key, stamp)
            if same and not at_once and unchanged_s < self._tail_s:
                return None
            if not (same or at_once or is_renamed or self._is_settled(source, path, unchanged_s)):
                return None
            whole = at_once or unchanged_s >= self._tail_s
            return key, *self._new_parts(source, path, stamp, progress, whole=whole)
        except FileNotFoundError:
            return None  # the file was removed in the meantime
        except (OSError, HeadgateError) as error:
            problems[source.name] = f"{path}: {error}"
            return None

    def _is_settled(self, source: ListedSource, path: str, unchanged_s: float) -> bool:
        if unchanged_s >= self._settle_s:
            return True
        if unchanged_s < min(LINES_S, self._quick_s):
            return False
        with (self._base / path).open("rb") as file:
            if shape_of(file, source.format) in APPENDABLE:
                return True
            return unchanged_s >= self._quick_s and looks_complete(file, source.format)

    def _unchanged_s(self, key: FileKey, stamp: tuple[int, int, int]) -> float:
        """The time since the last known change of the file."""
        now = self._clock()
        before = self._observed.get(key)
        if before is None or before[0] != stamp:
            before = self._observed[key] = stamp, now
        age_s = now - stamp[1] / 1e9
        # If the modification time is in the future, the observed time is used.
        return max(now - before[1], age_s)

    def _new_parts(
        self,
        source: ListedSource,
        path: str,
        stamp: tuple[int, int, int],
        progress: FileProgress | None,
        *,
        whole: bool,
    ) -> tuple[FileProgress, Sequence[FilePart]]:
        size, mtime_ns, inode = stamp
        where = self._base / path
        with where.open("rb") as file:
            shape = shape_of(file, source.format)
            appended = progress is not None and self._is_appended(where, progress, shape, size)
            if progress is not None and appended and shape not in APPENDABLE:
                return _with_stamp(progress, stamp), ()
            before = self._before(source, path, shape, progress, appended=appended)
            new = cut_parts(file, before, size, whole=whole)
            continues = bool(new.parts) and not _at_line_start(file, new.end, new.line_end)
        if not new.parts and appended and progress is not None:
            return _with_stamp(progress, stamp), ()
        new_progress = FileProgress(
            size,
            mtime_ns,
            inode,
            new.end,
            new.next_line,
            before.generation,
            new.shape,
            fingerprint(where, new.end),
            new.header,
            continues,
            new.line_end,
        )
        return new_progress, new.parts

    def _is_appended(self, where: Path, progress: FileProgress, shape: str, size: int) -> bool:
        """Whether the taken part of the file is unchanged, so that only the rest is new."""
        if shape != progress.shape or size < progress.end:
            return False
        if shape not in APPENDABLE and size != progress.size:
            return False
        return fingerprint(where, progress.end) == progress.fingerprint

    def _before(
        self,
        source: ListedSource,
        path: str,
        shape: str,
        progress: FileProgress | None,
        *,
        appended: bool,
    ) -> FilePart:
        """An empty part that ends where the new parts begin."""
        if progress is None:
            generation = self._log.generation((source.name, path)) + 1
        else:
            generation = progress.generation + (not appended)
        begin, line = (progress.end, progress.next_line) if progress and appended else (0, 1)
        return FilePart(
            source.name,
            source.kind,
            source.format,
            path,
            shape,
            begin,
            begin,
            line,
            int(self._clock() * 1e6),
            0,
            0,
            generation,
            progress.continues if progress and appended else False,
            progress.header if progress and appended else (),
            line_end=progress.line_end if progress and appended else "\n",
        )


def _with_stamp(progress: FileProgress, stamp: tuple[int, int, int]) -> FileProgress:
    return replace(progress, size=stamp[0], mtime_ns=stamp[1], inode=stamp[2])


def _at_line_start(file: BinaryIO, end: int, line_end: str) -> bool:
    file.seek(end - 1)
    return file.read(1) == line_end.encode()


def checked_pattern(path: str) -> str:
    """The pattern, if it names files below the base folder; otherwise an error.

    >>> checked_pattern("tickets/*.json")
    'tickets/*.json'
    """
    parts = PurePosixPath(path).parts
    if not parts or "\0" in path:
        raise PipelineError(f"'{path}' names no file")
    if path.startswith("/") or ".." in parts:
        raise PipelineError(f"'{path}' leads out of the base folder; files are read from below it")
    return path


def files_of(base: Path, source: ListedSource, problems: dict[str, str]) -> list[str]:
    """The files of a source, relative to the base folder, in order."""
    formats = FORMATS.get(source.kind, ())
    if source.format not in formats:
        raise PipelineError(
            f"a {source.kind} is read from {alternatives(formats)}, not from '{source.format}'"
        )
    paths: list[str] = []
    for path in _matching(base, "", PurePosixPath(checked_pattern(source.path)).parts):
        if not is_below(base / path, base):
            problems[source.name] = f"'{path}' leads out of the base folder by a symbolic link"
            continue
        paths.append(path)
        if len(paths) > FILES_MAX:
            raise PipelineError(f"'{source.path}' matches more than {FILES_MAX:,} files")
    return sorted(set(paths))


def _matching(base: Path, below: str, parts: Sequence[str]) -> Iterator[str]:
    """The files that match a pattern. Folders that are links are not entered: they may be loops."""
    part, rest = parts[0], parts[1:]
    try:
        with os.scandir(base / below) as iterator:
            entries = [each for each in iterator if not each.name.startswith((".", "_"))]
    except (FileNotFoundError, NotADirectoryError):
        return
    if part == "**":
        yield from _matching(base, below, rest or ("*",))
    for entry in entries:
        path = f"{below}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            if part == "**":
                yield from _matching(base, f"{path}/", parts)
            elif rest and fnmatchcase(entry.name, part):
                yield from _matching(base, f"{path}/", rest)
        elif part != "**" and not rest and fnmatchcase(entry.name, part) and entry.is_file():
            yield path


def is_below(path: Path, base: Path) -> bool:
    """Whether a path is below the base folder, with all links resolved."""
    return Path(os.path.realpath(path)).is_relative_to(base)
