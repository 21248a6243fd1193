"""Reading the catalog page by page. A page begins after the last key of the one before, so that
the last page costs what the first does, and what is added meanwhile moves nothing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, func, select

from headgate.catalog import tables
from headgate.catalog.kinds import DefinitionKind
from headgate.language.statements import OutputKind
from headgate.model.errors import CatalogError

PAGE_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Definition:
    """A registered name; `definition` is the statement's text."""

    name: str
    number: int
    kind: DefinitionKind
    definition: str
    depth: int
    branches: int
    created_at: datetime
    version: int


@dataclass(frozen=True, slots=True)
class Subscription:
    id: int
    feed: str
    definition: str
    output_kind: OutputKind
    target: str
    stylesheet: str | None
    period_s: int | None
    site: str | None
    created_at: datetime
    expires_at: datetime
    version: int


@dataclass(frozen=True, slots=True)
class Advertisement:
    id: int
    source: str
    definition: str
    created_at: datetime
    version: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    hash: str
    catalog_version: int
    path: str
    created_at: datetime


def definitions_page(
    connection: Connection, kinds: Collection[DefinitionKind] | None, *, after: str, limit: int
) -> list[Definition]:
    columns = tables.definitions.c
    query = select(tables.definitions).where(columns.name > after, *_of_kinds(kinds))
    rows = connection.execute(_page(query.order_by(columns.name), limit)).mappings()
    return [Definition(**{**row, "kind": DefinitionKind(row["kind"])}) for row in rows]


def count_definitions(connection: Connection, kinds: Collection[DefinitionKind] | None) -> int:
    query = select(func.count()).select_from(tables.definitions).where(*_of_kinds(kinds))
    return connection.scalar(query) or 0


def subscriptions_page(
    connection: Connection, *, feed: str | None, after_id: int, limit: int, now: datetime
) -> list[Subscription]:
    columns = tables.subscriptions.c
    query = select_subscriptions(columns.id > after_id, *_living(feed, now)).order_by(columns.id)
    rows = connection.execute(_page(query, limit)).mappings()
    return [subscription_of(row) for row in rows]


def select_subscriptions(*conditions: ColumnElement[bool]) -> Select[tuple[object, ...]]:
    """All of a subscription but what proves its ticket."""
    columns = tables.subscriptions.c
    return select(*(each for each in columns if each is not columns.ticket_hash)).where(*conditions)


def subscription_of(row: RowMapping) -> Subscription:
    return Subscription(**{**row, "output_kind": OutputKind(row["output_kind"])})


def count_subscriptions(connection: Connection, *, feed: str | None, now: datetime) -> int:
    query = select(func.count()).select_from(tables.subscriptions).where(*_living(feed, now))
    return connection.scalar(query) or 0


def advertisements_page(
    connection: Connection, *, source: str | None, after_id: int, limit: int
) -> list[Advertisement]:
    columns = tables.advertisements.c
    query = select(tables.advertisements).where(columns.id > after_id).order_by(columns.id)
    if source is not None:
        query = query.where(columns.source == source)
    return [Advertisement(**row) for row in connection.execute(_page(query, limit)).mappings()]


def snapshots_page(
    connection: Connection, *, before_version: int | None, limit: int
) -> list[Snapshot]:
    """The newest first."""
    columns = tables.snapshots.c
    query = select(tables.snapshots).order_by(columns.catalog_version.desc(), columns.hash)
    if before_version is not None:
        query = query.where(columns.catalog_version < before_version)
    return [Snapshot(**row) for row in connection.execute(_page(query, limit)).mappings()]


def _page(query: Select[tuple[object, ...]], limit: int) -> Select[tuple[object, ...]]:
    if not 1 <= limit <= PAGE_MAX:
        raise CatalogError(f"a page has 1 to {PAGE_MAX:,} entries, not {limit:,}")
    return query.limit(limit)


def _of_kinds(kinds: Collection[DefinitionKind] | None) -> list[ColumnElement[bool]]:
    return [] if kinds is None else [tables.definitions.c.kind.in_([kind.value for kind in kinds])]


def _living(feed: str | None, now: datetime) -> list[ColumnElement[bool]]:
    columns = tables.subscriptions.c
    living = [columns.expires_at > now]
    return living if feed is None else [*living, columns.feed == feed]
