"""Forgetting what was done: an outbox that only grows would fill the disk one day.

    sent   kept for as long as its key may be put again (a replayed batch), then forgotten
    dead   kept for longer, as somebody may want to replay it
    files  of subscriptions whose output is a file, the last items stay: the file is made of them

It goes in steps of a few thousand rows, so that nobody waits long for the database.
"""

from __future__ import annotations

from collections.abc import Collection

from headgate.deliver.contents import forget_contents
from headgate.deliver.outbox import Outbox
from headgate.deliver.twins import forget_twins

STEP_ROWS = 5_000


def prune(
    outbox: Outbox,
    *,
    sent_before_s: float,
    dead_before_s: float,
    keep: Collection[int] = (),
    keep_last: int = 100,
) -> int:
    """How many rows went. After this, a replay of what was forgotten would deliver it again."""
    gone = 0
    while step := _step(outbox, sent_before_s, dead_before_s, keep, keep_last):
        gone += step
    return gone


def _step(
    outbox: Outbox,
    sent_before_s: float,
    dead_before_s: float,
    keep: Collection[int],
    keep_last: int,
) -> int:
    with outbox.transaction() as connection:
        connection.execute(
            "CREATE TEMP TABLE IF NOT EXISTS kept (subscription INTEGER PRIMARY KEY)"
        )
        connection.execute("DELETE FROM kept")
        connection.executemany("INSERT OR IGNORE INTO kept VALUES (?)", [(each,) for each in keep])
        connection.execute("INSERT OR IGNORE INTO kept SELECT subscription FROM files")
        forget_twins(connection, sent_before_s)
        # `latest` looks at twice as many rows as it wants, as an item may be there in two versions.
        rows = connection.execute(
            "SELECT number, content FROM deliveries AS d "
            "WHERE done_at < max(?1, ?2) AND done_at < iif(state = 'sent', ?1, ?2) AND NOT ("
            "  subscription IN (SELECT subscription FROM kept) AND number >= coalesce(("
            "    SELECT number FROM deliveries AS e WHERE e.subscription = d.subscription "
            "    ORDER BY number DESC LIMIT 1 OFFSET ?3), 0)) LIMIT ?4",
            (sent_before_s, dead_before_s, 2 * keep_last - 1, STEP_ROWS),
        ).fetchall()
        connection.executemany(
            "DELETE FROM deliveries WHERE number = ?", [(row[0],) for row in rows]
        )
        forget_contents(connection, {row[1] for row in rows})
        return len(rows)
