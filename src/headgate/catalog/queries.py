"""Read the catalog: pages of definitions, subscriptions, advertisements and snapshots, and lookups.

A page begins after the last key of the page before. So the last page costs as much as the first,
and rows that are added meanwhile do not shift it. Lookups take many keys at a time; the pipeline
calls them for each batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import NamedTuple, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    bindparam,
    func,
    or_,
    select,
    text,
)

from headgate.catalog import tables
from headgate.catalog.definitions import SOURCE_KINDS, DefinitionKind
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
    query = select_subscriptions(columns.id > after_id, *_active(feed, now)).order_by(columns.id)
    rows = connection.execute(_page(query, limit)).mappings()
    return [subscription_of(row) for row in rows]


def select_subscriptions(*conditions: ColumnElement[bool]) -> Select[tuple[object, ...]]:
    """All columns of subscriptions that readers see: nothing about tickets and secrets."""
    columns = tables.subscriptions.c
    hidden = {"ticket_hash", "secret_number", "rotated_at"}
    return select(*(each for each in columns if each.name not in hidden)).where(*conditions)


def subscription_of(row: RowMapping) -> Subscription:
    return Subscription(**{**row, "output_kind": OutputKind(row["output_kind"])})


def count_subscriptions(connection: Connection, *, feed: str | None, now: datetime) -> int:
    query = select(func.count()).select_from(tables.subscriptions).where(*_active(feed, now))
    return connection.scalar(query) or 0


def count_pending(connection: Connection, now: datetime) -> int:
    columns = tables.subscriptions.c
    query = select(func.count()).select_from(tables.subscriptions)
    return connection.scalar(query.where(columns.confirmed_at.is_(None), *active(now))) or 0


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
) -> list[SnapshotRecord]:
    """The newest first."""
    columns = tables.snapshots.c
    query = select(tables.snapshots).order_by(columns.catalog_version.desc(), columns.hash)
    if before_version is not None:
        query = query.where(columns.catalog_version < before_version)
    return [SnapshotRecord(**row) for row in connection.execute(_page(query, limit)).mappings()]


def _page(query: Select[tuple[object, ...]], limit: int) -> Select[tuple[object, ...]]:
    if not 1 <= limit <= PAGE_MAX:
        raise CatalogError(f"a page has 1 to {PAGE_MAX:,} entries, not {limit:,}")
    return query.limit(limit)


def _of_kinds(kinds: Collection[DefinitionKind] | None) -> list[ColumnElement[bool]]:
    return [] if kinds is None else [tables.definitions.c.kind.in_([kind.value for kind in kinds])]


def _active(feed: str | None, now: datetime) -> list[ColumnElement[bool]]:
    return active(now) + ([] if feed is None else [tables.subscriptions.c.feed == feed])


def active(now: datetime) -> list[ColumnElement[bool]]:
    """Not expired, and confirmed or still waiting for it."""
    columns = tables.subscriptions.c
    waits = columns.created_at > now - CONFIRM_WITHIN
    return [columns.expires_at > now, or_(columns.confirmed_at.is_not(None), waits)]


# --- lookups, many keys at a time ----------------------------------------------------------------

_CHUNK_MAX = 500
T = TypeVar("T")


def names_of_numbers(connection: Connection, numbers: Iterable[int]) -> dict[int, str]:
    """The names of the definitions with these numbers that are still registered."""
    columns = tables.definitions.c
    names: dict[int, str] = {}
    for chunk in _chunks(sorted(set(numbers))):
        query = select(columns.number, columns.name).where(columns.number.in_(chunk))
        names |= {row.number: row.name for row in connection.execute(query)}
    return names


def created_at(connection: Connection, name: str) -> datetime | None:
    """When the name was registered; None if it is not."""
    columns = tables.definitions.c
    return connection.scalar(select(columns.created_at).where(columns.name == name))


def subscribers(
    connection: Connection, feeds: Iterable[str], now: datetime
) -> dict[str, list[tuple[int, int]]]:
    """For each of these feeds that has active subscriptions, their ids and versions."""
    columns = tables.subscriptions.c
    by_feed: dict[str, list[tuple[int, int]]] = {}
    for chunk in _chunks(feeds):
        query = select(columns.feed, columns.id, columns.version).where(
            columns.feed.in_(chunk), *active(now)
        )
        for feed, id_, version in connection.execute(query.order_by(columns.id)):
            by_feed.setdefault(feed, []).append((id_, version))
    return by_feed


def subscriptions_of_ids(
    connection: Connection, ids: Collection[int], now: datetime
) -> dict[int, Subscription]:
    """The active subscriptions among these."""
    columns = tables.subscriptions.c
    by_id: dict[int, Subscription] = {}
    for chunk in _chunks(ids):
        query = select_subscriptions(columns.id.in_(chunk), *active(now))
        for row in connection.execute(query).mappings():
            by_id[row["id"]] = subscription_of(row)
    return by_id


class SubscriptionState(NamedTuple):
    """What may change of a subscription."""

    expires_at: datetime
    confirmed_at: datetime | None
    secret_number: int


def subscription_states(
    connection: Connection, ids: Collection[int]
) -> dict[int, SubscriptionState]:
    """The states of these subscriptions, expired ones too; removed ones are missing."""
    columns = tables.subscriptions.c
    states: dict[int, SubscriptionState] = {}
    for chunk in _chunks(ids):
        query = select(
            columns.id, columns.expires_at, columns.confirmed_at, columns.secret_number
        ).where(columns.id.in_(chunk))
        states |= {id_: SubscriptionState(*rest) for id_, *rest in connection.execute(query)}
    return states


class SubscriptionOutput(NamedTuple):
    """Where a subscription is delivered to, and what its secrets are made of."""

    version: int
    feed: str
    output_kind: str
    target: str
    stylesheet: str | None
    period_s: int | None
    salt: str
    secret_number: int
    rotated_at: datetime | None


def outputs_of_ids(connection: Connection, ids: Collection[int]) -> dict[int, SubscriptionOutput]:
    """The outputs of these subscriptions, expired ones too; removed ones are missing."""
    columns = tables.subscriptions.c
    by_id: dict[int, SubscriptionOutput] = {}
    for chunk in _chunks(ids):
        query = select(
            *(columns.id, columns.version, columns.feed, columns.output_kind, columns.target),
            *(columns.stylesheet, columns.period_s, columns.ticket_hash),
            *(columns.secret_number, columns.rotated_at),
        ).where(columns.id.in_(chunk))
        by_id |= {id_: SubscriptionOutput(*rest) for id_, *rest in connection.execute(query)}
    return by_id


class SubscriptionEntry(NamedTuple):
    """What delivery keeps of a subscription in memory."""

    id: int
    version: int
    feed: str
    feed_number: int
    feed_kind: str
    output_kind: str
    target: str
    period_s: int | None
    created_at: datetime
    expires_at: datetime
    confirmed_at: datetime | None

    @property
    def is_source(self) -> bool:
        """Whether it is to a source or materialised feed; then it gets the items of that."""
        return self.feed_kind in _SOURCES


_SOURCES = frozenset(kind.value for kind in SOURCE_KINDS)


def subscription_entries(
    connection: Connection, *, after_id: int, limit: int
) -> list[SubscriptionEntry]:
    """Subscriptions by id, expired ones too: what arrived before may still be delivered."""
    own, feeds = tables.subscriptions.c, tables.definitions.c
    query = (
        select(
            *(own.id, own.version, own.feed, feeds.number, feeds.kind, own.output_kind),
            *(own.target, own.period_s, own.created_at, own.expires_at, own.confirmed_at),
        )
        .join(tables.definitions, feeds.name == own.feed)
        .where(own.id > after_id)
        .order_by(own.id)
    )
    rows = connection.execute(_page(query, limit))
    return list(map(SubscriptionEntry._make, rows))


def subscribed(connection: Connection, now: datetime) -> list[str]:
    """The names of feeds and sources that have active subscriptions."""
    query = select(tables.subscriptions.c.feed).where(*active(now)).distinct()
    return [str(name) for (name,) in connection.execute(query)]


def demand(connection: Connection, now: datetime) -> dict[str, int]:
    """For each source how many active subscriptions read it, directly or through feeds."""
    query = text(
        "WITH RECURSIVE reads (feed, source) AS ("
        "SELECT user_name, used_name FROM uses UNION "
        "SELECT reads.feed, uses.used_name FROM reads JOIN uses ON uses.user_name = reads.source), "
        "counted (feed, subscribers) AS ("
        "SELECT feed, count(*) FROM subscriptions WHERE expires_at > :now "
        "AND (confirmed_at IS NOT NULL OR created_at > :waiting_since) GROUP BY feed) "
        "SELECT source, sum(subscribers) FROM ("
        "SELECT reads.source, counted.subscribers "
        "FROM counted JOIN reads ON reads.feed = counted.feed "
        "UNION ALL SELECT feed, subscribers FROM counted) AS served GROUP BY source"
    ).bindparams(
        bindparam("now", now, type_=tables.UtcTime),
        bindparam("waiting_since", now - CONFIRM_WITHIN, type_=tables.UtcTime),
    )
    return {source: int(subscribers) for source, subscribers in connection.execute(query)}


def _chunks(keys: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(keys)
    while chunk := list(islice(remaining, _CHUNK_MAX)):
        yield chunk
