"""A SQLite file with one writing process, and transactions that survive a loss of power.

Journal mode WAL: readers never wait. `synchronous=FULL`: a commit survives a loss of power, and
not only `kill -9`: what Spark's checkpoint says was read must exist, and a mail that was marked as
sent must not be sent again. The price is one fsync per commit, so changes that belong together are
committed together (`transaction` may be nested; the outermost one commits).

The writer holds a lock on `<file>.lock` while it lives; the kernel releases it when the process
dies. SQLite alone would let two processes write in turn, and both would take the same number or
send the same mail. A restarted query may have to wait for its predecessor to end (`wait_s`).

sqlite3 of the standard library, not SQLAlchemy as in catalog/: the file belongs to one process on
one machine, and hot paths are an `executemany` of tuples.

Rejected: plain files next to Spark's checkpoint. Numbers, seen entries and pending work must change
in one step.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from headgate.catalog.database import make_private
from headgate.model.errors import StateError
from headgate.store.file_lock import FileLock

_BUSY_S = 10.0


@dataclass(frozen=True, slots=True)
class Layout:
    """What the file is called in messages, the DDL of its tables, and their version."""

    what: str
    tables: str
    version: int


class DurableDatabase:
    """One connection for all threads of a process, used by one thread at a time."""

    def __init__(
        self, path: Path, layout: Layout, *, read_only: bool = False, wait_s: float = 0.0
    ) -> None:
        self.path = path
        self._layout = layout
        self._thread_lock = threading.RLock()
        self._depth = 0
        self._lock: FileLock | None = None
        if not read_only:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            name = f"the {layout.what} '{path}'"
            self._lock = FileLock(path.with_name(f"{path.name}.lock"), name, wait_s=wait_s)
        try:
            with self._errors_translated():
                self._connection = self._open(read_only=read_only)
        except BaseException:
            self._unlock()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._thread_lock:
            self._connection.close()
            self._unlock()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Committed at the end, rolled back after an exception."""
        with self._thread_lock, self._errors_translated():
            if self._depth == 0:
                self._connection.execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield self._connection
                if self._depth == 1:
                    self._connection.execute("COMMIT")
            except BaseException:
                # A full disk may fail the commit and leave the transaction open, or end it.
                if self._depth == 1 and self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                self._depth -= 1

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with self._thread_lock, self._errors_translated():
            yield self._connection

    def _open(self, *, read_only: bool) -> sqlite3.Connection:
        mode = "ro" if read_only else "rwc"
        if not read_only:
            make_private(self.path)
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

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()

    @contextmanager
    def _errors_translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            what = self._layout.what
            raise StateError(f"the {what} '{self.path}' cannot be used: {error}") from error
