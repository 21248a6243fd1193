"""Records of sent messages in SQLite: one connection, prepared statements, many rows in a commit.

    BEGIN IMMEDIATE ─ compare the epochs of the slots ─ INSERT … ─ COMMIT      46 µs for a row

A sender waits for its row before it begins the next message, so this is on the way of every call.
The connection does not sync: a row must survive the end of the process, and a loss of power repeats
a message at most.

Rejected: SQLAlchemy, as for the other tables (630 µs for a row, with the GIL); a commit for several
messages of one sender (a crash would repeat all of them).
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Mapping, Sequence

from sqlalchemy import exc

from headgate.deliver import delivery_tables as tables
from headgate.deliver.delivery_tables import SentRow
from headgate.deliver.errors import LeaseLost

_EPOCHS = f"SELECT slot, epoch FROM {tables.slots.name} WHERE holder = ? AND slot = ?"
_INSERT = f"INSERT OR IGNORE INTO {tables.sent.name} (subscription, message, slot) VALUES (?, ?, ?)"


class SqliteSentRows:
    """Thread-safe. The tables exist."""

    def __init__(self, path: str, *, lock_timeout_s: float) -> None:
        self._path = path
        self._lock_timeout_s = lock_timeout_s
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def record(self, worker: str, leases: Mapping[int, int], rows: Sequence[SentRow]) -> None:
        """Insert those that are not there yet; `LeaseLost` if a slot has another holder."""
        with self._lock:
            try:
                self._write(worker, leases, rows)
            except sqlite3.Error as error:
                # As SQLAlchemy reports it for the other tables.
                raise exc.OperationalError("sent", {}, error) from None

    def _write(self, worker: str, leases: Mapping[int, int], rows: Sequence[SentRow]) -> None:
        connection = self._opened()
        connection.execute("BEGIN IMMEDIATE")
        try:
            lost = [
                slot
                for slot, epoch in leases.items()
                if connection.execute(_EPOCHS, (worker, slot)).fetchone() != (slot, epoch)
            ]
            if lost:
                raise LeaseLost(lost)
            values = [(each.subscription, each.message, each.slot) for each in rows]
            connection.executemany(_INSERT, values)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(
                self._path,
                timeout=self._lock_timeout_s,
                isolation_level=None,
                check_same_thread=False,
            )
            self._connection.execute("PRAGMA synchronous=NORMAL")
        return self._connection
