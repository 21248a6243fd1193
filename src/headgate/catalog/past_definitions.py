"""The past of definitions: what a name stood for at an instant, so that a feed can be evaluated as
it was defined last week.

    definitions          created_at ─────────────────────────► now
    past_definitions     created_at ───────────► dropped_at

At an instant t, a name stood for the row with created_at <= t < dropped_at. Names are unique at
every version of the catalog and later versions have later times, so there is at most one.

What was dropped is kept for KEPT, and of each tenant the last KEPT_PER_TENANT. Grants go with their
definition, so of what was dropped, a tenant sees what was its own; what its feeds were built on can
be looked up, as in the present (definitions.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, insert, literal, null, select

from headgate.catalog import tables
from headgate.catalog.definitions import (
    CatalogDefinitions,
    DefinitionKind,
    StoredDefinition,
    load,
)
from headgate.catalog.tenants import Right, TenantView, owner_of

KEPT = timedelta(days=90)
KEPT_PER_TENANT = 10_000
_past, _present = tables.past_definitions.c, tables.definitions.c
_SHARED = ("name", "tenant", "kind", "number", "definition", "depth", "branches", "created_at")


@dataclass(frozen=True, slots=True)
class DefinitionVersion:
    """What a name stood for, and when."""

    name: str
    kind: DefinitionKind
    definition: str
    created_at: datetime
    dropped_at: datetime | None
    """None: it is what the name stands for now."""


def keep_past(connection: Connection, kept: str, *, now: datetime) -> None:
    """Keep a definition that is about to be dropped."""
    columns = [_present[name] for name in _SHARED]
    row = select(*columns, literal(now, tables.UtcTime)).where(_present.name == kept)
    connection.execute(insert(tables.past_definitions).from_select([*_SHARED, "dropped_at"], row))
    tenant = owner_of(kept)
    newest = select(_past.id).where(_past.tenant == tenant).order_by(_past.id.desc())
    too_many = connection.scalar(newest.offset(KEPT_PER_TENANT).limit(1))
    past = delete(tables.past_definitions)
    connection.execute(past.where(_past.dropped_at < now - KEPT))
    if too_many is not None:
        connection.execute(past.where(_past.tenant == tenant, _past.id <= too_many))


def versions_of(connection: Connection, name: str, view: TenantView) -> list[DefinitionVersion]:
    """What a name of the tenant stands for and has stood for, the newest first."""
    kept = view.kept(name)
    if not view.owns(kept):
        return []
    present = select(_present.kind, _present.definition, _present.created_at, null())
    past = select(_past.kind, _past.definition, _past.created_at, _past.dropped_at)
    rows = [
        *connection.execute(present.where(_present.name == kept)),
        *connection.execute(past.where(_past.name == kept).order_by(_past.id.desc())),
    ]
    return [
        DefinitionVersion(name, DefinitionKind(kind), view.shown_text(text), created, dropped)
        for kind, text, created, dropped in rows
    ]


class PastDefinitions(CatalogDefinitions):
    """The definitions as they were at an instant; otherwise as those of now."""

    def __init__(
        self, connection: Connection, *, version: int, view: TenantView, at: datetime
    ) -> None:
        super().__init__(connection, version=version, view=view)
        self._past_connection, self._at = connection, at

    def _load(self, connection: Connection, names: list[str]) -> dict[str, StoredDefinition]:
        view = self.view
        found = load(connection, names, view, _present.created_at <= self._at)
        query = select(
            *(_past.name, _past.kind, _past.definition),
            *(_past.depth, _past.branches, _past.number),
        ).where(
            _past.name.in_([view.kept(name) for name in names]),
            _past.created_at <= self._at,
            _past.dropped_at > self._at,
        )
        for name, kind, text, depth, branches, number in connection.execute(query):
            is_own = view.owns(name)
            right = Right.USE if is_own else None
            found[view.shown(name)] = StoredDefinition(
                DefinitionKind(kind), text, depth, branches, number, right, is_own
            )
        return found

    def __iter__(self) -> Iterator[str]:
        """The names that the tenant had then, or sees and saw."""
        present = select(_present.name).where(*self.view.visible(), _present.created_at <= self._at)
        past = select(_past.name).where(_past.created_at <= self._at, _past.dropped_at > self._at)
        if self.view.tenant is not None:
            past = past.where(_past.tenant == self.view.tenant)
        names = {*self._past_connection.scalars(present), *self._past_connection.scalars(past)}
        return iter(sorted(map(self.view.shown, names)))
