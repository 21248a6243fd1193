"""One transaction that changes the catalog: alone, whole, and one version further.

It begins by locking the state row, so transactions come one after the other and each builds on what
the one before has committed. New rows are kept back and inserted many at a time, in an order in
which every row finds the rows it refers to.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import Connection, Table, select, update

from headgate.catalog import tables
from headgate.catalog.definitions import Definitions
from headgate.catalog.insert_rows import Row, insert_rows

Clock = Callable[[], datetime]

_ROWS_MAX = 5_000
_INSERT_ORDER = (tables.definitions, tables.uses, tables.advertisements, tables.subscriptions)


class Transaction:
    """For one thread, within `Database.writing`. `finish` comes last."""

    def __init__(self, connection: Connection, *, clock: Clock, dry_run: bool = False) -> None:
        state = tables.state.c
        lock = select(state.version, state.next_subscription_id, state.next_number)
        version, next_id, next_number = connection.execute(lock.with_for_update()).one()
        self._next_subscription_id: int = next_id
        self._next_number: int = next_number
        self.connection = connection
        # The clock is read after the wait for the lock, so later versions have later times.
        self.now = clock().astimezone(UTC)
        self.version: int = version + 1
        self.dry_run = dry_run
        self.definitions = Definitions(connection, version=version)
        self._rows: dict[Table, list[Row]] = {table: [] for table in _INSERT_ORDER}

    def take_subscription_id(self) -> int:
        self._next_subscription_id += 1
        return self._next_subscription_id - 1

    def take_number(self) -> int:
        self._next_number += 1
        return self._next_number - 1

    def insert(self, table: Table, row: Row) -> None:
        self._rows[table].append(row)
        if len(self._rows[table]) >= _ROWS_MAX:
            self.flush()

    def flush(self) -> None:
        """Needed before a question whose answer depends on the new rows."""
        for table, rows in self._rows.items():
            if rows:
                insert_rows(self.connection, table, rows)
                rows.clear()

    def finish(self, *, changed: bool) -> None:
        """Inserts what was kept back, and counts the version if anything has changed."""
        self.flush()
        if changed:
            self.connection.execute(
                update(tables.state).values(
                    version=self.version,
                    next_subscription_id=self._next_subscription_id,
                    next_number=self._next_number,
                )
            )
