"""Looking up a few definitions of many: by number, and since when they are registered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice

from sqlalchemy import Connection, select

from headgate.catalog import tables

_ASKED_MAX = 500
_columns = tables.definitions.c


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
