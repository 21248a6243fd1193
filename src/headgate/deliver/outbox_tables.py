"""The tables of the outbox, the contents of items, and pruning. outbox.py has the deliveries.

contents    an item as JSON, stored once for all its subscriptions, under its hash
   ▲
deliveries  one row per (subscription, version, item, source): its state and attempts
totals      the number of deliveries per state, kept by triggers: status displays read it often
agenda      one row per subscription: when it is due next, or why it is halted (schedule.py)
clock       one row: the latest time that was seen, to detect a clock that was set back
files       which subscription writes which file
twins       identity keys of the items a subscription has had (cross_feed_dedup.py)

`prune` removes finished deliveries: sent ones after the time in which a batch may be replayed, dead
letters later. For subscriptions with a file output the last items stay, as the file is made of
them. It works in steps of a few thousand rows, so nobody waits long for the database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from sqlite3 import Connection

from headgate.deliver.item_encoding import encode_item
from headgate.model.items import Item
from headgate.store.database import DurableDatabase, Layout

OUTBOX_LAYOUT = Layout(
    "outbox",
    """
CREATE TABLE contents (
    number INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    item TEXT NOT NULL
) STRICT;
CREATE TABLE deliveries (
    number INTEGER PRIMARY KEY,
    subscription INTEGER NOT NULL,
    version INTEGER NOT NULL,
    item BLOB NOT NULL,
    source BLOB NOT NULL,
    feed TEXT NOT NULL,
    content INTEGER NOT NULL REFERENCES contents,
    state TEXT NOT NULL DEFAULT 'waiting'
        CHECK (state IN ('waiting', 'sending', 'sent', 'failed', 'dead')),
    message TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '',
    put_at REAL NOT NULL,
    retry_at REAL,
    done_at REAL,
    UNIQUE (subscription, version, item, source)
) STRICT;
CREATE INDEX deliveries_of_subscription ON deliveries (subscription, number);
CREATE INDEX deliveries_pending ON deliveries (subscription, number)
    WHERE state IN ('waiting', 'sending', 'failed');
CREATE INDEX deliveries_done ON deliveries (done_at) WHERE done_at IS NOT NULL;
CREATE INDEX deliveries_by_content ON deliveries (content);
CREATE TABLE agenda (
    subscription INTEGER PRIMARY KEY,
    due_at REAL,
    by_timetable INTEGER NOT NULL DEFAULT 0,
    not_before REAL,
    failures INTEGER NOT NULL DEFAULT 0,
    last_run_at REAL,
    halted TEXT
) STRICT;
CREATE INDEX agenda_due ON agenda (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX agenda_halted ON agenda (subscription) WHERE halted IS NOT NULL;
CREATE TABLE twins (
    subscription INTEGER NOT NULL,
    key BLOB NOT NULL,
    source BLOB NOT NULL,
    put_at REAL NOT NULL,
    PRIMARY KEY (subscription, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX twins_by_time ON twins (put_at);
CREATE TABLE clock (id INTEGER PRIMARY KEY CHECK (id = 1), latest REAL NOT NULL) STRICT;
CREATE TABLE files (path BLOB PRIMARY KEY, subscription INTEGER NOT NULL) STRICT;
CREATE TABLE totals (state TEXT PRIMARY KEY, count INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO totals VALUES ('waiting', 0), ('sending', 0), ('sent', 0), ('failed', 0), ('dead', 0);
CREATE TRIGGER one_more AFTER INSERT ON deliveries BEGIN
    UPDATE totals SET count = count + 1 WHERE state = NEW.state;
END;
CREATE TRIGGER one_less AFTER DELETE ON deliveries BEGIN
    UPDATE totals SET count = count - 1 WHERE state = OLD.state;
END;
CREATE TRIGGER one_changed AFTER UPDATE OF state ON deliveries WHEN OLD.state <> NEW.state BEGIN
    UPDATE totals SET count = count - 1 WHERE state = OLD.state;
    UPDATE totals SET count = count + 1 WHERE state = NEW.state;
END;
""",
    version=3,
)


# --- contents -------------------------------------------------------------------------------------


class ItemContents:
    """The numbers of items' contents; an item that was seen is not encoded again."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._numbers: dict[int, int] = {}
        self._seen: list[Item] = []  # so that no other item gets the same id() meanwhile
        self._new: list[int] = []

    def number(self, item: Item) -> int:
        known = self._numbers.get(id(item))
        if known is None:
            known = self._numbers[id(item)] = self._store(encode_item(item))
            self._seen.append(item)
        return known

    def _store(self, content: str) -> int:
        digest = hashlib.sha256(content.encode()).digest()
        stored = self._connection.execute(
            "INSERT INTO contents (hash, item) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (digest, content),
        )
        if stored.rowcount == 1 and stored.lastrowid is not None:
            self._new.append(stored.lastrowid)
            return stored.lastrowid
        found = self._connection.execute("SELECT number FROM contents WHERE hash = ?", (digest,))
        number: int = found.fetchone()[0]
        return number

    def forget_unused(self) -> None:
        """A key that was there already keeps its content, so a changed one is not needed."""
        forget_contents(self._connection, self._new)


def forget_contents(connection: Connection, numbers: Iterable[int]) -> None:
    """Delete those contents that no delivery has."""
    connection.executemany(
        "DELETE FROM contents WHERE number = ? "
        "AND NOT EXISTS (SELECT 1 FROM deliveries WHERE content = contents.number)",
        [(number,) for number in numbers],
    )


# --- pruning --------------------------------------------------------------------------------------

STEP_ROWS = 5_000


def prune(
    database: DurableDatabase,
    *,
    sent_before_s: float,
    dead_before_s: float,
    keep: Collection[int] = (),
    keep_last: int = 100,
) -> int:
    """How many rows went. After this, a replay of what was forgotten would deliver it again."""
    gone = 0
    while step := _prune_step(database, sent_before_s, dead_before_s, keep, keep_last):
        gone += step
    return gone


def _prune_step(
    database: DurableDatabase,
    sent_before_s: float,
    dead_before_s: float,
    keep: Collection[int],
    keep_last: int,
) -> int:
    with database.transaction() as connection:
        connection.execute(
            "CREATE TEMP TABLE IF NOT EXISTS kept (subscription INTEGER PRIMARY KEY)"
        )
        connection.execute("DELETE FROM kept")
        connection.executemany("INSERT OR IGNORE INTO kept VALUES (?)", [(each,) for each in keep])
        connection.execute("INSERT OR IGNORE INTO kept SELECT subscription FROM files")
        connection.execute("DELETE FROM twins WHERE put_at < ?", (sent_before_s,))
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
