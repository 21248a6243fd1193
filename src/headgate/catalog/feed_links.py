"""Links: addresses under which one feed or source is read without an account.

    https://news.example/f/hl_<id>_<secret>.atom

Who has a link reads the items of one definition, and can do nothing else. Only the hash of its
token is kept, as of API tokens (principals.py). A link ends when it is revoked. It goes with its
definition, and with its tenant. While the tenant does not see the definition, because a grant was
taken back, the link is as good as one that does not exist.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from headgate.catalog import tables
from headgate.catalog.audit import RecordedCalls
from headgate.catalog.database import Database
from headgate.catalog.definitions import DefinitionKind
from headgate.catalog.principals import (
    USE_NOTED_EVERY,
    Scope,
    checked_comment,
    hash_of,
    id_in,
    is_proved,
    new_secret,
)
from headgate.catalog.queries import page_of
from headgate.catalog.tenants import TenantView, seen_by
from headgate.catalog.transaction import Clock, Transaction
from headgate.model.errors import QuotaExceeded, UnknownName, did_you_mean

LINKS_MAX = 10_000
"""Of one tenant."""
_PREFIX = "hl"
_links, _definitions = tables.links.c, tables.definitions.c
_LOOK_UP = (
    select(
        _links.id,
        _links.hash,
        _links.tenant,
        _links.definition,
        _links.last_used_at,
        _definitions.number,
        _definitions.kind,
        _definitions.created_at,
        _definitions.version,
    )
    .join(tables.definitions, _definitions.name == _links.definition)
    .where(_links.id == bindparam("id"), seen_by(_links.tenant))
)
"""Made once: feed readers ask often, and to make it takes longer than to execute it."""


@dataclass(frozen=True, slots=True)
class FeedLink:
    """A link as it is listed: without its token."""

    id: str
    feed: str
    """As its tenant calls it."""
    comment: str
    created_by: str
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class CreatedLink:
    link: FeedLink
    token: str = field(repr=False)
    """Shown once."""


@dataclass(frozen=True, slots=True)
class LinkedFeed:
    """What a link is for."""

    link_id: str
    tenant: str
    kept: str
    """The name of the definition as it is kept."""
    name: str
    """As the tenant calls it."""
    number: int
    kind: DefinitionKind
    created_at: datetime
    version: int
    is_use_due: bool
    """Whether its last use was not noted for some time (`Catalog.note_link_uses`)."""

    @property
    def view(self) -> TenantView:
        return TenantView(self.tenant)


class LinkCalls(RecordedCalls):
    """The part of a catalog that is about links."""

    _database: Database
    _clock: Clock

    def create_link(self, feed: str, *, comment: str = "") -> CreatedLink:
        """A link for a feed or source that the tenant sees."""
        self.principal.require(Scope.SUBSCRIBE)
        checked_comment(comment)
        with self._database.writing() as connection:
            # Who has the database sees everything, but a link sees what its tenant does.
            view = TenantView(self._tenant)
            transaction = Transaction(connection, clock=self._clock, view=view)
            _check_room(connection, self._tenant)
            kept = _readable(transaction, feed)
            id_, token = new_secret(_PREFIX)
            actor, now = self.principal.actor, transaction.now
            link = FeedLink(id_, view.shown(kept), comment, actor, now, None)
            row = {
                "id": id_,
                "hash": hash_of(token),
                "tenant": self._tenant,
                "definition": kept,
                "comment": comment,
                "created_by": actor,
                "created_at": now,
            }
            connection.execute(insert(tables.links).values(row))
            self._record(connection, "created link", id_, now, link.feed)
            return CreatedLink(link, token)

    def revoke_link(self, id_: str) -> None:
        self.principal.require(Scope.SUBSCRIBE)
        with self._database.writing() as connection:
            now = Transaction(connection, clock=self._clock).now
            gone = delete(tables.links).where(_links.id == id_, _links.tenant == self._tenant)
            if not connection.execute(gone).rowcount:
                raise UnknownName(f"there is no link '{id_[:60]}'")
            self._record(connection, "revoked link", id_, now)

    def list_links(self, *, after: str = "", limit: int = 100) -> list[FeedLink]:
        """By id. The next page is after the last id of this one."""
        self.principal.require(Scope.READ)
        query = (
            select(
                _links.id,
                _links.definition.label("feed"),
                _links.comment,
                _links.created_by,
                _links.created_at,
                _links.last_used_at,
            )
            .where(_links.tenant == self._tenant, _links.id > after)
            .order_by(_links.id)
        )
        view = TenantView(self._tenant)
        with self._database.reading() as connection:
            rows = connection.execute(page_of(query, limit)).mappings()
            return [FeedLink(**{**row, "feed": view.shown(row["feed"])}) for row in rows]

    def count_links(self) -> int:
        self.principal.require(Scope.READ)
        with self._database.reading() as connection:
            return _count(connection, self._tenant)


def linked_feed(connection: Connection, token: str, now: datetime) -> LinkedFeed | None:
    """What this token lets read; None if it is for nothing."""
    row = connection.execute(_LOOK_UP, {"id": id_in(token, _PREFIX)}).one_or_none()
    if not is_proved(token, row and row.hash) or row is None:
        return None
    last = row.last_used_at
    return LinkedFeed(
        row.id,
        row.tenant,
        row.definition,
        TenantView(row.tenant).shown(row.definition),
        row.number,
        DefinitionKind(row.kind),
        row.created_at,
        row.version,
        last is None or now - last >= USE_NOTED_EVERY,
    )


def note_link_uses(connection: Connection, ids: Collection[str], now: datetime) -> None:
    noted = update(tables.links).where(_links.id == bindparam("used")).values(last_used_at=now)
    connection.execute(noted, [{"used": each} for each in ids])


def _readable(transaction: Transaction, name: str) -> str:
    """The name by which a feed or source is kept, if the tenant may read its items."""
    definitions, kept = transaction.definitions, transaction.view.kept(name)
    entry = definitions.entry(transaction.view.shown(kept))
    if entry is None or entry.right is None:
        hint = did_you_mean(name, definitions)
        raise UnknownName(f"there is no source or feed '{name}'" + (f"; {hint}" if hint else ""))
    if entry.kind is DefinitionKind.OPERATOR:
        raise UnknownName(f"'{name}' is an operator, not a source or feed")
    return kept


def _check_room(connection: Connection, tenant: str) -> None:
    if _count(connection, tenant) >= LINKS_MAX:
        raise QuotaExceeded(f"tenant '{tenant}' has {LINKS_MAX:,} links; revoke some first")


def _count(connection: Connection, tenant: str) -> int:
    query = select(func.count()).select_from(tables.links).where(_links.tenant == tenant)
    return connection.scalar(query) or 0
