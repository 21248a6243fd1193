"""The inbox: fetched documents with new items, by number, until the pipeline has read them.

    fetched body ──► 17.body     gzip, for inspection
    new items    ──► 17.arrow    rows of Arrow
                       │ both synced
                       ▼
    one transaction: number 17; seen entries, ETag, refresh state of the feed

**Invariants.** A number identifies one fetched document with new items. An offset n means all
numbers up to n, and a number always gives the same rows. A crash at any time neither loses nor
repeats a document: before the transaction the document has not been seen, and its files are
overwritten by the next document of that number or removed at the next start; after it the files
exist, as they were synced and renamed before. A document without new items, or "not modified",
updates the feed but gets no number.

Rows are kept until the reader releases them, and for a hundred numbers more. Bodies are kept for a
week, up to 1 GB.

Cost: three fsyncs and two renames per document with new items, one fsync per other fetch. Memory:
one document per thread; seen entries are read from the database for each fetch.

Rejected: rows in the database. A worker would open it over a network file system, where SQLite's
locks cannot be trusted; files that never change can be read anywhere.
"""

from __future__ import annotations

import gzip
import os
import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from headgate.acquire.identify import NOTHING_SEEN
from headgate.acquire.inbox_tables import (
    DISCOVERED,
    DUE,
    INBOX_FILE,
    INBOX_LAYOUT,
    FailedFetch,
    FeedMemory,
    FetchedDocument,
    ListedFeed,
    SuccessfulFetch,
    pack_seen,
    pack_state,
    unpack_seen,
    unpack_state,
)
from headgate.acquire.refresh_state import DAY_S, RefreshState
from headgate.model.errors import StateError
from headgate.store.database import DurableDatabase
from headgate.store.whole_files import sync_folder, write_synced

MARGIN = 100
"""The number of released numbers whose rows are still kept."""
RELEASE_STEP = 50
"""Files are deleted in steps of this size, as each step is a transaction."""
DROPPED_KEPT_S = DAY_S
BODIES_KEPT_S = 7 * DAY_S
BODIES_BYTES_MAX = 1_000_000_000


