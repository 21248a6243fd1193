"""The tables of the outbox (store/database.py has the file).

contents    an item as JSON, once, however many subscriptions it is delivered to
   ▲
deliveries  one row per (subscription, version, item, source): its state and attempts
totals      how many there are of each state: whoever watches a run asks twice a second
agenda      one row per subscription: when something is to be done for it, or why never again
clock       one row: the latest time that was seen, to notice a clock that goes back
files       which subscription writes which file
twins       by which keys a subscription knows what it has had, and from which source
"""

from __future__ import annotations

from headgate.store.database import Layout

LAYOUT = Layout(
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
