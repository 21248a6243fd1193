"""Tenants: who owns definitions and subscriptions, under which names they see them, and grants.

A tenant's names are its own. The catalog keeps each definition under one name, which all of the
data path uses; a tenant sees its own without its prefix:

    kept as          the local tenant writes   acme writes    globex writes
    News             News                      local.News     local.News
    acme.Rock        acme.Rock                 Rock           acme.Rock

So a million feeds of a thousand tenants are still one program, and nothing behind the catalog knows
of tenants. The *local* tenant is that of the command line.

A tenant sees its own definitions, and those that were granted to it. Everything else is to it as if
it did not exist, with the same error. A *grant* is for one tenant, or for all ('*'):

    read   see the name and the items, subscribe
    use    also build feeds on it; then its definition can be seen, and what it is built on
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import ColumnElement, Connection, delete, func, insert, literal, or_, select

from headgate.catalog import tables
from headgate.language.names import TENANT, split_definition
from headgate.language.parse import parse
from headgate.language.rename import rename_definitions
from headgate.language.statements import Statement
from headgate.language.unparse import unparse
from headgate.model.errors import CatalogError, InUse, InvalidValue, NameTaken, UnknownName

LOCAL = "local"
EVERYBODY = "*"


class Right(StrEnum):
    """In ascending order of what they allow, and of their text."""

    READ = "read"
    USE = "use"


@dataclass(frozen=True, slots=True)
class TenantView:
    """What a tenant sees, and under which names; without a tenant: everything, as it is kept."""

    tenant: str | None = None

    @property
    def is_whole(self) -> bool:
        return self.tenant is None

    def kept(self, name: str) -> str:
        """The name by which the catalog keeps what the tenant calls so."""
        tenant, rest = split_definition(name)
        if tenant:
            return rest if tenant == LOCAL else name
        return f"{self.tenant}.{name}" if self._is_prefixed else name

    def shown(self, kept: str) -> str:
        """What the tenant calls the definition that is kept under this name."""
        if not self._is_prefixed:
            return kept
        tenant, rest = split_definition(kept)
        if tenant == self.tenant:
            return rest
        return kept if tenant else f"{LOCAL}.{kept}"

    def usual(self, name: str) -> str:
        """A name as `shown` gives it; a tenant may write its own with its prefix, too."""
        return self.shown(self.kept(name)) if "." in name else name

    def kept_statement(self, statement: Statement) -> Statement:
        """A statement with the names that `shown` gives."""
        return rename_definitions(statement, self.kept) if self._is_prefixed else statement

    def shown_statement(self, kept: Statement) -> Statement:
        return rename_definitions(kept, self.shown) if self._is_prefixed else kept

    def shown_text(self, kept: str) -> str:
        return unparse(self.shown_statement(parse(kept))) if self._is_prefixed else kept

    def owns(self, kept: str) -> bool:
        return self.tenant is None or owner_of(kept) == self.tenant

    @property
    def _is_prefixed(self) -> bool:
        return self.tenant not in (None, LOCAL)

    def visible(self) -> list[ColumnElement[bool]]:
        """The condition on definitions that the tenant sees."""
        return [] if self.tenant is None else [seen_by(self.tenant)]

    def usable(self) -> list[ColumnElement[bool]]:
        """The condition on definitions on which the tenant may build feeds."""
        if self.tenant is None:
            return []
        own = tables.definitions.c.tenant == self.tenant
        return [or_(own, right_granted_to(self.tenant) == Right.USE.value)]

    def granted_right(self) -> ColumnElement[str | None]:
        """The highest right that was granted on a definition, as a column; null: none. Who sees
        everything may use everything."""
        return literal(Right.USE.value) if self.tenant is None else right_granted_to(self.tenant)


EVERYTHING = TenantView()


def seen_by(tenant: str | ColumnElement[str]) -> ColumnElement[bool]:
    """The condition on definitions that a tenant, or the one in a column, sees."""
    own = tables.definitions.c.tenant == tenant
    return or_(own, right_granted_to(tenant).is_not(None))


def right_granted_to(tenant: str | ColumnElement[str]) -> ColumnElement[str | None]:
    grants = tables.grants.c
    return (
        select(func.max(grants.right))
        .where(
            grants.definition == tables.definitions.c.name,
            grants.tenant.in_([tenant, EVERYBODY]),
        )
        .scalar_subquery()
    )


def owner_of(kept: str) -> str:
    """The tenant of the definition that is kept under this name."""
    return split_definition(kept)[0] or LOCAL


# --- tenants --------------------------------------------------------------------------------------

_tenants = tables.tenants.c


@dataclass(frozen=True, slots=True)
class Tenant:
    name: str
    created_at: datetime
    may_use_machine: bool
    """Whether its statements may name files, topics, operators and stylesheets of the machine."""


def add_tenant(
    connection: Connection, name: str, *, may_use_machine: bool, now: datetime
) -> Tenant:
    if not TENANT.fullmatch(name):
        raise InvalidValue(
            f"a tenant's name is made of at most 31 small letters, digits and '_', and begins with "
            f"a letter, not '{name[:60]}'"
        )
    if tenant_of(connection, name) is not None:
        raise NameTaken(f"there is a tenant '{name}' already")
    definitions = tables.definitions.c
    dotted = select(definitions.name).where(
        definitions.name.startswith(f"{name}.", autoescape=True)
    )
    if (taken := connection.scalar(dotted.limit(1))) is not None:
        raise NameTaken(
            f"the definition '{taken}' would seem to be the tenant's; choose another name"
        )
    tenant = Tenant(name, now, may_use_machine)
    row = {"name": name, "created_at": now, "may_use_machine": may_use_machine}
    connection.execute(insert(tables.tenants).values(row))
    return tenant


def remove_tenant(connection: Connection, name: str) -> None:
    """A tenant that has nothing any more; its tokens, grants and quotas go with it."""
    if name == LOCAL:
        raise CatalogError("the local tenant cannot be removed")
    require_tenant(connection, name)
    for table, noun in (
        (tables.definitions, "definitions"),
        (tables.subscriptions, "subscriptions"),
    ):
        count = connection.scalar(select(func.count()).where(table.c.tenant == name))
        if count:
            raise InUse(f"tenant '{name}' has {count:,} {noun}; drop them first")
    connection.execute(delete(tables.grants).where(tables.grants.c.tenant == name))
    connection.execute(delete(tables.quotas).where(tables.quotas.c.owner == name))
    past = tables.past_definitions
    connection.execute(delete(past).where(past.c.tenant == name))
    connection.execute(delete(tables.tenants).where(_tenants.name == name))


def list_tenants(connection: Connection) -> list[Tenant]:
    return [
        Tenant(*row) for row in connection.execute(select(tables.tenants).order_by(_tenants.name))
    ]


def tenant_of(connection: Connection, name: str) -> Tenant | None:
    row = connection.execute(select(tables.tenants).where(_tenants.name == name)).one_or_none()
    return None if row is None else Tenant(*row)


def require_tenant(connection: Connection, name: str) -> Tenant:
    tenant = tenant_of(connection, name)
    if tenant is None:
        raise UnknownName(f"there is no tenant '{name}'")
    return tenant


# --- grants ---------------------------------------------------------------------------------------

_grants = tables.grants.c


@dataclass(frozen=True, slots=True)
class Grant:
    definition: str
    """As it is kept."""
    tenant: str
    right: Right
    granted_at: datetime


def grant(
    connection: Connection, kept: str, to: str, right: Right | None, *, now: datetime
) -> None:
    """Let a tenant, or everybody, see a definition; None takes a grant back. A right that feeds or
    subscriptions of the tenant need stays until these are gone."""
    if to != EVERYBODY:
        require_tenant(connection, to)
    connection.execute(
        delete(tables.grants).where(_grants.definition == kept, _grants.tenant == to)
    )
    if right is not None:
        row = {"definition": kept, "tenant": to, "right": right.value, "granted_at": now}
        connection.execute(insert(tables.grants).values(row))
    if users := _without_right(connection, kept):
        raise InUse(f"{users}; they have to be dropped first")


def _without_right(connection: Connection, kept: str) -> str:
    """Who uses a definition without a right to it; empty if nobody does."""
    owner = owner_of(kept)
    rows = connection.execute(
        select(_grants.tenant, _grants.right).where(_grants.definition == kept)
    )
    rights: dict[str, str] = {row.tenant: row.right for row in rows}
    general = rights.get(EVERYBODY, "")

    def right_of(tenant: str) -> str:
        return max(rights.get(tenant, ""), general)

    definitions, uses, subscriptions = tables.definitions.c, tables.uses.c, tables.subscriptions.c
    feeds = connection.execute(
        select(definitions.tenant, func.count())
        .join(tables.uses, uses.user_name == definitions.name)
        .where(uses.used_name == kept, definitions.tenant != owner)
        .group_by(definitions.tenant)
    )
    found = [
        f"{count:,} feeds of tenant '{t}' are built on it"
        for t, count in feeds
        if right_of(t) < Right.USE
    ]
    subscribed = connection.execute(
        select(subscriptions.tenant, func.count())
        .where(subscriptions.feed == kept, subscriptions.tenant != owner)
        .group_by(subscriptions.tenant)
    )
    found += [
        f"tenant '{t}' has {count:,} subscriptions to it"
        for t, count in subscribed
        if not right_of(t)
    ]
    return "; ".join(found)


def grants_of(connection: Connection, owner: str | None) -> list[Grant]:
    """The grants on definitions of one owner, or all."""
    query = select(tables.grants).join(
        tables.definitions, tables.definitions.c.name == _grants.definition
    )
    if owner is not None:
        query = query.where(tables.definitions.c.tenant == owner)
    rows = connection.execute(query.order_by(_grants.definition, _grants.tenant))
    return [Grant(definition, to, Right(right), at) for definition, to, right, at in rows]
