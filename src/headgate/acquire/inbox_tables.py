"""The tables of the inbox (inbox.py), the records in them, and a view of them for other processes.

numbers     one row: the last assigned number, and the number up to which files may be deleted
documents   one row per number: its feed, its number of rows, the size of its body
feeds       one row per feed: validators, entries seen, refresh state, last error
discovered  one row per feed whose URL is a page that names it: the page, and where the feed is

`feed_table`, `feed_row`, `broken_feeds` and `count_feeds` open the database read-only, while
another process fetches.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from headgate.acquire.identify import NOTHING_SEEN, Seen
from headgate.acquire.refresh_state import RefreshState
from headgate.store.database import DurableDatabase, Layout

INBOX_LAYOUT = Layout(
    "inbox",
    """
CREATE TABLE numbers (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    last INTEGER NOT NULL,
    released INTEGER NOT NULL
) STRICT;
INSERT INTO numbers VALUES (1, 0, 0);
CREATE TABLE documents (
    number INTEGER PRIMARY KEY,
    feed TEXT NOT NULL,
    rows INTEGER NOT NULL,
    body_bytes INTEGER NOT NULL,
    fetched_at REAL NOT NULL
) STRICT;
CREATE TABLE feeds (
    name TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    etag TEXT,
    last_modified TEXT,
    moved_to TEXT,
    seen BLOB NOT NULL,
    state TEXT NOT NULL,
    items INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '',
    broken_since REAL,
    tried_at REAL,
    next_at REAL NOT NULL DEFAULT 0,
    dropped_at REAL
) STRICT;
CREATE INDEX feeds_broken ON feeds (name) WHERE broken_since IS NOT NULL;
""",
    1,
)
DISCOVERED = """
CREATE TABLE IF NOT EXISTS discovered (
    name TEXT PRIMARY KEY,
    page TEXT NOT NULL,
    url TEXT NOT NULL
) STRICT
"""
"""Created when an inbox is opened: those that were written before there was this table lack it."""
DUE = "CREATE INDEX IF NOT EXISTS feeds_due ON feeds (next_at) WHERE dropped_at IS NULL"
"""Created likewise. Without it, counting what is due would read what was seen of every feed."""
INBOX_FILE = "inbox.sqlite"


@dataclass(frozen=True, slots=True)
class ListedFeed:
    """A feed to fetch; its weight is the number of its subscribers."""

    name: str
    url: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class FeedMemory:
    """Validators and seen entries of a feed, from earlier fetches."""

    etag: str | None = None
    last_modified: str | None = None
    seen: Seen = NOTHING_SEEN
    discovered: str | None = None
    """Where the feed is, if its URL is a page that names it."""


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    """A fetched body, and its new items as the bytes of an Arrow IPC file."""

    body: bytes
    rows: bytes
    row_count: int


@dataclass(frozen=True, slots=True)
class SuccessfulFetch:
    """The state of a feed after a successful fetch."""

    at: float
    state: RefreshState
    next_at: float
    remembered: FeedMemory
    moved_to: str | None = None


@dataclass(frozen=True, slots=True)
class FailedFetch:
    """The state of a feed after a failed fetch."""

    at: float
    state: RefreshState
    next_at: float
    error: str
    forget: bool = False
    """Whether what was remembered of an earlier fetch no longer holds."""


def pack_seen(seen: Seen) -> bytes:
    """Compressed JSON: hashes are in hexadecimal, so compression halves the size."""
    return zlib.compress(json.dumps(seen.to_json(), separators=(",", ":")).encode(), 1)


def unpack_seen(stored: bytes) -> Seen:
    return Seen.from_json(json.loads(zlib.decompress(stored)))


def pack_state(state: RefreshState) -> str:
    return json.dumps(state.to_json(), separators=(",", ":"))


def unpack_state(stored: str) -> RefreshState:
    return RefreshState.from_json(json.loads(stored))


# --- for other processes --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FeedRow:
    """A feed as `headgate show` shows it."""

    name: str
    url: str
    moved_to: str | None
    """The URL of a permanent redirect, if there was one."""
    items: int
    rate_per_day: float
    """The expected number of items per day."""
    window: int
    """The number of entries in its document."""
    fetched_at: datetime | None
    """The last successful fetch."""
    tried_at: datetime | None
    next_at: datetime | None
    """The earliest time of the next fetch; None before the first one."""
    failures: int
    error: str
    broken_since: datetime | None


@dataclass(frozen=True, slots=True)
class BrokenFeed:
    name: str
    url: str
    error: str
    failures: int
    since: datetime
    next_at: datetime


def feed_table(folder: Path, *, prefix: str = "") -> list[FeedRow]:
    """All feeds of this inbox whose names begin so, by name; none if there is no inbox yet."""
    if not prefix:
        return _read(folder, "dropped_at IS NULL")
    end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    return _read(folder, "dropped_at IS NULL AND name >= ? AND name < ?", prefix, end)


def feed_row(folder: Path, name: str) -> FeedRow | None:
    """One feed of this inbox; None if it is not there."""
    return next(iter(_read(folder, "dropped_at IS NULL AND name = ?", name)), None)


def broken_feeds(folder: Path) -> list[BrokenFeed]:
    """The feeds whose last fetch failed. They are retried automatically."""
    rows = _read(folder, "dropped_at IS NULL AND broken_since IS NOT NULL")
    return [
        BrokenFeed(row.name, row.url, row.error, row.failures, row.broken_since, row.next_at)
        for row in rows
        if row.broken_since is not None and row.next_at is not None
    ]


@dataclass(frozen=True, slots=True)
class FeedCounts:
    feeds: int = 0
    due: int = 0
    """Those that might have been fetched again before a given instant, and were not."""
    untried: int = 0
    """Those that were never fetched."""


def count_feeds(folder: Path, *, due_before: float) -> FeedCounts:
    """How many feeds this inbox has, and how many of them wait since before an instant."""
    path = folder / INBOX_FILE
    if not path.exists():
        return FeedCounts()
    with (
        DurableDatabase(path, INBOX_LAYOUT, read_only=True) as database,
        database.reading() as connection,
    ):
        row = connection.execute(_COUNT, [due_before]).fetchone()
    return FeedCounts(*map(int, row))


_COUNT = """
SELECT count(*), count(*) FILTER (WHERE next_at > 0 AND next_at < ?),
    count(*) FILTER (WHERE next_at = 0)
FROM feeds WHERE dropped_at IS NULL
"""


def _read(folder: Path, condition: str, *values: str) -> list[FeedRow]:
    path = folder / INBOX_FILE
    if not path.exists():
        return []
    with (
        DurableDatabase(path, INBOX_LAYOUT, read_only=True) as database,
        database.reading() as connection,
    ):
        rows = connection.execute(
            "SELECT name, url, moved_to, items, state, tried_at, next_at, error, broken_since"
            f" FROM feeds WHERE {condition} ORDER BY name",
            values,
        ).fetchall()
    return [_row(each) for each in rows]


def _row(columns: Sequence[object]) -> FeedRow:
    name, url, moved_to, items, stored, tried_at, next_at, error, broken_since = columns
    state = unpack_state(str(stored))
    return FeedRow(
        str(name),
        str(url),
        None if moved_to is None else str(moved_to),
        int(str(items)),
        state.rate_per_s * 86_400,
        state.window,
        _time(state.fetched_at),
        _time(tried_at),
        _time(next_at) if tried_at is not None else None,
        state.failures,
        str(error),
        _time(broken_since),
    )


def _time(seconds: object) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, float) else None
