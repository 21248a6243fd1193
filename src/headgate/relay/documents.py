"""The documents of a source, kept until everybody has them.

They are all that a network of relays has on disk on their way: whatever a relay loses when it is
killed is computed again from what its suppliers hold, and in the end from here.

    publish ──► number 7, on disk ──► accepted          mark 5: everybody has all before
    again, with the same key ──► number 7

A new file begins with the time in microseconds, so that a number never means two documents, even if
the file is lost: relays that know of earlier ones then see a gap and say so.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Self

from headgate.model.errors import RelayError
from headgate.store.database import DurableDatabase, Layout

WAITING_MAX = 100_000
KEYS_KEPT = 100_000
"""For so many documents that everybody has, a key that comes again is recognised."""

LAYOUT = Layout(
    "store of documents",
    """
CREATE TABLE documents (
    number INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    content TEXT
) STRICT;
CREATE TABLE marks (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    next INTEGER NOT NULL,
    settled INTEGER NOT NULL
) STRICT;
""",
    version=1,
)


class PublishedDocuments:
    def __init__(self, path: Path, *, waiting_max: int = WAITING_MAX) -> None:
        self._waiting_max = waiting_max
        self._database = DurableDatabase(path, LAYOUT)
        with self._database.transaction() as connection:
            first = time.time_ns() // 1_000
            connection.execute("INSERT OR IGNORE INTO marks VALUES (1, ?, ?)", (first, first))
            found = connection.execute("SELECT next, settled FROM marks").fetchone()
        self.next, self.settled = int(found[0]), int(found[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def put(self, key: bytes, content: str) -> int:
        """The document's number; it is on disk when this returns."""
        with self._database.transaction() as connection:
            known = connection.execute("SELECT number FROM documents WHERE key = ?", (key,))
            if row := known.fetchone():
                return int(row[0])
            if self.next - self.settled >= self._waiting_max:
                raise RelayError(
                    f"{self._waiting_max:,} documents wait for a site that does not take them"
                )
            number = self.next
            connection.execute("INSERT INTO documents VALUES (?, ?, ?)", (number, key, content))
            connection.execute("UPDATE marks SET next = ?", (number + 1,))
        self.next = number + 1
        return number

    def content_of(self, number: int) -> str | None:
        """The document; None if everybody has it, or nobody has published it."""
        with self._database.reading() as connection:
            query = "SELECT content FROM documents WHERE number = ?"
            row = connection.execute(query, (number,)).fetchone()
        return None if row is None or row[0] is None else str(row[0])

    def settle(self, mark: int) -> None:
        """Everybody has all documents before this one."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE documents SET content = NULL WHERE number >= ? AND number < ?",
                (self.settled, mark),
            )
            connection.execute("DELETE FROM documents WHERE number < ?", (mark - KEYS_KEPT,))
            connection.execute("UPDATE marks SET settled = ?", (mark,))
        self.settled = mark
