"""Opening a database and beginning transactions in it.

                     SQLite                                  PostgreSQL
    reading()        BEGIN: one snapshot                     REPEATABLE READ: one snapshot
    writing()        BEGIN IMMEDIATE: one writer at a time   READ COMMITTED; who needs to be alone
                                                             locks the state row first

SQLite runs in WAL mode, in which readers and the writer do not wait for each other, with
synchronous=FULL, so a commit that was acknowledged survives the loss of power. Python's driver
would begin transactions on its own, and too late; that is switched off, and `begin` is said here.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import URL, Connection, Engine, StaticPool, create_engine, event, exc, func, select
from sqlalchemy.engine import make_url
from sqlalchemy.engine.interfaces import DBAPIConnection

from headgate.catalog.failures import told_as_unavailable
from headgate.model.errors import CatalogUnavailable

_CONNECT_TIMEOUT_S = 10
_RETRY_S = 0.02


class Database:
    """Safe for many threads, but not across a fork: a child process opens its own.

    A database in memory (`sqlite://`) has one connection and is for one thread.
    """

    def __init__(self, url: str, *, lock_timeout_s: float) -> None:
        parsed = _parse_url(url)
        self.name = _name_of(parsed)
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        self.in_memory = self.is_sqlite and parsed.database in (None, "", ":memory:")
        self._lock_timeout_s = lock_timeout_s
        if self.is_sqlite:
            self._engine = _open_sqlite(
                parsed, lock_timeout_s=lock_timeout_s, in_memory=self.in_memory
            )
            self._reader = self._engine
            self._writer = self._engine.execution_options(headgate_writes=True)
        else:
            self._engine = _open_postgresql(parsed)
            self._reader = self._engine.execution_options(isolation_level="REPEATABLE READ")
            self._writer = self._engine.execution_options(isolation_level="READ COMMITTED")

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Everything read in it is of one moment."""
        with told_as_unavailable(self.name), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def writing(self, *, undo: bool = False) -> Iterator[Connection]:
        """Committed at the end; undone by an exception, or if it was only a trial."""
        with told_as_unavailable(self.name), self._writer.begin() as connection:
            if not self.is_sqlite:
                timeout = f"{int(self._lock_timeout_s * 1000)}ms"
                connection.execute(select(func.set_config("lock_timeout", timeout, True)))
            yield connection
            if undo:
                connection.rollback()

    def use_wal(self) -> None:
        """The mode is kept in the file. The switch does not wait for others, so it is repeated."""
        deadline_s = time.monotonic() + self._lock_timeout_s
        with told_as_unavailable(self.name):
            while not self._try_wal(last=time.monotonic() > deadline_s):
                time.sleep(_RETRY_S)

    def _try_wal(self, *, last: bool) -> bool:
        raw = self._engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or last:
                raise exc.OperationalError("PRAGMA", {}, error) from None
            return False
        else:
            return True
        finally:
            raw.close()


def _parse_url(text: str) -> URL:
    if "://" not in text:
        return URL.create("sqlite", database=text)
    try:
        url = make_url(text)
        backend = url.get_backend_name()
    except (exc.ArgumentError, ValueError):
        # The text is not repeated, as it may hold a password.
        raise CatalogUnavailable(
            "the catalog's URL cannot be read; write a file's name, "
            "or postgresql://user:password@host/database"
        ) from None
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if backend == "sqlite":
        return url.set(drivername="sqlite")
    raise CatalogUnavailable(f"a catalog lives in SQLite or PostgreSQL, not in '{backend}'")


def _name_of(url: URL) -> str:
    """What errors call it: without the password, which may also stand in the query."""
    if url.get_backend_name() == "sqlite":
        return f"'{url.database or ':memory:'}'"
    shown = URL.create("postgresql", host=url.host, port=url.port, database=url.database)
    return f"'{shown.render_as_string()}'"


def _open_sqlite(url: URL, *, lock_timeout_s: float, in_memory: bool) -> Engine:
    engine = create_engine(
        url,
        connect_args={"timeout": lock_timeout_s},
        hide_parameters=True,
        poolclass=StaticPool if in_memory else None,
    )

    @event.listens_for(engine, "connect")
    def configure(connection: DBAPIConnection, _record: object) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("headgate_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _open_postgresql(url: URL) -> Engine:
    settings: dict[str, Any] = {"fallback_application_name": "headgate"}
    if "connect_timeout" not in url.query:
        settings["connect_timeout"] = _CONNECT_TIMEOUT_S
    # A server may have been restarted since the last use: ask before relying on a connection.
    return create_engine(url, connect_args=settings, hide_parameters=True, pool_pre_ping=True)
