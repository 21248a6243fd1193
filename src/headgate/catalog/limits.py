"""Limits on what is registered: suspended feeds, and quotas.

A *suspended* feed stays registered, and so do its subscriptions, but it is not evaluated: nothing
is matched for it, and nothing delivered, until it is resumed. A run suspends a feed that takes too
much (pipeline/feed_budget.py), with the reason; a user suspends and resumes by command. Feeds that
are built on it are not suspended: they have its conditions themselves, and pay for them.

A *quota* limits how much a tenant has of a resource.

    statements       registered sources, operators and feeds           refused when it is applied
    subscriptions    active ones                                       refused when it is applied
    cpu-us           what all feeds add to the CPU time of an item,    refused when it is applied
                     in µs (language/costs.py)
    cpu-percent      of the cores of a run, that all feeds take        the costliest is suspended
    stored-bytes     of the log                                        the oldest items are removed
    waiting          messages that receivers have refused and that     a receiver that refuses
                     are kept for another attempt                      another counts as down, and
                                                                       the rest waits in the log
    requests         to the service in a second                        answered by 429

A transaction that adds nothing is not refused: who is above a quota may still drop something.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, delete, func, insert, select

from headgate.catalog import tables
from headgate.catalog.definitions import DefinitionKind
from headgate.catalog.tenants import EVERYTHING, LOCAL, TenantView
from headgate.catalog.transaction import Transaction
from headgate.model.errors import CatalogError, InvalidValue, QuotaExceeded, UnknownName

REASON_LENGTH_MAX = 500
LIMIT_MAX = 2**62


class Resource(StrEnum):
    STATEMENTS = "statements"
    SUBSCRIPTIONS = "subscriptions"
    CPU_US = "cpu-us"
    CPU_PERCENT = "cpu-percent"
    STORED_BYTES = "stored-bytes"
    WAITING = "waiting"
    REQUESTS = "requests"


@dataclass(frozen=True, slots=True)
class Suspension:
    feed: str
    reason: str
    suspended_at: datetime


# --- suspended feeds ------------------------------------------------------------------------------

_suspensions = tables.suspensions.c
_FEEDS = (DefinitionKind.FEED, DefinitionKind.MATERIALIZED)


def suspend(transaction: Transaction, feed: str, reason: str) -> bool:
    """Whether the feed was not suspended before. The reason of the first suspension stays."""
    kept = _require_feed(transaction, feed)
    connection = transaction.connection
    if connection.scalar(select(_suspensions.feed).where(_suspensions.feed == kept)) is not None:
        return False
    row = {"feed": kept, "reason": reason[:REASON_LENGTH_MAX], "suspended_at": transaction.now}
    connection.execute(insert(tables.suspensions).values(row))
    transaction.finish(changed=True)
    return True


def resume(transaction: Transaction, feed: str) -> bool:
    """Whether the feed was suspended."""
    kept = _require_feed(transaction, feed)
    gone = delete(tables.suspensions).where(_suspensions.feed == kept)
    was_suspended = transaction.connection.execute(gone).rowcount > 0
    transaction.finish(changed=was_suspended)
    return was_suspended


def suspended_feeds(connection: Connection, view: TenantView = EVERYTHING) -> dict[str, Suspension]:
    query = select(_suspensions.feed, _suspensions.reason, _suspensions.suspended_at)
    if view.tenant is not None:
        query = query.join(tables.definitions).where(tables.definitions.c.tenant == view.tenant)
    rows = connection.execute(query.order_by(_suspensions.feed))
    shown = ((view.shown(feed), reason, at) for feed, reason, at in rows)
    return {feed: Suspension(feed, reason, at) for feed, reason, at in shown}


def _require_feed(transaction: Transaction, feed: str) -> str:
    """The name by which the feed is kept."""
    name = transaction.view.usual(feed)
    entry = transaction.definitions.entry(name)
    if entry is None or not entry.is_own:
        raise UnknownName(f"there is no feed named '{feed}'")
    if entry.kind not in _FEEDS:
        raise CatalogError(f"'{feed}' is {entry.kind.described}: only feeds can be suspended")
    return transaction.view.kept(name)


# --- quotas ---------------------------------------------------------------------------------------

_quotas = tables.quotas.c


def quotas_of(connection: Connection, tenant: str = LOCAL) -> dict[Resource, int]:
    """The limits that are set; what is not in it has none."""
    query = select(_quotas.resource, _quotas.limit).where(_quotas.owner == tenant)
    found = {Resource(resource): int(limit) for resource, limit in connection.execute(query)}
    return {resource: found[resource] for resource in Resource if resource in found}


def quotas_for(connection: Connection, resource: Resource) -> dict[str, int]:
    """The limit of each tenant that has one."""
    query = select(_quotas.owner, _quotas.limit).where(_quotas.resource == resource)
    return {tenant: int(limit) for tenant, limit in connection.execute(query)}


def set_quotas(
    connection: Connection, limits: Mapping[Resource, int | None], tenant: str = LOCAL
) -> None:
    """Set these limits, or remove those that are None."""
    for resource, limit in limits.items():
        if limit is not None and not 0 <= limit <= LIMIT_MAX:
            raise InvalidValue(f"a quota of {resource} is at least 0, not {limit}")
        connection.execute(
            delete(tables.quotas).where(_quotas.owner == tenant, _quotas.resource == resource)
        )
        if limit is not None:
            row = {"owner": tenant, "resource": resource.value, "limit": limit}
            connection.execute(insert(tables.quotas).values(row))


def usage_of(connection: Connection, now: datetime, tenant: str = LOCAL) -> dict[Resource, float]:
    """What is used of the resources that the catalog counts."""
    definitions, subscriptions = tables.definitions, tables.subscriptions
    statements, cpu_us = connection.execute(
        select(func.count(), func.coalesce(func.sum(definitions.c.cpu_us), 0.0))
        .select_from(definitions)
        .where(definitions.c.tenant == tenant)
    ).one()
    active = (
        select(func.count())
        .select_from(subscriptions)
        .where(subscriptions.c.expires_at > now, subscriptions.c.tenant == tenant)
    )
    return {
        Resource.STATEMENTS: statements,
        Resource.SUBSCRIPTIONS: int(connection.scalar(active) or 0),
        Resource.CPU_US: float(cpu_us),
    }


_ADDS = {
    Resource.STATEMENTS: tables.definitions,
    Resource.CPU_US: tables.definitions,
    Resource.SUBSCRIPTIONS: tables.subscriptions,
}


def check_quotas(transaction: Transaction) -> None:
    """Refuse the transaction if something that it adds is above its quota."""
    limits = quotas_of(transaction.connection, transaction.tenant)
    if not limits:
        return
    transaction.flush()
    usage = usage_of(transaction.connection, transaction.now, transaction.tenant)
    for resource, table in _ADDS.items():
        limit = limits.get(resource)
        if limit is not None and table in transaction.added and usage[resource] > limit:
            raise QuotaExceeded(
                f"the quota of {limit:,} {resource} is exceeded: with this there would be "
                f"{usage[resource]:,.6g}; drop something first, or have the quota raised"
            )
