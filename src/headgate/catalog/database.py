"""The database: opening it, transactions, errors that say what to do, and bulk insertion.

                     SQLite                                  PostgreSQL
    reading()        BEGIN: one snapshot                     REPEATABLE READ: one snapshot
    writing()        BEGIN IMMEDIATE: one writer at a time   READ COMMITTED; a writer that must be
                                                             alone locks the state row first

SQLite runs in WAL mode, in which readers and the writer do not wait for each other, with
synchronous=FULL, so an acknowledged commit survives the loss of power. Python's driver would begin
transactions by itself, and too late; that is switched off, and BEGIN is issued here.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from datetime import UTC, datetime
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    DateTime,
    Engine,
    StaticPool,
    Table,
    create_engine,
    event,
    exc,
    func,
    select,
    text,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.engine.interfaces import DBAPIConnection

from headgate.catalog.row_security import SETTING
from headgate.model.errors import CatalogUnavailable

_CONNECT_TIMEOUT_S = 10
_RETRY_S = 0.02
_also_written: ContextVar[tuple[Database, Callable[[Connection], None]] | None] = ContextVar(
    "also_written", default=None
)


class Database:
    """Safe for many threads, but not across a fork: a child process opens its own.

    A database in memory (`sqlite://`) has one connection and is for one thread. `called` is what
    errors call it; delivery keeps its cursors in a database of its own.
    """

    def __init__(self, url: str, *, lock_timeout_s: float, called: str = "catalog") -> None:
        parsed = _parse_url(url, called)
        self.name = _name_of(parsed)
        self.called = called
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        self.in_memory = self.is_sqlite and parsed.database in (None, "", ":memory:")
        self._lock_timeout_s = lock_timeout_s
        self._tenant = ""
        if self.is_sqlite:
            self._engine = _open_sqlite(
                parsed,
                lock_timeout_s=lock_timeout_s,
                in_memory=self.in_memory,
            )
            self._reader = self._engine
            self._writer = self._engine.execution_options(headgate_writes=True)
        else:
            self._engine = _open_postgresql(parsed)
            self._reader = self._engine.execution_options(isolation_level="REPEATABLE READ")
            self._writer = self._engine.execution_options(isolation_level="READ COMMITTED")

    def close(self) -> None:
        self._engine.dispose()

    def for_tenant(self, tenant: str) -> Database:
        """The same database for transactions of one tenant (row_security.py)."""
        restricted = copy(self)
        restricted._tenant = tenant
        return restricted

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that reads one consistent snapshot."""
        with as_unavailable(self.name, self.called), self._reader.begin() as connection:
            if self._tenant and not self.is_sqlite:
                connection.execute(select(func.set_config(SETTING, self._tenant, True)))
            yield connection

    @contextmanager
    def also_writing(self, write: Callable[[Connection], None]) -> Iterator[None]:
        """In this context, and in threads that inherit it, each transaction of this database ends
        with what `write` does."""
        before = _also_written.set((self, write))
        try:
            yield
        finally:
            _also_written.reset(before)

    @contextmanager
    def writing(self, *, undo: bool = False, is_effect: bool = True) -> Iterator[Connection]:
        """A transaction that is committed at the end; rolled back by an exception or `undo`. One
        that only notes something about a request is no effect of it (`also_writing`)."""
        with as_unavailable(self.name, self.called), self._writer.begin() as connection:
            if not self.is_sqlite:
                timeout = f"{int(self._lock_timeout_s * 1000)}ms"
                connection.execute(
                    select(
                        func.set_config("lock_timeout", timeout, True),
                        func.set_config(SETTING, self._tenant, True),
                    )
                )
            yield connection
            also = _also_written.get()
            if undo:
                connection.rollback()
            elif is_effect and also is not None and also[0]._engine is self._engine:
                also[1](connection)

    def use_wal(self) -> None:
        """Switch the file to WAL mode. The switch does not wait for locks, so it is retried."""
        deadline_s = time.monotonic() + self._lock_timeout_s
        with as_unavailable(self.name, self.called):
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


def _parse_url(text: str, called: str) -> URL:
    if "://" not in text:
        return URL.create("sqlite", database=text)
    try:
        url = make_url(text)
        backend = url.get_backend_name()
    except (exc.ArgumentError, ValueError):
        # The text is not repeated, as it may hold a password.
        raise CatalogUnavailable(
            f"the {called}'s URL cannot be read; write a file's name, "
            "or postgresql://user:password@host/database"
        ) from None
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if backend == "sqlite":
        return url.set(drivername="sqlite")
    raise CatalogUnavailable(f"a {called} lives in SQLite or PostgreSQL, not in '{backend}'")


def _name_of(url: URL) -> str:
    """The name in errors: without the password, which may also stand in the query."""
    if url.get_backend_name() == "sqlite":
        return f"'{url.database or ':memory:'}'"
    shown = URL.create("postgresql", host=url.host, port=url.port, database=url.database)
    return f"'{shown.render_as_string()}'"


