"""The outbox: a durable queue of deliveries, and their states. SQLite, one writing process.

                put                       mark_sent
    (a match) ───────► waiting ──────────────────────────► sent ──► pruned after the replay limit
                         │  ▲ mark_sending                  ▲
                         ▼  │        ┌──────► sending ──────┤
                      message formed ┘           │ mark_failed, or the process died
                                                 ▼
                                   failed ──► dead ──► replay ──► waiting

Invariants:
- The key of a delivery is (subscription, version, item, source). `put` is idempotent: a key that
  exists is left unchanged in any state, so a replayed batch sends nothing twice until `prune`.
- A *message* is what is sent together: one item, or all items of a digest. It is stored before the
  first attempt, and its id is a hash of its keys, so every attempt in any process sends the same
  items under the same id.
- The deliveries of a subscription are sent in the order in which they were put, except retries.

Cost: the JSON of an item is stored once for all its subscribers, under its hash. 10,000 puts of
1,000 items take 0.15 s in one commit, of 10,000 different items 0.5 s, of existing keys 0.13 s.

Rejected: WITHOUT ROWID on the key (needs another index for the order of arrival, and every index
would carry the key); a table of messages (the rows of a digest name their message); deleting sent
rows at once (a replay would send them again).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from math import inf
from pathlib import Path
from sqlite3 import Connection

from headgate.deliver.cross_feed_dedup import CrossFeedDuplicates, IdentityKeys
from headgate.deliver.item_encoding import decode_item
from headgate.deliver.outbox_tables import OUTBOX_LAYOUT, ItemContents
from headgate.deliver.records import (
    DeliveryState,
    ItemDelivery,
    OutgoingMessage,
    StoredDelivery,
    key_bytes,
    message_id,
)
from headgate.model.errors import printable
from headgate.store.database import DurableDatabase

ERROR_LENGTH_MAX = 500
PENDING = "state IN ('waiting', 'sending', 'failed')"
_ELIGIBLE = (
    f"{PENDING} AND (retry_at IS NULL OR retry_at <= ?) "
    "AND (message IS NOT NULL OR attempts > 0 OR put_at < ?)"
)


class Outbox:
    """All methods may be called by any thread; each is one transaction."""

    def __init__(self, database: DurableDatabase) -> None:
        self.database = database

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> Outbox:
        """For writing it is locked: a second process gets `StateTaken`."""
        return cls(DurableDatabase(path, OUTBOX_LAYOUT, read_only=read_only))

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Outbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def transaction(self) -> AbstractContextManager[Connection]:
        """To commit several calls together."""
        return self.database.transaction()

    def put(
        self,
        deliveries: Iterable[ItemDelivery],
        *,
        now_s: float,
        keys_of: IdentityKeys | None = None,
    ) -> int:
        """How many of them are new. When it returns, they survive everything.

        With keys, what a subscription had from another source is left out (cross_feed_dedup.py).
        """
        with self.database.transaction() as connection:
            contents = ItemContents(connection)
            duplicates = CrossFeedDuplicates(connection, keys_of or (lambda _: ()), now_s)
            rows = [
                (
                    each.subscription,
                    each.version,
                    key_bytes(each.item.id),
                    key_bytes(each.item.source),
                    each.feed,
                    contents.number(each.item),
                    now_s,
                )
                for each in deliveries
                if keys_of is None or not duplicates.is_duplicate(each.subscription, each.item)
            ]
            new = connection.executemany(
                "INSERT INTO deliveries (subscription, version, item, source, feed, content, "
                "put_at) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                rows,
            ).rowcount
            if new < len(rows):
                contents.forget_unused()
            if new:
                _wake(connection, {row[0] for row in rows}, now_s)
                _bury_halted(connection, now_s)
            return new

    def pending(self, subscription: int, *, limit: int) -> list[StoredDelivery]:
        """Deliveries that wait, failed or were being sent, in the order in which they were put."""
        return self._select(f"subscription = ? AND {PENDING}", [subscription], limit)

    def pending_numbers(self, subscription: int) -> list[int]:
        return self._numbers(f"subscription = ? AND {PENDING}", [subscription])

    def eligible_numbers(
        self, subscription: int, *, now_s: float, put_before_s: float = inf
    ) -> list[int]:
        """Pending deliveries: retries that are due, and new ones put before this time."""
        return self._numbers(
            f"subscription = ? AND {_ELIGIBLE}", [subscription, now_s, put_before_s]
        )

    def next_times_s(self, subscription: int) -> tuple[float | None, float | None]:
        """The time of the next retry, and since when the oldest new delivery waits."""
        with self.database.reading() as connection:
            row = connection.execute(
                "SELECT min(iif(attempts > 0 OR message IS NOT NULL, coalesce(retry_at, put_at), "
                "NULL)), min(iif(attempts > 0 OR message IS NOT NULL, NULL, put_at)) "
                f"FROM deliveries WHERE subscription = ? AND {PENDING}",
                (subscription,),
            ).fetchone()
        return row[0], row[1]

    def latest(self, subscription: int, *, limit: int) -> list[StoredDelivery]:
        """The last deliveries in any state, newest first; of an item put twice, the last."""
        newest = (
            "number IN (SELECT max(number) FROM (SELECT number, item, source FROM deliveries "
            "WHERE subscription = ? ORDER BY number DESC LIMIT ?) "
            "GROUP BY item, source ORDER BY 1 DESC LIMIT ?)"
        )
        return self._select(newest, [subscription, 2 * limit, limit])[::-1]

    def messages(
        self,
        subscription: int,
        *,
        together: bool,
        limit: int,
        now_s: float,
        put_before_s: float = inf,
    ) -> list[OutgoingMessage]:
        """The next messages: those formed before, then new ones of eligible deliveries."""
        with self.database.transaction() as connection:
            formed: dict[str, list[StoredDelivery]] = {}
            fresh: list[StoredDelivery] = []
            eligible = f"subscription = ? AND {_ELIGIBLE}"
            for each in self._select(eligible, [subscription, now_s, put_before_s], limit):
                if each.message is None:
                    fresh.append(each)
                else:
                    formed.setdefault(each.message, [])
            for name in formed:
                # All of it, though the limit may have cut it.
                whole = f"message = ? AND subscription = ? AND {PENDING}"
                formed[name] = self._select(whole, [name, subscription])
            groups = [fresh] if together else [[each] for each in fresh]
            for group in filter(None, groups):
                name = message_id(group)
                formed[name] = group
                connection.executemany(
                    "UPDATE deliveries SET message = ? WHERE number = ?",
                    [(name, each.number) for each in group],
                )
            return [OutgoingMessage(name, tuple(parts)) for name, parts in formed.items()]

    def mark_sending(self, message: OutgoingMessage) -> None:
        """Called before the receiver may take it: after a crash the outcome is unknown."""
        self._mark(message.numbers, "state = 'sending'")

    def mark_sent(self, numbers: Sequence[int], *, now_s: float) -> None:
        self._mark(numbers, "state = 'sent', error = '', done_at = ?", now_s)

    def mark_failed(
        self,
        numbers: Sequence[int],
        error: str,
        *,
        attempts_max: int | None,
        now_s: float,
        retry_at_s: float | None = None,
    ) -> int:
        """Record a failed attempt; return how many have become dead letters."""
        shown = printable(error)[:ERROR_LENGTH_MAX].encode("utf-8", "replace").decode()
        change = "state = 'failed', attempts = attempts + 1, error = ?, retry_at = ?"
        with self.database.transaction() as connection:
            self._mark(numbers, change, shown, retry_at_s)
            if attempts_max is None:
                return 0
            dead = connection.executemany(
                "UPDATE deliveries SET state = 'dead', done_at = ? "
                "WHERE number = ? AND state = 'failed' AND attempts >= ?",
                [(now_s, number, attempts_max) for number in numbers],
            )
            return dead.rowcount

    def give_up(self, subscription: int, error: str, *, now_s: float) -> int:
        """All pending deliveries become dead letters."""
        with self.database.transaction() as connection:
            done = connection.execute(
                "UPDATE deliveries SET state = 'dead', error = ?, done_at = ? "
                f"WHERE subscription = ? AND {PENDING}",
                (printable(error)[:ERROR_LENGTH_MAX], now_s, subscription),
            )
            return done.rowcount

    def recover(self) -> int:
        """Deliveries that were being sent at a crash are tried again, under the same id."""
        with self.database.transaction() as connection:
            done = connection.execute(
                "UPDATE deliveries SET state = 'failed', attempts = attempts + 1, retry_at = NULL, "
                "error = 'the process ended while this was being sent' WHERE state = 'sending'"
            )
            return done.rowcount

    def replay(self, subscription: int, *, now_s: float) -> int:
        """The dead letters of a subscription wait again, and it is no longer halted."""
        with self.database.transaction() as connection:
            done = connection.execute(
                "UPDATE deliveries SET state = 'waiting', attempts = 0, retry_at = NULL, "
                "done_at = NULL WHERE subscription = ? AND state = 'dead'",
                (subscription,),
            )
            connection.execute(
                "UPDATE agenda SET halted = NULL, failures = 0, not_before = NULL, "
                "by_timetable = 0 WHERE subscription = ?",
                (subscription,),
            )
            if self.pending(subscription, limit=1):
                _wake(connection, {subscription}, now_s)
            return done.rowcount

    def dead_letters(
        self, subscription: int | None = None, *, limit: int = 100
    ) -> list[StoredDelivery]:
        if subscription is None:
            return self._select("state = 'dead'", [], limit)
        return self._select("subscription = ? AND state = 'dead'", [subscription], limit)

    def count(self) -> dict[DeliveryState, int]:
        with self.database.reading() as connection:
            found = dict(connection.execute("SELECT state, count FROM totals"))
        return {state: found[state.value] for state in DeliveryState}

    def owner_of_file(self, path: str, subscription: int) -> int:
        """The subscription that writes this file: the first one, until `release_file`."""
        key = key_bytes(path)
        with self.database.transaction() as connection:
            connection.execute(
                "INSERT INTO files VALUES (?, ?) ON CONFLICT DO NOTHING", (key, subscription)
            )
            row = connection.execute("SELECT subscription FROM files WHERE path = ?", (key,))
            owner: int = row.fetchone()[0]
            return owner

    def release_file(self, path: str) -> None:
        with self.database.transaction() as connection:
            connection.execute("DELETE FROM files WHERE path = ?", (key_bytes(path),))

    def _mark(self, numbers: Sequence[int], change: str, *values: float | str | None) -> None:
        with self.database.transaction() as connection:
            connection.executemany(
                f"UPDATE deliveries SET {change} WHERE number = ? AND {PENDING}",
                [(*values, number) for number in numbers],
            )

    def _numbers(self, condition: str, values: Sequence[float | str]) -> list[int]:
        with self.database.reading() as connection:
            rows = connection.execute(
                f"SELECT number FROM deliveries WHERE {condition} ORDER BY number", values
            ).fetchall()
        return [row[0] for row in rows]

    def _select(
        self, condition: str, values: Sequence[float | str], limit: int = -1
    ) -> list[StoredDelivery]:
        with self.database.reading() as connection:
            rows = connection.execute(
                "SELECT d.number, d.subscription, d.version, d.feed, d.state, d.message, "
                "d.attempts, d.error, d.put_at, c.item FROM "
                f"(SELECT * FROM deliveries WHERE {condition} ORDER BY number LIMIT ?) AS d "
                "JOIN contents AS c ON c.number = d.content ORDER BY d.number",
                (*values, limit),
            ).fetchall()
        return [_stored(row) for row in rows]


def _wake(connection: Connection, subscriptions: Iterable[int], now_s: float) -> None:
    """Make subscriptions due, unless they wait for a boundary or for their receiver."""
    connection.executemany(
        "INSERT INTO agenda (subscription, due_at) VALUES (?, ?) ON CONFLICT DO UPDATE "
        "SET due_at = min(coalesce(due_at, 9e999), max(excluded.due_at, coalesce(not_before, 0))), "
        "by_timetable = 0 "
        "WHERE halted IS NULL AND (due_at IS NULL OR NOT by_timetable)",
        [(each, now_s) for each in sorted(subscriptions)],
    )


def _bury_halted(connection: Connection, now_s: float) -> None:
    """New deliveries of halted subscriptions become dead letters, which can be replayed."""
    connection.execute(
        "UPDATE deliveries SET state = 'dead', done_at = ?, "
        "error = (SELECT halted FROM agenda AS a WHERE a.subscription = deliveries.subscription) "
        f"WHERE {PENDING} AND subscription IN "
        "(SELECT subscription FROM agenda WHERE halted IS NOT NULL)",
        (now_s,),
    )


def _stored(
    row: tuple[int, int, int, str, str, str | None, int, str, float, str],
) -> StoredDelivery:
    number, subscription, version, feed, state, message, attempts, error, put_at_s, item = row
    return StoredDelivery(
        number=number,
        delivery=ItemDelivery(subscription, version, feed, decode_item(item)),
        state=DeliveryState(state),
        message=message,
        attempts=attempts,
        error=error,
        put_at_s=put_at_s,
    )
