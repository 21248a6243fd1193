"""A transaction that changes the catalog, and the outcome of each statement in it.

A transaction begins by locking the state row. So transactions run one after the other, and each
sees what the one before has committed. New rows are buffered and inserted many at a time, in an
order in which every row finds the rows that it refers to. A transaction that changes anything
increments the catalog's version by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import Connection, Table, select, update

from headgate.catalog import tables
from headgate.catalog.database import Row, insert_rows
from headgate.catalog.definitions import CatalogDefinitions
from headgate.catalog.tenants import EVERYTHING, LOCAL, TenantView
from headgate.language.statements import Statement


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a statement did. A definition is returned as it was checked: its constants are typed
    and its ranges are expanded.

    `show` and `explain` are left to the caller: their `action` is empty. The ticket and
    the secret of a webhook are stored nowhere else; a dry run issues none.
    """

    statement: Statement
    action: str = ""
    name: str | None = None
    changed: bool = False
    subscription_id: int | None = None
    ticket: str | None = field(default=None, repr=False)
    expires_at: datetime | None = None
    secret: str | None = field(default=None, repr=False)
    is_pending: bool = False
    """Whether it waits until its receiver confirms it."""


Clock = Callable[[], datetime]

_ROWS_MAX = 5_000
_INSERT_ORDER = (tables.definitions, tables.uses, tables.advertisements, tables.subscriptions)


class Transaction:
    """For one thread, within `Database.writing`. Call `finish` at the end."""

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Clock,
        dry_run: bool = False,
        key: bytes | None = None,
        view: TenantView = EVERYTHING,
    ) -> None:
        """`key` is needed where a secret is issued. `view` is that of the tenant who acts."""
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
        self.key = key
        self.confirmed: set[str] = set()
        """Addresses of mails whose readers have confirmed another subscription."""
        self.view = view
        self.definitions = CatalogDefinitions(connection, version=version, view=view)
        self._rows: dict[Table, list[Row]] = {table: [] for table in _INSERT_ORDER}
        self.added: set[Table] = set()
        """The tables into which rows were inserted."""

    @property
    def tenant(self) -> str:
        """Who owns what is subscribed to now."""
        return self.view.tenant or LOCAL

    def take_subscription_id(self) -> int:
        self._next_subscription_id += 1
        return self._next_subscription_id - 1

    def take_number(self) -> int:
        self._next_number += 1
        return self._next_number - 1

    def insert(self, table: Table, row: Row) -> None:
        self.added.add(table)
        self._rows[table].append(row)
        if len(self._rows[table]) >= _ROWS_MAX:
            self.flush()

    def flush(self) -> None:
        """Insert the buffered rows; needed before a query whose result depends on them."""
        for table, rows in self._rows.items():
            if rows:
                insert_rows(self.connection, table, rows)
                rows.clear()

    def finish(self, *, changed: bool) -> None:
        """Insert the buffered rows, and increment the version if anything has changed."""
        self.flush()
        if changed:
            self.connection.execute(
                update(tables.state).values(
                    version=self.version,
                    next_subscription_id=self._next_subscription_id,
                    next_number=self._next_number,
                )
            )
