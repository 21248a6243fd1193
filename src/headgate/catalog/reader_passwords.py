"""Reader passwords: what feed readers on phones and desktops sign in with.

    password            one for an account and tenant, generated, shown once; a new one ends the old
      ├─ SHA-256        proves `ada` or `ada/acme` + password           (Google Reader API)
      └─ SHA-256(md5)   proves md5('ada:PASSWORD'), the key of a phone  (Fever)
    token  hgr_<id>_<HMAC>   what a sign-in answers; it ends with the password

It is not the password of the account: phones keep it in the clear, and Fever needs a hash of it
that an account's password must never be stored as. It is random and has 100 bits, so a fast hash is
enough. It says for which tenant it is, so an account of several tenants may leave the tenant out.

A token is not stored: it is an HMAC of the password's hash by the key of the installation. Whoever
has one acts with the scopes of the membership, as long as that lasts. A password in place of a
token for each device was chosen because readers know nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, delete, insert, or_, select

from headgate.catalog import reader_tables, tables
from headgate.catalog.audit import record
from headgate.catalog.database import Database
from headgate.catalog.following import storable
from headgate.catalog.principals import Principal, hash_of, is_proved, scopes_in
from headgate.catalog.transaction import Clock, Transaction
from headgate.model.errors import UnknownName

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
"""32 characters that are not taken for each other."""
_GROUPS, _GROUP_LENGTH = 5, 4
_TOKEN = re.compile(r"hgr_([a-z0-9]{12})_([0-9a-f]{64})", re.ASCII)
_FEVER_KEY = re.compile(r"[0-9a-fA-F]{32}", re.ASCII)
LOGIN_LENGTH_MAX = 200
_passwords, _members = reader_tables.reader_passwords.c, tables.memberships.c


@dataclass(frozen=True, slots=True)
class ReaderPassword:
    """A password as it is listed: without itself."""

    account: str
    tenant: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class CreatedReaderPassword:
    entry: ReaderPassword
    password: str = field(repr=False)
    """Shown once."""


class ReaderPasswords:
    """Thread-safe, as the catalog is."""

    def __init__(self, database: Database, clock: Clock, key: Callable[[], bytes]) -> None:
        self._database, self._clock, self._key = database, clock, key

    def create(self, account: str, tenant: str, *, actor: str) -> CreatedReaderPassword:
        """A password for a member of a tenant; one that there was ends."""
        password = "-".join(_word() for _ in range(_GROUPS))
        with self._database.writing() as connection:
            now = Transaction(connection, clock=self._clock).now
            of_both = (_members.account == account, _members.tenant == tenant)
            if connection.scalar(select(_members.account).where(*of_both)) is None:
                raise UnknownName(f"'{account[:100]}' is no member of tenant '{tenant[:100]}'")
            self._delete(connection, account, tenant)
            row = {
                "id": "".join(secrets.choice(_ALPHABET) for _ in range(12)),
                "account": account,
                "tenant": tenant,
                "hash": hash_of(password),
                "fever_hash": hash_of(fever_key(account, password)),
                "fever_tenant_hash": hash_of(fever_key(f"{account}/{tenant}", password)),
                "created_at": now,
            }
            connection.execute(insert(reader_tables.reader_passwords).values(row))
            self._record(connection, "made a reader password", account, tenant, actor)
        return CreatedReaderPassword(ReaderPassword(account, tenant, now), password)

    def revoke(self, account: str, tenant: str, *, actor: str) -> None:
        """End the password; readers that use it are refused within two seconds."""
        with self._database.writing() as connection:
            Transaction(connection, clock=self._clock)  # takes the lock
            if not self._delete(connection, account, tenant):
                raise UnknownName(
                    f"'{account[:100]}' has no reader password for tenant '{tenant[:100]}'"
                )
            self._record(connection, "revoked the reader password", account, tenant, actor)

    def get(self, account: str, tenant: str) -> ReaderPassword | None:
        query = select(_passwords.account, _passwords.tenant, _passwords.created_at)
        query = query.where(_passwords.account == account, _passwords.tenant == tenant)
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else ReaderPassword(*row)

    # --- proving ----------------------------------------------------------------------------------

    def sign_in(self, login: str, password: str) -> str | None:
        """A token for `account` or `account/tenant`; None if the login or password is wrong."""
        account, _, tenant = storable(login[:LOGIN_LENGTH_MAX]).partition("/")
        query = select(_passwords.id, _passwords.hash).where(
            _passwords.account == account, *([_passwords.tenant == tenant] if tenant else [])
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        tokens = [self._token(row.id, row.hash) for row in rows if is_proved(password, row.hash)]
        return tokens[0] if tokens else None

    def principal_of(self, token: str) -> Principal | None:
        """Who has this token; None if its password or the membership has ended."""
        parsed = _TOKEN.fullmatch(token)
        if parsed is None:
            return None
        found = self._look_up(_passwords.id == parsed[1])
        if found is None or not hmac.compare_digest(token, self._token(parsed[1], found[1])):
            return None
        return found[0]

    def principal_of_fever(self, api_key: str) -> Principal | None:
        """Who has this key, which is md5('login:password')."""
        if not _FEVER_KEY.fullmatch(api_key):
            return None
        kept = hash_of(api_key.lower())
        found = self._look_up(
            or_(_passwords.fever_hash == kept, _passwords.fever_tenant_hash == kept)
        )
        return None if found is None else found[0]

    def _look_up(self, condition: ColumnElement[bool]) -> tuple[Principal, str] | None:
        """Whom the password of a condition is for, and the hash of the password."""
        query = (
            select(_passwords.account, _passwords.tenant, _passwords.hash, _members.scopes)
            .join(
                tables.memberships,
                (_members.account == _passwords.account) & (_members.tenant == _passwords.tenant),
            )
            .where(condition)
        )
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        scopes = frozenset(scopes_in(row.scopes))
        return Principal(row.tenant, f"account {row.account}", scopes), row.hash

    def _token(self, id_: str, hash_: str) -> str:
        text = f"reader token of password {id_} {hash_}"
        return f"hgr_{id_}_{hmac.new(self._key(), text.encode(), hashlib.sha256).hexdigest()}"

    def _delete(self, connection: Connection, account: str, tenant: str) -> bool:
        of_both = (_passwords.account == account, _passwords.tenant == tenant)
        gone = connection.execute(delete(reader_tables.reader_passwords).where(*of_both))
        return gone.rowcount > 0

    def _record(
        self, connection: Connection, action: str, account: str, tenant: str, actor: str
    ) -> None:
        now = self._clock()
        record(connection, tenant=tenant, actor=actor, action=action, subject=account, now=now)


def fever_key(login: str, password: str) -> str:
    """The key that a phone sends; the protocol demands this hash."""
    text = f"{login}:{password}".encode("utf-8", "surrogatepass")
    return hashlib.md5(text, usedforsecurity=False).hexdigest()


def _word() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(_GROUP_LENGTH))
