"""Identities: which account somebody has who signs in by an OpenID provider.

    (issuer, subject) is known                        its account
    the e-mail is verified, an account has its name   that account, from now on for this subject
    … no account, the domain of the e-mail is allowed a new account, which is in no tenant yet
    otherwise                                         nobody

A provider never gives a subject to somebody else, but an address may be: so who has signed in once
is known by the subject. An account that is known by another subject of the same issuer is not given
to a new one who has its address now.

The name of an account is compared with the address in small letters, as accounts are named. An
address that is not verified says nothing: at many providers everybody may write any.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select

from headgate.catalog import service_tables, tables

TEXT_LENGTH_MAX = 255
"""A subject has at most so many characters (OpenID Connect Core, 2)."""
_ADDRESS = re.compile(r"[a-z0-9][a-z0-9._+-]*@[a-z0-9-]+(\.[a-z0-9-]+)+")
_identities, _accounts = service_tables.identities.c, tables.accounts.c


@dataclass(frozen=True, slots=True)
class Identity:
    """Who somebody is for an issuer."""

    issuer: str
    subject: str
    verified_address: str = ""
    """Empty: there is none, or it is not verified."""

    def __post_init__(self) -> None:
        assert 0 < len(self.subject) <= TEXT_LENGTH_MAX

    @property
    def account_name(self) -> str:
        """The name that an account for the address has; empty: there can be none."""
        name = self.verified_address.lower()
        return name if len(name) <= 100 and _ADDRESS.fullmatch(name) else ""

    @property
    def domain(self) -> str:
        return self.account_name.rpartition("@")[2]


@dataclass(frozen=True, slots=True)
class FoundAccount:
    name: str
    is_new: bool = False
    """Whether it was made now."""
    is_linked: bool = False
    """Whether it is known by this identity only now."""


def find_account(
    connection: Connection, identity: Identity, domains: Collection[str], now: datetime
) -> FoundAccount | None:
    """The account of somebody, made or linked where that is allowed; None: nobody is known."""
    of_issuer = _identities.issuer == identity.issuer
    own = select(_identities.account).where(of_issuer, _identities.subject == identity.subject)
    known = connection.scalar(own)
    if known is not None:
        return FoundAccount(known)
    name = identity.account_name
    if not name:
        return None
    is_there = connection.scalar(select(_accounts.name).where(_accounts.name == name)) is not None
    if is_there:
        others = select(_identities.subject).where(of_issuer, _identities.account == name)
        if connection.scalar(others) is not None:
            return None
    elif identity.domain in domains:
        row = {"name": name, "password_hash": None, "created_at": now}
        connection.execute(insert(tables.accounts).values(row))
    else:
        return None
    linked = {"issuer": identity.issuer, "subject": identity.subject, "account": name}
    connection.execute(insert(service_tables.identities).values({**linked, "created_at": now}))
    return FoundAccount(name, is_new=not is_there, is_linked=True)