class Inbox:
    """Thread-safe. One process opens it; others read `inbox_tables.feed_table`."""

    def __init__(self, folder: Path, *, wait_s: float = 0.0) -> None:
        self.folder = folder
        self._database = DurableDatabase(folder / INBOX_FILE, INBOX_LAYOUT, wait_s=wait_s)
        self._taking = threading.Lock()
        with self._database.reading() as connection:
            connection.execute(DISCOVERED)
            connection.execute(DUE)
            row = connection.execute("SELECT last, released FROM numbers").fetchone()
        self._last, self._released = int(row[0]), int(row[1])
        self._sweep()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    @property
    def last(self) -> int:
        """The last number that was assigned."""
        return self._last

    @property
    def released(self) -> int:
        """The rows of numbers up to this one may be deleted."""
        return self._released

    # --- feeds ------------------------------------------------------------------------------------

    def list_feeds(self, feeds: Iterable[ListedFeed], now: float) -> dict[str, RefreshState]:
        """Replace the list of feeds; return the stored state of each.

        The state of a feed that is no longer listed is kept for a day: it may be registered again.
        A feed with a new URL starts with a new state, but keeps its seen entries.
        """
        feeds_by_name = {each.name: each for each in feeds}
        with self._database.transaction() as connection:
            stored = {
                name: (url, unpack_state(state))
                for name, url, state in connection.execute("SELECT name, url, state FROM feeds")
            }
            states: dict[str, RefreshState] = {}
            for name, feed in feeds_by_name.items():
                url, state = stored.get(name, ("", RefreshState()))
                if url != feed.url:
                    state = RefreshState()
                    connection.execute(_LIST, (name, feed.url, _NOTHING, pack_state(state)))
                states[name] = state
            _mark_dropped(connection, feeds_by_name.keys(), stored.keys(), now)
        return states

    def remembered(self, name: str) -> FeedMemory:
        """The validators and the seen entries of this feed."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT etag, last_modified, seen, discovered.url FROM feeds LEFT JOIN discovered"
                " ON discovered.name = feeds.name AND discovered.page = feeds.url"
                " WHERE feeds.name = ?",
                (name,),
            ).fetchone()
        if row is None:
            return FeedMemory()
        return FeedMemory(row[0], row[1], unpack_seen(row[2]), row[3])

    def put(
        self, feed: ListedFeed, visit: SuccessfulFetch, document: FetchedDocument | None = None
    ) -> int | None:
        """Store the result of a fetch; a document with new items gets a number.

        Nothing is stored for a feed that was dropped, or has another URL by now.
        """
        if document is None:
            with self._database.transaction() as connection:
                _update_feed(connection, feed, visit, 0)
            return None
        body = gzip.compress(document.body, 6, mtime=0)
        written = self._write(document.rows, "arrow"), self._write(body, "body")
        with self._taking:
            number = self._last + 1
            self._rename(written, number)
            row = number, feed.name, document.row_count, len(body), visit.at
            with self._database.transaction() as connection:
                if not _update_feed(connection, feed, visit, document.row_count):
                    return None
                connection.execute("INSERT INTO documents VALUES (?, ?, ?, ?, ?)", row)
                connection.execute("UPDATE numbers SET last = ?", (number,))
            self._last = number
        return number

    def put_failure(self, feed: ListedFeed, failure: FailedFetch) -> None:
        values = pack_state(failure.state), failure.error[:1_000], failure.at, failure.at
        with self._database.transaction() as connection:
            connection.execute(_FAIL, (*values, failure.next_at, feed.name, feed.url))
            if failure.forget:
                connection.execute("DELETE FROM discovered WHERE name = ?", (feed.name,))
                connection.execute(
                    "UPDATE feeds SET etag = NULL, last_modified = NULL WHERE name = ?",
                    (feed.name,),
                )

    # --- numbers ----------------------------------------------------------------------------------

    def path_of(self, number: int) -> Path:
        return rows_path(self.folder, number)

    def end_within(self, start: int, *, rows_max: int | None) -> int:
        """The last number of a batch that starts after `start` and has at most `rows_max` rows; at
        least one number, if there is one."""
        last = self._last
        if rows_max is None or start >= last:
            return last
        end, total = start, 0
        # Each number has at least one row.
        for number, rows in self.row_counts(start, last, limit=rows_max):
            total += rows
            if total > rows_max and end > start:
                break
            end = number
            if total >= rows_max:
                break
        return end

    def row_counts(self, start: int, end: int, *, limit: int = -1) -> list[tuple[int, int]]:
        """The numbers after `start` up to `end`, and how many rows each one has."""
        if start < self._released and start < end:
            raise StateError(
                f"the inbox '{self.folder}' no longer has number {start + 1}: the query's "
                "checkpoint is older than the inbox; delete the checkpoint, or restore both"
            )
        if end > self._last:
            raise StateError(
                f"the inbox '{self.folder}' has never had number {end}: the query's checkpoint is "
                "newer than the inbox; delete the checkpoint, or restore both"
            )
        with self._database.reading() as connection:
            counts = connection.execute(
                "SELECT number, rows FROM documents WHERE number > ? AND number <= ?"
                " ORDER BY number LIMIT ?",
                (start, end, limit),
            )
            return [(int(number), int(rows)) for number, rows in counts]

    def release(self, number: int) -> None:
        """Declare that the reader no longer needs the numbers up to this one."""
        before, until = self._released, number - MARGIN
        if until - before < RELEASE_STEP:
            return
        with self._database.transaction() as connection:
            connection.execute("UPDATE numbers SET released = ?", (until,))
        self._released = until
        for released in range(before + 1, until + 1):
            self.path_of(released).unlink(missing_ok=True)

    def prune(self, now: float, *, bytes_max: int = BODIES_BYTES_MAX) -> int:
        """Delete bodies of released numbers that are old or too many; return how many."""
        with self._database.transaction() as connection:
            documents = connection.execute(
                "SELECT number, body_bytes, fetched_at FROM documents WHERE number <= ?"
                " ORDER BY number DESC",
                (self._released,),
            )
            pruned, total = [], 0
            for number, size, fetched_at in documents:
                total += size
                if total > bytes_max or fetched_at < now - BODIES_KEPT_S:
                    pruned.append(int(number))
            connection.executemany("DELETE FROM documents WHERE number = ?", [(n,) for n in pruned])
        for number in pruned:
            (self.folder / f"{number}.body").unlink(missing_ok=True)
        return len(pruned)

    # --- files ------------------------------------------------------------------------------------

    def _write(self, content: bytes, suffix: str) -> Path:
        """A synced file under a temporary name; it is renamed when its number is known."""
        path = self.folder / f".{os.getpid()}-{threading.get_ident()}.{suffix}"
        try:
            write_synced(path, content)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise StateError(f"'{path}' cannot be written: {error.strerror}") from error
        return path

    def _rename(self, written: Iterable[Path], number: int) -> None:
        try:
            for path in written:
                path.replace(self.folder / f"{number}{path.suffix}")
            sync_folder(self.folder)
        except OSError as error:
            raise StateError(f"'{self.folder}' cannot be written: {error.strerror}") from error

    def _sweep(self) -> None:
        """Delete files that a crash left behind: those without a number."""
        with self._database.reading() as connection:
            numbers = {int(each) for (each,) in connection.execute("SELECT number FROM documents")}
        for path in self.folder.iterdir():
            if path.suffix in (".arrow", ".body"):
                number = int(path.stem) if path.stem.isdigit() else 0
                gone = path.suffix == ".arrow" and number <= self._released
                if gone or number not in numbers:
                    path.unlink(missing_ok=True)


def rows_path(folder: Path, number: int) -> Path:
    return folder / f"{number}.arrow"


_NOTHING = pack_seen(NOTHING_SEEN)
_LIST = """
INSERT INTO feeds (name, url, seen, state) VALUES (?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET
    url = excluded.url, state = excluded.state, etag = NULL, last_modified = NULL,
    moved_to = NULL, error = '', broken_since = NULL, next_at = 0
"""
_FAIL = """
UPDATE feeds SET
    state = ?, error = ?, broken_since = coalesce(broken_since, ?), tried_at = ?, next_at = ?
WHERE name = ? AND url = ?
"""
_VISIT = """
UPDATE feeds SET
    etag = ?, last_modified = ?, seen = ?, moved_to = ?, state = ?, items = items + ?,
    error = '', broken_since = NULL, tried_at = ?, next_at = ?
WHERE name = ? AND url = ?
"""


def _update_feed(
    connection: sqlite3.Connection, feed: ListedFeed, visit: SuccessfulFetch, items: int
) -> bool:
    """Update the state of a feed; return whether the feed still exists with this URL."""
    memory = visit.remembered
    remembered = memory.etag, memory.last_modified, pack_seen(memory.seen), visit.moved_to
    refresh = pack_state(visit.state), items, visit.at, visit.next_at
    updated = connection.execute(_VISIT, (*remembered, *refresh, feed.name, feed.url))
    if updated.rowcount > 0 and memory.discovered:
        found = feed.name, feed.url, memory.discovered
        connection.execute("INSERT OR REPLACE INTO discovered VALUES (?, ?, ?)", found)
    return updated.rowcount > 0


def _mark_dropped(
    connection: sqlite3.Connection, listed_names: Iterable[str], stored: Iterable[str], now: float
) -> None:
    """Mark stored feeds that are no longer listed as dropped; delete those dropped a day ago."""
    listed = frozenset(listed_names)
    connection.executemany(
        "UPDATE feeds SET dropped_at = NULL WHERE name = ? AND dropped_at IS NOT NULL",
        [(each,) for each in listed],
    )
    connection.executemany(
        "UPDATE feeds SET dropped_at = coalesce(dropped_at, ?) WHERE name = ?",
        [(now, each) for each in stored if each not in listed],
    )
    connection.execute("DELETE FROM feeds WHERE dropped_at < ?", (now - DROPPED_KEPT_S,))
