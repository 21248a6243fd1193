"""The tables of the inbox (inbox.py), and what is kept of a feed between two fetches.

numbers     one row: the last number that was taken, and up to which they may be gone
documents   one row per number: which feed, how many rows, how large its body is
feeds       one row per feed: what to send along, what was seen, its habits, its last error
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass

from headgate.acquire.feed_state import FeedState
from headgate.acquire.identify import NOTHING_SEEN, Seen
from headgate.store.database import Layout

LAYOUT = Layout(
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
FILE = "inbox.sqlite"


@dataclass(frozen=True, slots=True)
class ListedFeed:
    """A feed that is to be fetched; the weight is how many subscribers it has."""

    name: str
    url: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is known of a feed from the fetches before."""

    etag: str | None = None
    last_modified: str | None = None
    seen: Seen = NOTHING_SEEN


@dataclass(frozen=True, slots=True)
class Document:
    """What was fetched, and its new items as rows of Arrow, in the bytes of an IPC file."""

    body: bytes
    rows: bytes
    row_count: int


@dataclass(frozen=True, slots=True)
class Visit:
    """A fetch that succeeded: what is known of the feed from now on."""

    at: float
    state: FeedState
    next_at: float
    remembered: Remembered
    moved_to: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A fetch that failed."""

    at: float
    state: FeedState
    next_at: float
    error: str


def pack_seen(seen: Seen) -> bytes:
    """Hashes in hexadecimal: half of each byte is air."""
    return zlib.compress(json.dumps(seen.to_json(), separators=(",", ":")).encode(), 1)


def unpack_seen(stored: bytes) -> Seen:
    return Seen.from_json(json.loads(zlib.decompress(stored)))


def pack_state(state: FeedState) -> str:
    return json.dumps(state.to_json(), separators=(",", ":"))


def unpack_state(stored: str) -> FeedState:
    return FeedState.from_json(json.loads(stored))
