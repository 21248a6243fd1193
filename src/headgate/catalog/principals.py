"""Who acts: a `Principal` is a tenant, a name for the audit, and scopes, which say what it may do.

    token     hg_<id>_<secret>      a program's, for one tenant, with scopes and an end

Secrets are random and long, so their SHA-256 is kept and they are not. Whatever is wrong with a
token, the answer is the same. Links (feed_links.py) are made and proved like tokens.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import Connection, delete, insert, select, update

from headgate.catalog import tables
from headgate.catalog.tenants import LOCAL, require_tenant
from headgate.language.statements import Explain, Renew, Show, Statement, Subscribe, Unsubscribe
from headgate.model.errors import InvalidValue, NotAllowed, UnknownName

TOKEN_VALIDITY_DEFAULT = timedelta(days=90)
USE_NOTED_EVERY = timedelta(minutes=1)
"""The last use of a token is written at most so often."""
_SECRET_TEXT = re.compile(r"([a-z]{2})_([a-z0-9]{12})_[A-Za-z0-9_-]{43}", re.ASCII)
_TOKEN = "hg"
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
COMMENT_LENGTH_MAX = 200


class Scope(StrEnum):
    """What a principal may do in its tenant."""

    READ = "read"
    """See definitions, items, explanations, prices."""
    POST = "post"
    """Post events to sources."""
    SUBSCRIBE = "subscribe"
    """Make, renew and end subscriptions; see and replay deliveries."""
    WRITE = "write"
    """Register and drop sources, feeds and operators; suspend and resume."""
    ADMIN = "admin"
    """Tokens, grants, the audit."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who makes a call."""

    tenant: str
    actor: str
    """For the audit: `token 3f…`, `command line`."""
    scopes: frozenset[Scope]

    def require(self, scope: Scope) -> None:
        if scope not in self.scopes:
            raise NotAllowed(f"this needs the scope '{scope}', which {self.actor} does not have")


OWNER = Principal(LOCAL, "command line", frozenset(Scope))
"""Who has the catalog's file has everything."""


def in_order(scopes: Iterable[Scope]) -> list[Scope]:
    """Scopes as they are listed, each once."""
    wanted = set(scopes)
    return [each for each in Scope if each in wanted]


def scopes_in(text: str) -> tuple[Scope, ...]:
    """Scopes as tables have them: words."""
    return tuple(Scope(each) for each in text.split())


def scopes_for(statements: Iterable[Statement]) -> set[Scope]:
    """What a principal needs to apply these statements."""
    scopes: set[Scope] = set()
    for statement in statements:
        if isinstance(statement, Subscribe | Renew | Unsubscribe):
            scopes.add(Scope.SUBSCRIBE)
        elif isinstance(statement, Show | Explain):
            scopes.add(Scope.READ)
        else:
            scopes.add(Scope.WRITE)
    return scopes


# --- secrets --------------------------------------------------------------------------------------


def new_secret(prefix: str) -> tuple[str, str]:
    """An id, and the text with a secret that proves it: `<prefix>_<id>_<secret>`."""
    id_ = "".join(secrets.choice(_ALPHABET) for _ in range(12))
    return id_, f"{prefix}_{id_}_{secrets.token_urlsafe(32)}"


def id_in(text: str, prefix: str) -> str:
    """The id that a text claims to prove; empty if it is no such text."""
    parsed = _SECRET_TEXT.fullmatch(text)
    return parsed[2] if parsed and parsed[1] == prefix else ""


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_proved(text: str, kept_hash: str | None) -> bool:
    """Whether a text is the one whose hash was kept; it takes the same time for every text."""
    return hmac.compare_digest(hash_of(text), kept_hash or "0" * 64)


def checked_comment(comment: str) -> str:
    if len(comment) > COMMENT_LENGTH_MAX or not comment.isprintable():
        raise InvalidValue(f"a comment has at most {COMMENT_LENGTH_MAX} visible characters")
    return comment


# --- tokens ---------------------------------------------------------------------------------------

_tokens = tables.tokens.c


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is listed: without its secret."""

    id: str
    tenant: str
    scopes: tuple[Scope, ...]
    comment: str
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class IssuedToken:
    token: Token
    text: str = field(repr=False)
    """Shown once."""


def issue_token(
    connection: Connection,
    principal: Principal,
    scopes: Iterable[Scope],
    *,
    comment: str,
    now: datetime,
    validity: timedelta | None = TOKEN_VALIDITY_DEFAULT,
) -> IssuedToken:
    """A token for the principal's tenant, with at most the principal's own scopes."""
    wanted = tuple(in_order(scopes))
    if not wanted:
        raise InvalidValue(f"a token has at least one scope: {', '.join(Scope)}")
    for scope in wanted:
        principal.require(scope)
    checked_comment(comment)
    require_tenant(connection, principal.tenant)
    id_, text = new_secret(_TOKEN)
    token = Token(
        id_,
        principal.tenant,
        wanted,
        comment,
        principal.actor,
        now,
        None if validity is None else now + validity,
        None,
    )
    row = {
        "id": id_,
        "tenant": token.tenant,
        "hash": hash_of(text),
        "scopes": " ".join(wanted),
        "comment": comment,
        "created_by": token.created_by,
        "created_at": now,
        "expires_at": token.expires_at,
    }
    connection.execute(insert(tables.tokens).values(row))
    return IssuedToken(token, text)


def revoke_token(connection: Connection, tenant: str, id_: str) -> None:
    gone = delete(tables.tokens).where(_tokens.id == id_, _tokens.tenant == tenant)
    if not connection.execute(gone).rowcount:
        raise UnknownName(f"there is no token '{id_[:60]}'")


def list_tokens(connection: Connection, tenant: str) -> list[Token]:
    query = select(tables.tokens).where(_tokens.tenant == tenant).order_by(_tokens.created_at)
    return [
        Token(
            row["id"],
            row["tenant"],
            scopes_in(row["scopes"]),
            row["comment"],
            row["created_by"],
            row["created_at"],
            row["expires_at"],
            row["last_used_at"],
        )
        for row in connection.execute(query).mappings()
    ]


def principal_of_token(
    connection: Connection, text: str, now: datetime
) -> tuple[Principal, bool] | None:
    """Who has this token, and whether its use has to be noted; None if nobody has it."""
    query = select(
        _tokens.tenant, _tokens.hash, _tokens.scopes, _tokens.expires_at, _tokens.last_used_at
    )
    id_ = id_in(text, _TOKEN)
    row = connection.execute(query.where(_tokens.id == id_)).one_or_none()
    if not is_proved(text, row and row.hash) or row is None:
        return None
    if row.expires_at is not None and row.expires_at <= now:
        return None
    principal = Principal(row.tenant, f"token {id_}", frozenset(scopes_in(row.scopes)))
    last = row.last_used_at
    return principal, last is None or now - last >= USE_NOTED_EVERY


def note_use(connection: Connection, text: str, now: datetime) -> None:
    id_ = id_in(text, _TOKEN)
    connection.execute(update(tables.tokens).where(_tokens.id == id_).values(last_used_at=now))
