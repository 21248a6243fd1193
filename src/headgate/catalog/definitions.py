"""Definitions: what a name can stand for, and the registered statements by name.

All names of a tenant live in one space, whatever they stand for. `CatalogDefinitions` is the
mapping from names to statements that checking and planning read, under the names that a tenant
uses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from sqlalchemy import ColumnElement, Connection, func, select

from headgate.catalog import tables
from headgate.catalog.tenants import EVERYTHING, Right, TenantView
from headgate.language.parse import parse
from headgate.language.statements import (
    CreateFeed,
    MaterializeFeed,
    NameKind,
    RegisterDocuments,
    RegisterFeed,
    RegisterOperator,
    RegisterSource,
    RegisterStream,
    RegisterTable,
    Statement,
)

DefiningStatement = RegisterSource | RegisterOperator | CreateFeed
"""A statement that gives a name to something. All names live in one space."""


class DefinitionKind(StrEnum):
    """What a name can stand for."""

    RSS = "rss"
    MATERIALIZED = "materialized"
    STREAM = "stream"
    TABLE = "table"
    DOCUMENTS = "documents"
    FEED = "feed"
    OPERATOR = "operator"

    @property
    def noun(self) -> str:
        return self.value if self in (DefinitionKind.FEED, DefinitionKind.OPERATOR) else "source"

    @property
    def drop_kind(self) -> NameKind:
        """How `drop` calls it."""
        return (
            NameKind.FEED
            if self in (DefinitionKind.RSS, DefinitionKind.MATERIALIZED)
            else NameKind(self.value)
        )

    @property
    def described(self) -> str:
        return _DESCRIPTIONS.get(self, f"a {self.value}")


_DESCRIPTIONS = {
    DefinitionKind.RSS: "a registered feed",
    DefinitionKind.MATERIALIZED: "a registered feed",
    DefinitionKind.DOCUMENTS: "a source of documents",
    DefinitionKind.OPERATOR: "an operator",
}
SOURCE_KINDS = (
    DefinitionKind.RSS,
    DefinitionKind.MATERIALIZED,
    DefinitionKind.STREAM,
    DefinitionKind.TABLE,
    DefinitionKind.DOCUMENTS,
)

_KINDS: dict[type[DefiningStatement], DefinitionKind] = {
    RegisterFeed: DefinitionKind.RSS,
    MaterializeFeed: DefinitionKind.MATERIALIZED,
    RegisterStream: DefinitionKind.STREAM,
    RegisterTable: DefinitionKind.TABLE,
    RegisterDocuments: DefinitionKind.DOCUMENTS,
    CreateFeed: DefinitionKind.FEED,
    RegisterOperator: DefinitionKind.OPERATOR,
}


def kind_of_statement(statement: DefiningStatement) -> DefinitionKind:
    return _KINDS[type(statement)]


# --- registered definitions ----------------------------------------------------------------------

FETCH_MAX = 500
"""Names in one query."""


@dataclass(frozen=True, slots=True)
class StoredDefinition:
    """A definition as it is stored."""

    kind: DefinitionKind
    text: str
    depth: int
    branches: int
    number: int
    right: Right | None = Right.USE
    """What the reader may do with it; None: the reader does not see it, only what is built on it
    does."""
    is_own: bool = True


class CatalogDefinitions(Mapping[str, Statement]):
    """The registered statements by name, for one thread and within the connection's transaction.

    The names are those of `view`. A tenant's feeds may be built on what the tenant does not see, so
    that can be looked up, but it is not listed. Names that somebody has written are looked up by
    `sees` first.

    Entries are fetched from the database when they are needed, many at once where it is known
    which will be. The text of an entry is parsed once, and only if its statement is used: a script
    of 100,000 subscriptions parses no definition, because the entry alone shows that a name exists.

    Without a connection it holds exactly the given entries, and is valid forever.
    """

    def __init__(
        self,
        connection: Connection | None,
        *,
        version: int,
        entries: Mapping[str, StoredDefinition] = {},
        view: TenantView = EVERYTHING,
    ) -> None:
        self.version = version
        self.view = view
        self._connection = connection
        self._entries: dict[str, StoredDefinition | None] = dict(entries)
        self._statements: dict[str, Statement] = {}

    def entry(self, name: str) -> StoredDefinition | None:
        name = self.view.usual(name)
        if name not in self._entries:
            self.fetch([name])
        return self._entries[name]

    def sees(self, name: str) -> bool:
        """Whether there is such a definition for the tenant."""
        entry = self.entry(name)
        return entry is not None and entry.right is not None

    def source_name(self, kept: str, otherwise: str) -> str:
        """What the tenant calls a source; something else if it does not see that."""
        shown = self.view.shown(kept)
        return shown if self.sees(shown) else otherwise

    @contextmanager
    def hiding(self, names: Collection[str]) -> Iterator[None]:
        """Within it, these names are those of nothing."""
        hidden = {name: self._entries.get(name) for name in names}
        self._entries.update(dict.fromkeys(names))
        try:
            yield
        finally:
            self._entries.update(hidden)

    def number_of(self, name: str) -> int:
        """The number by which plans and the store know the name while it is registered."""
        entry = self.entry(name)
        if entry is None:
            raise KeyError(name)
        return entry.number

    def fetch(self, names: Iterable[str]) -> None:
        """Load the entries of these names, in few queries; a name may turn out not to exist."""
        missing = iter(dict.fromkeys(str(name) for name in names if name not in self._entries))
        while chunk := list(islice(missing, FETCH_MAX)):
            self._entries.update(dict.fromkeys(chunk))
            if self._connection is not None:
                self._entries.update(self._load(self._connection, chunk))

    def _load(self, connection: Connection, names: list[str]) -> dict[str, StoredDefinition]:
        """Those of these names that are registered."""
        return load(connection, names, self.view)

    def changes(self, known: Collection[int]) -> DefinitionChanges:
        """How the database differs from a reader that knows the definitions of these numbers."""
        assert self._connection is not None, "these entries have no database"
        return changes_since(self._connection, known)

    def suspended(self) -> frozenset[int]:
        """The numbers of feeds that are suspended (limits.py)."""
        assert self._connection is not None, "these entries have no database"
        columns = tables.definitions.c
        query = select(columns.number).join(tables.suspensions)
        return frozenset(self._connection.scalars(query))

    def add(self, name: str, entry: StoredDefinition, statement: Statement) -> None:
        name = self.view.usual(name)
        self._entries[name] = entry
        self._statements[name] = statement

    def remove(self, name: str) -> None:
        name = self.view.usual(name)
        self._entries[name] = None
        self._statements.pop(name, None)

    def __getitem__(self, name: str) -> Statement:
        entry = self.entry(name)
        if entry is None:
            raise KeyError(name)
        statement = self._statements.get(name)
        if statement is None:
            statement = self.view.shown_statement(parse(entry.text))
            self._statements[name] = statement
        return statement

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.entry(name) is not None

    def __iter__(self) -> Iterator[str]:
        names = {name for name, entry in self._entries.items() if entry and entry.right}
        if self._connection is not None:
            query = select(tables.definitions.c.name).where(*self.view.visible())
            stored = map(self.view.shown, self._connection.scalars(query))
            names |= {name for name in stored if self._entries.get(name, True) is not None}
        return iter(sorted(names))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def load_all(
    connection: Connection, *, version: int, view: TenantView = EVERYTHING
) -> CatalogDefinitions:
    """Everything that is registered, independent of the connection."""
    entries = load(connection, None, view)
    return CatalogDefinitions(None, version=version, entries=entries, view=view)


def load(
    connection: Connection,
    names: list[str] | None,
    view: TenantView,
    *conditions: ColumnElement[bool],
) -> dict[str, StoredDefinition]:
    """The definitions of these names, or all, for which the conditions hold."""
    columns = tables.definitions.c
    query = (
        select(
            columns.name,
            columns.kind,
            columns.definition,
            columns.depth,
            columns.branches,
            columns.number,
            view.granted_right(),
        )
        .where(*conditions)
        .order_by(columns.name)
    )
    if names is not None:
        query = query.where(columns.name.in_([view.kept(name) for name in names]))
    entries: dict[str, StoredDefinition] = {}
    for name, kind, text, depth, branches, number, granted in connection.execute(query):
        is_own = view.owns(name)
        entries[view.shown(name)] = StoredDefinition(
            DefinitionKind(kind),
            text,
            depth,
            branches,
            number,
            Right.USE if is_own else Right(granted) if granted else None,
            is_own,
        )
    return entries


# --- changes -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NumberedName:
    """A definition without its text."""

    number: int
    name: str
    kind: DefinitionKind


@dataclass(frozen=True, slots=True)
class DefinitionChanges:
    added: tuple[NumberedName, ...]
    removed: frozenset[int]
    """Numbers of definitions that are no longer registered."""


def changes_since(connection: Connection, known: Collection[int]) -> DefinitionChanges:
    """The definitions besides these numbers, and which of these numbers are no longer registered.

    Numbers ascend, so new definitions are found by index. All numbers are read only if the count
    shows that something was removed.
    """
    columns = tables.definitions.c
    query = select(columns.number, columns.name, columns.kind).order_by(columns.number)
    rows = connection.execute(query.where(columns.number > max(known, default=0)))
    added = tuple(NumberedName(number, name, DefinitionKind(kind)) for number, name, kind in rows)
    count = connection.scalar(select(func.count()).select_from(tables.definitions))
    if count == len(known) + len(added):
        return DefinitionChanges(added, frozenset())
    registered = frozenset(connection.scalars(select(columns.number)))
    return DefinitionChanges(added, frozenset(known) - registered)
