"""Who is subscribed: what the pipeline asks for each batch, many at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import TypeVar

from sqlalchemy import Connection, bindparam, select, text

from headgate.catalog import tables
from headgate.catalog.listing import Subscription, select_subscriptions, subscription_of

_ASKED_MAX = 500
_columns = tables.subscriptions.c
T = TypeVar("T")


def subscribers(
    connection: Connection, feeds: Iterable[str], now: datetime
) -> dict[str, list[tuple[int, int]]]:
    """For each of these feeds that has living subscriptions, their ids and versions."""
    found: dict[str, list[tuple[int, int]]] = {}
    for chunk in _chunks(feeds):
        query = select(_columns.feed, _columns.id, _columns.version).where(
            _columns.feed.in_(chunk), _columns.expires_at > now
        )
        for feed, id_, version in connection.execute(query.order_by(_columns.id)):
            found.setdefault(feed, []).append((id_, version))
    return found


def subscriptions_of_ids(
    connection: Connection, ids: Collection[int], now: datetime
) -> dict[int, Subscription]:
    """The living ones among these."""
    found: dict[int, Subscription] = {}
    for chunk in _chunks(ids):
        query = select_subscriptions(_columns.id.in_(chunk), _columns.expires_at > now)
        for row in connection.execute(query).mappings():
            found[row["id"]] = subscription_of(row)
    return found


def subscribed(connection: Connection, now: datetime) -> list[str]:
    """The names that anybody is subscribed to."""
    query = (
        select(tables.subscriptions.c.feed)
        .where(tables.subscriptions.c.expires_at > now)
        .distinct()
    )
    return [str(name) for (name,) in connection.execute(query)]


def demand(connection: Connection, now: datetime) -> dict[str, int]:
    """For each source how many living subscriptions are served from it, through whatever feeds."""
    query = text(
        "WITH RECURSIVE reads (feed, source) AS ("
        "SELECT user_name, used_name FROM uses UNION "
        "SELECT reads.feed, uses.used_name FROM reads JOIN uses ON uses.user_name = reads.source), "
        "asked (feed, subscribers) AS ("
        "SELECT feed, count(*) FROM subscriptions WHERE expires_at > :now GROUP BY feed) "
        "SELECT source, sum(subscribers) FROM ("
        "SELECT reads.source, asked.subscribers FROM asked JOIN reads ON reads.feed = asked.feed "
        "UNION ALL SELECT feed, subscribers FROM asked) AS served GROUP BY source"
    ).bindparams(bindparam("now", now, type_=tables.UtcTime))
    return {source: int(subscribers) for source, subscribers in connection.execute(query)}


def _chunks(wanted: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(wanted)
    while chunk := list(islice(rest, _ASKED_MAX)):
        yield chunk
