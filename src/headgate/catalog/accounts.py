"""Accounts: people who sign in, the tenants they are members of, and their sessions.

    account  ──► memberships: a tenant with scopes
             ──► sessions:    what the cookie of a browser proves, for 14 days
             ──► links:       sign in once, within an hour: for the owner at the start, for new
                              people, for forgotten passwords
             ◄── identities:  who signs in by an OpenID provider (identities.py)

Passwords are hashed by argon2id, and a name that is not known costs the same time as one that is.
Secrets of sessions and links are random and long, so their SHA-256 is kept.

A browser's programs call the API by a token of their session and one tenant. It is not stored: it
is an HMAC by the key of the installation, and ends with the session.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection, delete, insert, select, update

from headgate.catalog import tables
from headgate.catalog.audit import record
from headgate.catalog.database import Database
from headgate.catalog.identities import Identity, find_account
from headgate.catalog.principals import OWNER, Principal, Scope, hash_of, in_order, scopes_in
from headgate.catalog.tenants import LOCAL, require_tenant
from headgate.catalog.transaction import Clock, Transaction
from headgate.model.errors import InvalidValue, NameTaken, UnknownName

OWNER_ACCOUNT = "owner"
SESSION_VALIDITY = timedelta(days=14)
LINK_VALIDITY = timedelta(hours=1)
PASSWORD_LENGTH_MIN, PASSWORD_LENGTH_MAX = 12, 200
_NAME = re.compile(r"[a-z0-9][a-z0-9._@+-]{0,99}")
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")
_API_TOKEN = re.compile(r"hga_([0-9a-f]{64})_([a-z][a-z0-9_]*)_([0-9a-f]{64})")
API_TOKEN_LENGTH_MAX = 300
# What OWASP recommends at least: 19 MiB and two passes, about 20 ms.
_hasher = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
_accounts, _members = tables.accounts.c, tables.memberships.c
_sessions = tables.sessions.c


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    has_password: bool
    created_at: datetime
    last_sign_in_at: datetime | None
    memberships: dict[str, frozenset[Scope]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """A session as its cookie proves it."""

    account: Account
    id: str


class Accounts:
    """Thread-safe, as the catalog is."""

    def __init__(self, database: Database, clock: Clock, key: Callable[[], bytes]) -> None:
        self._database, self._clock, self._key = database, clock, key

    # --- people -----------------------------------------------------------------------------------

    def add(self, name: str, password: str | None = None, *, actor: str = "") -> None:
        """An account without a password signs in by a link, or by another service."""
        if not _NAME.fullmatch(name):
            raise InvalidValue("an account is named by small letters, digits and '._@+-'")
        hashed = None if password is None else _hashed(password)
        with self._database.writing() as connection:
            if _account(connection, name) is not None:
                raise NameTaken(f"there is an account '{name}' already")
            row = {"name": name, "password_hash": hashed, "created_at": self._clock()}
            connection.execute(insert(tables.accounts).values(row))
            self._record(connection, "added account", name, actor=actor)

    def remove(self, name: str, *, actor: str = "") -> None:
        with self._database.writing() as connection:
            gone = delete(tables.accounts).where(_accounts.name == name)
            if not connection.execute(gone).rowcount:
                raise UnknownName(f"there is no account '{name[:100]}'")
            self._record(connection, "removed account", name, actor=actor)

    def set_password(self, name: str, password: str) -> None:
        """Whoever has signed in with the old one is signed out."""
        hashed = _hashed(password)
        with self._database.writing() as connection:
            _require(connection, name)
            own = update(tables.accounts).where(_accounts.name == name)
            connection.execute(own.values(password_hash=hashed))
            connection.execute(delete(tables.sessions).where(_sessions.account == name))
            self._record(connection, "set password", name)

    def join(self, name: str, tenant: str, scopes: Iterable[Scope], *, actor: str = "") -> None:
        """Make somebody a member of a tenant with these scopes; without any, no member any more."""
        wanted = in_order(scopes)
        with self._database.writing() as connection:
            _require(connection, name)
            require_tenant(connection, tenant)
            of_both = (_members.account == name, _members.tenant == tenant)
            connection.execute(delete(tables.memberships).where(*of_both))
            if wanted:
                row = {"account": name, "tenant": tenant, "scopes": " ".join(wanted)}
                connection.execute(insert(tables.memberships).values(row))
            action = "gave membership" if wanted else "ended membership"
            self._record(connection, action, name, " ".join(wanted), tenant, actor=actor)

    def list(self) -> list[Account]:
        with self._database.reading() as connection:
            names = select(_accounts.name).order_by(_accounts.name)
            found = [_account(connection, name) for name in connection.scalars(names)]
            return [each for each in found if each is not None]

    def owner(self) -> str:
        """The account of who has the machine: a member of the local tenant, without a password. It
        is made when it is first needed."""
        with self._database.reading() as connection:
            is_there = _account(connection, OWNER_ACCOUNT) is not None
        if not is_there:
            self.add(OWNER_ACCOUNT)
            self.join(OWNER_ACCOUNT, LOCAL, Scope)
        return OWNER_ACCOUNT

    # --- signing in -------------------------------------------------------------------------------

    def sign_in(self, name: str, password: str) -> str | None:
        """The secret of a new session; None if the name or the password is wrong."""
        with self._database.reading() as connection:
            kept = connection.scalar(
                select(_accounts.password_hash).where(_accounts.name == name[:100])
            )
        try:
            _hasher.verify(kept or _no_hash(), password[:PASSWORD_LENGTH_MAX])
        except (VerificationError, InvalidHashError):
            kept = None
        if kept is None:
            return None
        with self._database.writing() as connection:
            return self._begin(connection, name)

    def sign_in_by(self, identity: Identity, domains: Collection[str] = ()) -> str | None:
        """The secret of a new session for who an OpenID provider says it is; None if it has no
        account. People with a verified address in one of these domains get one."""
        with self._database.writing() as connection:
            now = Transaction(connection, clock=self._clock).now
            found = find_account(connection, identity, domains, now)
            if found is None:
                return None
            if found.is_new:
                self._record(connection, "added account by sign-in", found.name, identity.issuer)
            if found.is_linked:
                self._record(connection, "linked identity", found.name, identity.issuer)
            return self._begin(connection, found.name)

    def make_link(self, name: str) -> str:
        """The secret of a link by which somebody signs in once."""
        with self._database.writing() as connection:
            _require(connection, name)
            self._record(connection, "made a link to sign in", name)
            return self._insert(connection, name, "link", LINK_VALIDITY)

    def is_link(self, secret: str) -> bool:
        with self._database.reading() as connection:
            return self._row(connection, secret, "link") is not None

    def use_link(self, secret: str) -> str | None:
        """The secret of a new session; None if the link is not valid any more."""
        with self._database.writing() as connection:
            row = self._row(connection, secret, "link")
            if row is None:
                return None
            connection.execute(delete(tables.sessions).where(_sessions.hash == row[0]))
            return self._begin(connection, row[1])

    def _begin(self, connection: Connection, name: str) -> str:
        now = self._clock()
        connection.execute(delete(tables.sessions).where(_sessions.expires_at <= now))
        own = update(tables.accounts).where(_accounts.name == name)
        connection.execute(own.values(last_sign_in_at=now))
        self._record(connection, "signed in", name)
        return self._insert(connection, name, "session", SESSION_VALIDITY)

    def _insert(self, connection: Connection, name: str, purpose: str, validity: timedelta) -> str:
        secret, now = secrets.token_urlsafe(32), self._clock()
        row = {"hash": hash_of(secret), "account": name, "purpose": purpose, "created_at": now}
        connection.execute(insert(tables.sessions).values({**row, "expires_at": now + validity}))
        return secret

    # --- sessions ---------------------------------------------------------------------------------

    def session(self, secret: str) -> Session | None:
        with self._database.reading() as connection:
            row = self._row(connection, secret, "session")
            account = None if row is None else _account(connection, row[1])
            return None if row is None or account is None else Session(account, row[0])

    def sign_out(self, secret: str) -> None:
        with self._database.writing() as connection:
            connection.execute(delete(tables.sessions).where(_sessions.hash == hash_of(secret)))

    def api_token(self, session: Session, tenant: str) -> str | None:
        """A token for the API, for one tenant of the session's account."""
        if tenant not in session.account.memberships:
            return None
        return f"hga_{session.id}_{tenant}_{self._proof(session.id, tenant)}"

    def principal_of(self, api_token: str) -> Principal | None:
        """Who has a token of a session; None if the session or the membership has ended."""
        parsed = _API_TOKEN.fullmatch(api_token) if len(api_token) <= API_TOKEN_LENGTH_MAX else None
        if parsed is None:
            return None
        id_, tenant, proof = parsed.groups()
        if not hmac.compare_digest(self._proof(id_, tenant), proof):
            return None
        query = (
            select(_sessions.account, _members.scopes)
            .join(tables.memberships, _members.account == _sessions.account)
            .where(_sessions.hash == id_, _sessions.expires_at > self._clock())
            .where(_sessions.purpose == "session", _members.tenant == tenant)
        )
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        return Principal(tenant, f"account {row.account}", frozenset(scopes_in(row.scopes)))

    def _proof(self, id_: str, tenant: str) -> str:
        text = f"API token of session {id_} for {tenant}"
        return hmac.new(self._key(), text.encode(), hashlib.sha256).hexdigest()

    def _row(self, connection: Connection, secret: str, purpose: str) -> tuple[str, str] | None:
        """The hash and the account of a secret that is valid."""
        if not _SECRET.fullmatch(secret):
            return None
        query = select(_sessions.hash, _sessions.account).where(
            _sessions.hash == hash_of(secret),
            _sessions.purpose == purpose,
            _sessions.expires_at > self._clock(),
        )
        row = connection.execute(query).one_or_none()
        return None if row is None else (row.hash, row.account)

    def _record(
        self,
        connection: Connection,
        action: str,
        account: str,
        detail: str = "",
        tenant: str = LOCAL,
        *,
        actor: str = "",
    ) -> None:
        """In the audit of the operator, or of the tenant that it is about."""
        is_own = action in ("signed in", "linked identity", "added account by sign-in")
        actor = f"account {account}" if is_own else actor or OWNER.actor
        record(
            connection,
            tenant=tenant,
            actor=actor,
            action=action,
            subject=account,
            now=self._clock(),
            detail=detail,
        )


def _account(connection: Connection, name: str) -> Account | None:
    row = connection.execute(select(tables.accounts).where(_accounts.name == name)).one_or_none()
    if row is None:
        return None
    query = select(_members.tenant, _members.scopes).where(_members.account == name)
    members = {tenant: frozenset(scopes_in(scopes)) for tenant, scopes in connection.execute(query)}
    return Account(
        name, row.password_hash is not None, row.created_at, row.last_sign_in_at, members
    )


def _require(connection: Connection, name: str) -> None:
    if _account(connection, name) is None:
        raise UnknownName(f"there is no account '{name[:100]}'")


def _hashed(password: str) -> str:
    if not PASSWORD_LENGTH_MIN <= len(password) <= PASSWORD_LENGTH_MAX:
        raise InvalidValue(
            f"a password has {PASSWORD_LENGTH_MIN} to {PASSWORD_LENGTH_MAX} characters"
        )
    return _hasher.hash(password)


@cache
def _no_hash() -> str:
    """What the password of an unknown account is compared with, so that it takes as long."""
    return _hasher.hash("no password")
