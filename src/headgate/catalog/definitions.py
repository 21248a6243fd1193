"""What every registered name stands for, as a mapping from names to statements.

Entries are fetched from the database when they are asked for, many at once where it is known which
will be needed, and their text is parsed once and only if someone looks at the statement. A script
of 100,000 subscriptions parses nothing here: that a name is registered is known from its entry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from sqlalchemy import Connection, select

from headgate.catalog import lookup, tables
from headgate.catalog.kinds import DefinitionKind
from headgate.language.parse import parse
from headgate.language.statements import Statement

_FETCH_MAX = 500


@dataclass(frozen=True, slots=True)
class Entry:
    """A definition as it is stored."""

    kind: DefinitionKind
    text: str
    depth: int
    branches: int
    number: int


class Definitions(Mapping[str, Statement]):
    """For one thread, and for no longer than the connection's transaction.

    Without a connection, the entries given are all there are, and it is valid forever.
    """

    def __init__(
        self, connection: Connection | None, *, version: int, entries: Mapping[str, Entry] = {}
    ) -> None:
        self.version = version
        self._connection = connection
        self._entries: dict[str, Entry | None] = dict(entries)
        self._statements: dict[str, Statement] = {}

    def entry(self, name: str) -> Entry | None:
        if name not in self._entries:
            self.fetch([name])
        return self._entries[name]

    def number_of(self, name: str) -> int:
        """By this number plans and the store know it, for as long as it is registered."""
        entry = self.entry(name)
        if entry is None:
            raise KeyError(name)
        return entry.number

    def fetch(self, names: Iterable[str]) -> None:
        """Makes these known, also that a name is not registered, in few questions."""
        wanted = iter(dict.fromkeys(str(name) for name in names if name not in self._entries))
        while chunk := list(islice(wanted, _FETCH_MAX)):
            self._entries.update(dict.fromkeys(chunk))
            if self._connection is not None:
                self._entries.update(_load(self._connection, chunk))

    def changes(self, known: Collection[int]) -> lookup.Changes:
        """What has come and gone since someone knew these numbers; in the database only."""
        assert self._connection is not None, "these are entries of one moment"
        return lookup.changes(self._connection, known)

    def add(self, name: str, entry: Entry, statement: Statement) -> None:
        self._entries[name] = entry
        self._statements[name] = statement

    def remove(self, name: str) -> None:
        self._entries[name] = None
        self._statements.pop(name, None)

    def __getitem__(self, name: str) -> Statement:
        statement = self._statements.get(name)
        if statement is None:
            entry = self.entry(name)
            if entry is None:
                raise KeyError(name)
            statement = self._statements[name] = parse(entry.text)
        return statement

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.entry(name) is not None

    def __iter__(self) -> Iterator[str]:
        names = {name for name, entry in self._entries.items() if entry is not None}
        if self._connection is not None:
            stored = set(self._connection.scalars(select(tables.definitions.c.name)))
            names |= {name for name in stored if self._entries.get(name, True) is not None}
        return iter(sorted(names))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def load_all(connection: Connection, *, version: int) -> Definitions:
    """Everything registered at this moment, independent of the connection."""
    return Definitions(None, version=version, entries=_load(connection, None))


def _load(connection: Connection, names: list[str] | None) -> dict[str, Entry]:
    columns = tables.definitions.c
    query = select(
        columns.name,
        columns.kind,
        columns.definition,
        columns.depth,
        columns.branches,
        columns.number,
    ).order_by(columns.name)
    if names is not None:
        query = query.where(columns.name.in_(names))
    return {
        name: Entry(DefinitionKind(kind), text, depth, branches, number)
        for name, kind, text, depth, branches, number in connection.execute(query)
    }
