"""Read the catalog by key, many keys at a time: the pipeline and delivery do so for each batch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection, bindparam, select, text

from headgate.catalog import tables
from headgate.catalog.definitions import SOURCE_KINDS
from headgate.catalog.queries import (
    Subscription,
    active,
    page_of,
    select_subscriptions,
    subscription_of,
)
from headgate.catalog.tenants import EVERYTHING, TenantView
from headgate.model.receiver_secrets import CONFIRM_WITHIN

_CHUNK_MAX = 500
T = TypeVar("T")


def names_of_numbers(
    connection: Connection, numbers: Iterable[int], view: TenantView = EVERYTHING
) -> dict[int, str]:
    """The names of the definitions with these numbers that are still registered, and seen."""
    columns = tables.definitions.c
    names: dict[int, str] = {}
    for chunk in chunks(sorted(set(numbers))):
        query = select(columns.number, columns.name).where(columns.number.in_(chunk))
        rows = connection.execute(query.where(*view.visible()))
        names |= {row.number: view.shown(row.name) for row in rows}
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
    for chunk in chunks(feeds):
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
    for chunk in chunks(ids):
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
    for chunk in chunks(ids):
        query = select(
            columns.id, columns.expires_at, columns.confirmed_at, columns.secret_number
        ).where(columns.id.in_(chunk))
        states |= {id_: SubscriptionState(*rest) for id_, *rest in connection.execute(query)}
    return states


def paused_ids(connection: Connection) -> set[int]:
    """The subscriptions that are paused."""
    return set(connection.scalars(select(tables.subscriptions.c.id).where(tables.IS_PAUSED)))


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
    tenant: str


def outputs_of_ids(connection: Connection, ids: Collection[int]) -> dict[int, SubscriptionOutput]:
    """The outputs of these subscriptions, expired ones too; removed ones are missing. Feeds are
    called as the tenants of the subscriptions call them."""
    columns = tables.subscriptions.c
    by_id: dict[int, SubscriptionOutput] = {}
    for chunk in chunks(ids):
        query = select(
            *(columns.id, columns.version, columns.feed, columns.output_kind, columns.target),
            *(columns.stylesheet, columns.period_s, columns.ticket_hash),
            *(columns.secret_number, columns.rotated_at, columns.tenant),
        ).where(columns.id.in_(chunk))
        for id_, *rest in connection.execute(query):
            output = SubscriptionOutput(*rest)
            by_id[id_] = output._replace(feed=TenantView(output.tenant).shown(output.feed))
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
    tenant: str
    paused_at: datetime | None = None

    @property
    def is_source(self) -> bool:
        """Whether it is to a source or materialised feed; then it gets the items of that."""
        return self.feed_kind in _SOURCES


_SOURCES = frozenset(kind.value for kind in SOURCE_KINDS)


def subscription_entries(
    connection: Connection, *, after_id: int, limit: int | None = None, tenant: str | None = None
) -> list[SubscriptionEntry]:
    """Subscriptions by id, expired ones too: what arrived before may still be delivered. All, or
    those of a tenant."""
    own, feeds = tables.subscriptions.c, tables.definitions.c
    query = (
        select(
            *(own.id, own.version, own.feed, feeds.number, feeds.kind, own.output_kind),
            *(own.target, own.period_s, own.created_at, own.expires_at, own.confirmed_at),
            *(own.tenant, own.paused_at),
        )
        .join(tables.definitions, feeds.name == own.feed)
        .where(own.id > after_id)
        .order_by(own.id)
    )
    if tenant is not None:
        query = query.where(own.tenant == tenant)
    rows = connection.execute(query if limit is None else page_of(query, limit))
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


def chunks(keys: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(keys)
    while chunk := list(islice(remaining, _CHUNK_MAX)):
        yield chunk
