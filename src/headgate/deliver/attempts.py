"""The last attempts of each subscription: when, how long, which answer. For people who look.

    sent or refused by a thread ──► job.attempts (the last ATTEMPTS_KEPT) ──► the transaction that
                                                                              settles the job

So an attempt costs a row in a transaction that is made anyway: 15 µs. Rows beyond ATTEMPTS_KEPT are
removed with every PRUNE_EVERY-th row of a subscription, and all after as long as dead letters.

What an attempt decides (cursors, retries, dead letters) is in other tables: these rows may be lost
with a crash, and nothing depends on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, select

from headgate.catalog.database import insert_rows
from headgate.deliver import delivery_tables as tables
from headgate.deliver.delivery_database import DeliveryDatabase

ATTEMPTS_KEPT = 20
PRUNE_EVERY = 10
_attempts = tables.attempts.c


class AttemptRow(NamedTuple):
    subscription: int
    slot: int
    message: str
    item_count: int
    at: float
    took_s: float
    status: int | None
    """That of the answer; None: there was none, or the output has no such thing."""
    error: str
    """Empty if the receiver has taken it."""


class AttemptLog:
    """Writes attempts and removes old ones. For one thread."""

    def __init__(self) -> None:
        self._since_pruned: Counter[int] = Counter()

    def write(self, connection: Connection, rows: Sequence[AttemptRow]) -> None:
        if not rows:
            return
        insert_rows(connection, tables.attempts, [each._asdict() for each in rows])
        self._since_pruned.update(each.subscription for each in rows)
        full = {
            each.subscription
            for each in rows
            if self._since_pruned[each.subscription] >= PRUNE_EVERY
        }
        if full:
            connection.execute(_PRUNE, [{"of": each} for each in full])
            for each in full:
                del self._since_pruned[each]


_newest = (
    select(_attempts.number)
    .where(_attempts.subscription == bindparam("of"))
    .order_by(_attempts.number.desc())
    .limit(ATTEMPTS_KEPT)
    .subquery()
)
_PRUNE = delete(tables.attempts).where(
    _attempts.subscription == bindparam("of"),
    _attempts.number < select(func.min(_newest.c.number)).scalar_subquery(),
)


def last_attempts(database: DeliveryDatabase, subscription: int) -> list[AttemptRow]:
    """The newest first."""
    query = (
        select(*(_attempts[name] for name in AttemptRow._fields))
        .where(_attempts.subscription == subscription)
        .order_by(_attempts.number.desc())
        .limit(ATTEMPTS_KEPT)
    )
    with database.reading() as connection:
        return [AttemptRow(*row) for row in connection.execute(query)]
