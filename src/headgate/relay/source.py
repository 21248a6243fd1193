"""The source: documents come in, are kept, and evaluated in order as far as the network takes them.

    publish ──► on disk ──► accepted
                   └──► evaluate views of level 1 ──► state ──► readers
                                     settled everywhere ──► mark on disk

When relays are slow or gone, documents wait on disk; nobody who publishes has to wait.
"""

from __future__ import annotations

import asyncio
import time

from headgate.model.errors import RelayError, StateError
from headgate.model.xml_text import parse_xml
from headgate.relay.core import DISK_AGAIN_S, RelayCore
from headgate.relay.documents import PublishedDocuments


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
