"""Looking up a few definitions of many: by number, what has changed, since when it is there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from sqlalchemy import Connection, func, select

from headgate.catalog import tables
from headgate.catalog.kinds import DefinitionKind

_ASKED_MAX = 500
_columns = tables.definitions.c


@dataclass(frozen=True, slots=True)
class Listed:
    """A definition without its text."""

    number: int
    name: str
    kind: DefinitionKind


@dataclass(frozen=True, slots=True)
class Changes:
    fresh: tuple[Listed, ...]
    gone: frozenset[int]


def changes(connection: Connection, known: Collection[int]) -> Changes:
    """What is registered besides these numbers, and which of them are not registered any more.

    Numbers ascend, so what is new is found by index; only where something is gone, which the count
    tells, all numbers are read.
    """
    query = select(_columns.number, _columns.name, _columns.kind).order_by(_columns.number)
    rows = connection.execute(query.where(_columns.number > max(known, default=0)))
    fresh = tuple(Listed(number, name, DefinitionKind(kind)) for number, name, kind in rows)
    count = connection.scalar(select(func.count()).select_from(tables.definitions))
    if count == len(known) + len(fresh):
        return Changes(fresh, frozenset())
    living = frozenset(connection.scalars(select(_columns.number)))
    return Changes(fresh, frozenset(known) - living)


def names_of_numbers(connection: Connection, numbers: Iterable[int]) -> dict[int, str]:
    """The names of those that are still registered."""
    found: dict[int, str] = {}
    for chunk in _chunks(sorted(set(numbers))):
        query = select(_columns.number, _columns.name).where(_columns.number.in_(chunk))
        found |= {row.number: row.name for row in connection.execute(query)}
    return found


def created_at(connection: Connection, name: str) -> datetime | None:
    """Since when it is registered; nothing if it is not."""
    return connection.scalar(select(_columns.created_at).where(_columns.name == name))


def _chunks(wanted: Iterable[int]) -> Iterator[list[int]]:
    rest = iter(wanted)
    while chunk := list(islice(rest, _ASKED_MAX)):
        yield chunk
