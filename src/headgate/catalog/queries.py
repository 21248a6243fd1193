"""Read the catalog: pages of definitions, subscriptions, advertisements and snapshots.

A page begins after the last key of the page before. So the last page costs as much as the first,
and rows that are added meanwhile do not shift it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    case,
    func,
    or_,
    select,
)

from headgate.catalog import tables
from headgate.catalog.definitions import DefinitionKind
from headgate.catalog.tenants import EVERYTHING, LOCAL, Right, TenantView
from headgate.language.statements import OutputKind
from headgate.model.errors import CatalogError
from headgate.model.receiver_secrets import CONFIRM_WITHIN

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
    cpu_us: float = 0.0
    """What it adds to the CPU time of an item (language/costs.py)."""


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
    confirmed_at: datetime | None
    """Since when items are delivered; None while the receiver has not confirmed it."""
    paused_at: datetime | None = None
    """Since when nothing is sent; None if it is not paused."""


@dataclass(frozen=True, slots=True)
class Advertisement:
    id: int
    source: str
    definition: str
    created_at: datetime
    version: int


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    hash: str
    catalog_version: int
    path: str
    created_at: datetime


def definitions_page(
    connection: Connection,
    kinds: Collection[DefinitionKind] | None,
    *,
    after: str,
    limit: int,
    contains: str = "",
    view: TenantView = EVERYTHING,
) -> list[Definition]:
    """By the name that is kept; `after` is one that the tenant uses."""
    columns = tables.definitions.c
    after = view.kept(after) if after else ""
    query = _select_definitions(view).where(
        columns.name > after, *_of_kinds(kinds), *_with_name(contains, view)
    )
    rows = connection.execute(page_of(query.order_by(columns.name), limit)).mappings()
    return [_definition(row, view) for row in rows]


def definition_named(connection: Connection, name: str, view: TenantView) -> Definition | None:
    columns = tables.definitions.c
    query = _select_definitions(view).where(columns.name == view.kept(name))
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else _definition(row, view)


def own_definitions_with(
    connection: Connection, kind: DefinitionKind, text: str, view: TenantView
) -> list[Definition]:
    """Those of the tenant's definitions of a kind whose text has this in it. The database looks at
    all of them, which is much faster than to parse them."""
    columns = tables.definitions.c
    query = _select_definitions(view).where(
        columns.kind == kind.value,
        columns.tenant == (view.tenant or LOCAL),
        columns.definition.contains(text, autoescape=True),
    )
    rows = connection.execute(page_of(query.order_by(columns.name), PAGE_MAX)).mappings()
    return [_definition(row, view) for row in rows]


def own_names(
    connection: Connection, kinds: Collection[DefinitionKind], view: TenantView
) -> dict[str, DefinitionKind]:
    """The names of the tenant's own definitions of these kinds, without their texts, which take
    much longer to read."""
    columns = tables.definitions.c
    query = select(columns.name, columns.kind).where(
        *_of_kinds(kinds), columns.tenant == (view.tenant or LOCAL)
    )
    rows = connection.execute(query.order_by(columns.name))
    return {view.shown(name): DefinitionKind(kind) for name, kind in rows}


def _select_definitions(view: TenantView) -> Select[tuple[object, ...]]:
    right = view.granted_right().label("right")
    return select(tables.definitions, right).where(*view.visible())


def _definition(row: RowMapping, view: TenantView) -> Definition:
    kept = row["name"]
    is_open = view.owns(kept) or row["right"] == Right.USE
    text = view.shown_text(row["definition"]) if is_open else ""
    shown = {"name": view.shown(kept), "kind": DefinitionKind(row["kind"]), "definition": text}
    known = {name: row[name] for name in row if name not in ("tenant", "right")}
    return Definition(**{**known, **shown})


def count_definitions(
    connection: Connection,
    kinds: Collection[DefinitionKind] | None,
    view: TenantView = EVERYTHING,
    *,
    contains: str = "",
) -> int:
    query = select(func.count()).select_from(tables.definitions)
    conditions = [*_of_kinds(kinds), *_with_name(contains, view), *view.visible()]
    return connection.scalar(query.where(*conditions)) or 0


def subscriptions_page(
    connection: Connection,
    *,
    feed: str | None,
    after_id: int,
    limit: int,
    now: datetime,
    view: TenantView = EVERYTHING,
) -> list[Subscription]:
    columns = tables.subscriptions.c
    query = select_subscriptions(columns.id > after_id, *_active(feed, now, view))
    rows = connection.execute(page_of(query.order_by(columns.id), limit)).mappings()
    return [subscription_of(row, view) for row in rows]


def select_subscriptions(*conditions: ColumnElement[bool]) -> Select[tuple[object, ...]]:
    """All columns of subscriptions that readers see: nothing about tickets and secrets."""
    columns = tables.subscriptions.c
    hidden = {"ticket_hash", "secret_number", "rotated_at", "tenant"}
    return select(*(each for each in columns if each.name not in hidden)).where(*conditions)


def subscription_of(row: RowMapping, view: TenantView = EVERYTHING) -> Subscription:
    shown = {
        "feed": view.shown(row["feed"]),
        "definition": view.shown_text(row["definition"]),
        "output_kind": OutputKind(row["output_kind"]),
    }
    return Subscription(**{**row, **shown})


def count_subscriptions(
    connection: Connection, *, feed: str | None, now: datetime, view: TenantView = EVERYTHING
) -> int:
    query = select(func.count()).select_from(tables.subscriptions)
    return connection.scalar(query.where(*_active(feed, now, view))) or 0


def count_pending(connection: Connection, now: datetime) -> int:
    columns = tables.subscriptions.c
    query = select(func.count()).select_from(tables.subscriptions)
    return connection.scalar(query.where(columns.confirmed_at.is_(None), *active(now))) or 0


def advertisements_page(
    connection: Connection,
    *,
    source: str | None,
    after_id: int,
    limit: int,
    view: TenantView = EVERYTHING,
) -> list[Advertisement]:
    columns = tables.advertisements.c
    query = select(tables.advertisements).where(columns.id > after_id).order_by(columns.id)
    if source is not None:
        query = query.where(columns.source == view.kept(source))
    if view.tenant is not None:
        query = query.join(tables.definitions).where(*view.visible())
    rows = connection.execute(page_of(query, limit)).mappings()
    return [Advertisement(**{**row, "source": view.shown(row["source"])}) for row in rows]


def snapshots_page(
    connection: Connection, *, before_version: int | None, limit: int
) -> list[SnapshotRecord]:
    """The newest first."""
    columns = tables.snapshots.c
    query = select(tables.snapshots).order_by(columns.catalog_version.desc(), columns.hash)
    if before_version is not None:
        query = query.where(columns.catalog_version < before_version)
    return [SnapshotRecord(**row) for row in connection.execute(page_of(query, limit)).mappings()]


def page_of(query: Select[tuple[object, ...]], limit: int) -> Select[tuple[object, ...]]:
    if not 1 <= limit <= PAGE_MAX:
        raise CatalogError(f"a page has 1 to {PAGE_MAX:,} entries, not {limit:,}")
    return query.limit(limit)


def _of_kinds(kinds: Collection[DefinitionKind] | None) -> list[ColumnElement[bool]]:
    return [] if kinds is None else [tables.definitions.c.kind.in_([kind.value for kind in kinds])]


def _with_name(text: str, view: TenantView) -> list[ColumnElement[bool]]:
    """Names that have this in them, in any case, as the tenant calls them: without its prefix."""
    if not text:
        return []
    columns = tables.definitions.c
    name: ColumnElement[str] = columns.name
    if view.tenant not in (None, LOCAL):
        rest = func.substr(columns.name, len(str(view.tenant)) + 2)
        name = case((columns.tenant == view.tenant, rest), else_=columns.name)
    return [func.lower(name).contains(text.lower(), autoescape=True)]


def _active(
    feed: str | None, now: datetime, view: TenantView = EVERYTHING
) -> list[ColumnElement[bool]]:
    columns = tables.subscriptions.c
    conditions = active(now)
    if feed is not None:
        conditions.append(columns.feed == view.kept(feed))
    if view.tenant is not None:
        conditions.append(columns.tenant == view.tenant)
    return conditions


def is_active(
    created_at: datetime, expires_at: datetime, confirmed_at: datetime | None, now: datetime
) -> bool:
    """`active` of a subscription that was read."""
    return expires_at > now and (confirmed_at is not None or created_at > now - CONFIRM_WITHIN)


def active(now: datetime) -> list[ColumnElement[bool]]:
    """Not expired, and confirmed or still waiting for it."""
    columns = tables.subscriptions.c
    waits = columns.created_at > now - CONFIRM_WITHIN
    return [columns.expires_at > now, or_(columns.confirmed_at.is_not(None), waits)]
