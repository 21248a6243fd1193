"""Many files replaced together, each atomically, with two syncs of the file system for all of them.

    stage(path, content)   ──►  out/.headgate/<worker>/17          written, not synced
    commit()               ──►  syncfs ─ exchange all ─ syncfs     then the cursors may move
                                17 has the old document now, and takes the next one

A file is synced before it is renamed, so after a loss of power a reader sees the old document or
the new one, never half of it. One `syncfs` for thousands of files takes as long as one fsync for
each of a few. Where the system has none, each file and folder is synced by itself.

The old file is exchanged with the new one (RENAME_EXCHANGE) and kept as a *spare*: the next
document of the same subscription is written over it. So a document has two files that change
places, and none is created or removed. That takes 50 µs for 24 kB. To create one and to remove
another takes 230 µs, up to 1.5 ms more where freed blocks are discarded, and 800 µs in an ext4
without a journal after as many were removed.

A spare is written only if nobody has it open: a reader that opened the document before it was
replaced reads it to its end. A write lease (F_SETLEASE) says so; the kernel refuses one if the file
is open elsewhere. A spare that is read, has another link, or whose mode was changed is removed, and
a new file is made, as where the system has no leases. Files are removed by threads, and a thread
syncs what was staged already while further documents are put together.

Staged files lie in a hidden folder of the worker, below the output folder, so that a rename stays
within one file system and no two workers write the same temporary file. Paths of subscribers cannot
lead there, since no part of them begins with a dot (safe_folder.py). What a dead worker left is
removed by the next one that starts.

Targets are opened as in safe_folder.py: one folder after the other, without following links. A
target that is a named pipe or a device is replaced and never opened for writing.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import signal
import stat
import time
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from headgate.deliver.errors import OutputError
from headgate.deliver.safe_folder import checked_parts, open_parent, read_at, replace_file
from headgate.model.errors import printable

STAGING = ".headgate"
_FOLDERS_OPEN_MAX = 512
_EXCHANGE = 2
_THREADS = 4
_SPARE = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = _SPARE | os.O_CREAT | os.O_TRUNC
SPARE_BYTES_MAX = 1_000_000_000
"""Old documents that are kept to be written over."""
UNSYNCED_BYTES_MAX = 32_000_000
SPARE_S = 3_600.0
"""A spare that was not used for so long makes room for another."""


@dataclass(slots=True)
class _StagedFile:
    key: int
    path: str
    name: str
    parent: tuple[str, ...]
    staged: str


@dataclass(slots=True)
class _Spare:
    name: str
    size: int
    since: float


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
        self._staged: dict[int, _StagedFile] = {}
        self._spares: OrderedDict[int, _Spare] = OrderedDict()
        """By key, the longest unused first."""
        self._spare_bytes = 0
        self._number = 0
        self._unsynced = 0
        self._syncing: Future[bool] | None = None
        self._mode: int | None = None
        """That of the files that are made here."""
        self._parents: dict[tuple[str, ...], int] = {}
        self._results = FileResults()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="output files")

    def close(self) -> None:
        self._threads.shutdown()
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

    # --- staging ----------------------------------------------------------------------------------

    def stage(self, key: int, path: str, content: Sequence[bytes], *, compare: bool) -> None:
        """Write the parts of the content aside. With `compare`, a file that has it already is left
        alone. A key has one path; what is staged for it last is what it gets."""
        try:
            parts = checked_parts(path)
            above, name = parts[:-1], parts[-1]
            parent = self._parent(above)
            if compare and self._has(parent, name, b"".join(content)):
                self._results.unchanged.append(key)
                return
            staged, descriptor, old_size = self._open_spare(key) or self._create()
            try:
                size = _write(descriptor, content, old_size)
            except OSError:
                self._remove_later(staged)
                raise
            finally:
                os.close(descriptor)
            self._sync_early(size)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                self._remove_spares()
            self._results.failed[key] = _not_written(path, error)
        except OutputError as error:
            self._results.failed[key] = error
        else:
            if key in self._staged:
                self._remove_later(self._staged[key].staged)
            self._staged[key] = _StagedFile(key, path, name, above, staged)

    @staticmethod
    def _has(parent: int, name: str, content: bytes) -> bool:
        return read_at(parent, name, len(content)) == content

    def _create(self) -> tuple[str, int, int]:
        """A new file under a name that was never used: name, descriptor, size."""
        self._number += 1
        name = str(self._number)
        descriptor = os.open(name, _NEW, 0o644, dir_fd=self._staging_folder())
        if self._mode is None:
            self._mode = os.fstat(descriptor).st_mode
        return name, descriptor, 0

    def _open_spare(self, key: int) -> tuple[str, int, int] | None:
        """The old document of this key, to be written over; None where it cannot be used."""
        spare = self._spares.pop(key, None)
        if spare is None:
            return None
        self._spare_bytes -= spare.size
        try:
            descriptor = os.open(spare.name, _SPARE, dir_fd=self._staging_folder())
        except OSError:
            return None
        status = os.fstat(descriptor)
        if status.st_nlink == 1 and status.st_mode == self._mode and lease_for_writing(descriptor):
            return spare.name, descriptor, status.st_size
        os.close(descriptor)
        self._remove_later(spare.name)
        return None

    def _keep_spare(self, key: int, name: str, size: int) -> None:
        now = time.monotonic()
        if self._spares and self._spare_bytes + size > SPARE_BYTES_MAX:
            oldest, spare = next(iter(self._spares.items()))
            if now - spare.since > SPARE_S:
                del self._spares[oldest]
                self._spare_bytes -= spare.size
                self._remove_later(spare.name)
        if self._spare_bytes + size > SPARE_BYTES_MAX:
            self._remove_later(name)
            return
        self._spares[key] = _Spare(name, size, now)
        self._spare_bytes += size

    def _remove_spares(self) -> None:
        for each in self._spares.values():
            _remove(each.name, self._staging_folder())
        self._spares.clear()
        self._spare_bytes = 0

    def _remove_later(self, name: str) -> None:
        self._threads.submit(_remove, name, self._staging_folder())

    def _sync_early(self, size: int) -> None:
        """The disk works while further documents are put together; `commit` syncs the rest."""
        self._unsynced += size
        if self._unsynced > UNSYNCED_BYTES_MAX and (self._syncing is None or self._syncing.done()):
            self._unsynced = 0
            self._syncing = self._threads.submit(sync_file_system, self._staging_folder())

    # --- replacing --------------------------------------------------------------------------------

    def commit(self) -> FileResults:
        """Replace all files that were staged. When it returns, they survive a loss of power."""
        results, self._results = self._results, FileResults()
        staged, self._staged = list(self._staged.values()), {}
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
        for each in self._staged.values():
            _remove(each.staged, self._staging_folder())
        self._staged, self._results = {}, FileResults()
        self._close_folders()

    def _rename(self, each: _StagedFile, results: FileResults) -> None:
        staging = self._staging_folder()
        try:
            parent = self._parent(each.parent)
            old_size = exchange(staging, each.staged, parent, each.name)
            if old_size is None:
                os.replace(each.staged, each.name, src_dir_fd=staging, dst_dir_fd=parent)
            else:
                self._keep_spare(each.key, each.staged, old_size)
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
        staging, self._unsynced = self._staging_folder(), 0
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


def _write(descriptor: int, parts: Sequence[bytes], old_size: int) -> int:
    """Exactly these bytes, whatever the file had; how many."""
    size = sum(map(len, parts))
    written = os.writev(descriptor, parts)
    if written < size:
        view = memoryview(b"".join(parts))[written:]
        while view:
            view = view[os.write(descriptor, view) :]
    if size < old_size:
        os.ftruncate(descriptor, size)
    return size


def lease_for_writing(descriptor: int) -> bool:
    """Whether nobody else has this file open; whoever opens it waits until it is closed here. False
    where the system does not say so."""
    try:
        # A waiting opener would be announced by SIGIO, which ends a process; this is ignored.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except (OSError, AttributeError):
        return False
    return True


def exchange(folder: int, name: str, other_folder: int, other: str) -> int | None:
    """Exchange two files atomically; the size of the other. None where one is missing or no
    regular file, or where the system cannot."""
    renameat2 = getattr(_LIBC, "renameat2", None)
    try:
        status = os.stat(other, dir_fd=other_folder, follow_symlinks=False)
    except OSError:
        return None
    if renameat2 is None or not stat.S_ISREG(status.st_mode):
        return None
    done: int = renameat2(folder, name.encode(), other_folder, os.fsencode(other), _EXCHANGE)
    return status.st_size if done == 0 else None


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
