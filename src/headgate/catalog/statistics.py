"""What was measured of sources, for the optimisers: rates, and how often atoms are true.

    source    atom                matched   items     span_s
    Tickets                       500,000   500,000   86,400     the source itself: its rate
    Tickets   price > 150          12,000   500,000   86,400     an atom: its selectivity

An atom is known by its text as the language writes it, so whoever has an atom asks with
`unparse_filter(atom)` and nothing has to be parsed. What is measured anew of a source replaces all
that was known of it; sources that are dropped take theirs with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, delete, select

from headgate.catalog import tables
from headgate.catalog.database import Row, insert_rows

_columns = tables.statistics.c
ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class SourceStatistics:
    """Of `items` that came within `span_s` seconds from a source, `matched` satisfy an atom."""

    source: str
    items: int
    span_s: float
    matched: Mapping[str, int] = field(default_factory=dict)
    """By the atom's text."""
    measured_at: datetime | None = None

    @property
    def rate_per_s(self) -> float | None:
        """Nothing where everything came at once."""
        return self.items / self.span_s if self.span_s > 0 else None

    def selectivity(self, atom: str) -> float | None:
        """The share of items that satisfy it; nothing where it was not measured."""
        count = self.matched.get(atom)
        return None if count is None or not self.items else count / self.items


def record(connection: Connection, measured: SourceStatistics, now: datetime) -> bool:
    """Whether the source is registered: of others nothing is kept."""
    known = select(tables.definitions.c.name).filter_by(name=measured.source)
    if connection.scalar(known) is None:
        return False
    connection.execute(delete(tables.statistics).where(_columns.source == measured.source))
    atoms = {"": measured.items, **measured.matched}
    rows: list[Row] = [
        {
            "source": measured.source,
            "atom": atom,
            "matched": matched,
            "items": measured.items,
            "span_s": measured.span_s,
            "measured_at": now,
        }
        for atom, matched in atoms.items()
    ]
    for start in range(0, len(rows), ROWS_AT_ONCE):
        insert_rows(connection, tables.statistics, rows[start : start + ROWS_AT_ONCE])
    return True


def load(connection: Connection, source: str) -> SourceStatistics | None:
    """What is known of this source, if it was ever measured."""
    query = select(tables.statistics).where(_columns.source == source)
    found = {row.atom: row for row in connection.execute(query.order_by(_columns.atom))}
    own = found.pop("", None)
    if own is None:
        return None
    matched = {atom: int(row.matched) for atom, row in found.items()}
    return SourceStatistics(source, int(own.items), float(own.span_s), matched, own.measured_at)
