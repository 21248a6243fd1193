"""Many files replaced together, each atomically, with two syncs of the file system for all of them.

    stage(path, content)   ──►  out/.headgate/<worker>/17        written, not synced
    commit()               ──►  syncfs ─ rename all ─ syncfs     then the cursors may move

A file is synced before it is renamed, so after a loss of power a reader sees the old document or
the new one, never half of it. One `syncfs` for thousands of files takes as long as one fsync for
each of a few. Where the system has none, each file and folder is synced by itself.

The old file is exchanged with the new one (RENAME_EXCHANGE) and removed by a thread afterwards:
freeing its blocks takes up to 1.5 ms each where a file system is mounted with `discard`, and nobody
has to wait for it.

Staged files lie in a hidden folder of the worker, below the output folder, so that a rename stays
within one file system and no two workers write the same temporary file. Paths of subscribers cannot
lead there, since no part of them begins with a dot (safe_folder.py). What a dead worker left is
removed by the next one that starts.

Targets are opened as in safe_folder.py: one folder after the other, without following links. A
target that is a named pipe or a device is replaced and never opened for writing.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from headgate.deliver.errors import OutputError
from headgate.deliver.safe_folder import checked_parts, open_parent, read_at, replace_file
from headgate.model.errors import printable

STAGING = ".headgate"
_FOLDERS_OPEN_MAX = 512
_EXCHANGE = 2
_REMOVERS = 4
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class _StagedFile:
    key: int
    path: str
    name: str
    parent: tuple[str, ...]
    staged: str


@dataclass(slots=True)
class FileResults:
    written: list[int] = field(default_factory=list)
    unchanged: list[int] = field(default_factory=list)
    failed: dict[int, OutputError] = field(default_factory=dict)


class FileReplacer:
    """For one thread."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._folder = folder
        self._worker = worker
        self._staging: int | None = None
        self._staged: list[_StagedFile] = []
        self._parents: dict[tuple[str, ...], int] = {}
        self._results = FileResults()
        self._number = 0
        self._removers = ThreadPoolExecutor(_REMOVERS, thread_name_prefix="remove old files")

    def close(self) -> None:
        self._removers.shutdown()
        self._close_folders()
        if self._staging is not None:
            os.close(self._staging)
            self._staging = None
            shutil.rmtree(self._folder / STAGING / self._worker, ignore_errors=True)

    def remove_of_dead(self, live: Collection[str]) -> None:
        """Remove what workers left that are not alive any more."""
        with suppress(FileNotFoundError):
            for path in (self._folder / STAGING).iterdir():
                if path.name not in live:
                    shutil.rmtree(path, ignore_errors=True)

    def stage(self, key: int, path: str, content: bytes, *, compare: bool) -> None:
        """Write the content aside. With `compare`, a file that has it already is left alone."""
        try:
            *above, name = checked_parts(path)
            parent = self._parent(tuple(above))
            if compare and read_at(parent, name, len(content)) == content:
                self._results.unchanged.append(key)
                return
            self._number += 1
            staged = str(self._number)
            descriptor = os.open(staged, _FLAGS, 0o644, dir_fd=self._staging_folder())
            try:
                view = memoryview(content)
                while view:
                    view = view[os.write(descriptor, view) :]
            finally:
                os.close(descriptor)
        except OSError as error:
            self._results.failed[key] = _not_written(path, error)
        except OutputError as error:
            self._results.failed[key] = error
        else:
            self._staged.append(_StagedFile(key, path, name, tuple(above), staged))

    def commit(self) -> FileResults:
        """Replace all files that were staged. When it returns, they survive a loss of power."""
        results, self._results = self._results, FileResults()
        staged, self._staged = self._staged, []
        try:
            if staged:
                self._sync(staged, with_parents=False)
                for each in staged:
                    self._rename(each, results)
                self._sync([], with_parents=True)
        finally:
            self._close_folders()
        return results

    def abandon(self) -> None:
        """Forget what was staged."""
        for each in self._staged:
            with suppress(OSError):
                os.unlink(each.staged, dir_fd=self._staging_folder())
        self._staged, self._results = [], FileResults()
        self._close_folders()

    def _rename(self, each: _StagedFile, results: FileResults) -> None:
        staging = self._staging_folder()
        try:
            parent = self._parent(each.parent)
            if exchange(staging, each.staged, parent, each.name):
                self._removers.submit(_remove, each.staged, staging)
            else:
                os.replace(each.staged, each.name, src_dir_fd=staging, dst_dir_fd=parent)
        except OSError as error:
            try:
                self._copy(each)  # perhaps its folder is on another file system
            except (OSError, OutputError):
                results.failed[each.key] = _not_written(each.path, error)
                return
        results.written.append(each.key)

    def _copy(self, each: _StagedFile) -> None:
        staging = self._staging_folder()
        with open(
            each.staged, "rb", opener=lambda name, flags: os.open(name, flags, dir_fd=staging)
        ) as file:
            content = file.read()
        os.unlink(each.staged, dir_fd=staging)
        replace_file(self._folder, each.path, content)

    def _sync(self, staged: list[_StagedFile], *, with_parents: bool) -> None:
        staging = self._staging_folder()
        if sync_file_system(staging):
            return
        for each in staged:
            with _opened(each.staged, staging) as descriptor:
                os.fsync(descriptor)
        if with_parents:
            for parent in self._parents.values():
                os.fsync(parent)

    def _staging_folder(self) -> int:
        if self._staging is None:
            path = self._folder / STAGING / self._worker
            path.mkdir(parents=True, exist_ok=True)
            self._staging = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return self._staging

    def _parent(self, above: tuple[str, ...]) -> int:
        found = self._parents.get(above)
        if found is None:
            if len(self._parents) >= _FOLDERS_OPEN_MAX:
                oldest = next(iter(self._parents))
                os.close(self._parents.pop(oldest))
            found = self._parents[above] = open_parent(self._folder, list(above))
        return found

    def _close_folders(self) -> None:
        for descriptor in self._parents.values():
            os.close(descriptor)
        self._parents.clear()


@contextmanager
def _opened(name: str, folder: int) -> Iterator[int]:
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _not_written(path: str, error: OSError) -> OutputError:
    return OutputError(f"'{printable(path)}' cannot be written: {error.strerror}")


def _remove(name: str, folder: int) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)


def exchange(folder: int, name: str, other_folder: int, other: str) -> bool:
    """Exchange two files atomically; False where one is missing or no regular file, or where the
    system cannot."""
    renameat2 = getattr(_LIBC, "renameat2", None)
    try:
        status = os.stat(other, dir_fd=other_folder, follow_symlinks=False)
    except OSError:
        return False
    if renameat2 is None or not stat.S_ISREG(status.st_mode):
        return False
    done: int = renameat2(folder, name.encode(), other_folder, os.fsencode(other), _EXCHANGE)
    return done == 0


def sync_file_system(descriptor: int) -> bool:
    """Sync the file system of an open file; False where the system cannot."""
    syncfs = getattr(_LIBC, "syncfs", None)
    return syncfs is not None and syncfs(descriptor) == 0


def _libc() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(None, use_errno=True)
    except OSError:
        return None


_LIBC = _libc()
