"""What is behind a definition: the feeds that are built on it, their subscriptions and tenants.

    News ◄── Rock ◄── RockConcerts ◄── 1,204 subscriptions
         ◄── Jazz

`uses` has an edge for each direct use; the closure is found level by level, which at most DEPTH_MAX
feeds deep is at most so many queries, and in memory a name for each feed.

What other tenants have is counted and not named, as where something cannot be dropped
(register.py), and counted only for the owner of the definition: to others it is nobody's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from headgate.catalog import tables
from headgate.catalog.definitions import DefinitionKind
from headgate.catalog.lookups import chunks
from headgate.catalog.tenants import TenantView, owner_of

_uses, _subscriptions = tables.uses.c, tables.subscriptions.c
_definitions = tables.definitions.c


@dataclass(frozen=True, slots=True)
class Dependents:
    """What is behind a definition, as a tenant may know it."""

    name: str
    feeds: tuple[str, ...]
    """Of the tenant: all that read it, directly or not, in order of name."""
    other_feeds: int
    """Of other tenants."""
    subscriptions: int
    """Active ones of the tenant: to it, or to something that reads it."""
    other_subscriptions: int
    tenants: tuple[str, ...]
    """Those that have some of these feeds or subscriptions; a tenant sees none but itself."""
    other_tenants: int


def find_dependents(
    connection: Connection, name: str, view: TenantView, *, now: datetime
) -> Dependents:
    kept = view.kept(name)
    readers = _closure(connection, kept)
    readers.discard(kept)
    subscriptions = _count_subscriptions(connection, {kept, *readers}, now)
    if not view.owns(kept):
        readers = {each for each in readers if view.owns(each)}
        subscriptions = {t: count for t, count in subscriptions.items() if t == view.tenant}
    own = sorted(view.shown(each) for each in readers if view.owns(each))
    tenants = {owner_of(each) for each in readers} | subscriptions.keys()
    seen = tenants if view.tenant is None else tenants & {view.tenant}
    own_subscriptions = sum(subscriptions[each] for each in seen if each in subscriptions)
    return Dependents(
        name=name,
        feeds=tuple(own),
        other_feeds=len(readers) - len(own),
        subscriptions=own_subscriptions,
        other_subscriptions=sum(subscriptions.values()) - own_subscriptions,
        tenants=tuple(sorted(seen)),
        other_tenants=len(tenants - seen),
    )


def _closure(connection: Connection, kept: str) -> set[str]:
    """Everything that reads the definition, and the definition. An advertisement is no reader, and
    operators are read by feeds that call them."""
    found, level = {kept}, [kept]
    while level:
        users: set[str] = set()
        for chunk in chunks(level):
            query = select(_uses.user_name).where(_uses.used_name.in_(chunk))
            users |= set(connection.scalars(query))
        level = sorted(users - found)
        found |= users
    return found


def _count_subscriptions(connection: Connection, kept: set[str], now: datetime) -> dict[str, int]:
    """Active subscriptions to these definitions, by tenant."""
    counts: dict[str, int] = {}
    for chunk in chunks(sorted(kept)):
        query = (
            select(_subscriptions.tenant, func.count())
            .where(_subscriptions.feed.in_(chunk), _subscriptions.expires_at > now)
            .group_by(_subscriptions.tenant)
        )
        for tenant, count in connection.execute(query):
            counts[tenant] = counts.get(tenant, 0) + count
    return counts


@dataclass(frozen=True, slots=True)
class Candidate:
    """A feed that reads some definition, without being parsed."""

    name: str
    text: str
    """Its statement, with the names that are kept."""


def feeds_over(connection: Connection, names: set[str], view: TenantView) -> list[Candidate]:
    """The feeds that the tenant may use and that read one of these definitions, directly or not,
    in order of name."""
    readers: set[str] = set()
    for name in names:
        readers |= _closure(connection, view.kept(name))
    found: list[Candidate] = []
    for chunk in chunks(sorted(readers)):
        query = select(_definitions.name, _definitions.definition).where(
            _definitions.name.in_(chunk),
            _definitions.kind == DefinitionKind.FEED.value,
            *view.usable(),
        )
        found += [Candidate(view.shown(name), text) for name, text in connection.execute(query)]
    return sorted(found, key=lambda each: each.name)
