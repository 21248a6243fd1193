"""Statistics of sources for the optimisers: rates, and how often atoms are true.

    source    atom                matched   items     span_s
    Tickets                       500,000   500,000   86,400     the source itself: its rate
    Tickets   price > 150          12,000   500,000   86,400     an atom: its selectivity

The key of an atom is its canonical text, `unparse_filter(atom)`, so nothing has to be parsed. A new
measurement of a source replaces the old one; the statistics of a dropped source are deleted.
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
        """None if all items came at once."""
        return self.items / self.span_s if self.span_s > 0 else None

    def selectivity(self, atom: str) -> float | None:
        """The share of items that satisfy the atom; None if it was not measured."""
        count = self.matched.get(atom)
        return None if count is None or not self.items else count / self.items


def record(connection: Connection, measured: SourceStatistics, now: datetime) -> bool:
    """Store a measurement, and return whether the source is registered; others are not stored."""
    registered = select(tables.definitions.c.name).filter_by(name=measured.source)
    if connection.scalar(registered) is None:
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
    """The last measurement of this source; None if there is none."""
    query = select(tables.statistics).where(_columns.source == source)
    rows = {row.atom: row for row in connection.execute(query.order_by(_columns.atom))}
    total = rows.pop("", None)
    if total is None:
        return None
    matched = {atom: int(row.matched) for atom, row in rows.items()}
    return SourceStatistics(
        source, int(total.items), float(total.span_s), matched, total.measured_at
    )