def sqlite_file(url: str) -> Path | None:
    """The file of a database, if it is one."""
    if not url:
        return None
    read = _parse_url(url, "catalog")
    is_file = read.get_backend_name() == "sqlite" and read.database not in (None, "", ":memory:")
    return Path(str(read.database)) if is_file else None


def make_private(path: Path) -> None:
    """Create a database file that only its owner can read; SQLite's other files take its mode. One
    that exists already keeps its mode: its owner may have given others access."""
    with suppress(OSError):  # SQLite says better what is wrong with the path
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _open_sqlite(url: URL, *, lock_timeout_s: float, in_memory: bool) -> Engine:
    if not in_memory and url.database and not url.database.startswith("file:"):
        make_private(Path(url.database))
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
    # A server may have been restarted since the last use, so connections are tested before use.
    return create_engine(url, connect_args=settings, hide_parameters=True, pool_pre_ping=True)


# --- errors --------------------------------------------------------------------------------------

_SQLITE_ADVICE = {
    sqlite3.SQLITE_BUSY: "is locked by another process for too long; try again when that is done",
    sqlite3.SQLITE_LOCKED: "is locked for too long; try again",
    sqlite3.SQLITE_READONLY: "is read-only; make the file and its directory writable",
    sqlite3.SQLITE_NOTADB: "is not a catalog; name another file, or one that does not exist yet",
    sqlite3.SQLITE_CORRUPT: "is damaged; restore it from a backup",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; its directory must exist and be writable",
    sqlite3.SQLITE_PERM: "may not be opened; get access from its owner",
    sqlite3.SQLITE_FULL: "cannot grow; the disk is full",
    sqlite3.SQLITE_IOERR: "cannot be read or written; check the disk",
}
_POSTGRESQL_ADVICE = {
    "55P03": "is locked by another process for too long; try again when that is done",
    "25006": "is read-only; name the server that accepts writes",
    "42501": "refuses this user; grant it the rights to the catalog's tables",
    "3D000": "does not exist; create it with createdb",
    "53300": "has no connection left; try again",
}


@contextmanager
def as_unavailable(name: str, called: str = "catalog") -> Iterator[None]:
    """Turn errors of the database into CatalogUnavailable, which says what to do about them.

    A violated constraint is a bug and stays what it is.
    """
    try:
        yield
    except (exc.IntegrityError, exc.DataError):
        raise
    except exc.DBAPIError as error:
        # No cause is attached: the driver's text may quote the connection's settings.
        raise CatalogUnavailable(f"the {called} {name} {_advice(error)}") from None
    except exc.TimeoutError:
        raise CatalogUnavailable(
            f"the {called} {name} has no connection left; use it from fewer threads"
        ) from None


def _advice(error: exc.DBAPIError) -> str:
    original = error.orig
    if isinstance(original, sqlite3.Error):
        # The low byte is the error's kind, the rest says more about it.
        code = getattr(original, "sqlite_errorcode", 0) & 0xFF
        return _SQLITE_ADVICE.get(code, f"fails: {original}")
    state = getattr(original, "sqlstate", None)
    if state in _POSTGRESQL_ADVICE:
        return _POSTGRESQL_ADVICE[state]
    if state is not None:
        return f"fails with error {state}"
    return f"cannot be reached ({_reason(original)}); check the URL, and that the server runs"


def _reason(original: object) -> str:
    """Only the words of the server or the system: the text before them may quote settings."""
    first_line = str(original).partition("\n")[0]
    for mark in ("FATAL:", "failed:"):
        _, separator, reason = first_line.rpartition(mark)
        if separator:
            return reason.strip()
    return "no reason given"


# --- bulk insertion ------------------------------------------------------------------------------

Row = dict[str, object]


def insert_rows(connection: Connection, table: Table, rows: list[Row]) -> None:
    """Insert rows that have the same columns, as fast as each database can.

    SQLite       one prepared statement, run for every row by the driver itself
    PostgreSQL   one statement for all rows, which travel as one JSON text

    SQLAlchemy's own insert binds each value of each row in Python: inserting 100,000 subscriptions
    took more than twice as long that way, in either database.
    """
    columns = list(rows[0])
    names = ", ".join(columns)
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(columns))
        values = [_for_sqlite(each) for each in map(itemgetter(*columns), rows)]
        connection.exec_driver_sql(f"INSERT INTO {table.name} ({names}) VALUES ({marks})", values)
    else:
        query = text(
            f"INSERT INTO {table.name} ({names}) SELECT {names} "
            f"FROM json_populate_recordset(NULL::{table.name}, CAST(:rows AS json))"
        )
        texts = json.dumps(rows, default=datetime.isoformat, ensure_ascii=False)
        connection.execute(query, {"rows": texts})


def _for_sqlite(values: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(_time_text(each) if isinstance(each, datetime) else each for each in values)


_write_time = DateTime().dialect_impl(sqlite.dialect()).bind_processor(sqlite.dialect())


@lru_cache(maxsize=16)
def _time_text(value: datetime) -> object:
    """As `tables.UtcTime` writes it. The rows of one transaction share a few times."""
    assert _write_time is not None
    return _write_time(value.astimezone(UTC))
