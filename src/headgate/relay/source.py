"""The source of a relay network: documents are stored, then evaluated in order.

    publish ──► on disk ──► accepted
                   └──► evaluate views of level 1 ──► state ──► readers
                                     settled everywhere ──► mark on disk

When relays are slow or gone, documents wait on disk; publishers do not wait.

The stored documents (`PublishedDocuments`) are the only durable state in transit: a relay that is
killed gets everything again from its suppliers, and they in the end from here.

    publish ──► number 7, on disk ──► accepted          mark 5: all sites have everything before
    again, with the same key ──► number 7

A new file begins with the time in microseconds as its first number, so a number never means two
documents, even if the file is lost: relays that have earlier ones detect the gap and report it.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Self

from headgate.model.errors import RelayError, StateError
from headgate.model.text import parse_xml
from headgate.relay.core import DISK_AGAIN_S, RelayCore
from headgate.store.database import DurableDatabase, Layout


class RelaySource:
    def __init__(self, core: RelayCore, documents: PublishedDocuments) -> None:
        self._core, self._documents = core, documents
        self._next = documents.settled
        self.followers: set[asyncio.Event] = set()
        core.state.begin_source(documents.settled)

    @property
    def settled(self) -> int:
        return self._documents.settled

    async def publish(self, key: bytes, content: bytes) -> int:
        """The document's number, when it is on disk."""
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise RelayError(f"the document is no UTF-8: byte {error.start:,}") from None
        if parse_xml(text) is None:
            raise RelayError("the document is no well-formed XML")
        number = await asyncio.to_thread(self._documents.put, key, text)
        self._core.counts["published"] += 1
        self._core.has_settled.set()
        return number

    async def evaluate(self) -> None:
        """One document after the other; a full disk is waited for."""
        core = self._core
        while True:
            try:
                await self._note_settled()
                did = await self._evaluate_next()
            except StateError as error:
                core.troubles["documents"] = str(error)
                await asyncio.sleep(DISK_AGAIN_S)
                continue
            core.troubles.pop("documents", None)
            if not did:
                await core.has_settled.wait()
                core.has_settled.clear()

    async def _note_settled(self) -> None:
        """The mark of the documents that everybody has."""
        settled = self._core.state.settled_by_all()
        if settled > self._documents.settled:
            await asyncio.to_thread(self._documents.settle, settled)
            for each in self.followers:
                each.set()

    async def _evaluate_next(self) -> bool:
        core, documents = self._core, self._documents
        if self._next >= documents.next or not core.state.has_room(self._next):
            return False
        content = await asyncio.to_thread(documents.content_of, self._next)
        assert content is not None, "a document that is not settled is kept"
        results = core.recipes.evaluate(content)
        core.evaluated_at.append((self._next, time.monotonic()))
        core.state.published(results)
        core.counts["evaluated"] += 1
        self._next += 1
        core.wake()
        return True

    def status(self) -> dict[str, int]:
        return {
            "published": self._documents.next,
            "evaluated": self._next,
            "settled": self._documents.settled,
        }


# Documents on disk.

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
