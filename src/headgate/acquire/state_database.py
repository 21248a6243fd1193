"""The file in which a source remembers what it has read: one writer, transactions that last.

SQLite in WAL mode, so that others can look while one process writes. synchronous=FULL: a number
that Spark's checkpoint knows must be there after the loss of power too. Each commit costs an fsync,
so what belongs together is committed together.

One process writes. It holds a lock on `<file>.lock` for as long as it lives, and the kernel lets go
of it when the process dies in any way. Two that fetch for one inbox would take each other's
numbers. A query that is started again may find its predecessor about to end, so the lock can be
waited for.

Rejected: files of our own beside Spark's checkpoint. Numbers, what was seen and the state of a feed
have to change in one step, and that is what a database is for.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from headgate.model.errors import StateError, StateTaken

_BUSY_S = 10.0
_LOCK_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Layout:
    """What a file holds, how its tables are made, and of which version they are."""

    what: str
    tables: str
    version: int


class StateDatabase:
    """One connection for all threads of a process, used by one at a time."""

    def __init__(
        self, path: Path, layout: Layout, *, read_only: bool = False, wait_s: float = 0.0
    ) -> None:
        self.path = path
        self._layout = layout
        self._one_at_a_time = threading.RLock()
        self._lock_file: int | None = None
        if not read_only:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock_file = self._lock(time.monotonic() + wait_s)
        try:
            with self._told():
                self._connection = self._open(read_only=read_only)
        except BaseException:
            self._unlock()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        with self._one_at_a_time:
            self._connection.close()
            self._unlock()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it is committed at the end, or nothing of it after an exception."""
        with self._one_at_a_time, self._told():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # A full disk may fail the commit and leave the transaction open, or end it.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with self._one_at_a_time, self._told():
            yield self._connection

    def _open(self, *, read_only: bool) -> sqlite3.Connection:
        mode = "ro" if read_only else "rwc"
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=_BUSY_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._prepare(connection, read_only=read_only)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection, *, read_only: bool) -> None:
        if not read_only:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        layout = self._layout
        if found == 0 and tables == 0 and not read_only:
            connection.executescript(
                f"BEGIN; {layout.tables} PRAGMA user_version={layout.version}; COMMIT;"
            )
        elif found != layout.version:
            raise StateError(
                f"'{self.path}' is no {layout.what} of version {layout.version}; "
                "give another folder, or use the Headgate that wrote it"
            )

    def _lock(self, until: float) -> int:
        try:
            # The lock file stays: deleting it would let two processes lock two files of one name.
            descriptor = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StateError(f"'{self.path}' cannot be locked: {error.strerror}") from error
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() < until:
                    time.sleep(_LOCK_PAUSE_S)
                    continue
                holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
                os.close(descriptor)
                raise StateTaken(
                    f"the {self._layout.what} '{self.path}' is written by process "
                    f"{holder or 'unknown'}; stop it first"
                ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        return descriptor

    def _unlock(self) -> None:
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            what = self._layout.what
            raise StateError(f"the {what} '{self.path}' cannot be used: {error}") from error
