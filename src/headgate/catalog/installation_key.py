"""The key of the installation: secrets of webhooks and links in mails are made with it.

    HEADGATE_WEBHOOK_KEY is set    the key is its text
    catalog in an SQLite file      <catalog>.key beside it: who reaches the one reaches the other
    catalog in PostgreSQL          keys/<fingerprint>.key in ~/.local/share/headgate
    catalog in memory              random, and gone with it

A file is made once, with 32 random bytes as text, and only its owner can read it. The catalog
records the fingerprint of the key, never the key. So a process on another host, or with another
variable, does not sign with a key of its own that no receiver knows: it gets `KeyMissing`, which
says what to set.

The fingerprint is a slow hash (scrypt), since the variable may be a text that can be guessed.
Files of PostgreSQL catalogs are named by it and not by the URL, which has many forms.

Rejected: the key in the catalog (its readers could sign and confirm); a key for each host (delivery
on one would sign what `apply` on another has promised differently).
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, select, update

from headgate.catalog import tables
from headgate.catalog.database import Database, sqlite_file
from headgate.model.errors import KeyMissing

VARIABLE = "HEADGATE_WEBHOOK_KEY"
_KEY_BYTES = 32
_column = tables.state.c.key_fingerprint


def find_key(database: Database, url: str, environment: Mapping[str, str]) -> bytes:
    """The key of this catalog; made if the catalog has none yet."""
    if database.in_memory:
        return secrets.token_bytes(_KEY_BYTES)
    with database.reading() as connection:
        recorded = connection.scalar(select(_column))
    if recorded is None:
        with database.writing() as connection:
            return _first_key(connection, url, environment)
    return _known_key(recorded, url, environment)


def _first_key(connection: Connection, url: str, environment: Mapping[str, str]) -> bytes:
    """Within a transaction that has locked the state: one process makes the key."""
    recorded = connection.scalar(select(_column).with_for_update())
    if recorded is not None:
        return _known_key(recorded, url, environment)
    given = environment.get(VARIABLE, "").encode()
    key = given or _made_key(url, environment)
    connection.execute(update(tables.state).values(key_fingerprint=fingerprint(key)))
    return key


def _known_key(recorded: str, url: str, environment: Mapping[str, str]) -> bytes:
    given = environment.get(VARIABLE, "").encode()
    if given:
        if fingerprint(given) != recorded:
            raise KeyMissing(
                f"{VARIABLE} is not the key that the secrets of this catalog are made with: set it "
                f"to that key{_or_unset(recorded, url, environment)}"
            )
        return given
    path = _key_file(url, recorded, environment)
    key = _read(path)
    if key is None or fingerprint(key) != recorded:
        wrong = "not here" if key is None else "another one"
        raise KeyMissing(
            f"the key of this installation in '{path}' is {wrong}: copy the file from the host "
            f"where it was made, or set {VARIABLE} to the key"
        )
    return key


def _or_unset(recorded: str, url: str, environment: Mapping[str, str]) -> str:
    path = _key_file(url, recorded, environment)
    return f", or unset it to use '{path}'" if path.exists() else ""


def fingerprint(key: bytes) -> str:
    return hashlib.scrypt(key, salt=b"headgate key", n=2**14, r=8, p=1, dklen=16).hex()


# --- files ---------------------------------------------------------------------------------------


def _made_key(url: str, environment: Mapping[str, str]) -> bytes:
    key = base64.urlsafe_b64encode(secrets.token_bytes(_KEY_BYTES)).rstrip(b"=")
    path = _key_file(url, fingerprint(key), environment)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):  # made before a crash, and not recorded: it is as good
            _create(path, key)
    except OSError as error:
        raise KeyMissing(
            f"the key of this installation cannot be written to '{path}': {error.strerror}; "
            f"set {VARIABLE}"
        ) from None
    return _read(path) or key


def _create(path: Path, key: bytes) -> None:
    """A file that appears with its content, or not at all."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes().strip() or None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise KeyMissing(
            f"the key of this installation in '{path}' cannot be read: {error.strerror}"
        ) from None


def _key_file(url: str, fingerprint_: str, environment: Mapping[str, str]) -> Path:
    catalog = sqlite_file(url)
    if catalog is not None:
        return catalog.with_name(f"{catalog.name}.key")
    data = environment.get("XDG_DATA_HOME", "")
    folder = Path(data) if data else Path.home() / ".local" / "share"
    return folder / "headgate" / "keys" / f"{fingerprint_}.key"
