"""The file of the outbox: its tables, one writer process, transactions that last.

    contents    an item as JSON, once, however many subscriptions it is delivered to
       ▲
    deliveries  one row per (subscription, version, item, source): its state and attempts
    agenda      one row per subscription: when something is to be done for it, or why never again
    clock       one row: the latest time that was seen, to notice a clock that goes back
    files       which subscription writes which file
    twins       by which keys a subscription knows what it has had, and from which source

sqlite3 of the standard library, not SQLAlchemy as in catalog/: this file belongs to one process on
one machine, it never lives in PostgreSQL, and the hot path is an `executemany` of plain tuples with
SQLite's own ON CONFLICT, so SQLAlchemy would add a layer and take nothing away.

WAL, so readers never wait. synchronous=FULL, so that a commit survives the loss of power too:
what Spark's checkpoint says was put must be there, and a mail that was marked as sent must not be
sent again. With NORMAL a commit survives `kill -9` only. The price is one fsync for each commit, so
work is committed by batch (`transaction` may be nested; the outermost one commits).

One process writes. It holds a lock on `<file>.lock` for as long as it lives; the kernel
releases it when the process dies in any way. SQLite would let two processes write in turn, and
both would then send the same mail.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate.deliver.errors import OutboxError, OutboxTaken

VERSION = 2
_BUSY_S = 10.0
_TABLES = """
CREATE TABLE contents (
    number INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    item TEXT NOT NULL
) STRICT;
CREATE TABLE deliveries (
    number INTEGER PRIMARY KEY,
    subscription INTEGER NOT NULL,
    version INTEGER NOT NULL,
    item BLOB NOT NULL,
    source BLOB NOT NULL,
    feed TEXT NOT NULL,
    content INTEGER NOT NULL REFERENCES contents,
    state TEXT NOT NULL DEFAULT 'waiting'
        CHECK (state IN ('waiting', 'sending', 'sent', 'failed', 'dead')),
    message TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '',
    put_at REAL NOT NULL,
    retry_at REAL,
    done_at REAL,
    UNIQUE (subscription, version, item, source)
) STRICT;
CREATE INDEX deliveries_of_subscription ON deliveries (subscription, number);
CREATE INDEX deliveries_pending ON deliveries (subscription, number)
    WHERE state IN ('waiting', 'sending', 'failed');
CREATE INDEX deliveries_done ON deliveries (done_at) WHERE done_at IS NOT NULL;
CREATE INDEX deliveries_by_content ON deliveries (content);
CREATE TABLE agenda (
    subscription INTEGER PRIMARY KEY,
    due_at REAL,
    by_timetable INTEGER NOT NULL DEFAULT 0,
    not_before REAL,
    failures INTEGER NOT NULL DEFAULT 0,
    last_run_at REAL,
    halted TEXT
) STRICT;
CREATE INDEX agenda_due ON agenda (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX agenda_halted ON agenda (subscription) WHERE halted IS NOT NULL;
CREATE TABLE twins (
    subscription INTEGER NOT NULL,
    key BLOB NOT NULL,
    source BLOB NOT NULL,
    put_at REAL NOT NULL,
    PRIMARY KEY (subscription, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX twins_by_time ON twins (put_at);
CREATE TABLE clock (id INTEGER PRIMARY KEY CHECK (id = 1), latest REAL NOT NULL) STRICT;
CREATE TABLE files (path BLOB PRIMARY KEY, subscription INTEGER NOT NULL) STRICT;
"""


class OutboxDatabase:
    """One connection for all threads of a process, used by one at a time."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._thread_lock = threading.RLock()
        self._depth = 0
        self._lock_file = None if read_only else _lock(path)
        try:
            with self._told():
                self._connection = self._open(read_only=read_only)
        except BaseException:
            self._unlock()
            raise

    def close(self) -> None:
        with self._thread_lock:
            self._connection.close()
            self._unlock()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it is committed at the end, or nothing of it after an exception."""
        with self._thread_lock, self._told():
            if self._depth == 0:
                self._connection.execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield self._connection
            except BaseException:
                self._depth -= 1
                if self._depth == 0:
                    self._connection.rollback()
                raise
            self._depth -= 1
            if self._depth == 0:
                self._commit()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with self._thread_lock, self._told():
            yield self._connection

    def _commit(self) -> None:
        try:
            self._connection.commit()
        except sqlite3.Error:
            # A full disk may fail the commit and leave the transaction open.
            self._connection.rollback()
            raise

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
        if found == 0 and tables == 0 and not read_only:
            connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version={VERSION}; COMMIT;")
        elif found != VERSION:
            raise OutboxError(
                f"'{self.path}' is no outbox of version {VERSION}; "
                "give another file, or use the Headgate that wrote it"
            )

    def _unlock(self) -> None:
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise OutboxError(f"the outbox '{self.path}' cannot be used: {error}") from error


def _lock(path: Path) -> int:
    try:
        # The lock file stays: deleting it would let two processes lock two files of one name.
        descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise OutboxError(f"the outbox '{path}' cannot be locked: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(descriptor)
        raise OutboxTaken(
            f"the outbox '{path}' is written by process {holder}; "
            "stop it first, or open the outbox for reading only"
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor
