"""What the database says, told as CatalogUnavailable: what is wrong and what to do about it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc

from headgate.model.errors import CatalogUnavailable

_SQLITE_ADVICE = {
    sqlite3.SQLITE_BUSY: "is locked by another process for too long; try again when that is done",
    sqlite3.SQLITE_LOCKED: "is locked for too long; try again",
    sqlite3.SQLITE_READONLY: "is read-only; make the file and its directory writable",
    sqlite3.SQLITE_NOTADB: "is not a catalog; name another file, or one that does not exist yet",
    sqlite3.SQLITE_CORRUPT: "is damaged; restore it from a backup",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; its directory must exist and be writable",
    sqlite3.SQLITE_PERM: "may not be opened; ask its owner for access",
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
def told_as_unavailable(name: str) -> Iterator[None]:
    """A broken world becomes CatalogUnavailable; a broken invariant stays what it is."""
    try:
        yield
    except (exc.IntegrityError, exc.DataError):
        raise
    except exc.DBAPIError as error:
        # No cause is attached: the driver's text may quote the connection's settings.
        raise CatalogUnavailable(f"the catalog {name} {_advice(error)}") from None
    except exc.TimeoutError:
        raise CatalogUnavailable(
            f"the catalog {name} has no connection left; use it from fewer threads"
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
    """The words of the server or the system only: what libpq says before may quote settings."""
    first_line = str(original).partition("\n")[0]
    for mark in ("FATAL:", "failed:"):
        _, found, reason = first_line.rpartition(mark)
        if found:
            return reason.strip()
    return "no reason given"
