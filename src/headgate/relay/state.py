"""What a relay knows and does next, without sockets, files or clocks ([Delta §2, §5.5]).

Each view at a site is a stream of results, one for every document, in the order of documents; a
view without tuples of a document has an empty result. So a document's number is the sequence
number of every stream, and a stream has three marks:

    settled        sent            next
    ───┼─────────────┼───────────────┼──────►  documents
       │             │               └ the next one to be received or computed
       │             └ the next one to be sent to a reader (one mark for each)
       └ all before are no longer needed by any site: acknowledged to the supplier

A document of a view is settled here when its home has stored it, all readers have reported that it
is settled there, and all views computed from it here are settled. So acknowledgements travel from
the last readers back to the source, along views, which have no cycle even where sites have.

Invariants, for any order of arrival between links, any repetition, and any restart of any relay, or
of all at the same time, as long as the source keeps the documents that are not settled:

    each stream is in the order of documents, each document once (repetitions are dropped)
    a supplier still holds what is not settled: a restarted relay begins where its suppliers say,
    a computed view at the latest of what it reads, and nothing is missing
    a relay holds at most `window` documents of a view: a supplier sends no further

The last one has an intended price: a reader that is gone for long blocks all others once the window
is full. The source keeps what is published in the meantime.

Cost: a few dictionary operations for each view and document. Rejected: acknowledging on arrival and
storing on disk at every hop (every tuple would be written at every site, and a document is a
thousandth of its tuples); one acknowledgement for a whole document and link (sites that feed each
other would wait for each other for ever).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

from headgate.model.errors import RelayError
from headgate.relay.deployment import LocalView, SitePart
from headgate.relay.streams import (
    UNKNOWN,
    DocumentWindow,
    Job,
    Position,
    Reader,
    RelayMessage,
    Result,
    Stream,
)

WINDOW_DOCUMENTS = 32
HELD_BYTES_MAX = 512 * 2**20


class RelayState:
    """Not for several threads at a time."""

    def __init__(
        self,
        part: SitePart,
        *,
        window: int = WINDOW_DOCUMENTS,
        held_bytes_max: int = HELD_BYTES_MAX,
    ) -> None:
        self.part = part
        self._window = DocumentWindow(window, held_bytes_max)
        self.held_bytes = 0
        self._streams = {
            number: Stream(view, {site: Reader() for site in view.readers})
            for number, view in part.views.items()
        }
        self._from_documents = [
            stream
            for stream in self._streams.values()
            if not stream.view.supplier and not stream.view.reads
        ]
        self._jobs: list[tuple[int, int]] = []
        self._to_send: dict[str, dict[int, None]] = {site: {} for site in part.readers}
        self._starts: dict[str, dict[int, int]] = {site: {} for site in part.readers}
        self._windows: dict[str, int] = {}
        self._to_acknowledge: dict[str, dict[int, None]] = {site: {} for site in part.suppliers}
        self._to_keep: list[RelayMessage] = []

    @property
    def window(self) -> int:
        """How many documents of a view this relay takes beyond what it has settled."""
        return self._window.documents

    # What comes from others.

    def receive(self, site: str, view: int, document: int, result: Result) -> bool:
        """A result from a supplier; False if it was here already."""
        stream = self._received(site, view)
        if not stream.has_begun:
            self._begin(stream, document)
        if document < stream.next:
            return False
        if document > stream.next:
            raise RelayError(
                f"{site} sends document {document} of view {view}, expected {stream.next}: it no "
                "longer holds those between; restart this relay to go on without them"
            )
        self._arrive(stream, result)
        return True

    def start(self, site: str, view: int, document: int) -> None:
        """A supplier tells with which document a view begins here: there may be none for long."""
        stream = self._received(site, view)
        if not stream.has_begun:
            self._begin(stream, document)

    def resume(self, site: str, positions: Iterable[Position], *, window: int) -> None:
        """A reader has connected, and tells where it is; UNKNOWN if it has been started anew."""
        if site not in self._to_send:
            raise RelayError(f"{site} reads nothing from {self.part.site}")
        self.set_window(site, window)
        self._starts[site] = {}
        for each in positions:
            stream = self._sent_to(site, each.view)
            if each.settled > each.next:
                raise RelayError(f"{site} has settled more of view {each.view} than it has")
            reader = stream.readers[site]
            reader.wants, reader.sent = each.next, UNKNOWN
            self._settle_by(stream, reader, each.settled)
            self._to_send[site][each.view] = None

    def set_window(self, site: str, window: int) -> None:
        self._windows[site] = window
        for number, stream in self._streams.items():
            if site in stream.readers:
                self._to_send[site][number] = None

    def acknowledge(self, site: str, view: int, settled: int) -> None:
        """A reader needs no document of a view before this one any more."""
        stream = self._sent_to(site, view)
        reader = stream.readers[site]
        if settled > max(reader.sent, reader.wants):
            raise RelayError(f"{site} acknowledges view {view} up to {settled}, which it has not")
        self._settle_by(stream, reader, settled)
        self._to_send[site][view] = None

    def _received(self, site: str, view: int) -> Stream:
        stream = self._streams.get(view)
        if stream is None or stream.view.supplier != site:
            raise RelayError(f"{site} sends view {view}, which {self.part.site} has not asked for")
        return stream

    def _sent_to(self, site: str, view: int) -> Stream:
        stream = self._streams.get(view)
        if stream is None or site not in stream.readers:
            raise RelayError(f"{site} is not a reader of view {view} at {self.part.site}")
        return stream

    # What was done here.

    def begin_source(self, document: int) -> None:
        """The first document that is not settled, at the site that evaluates documents."""
        for stream in self._from_documents:
            self._begin(stream, document)

    def published(self, results: Mapping[int, Result]) -> None:
        """What the views of level 1 hold of the next document."""
        for number, result in results.items():
            self._arrive(self._streams[number], result)

    def computed(self, job: Job, result: Result) -> None:
        stream = self._streams[job.view]
        assert job.document == stream.next, "a view is computed in the order of documents"
        for member in stream.view.reads:
            self._use(self._streams[member], job.document)
        self._arrive(stream, result)

    def kept(self, messages: Iterable[RelayMessage]) -> None:
        """The home of these has kept them for good."""
        for each in messages:
            stream = self._streams[each.view]
            self._use(stream, each.document)
            self._confirm(stream, each.document)

    def settled_by_all(self) -> int:
        """At the source: every document before this one is settled everywhere."""
        return min((stream.settled for stream in self._from_documents), default=UNKNOWN)

    def has_room(self, document: int) -> bool:
        """Whether the source may evaluate this document yet."""
        return document < self.settled_by_all() + self.window

    # What to do next.

    def next_job(self) -> Job | None:
        """The oldest document first."""
        if not self._jobs:
            return None
        document, number = heapq.heappop(self._jobs)
        stream = self._streams[number]
        stream.is_queued = False
        inputs = {member: self._streams[member].results[document] for member in stream.view.reads}
        return Job(number, document, inputs)

    def take_messages(self, site: str, *, bytes_max: int) -> list[RelayMessage]:
        """What to send to a reader now, as far as its window allows."""
        waiting, found, size = self._to_send[site], list[RelayMessage](), 0
        for number in list(waiting):
            stream = self._streams[number]
            reader = stream.readers[site]
            self._place(site, stream, reader)
            end = min(stream.next, reader.settled + self._windows.get(site, 0))
            while reader.sent < end and size < bytes_max:
                result = stream.results[reader.sent]
                found.append(RelayMessage(number, reader.sent, result))
                size += result.size_bytes
                reader.sent += 1
            if size >= bytes_max:
                return found
            del waiting[number]
        return found

    def take_starts(self, site: str) -> dict[int, int]:
        """Where views begin for a reader that did not know; to be sent beside the messages."""
        taken, self._starts[site] = self._starts[site], {}
        return taken

    def take_acknowledgements(self, site: str) -> list[tuple[int, int]]:
        """Views of a supplier, each with the first document that is not settled."""
        taken, self._to_acknowledge[site] = self._to_acknowledge[site], {}
        return [(number, self._streams[number].settled) for number in taken]

    def take_to_keep(self) -> list[RelayMessage]:
        """What has come for the subscribers of this site."""
        taken, self._to_keep = self._to_keep, []
        return taken

    def positions(self, site: str) -> list[Position]:
        """What to tell a supplier on connecting."""
        return [
            Position(number, stream.next, stream.settled)
            for number, stream in self._streams.items()
            if stream.view.supplier == site
        ]

    def has_messages(self, site: str) -> bool:
        return bool(self._to_send[site])

    def has_acknowledgements(self, site: str) -> bool:
        return bool(self._to_acknowledge[site])

    def marks(self) -> Iterable[tuple[LocalView, int, int]]:
        """Each view here, with its next document and the first that is not settled."""
        return ((each.view, each.next, each.settled) for each in self._streams.values())

    # How marks move.

    def _begin(self, stream: Stream, document: int) -> None:
        """The first document of a stream is known; so may be that of what is computed from it."""
        waiting = [(stream, document)]
        while waiting:
            stream, document = waiting.pop()
            stream.begin = stream.next = stream.settled = document
            for site, reader in stream.readers.items():
                reader.settled = max(reader.settled, document)
                self._to_send[site][stream.view.number] = None
            for member in map(self._streams.__getitem__, stream.view.reads):
                for earlier in range(member.begin, min(document, member.next)):
                    self._use(member, earlier)
                    self._confirm(member, earlier)
            for user in map(self._streams.__getitem__, stream.view.used_by):
                begins = [self._streams[each].begin for each in user.view.reads]
                if UNKNOWN not in begins:
                    waiting.append((user, max(begins)))

    def _arrive(self, stream: Stream, result: Result) -> None:
        document, view = stream.next, stream.view
        users = [self._streams[number] for number in view.used_by]
        behind = sum(reader.settled <= document for reader in stream.readers.values())
        unsettled = behind + view.is_home + sum(user.settled <= document for user in users)
        unused = behind + view.is_home + sum(user.next <= document for user in users)
        stream.next += 1
        stream.unsettled[document] = unsettled
        self._window.measure(document, result.size_bytes)
        if unused:
            stream.unused[document] = unused
            stream.results[document] = result
            self.held_bytes += result.size_bytes
        if view.is_home:
            self._to_keep.append(RelayMessage(view.number, document, result))
        for site in stream.readers:
            self._to_send[site][view.number] = None
        for user in users:
            self._queue(user)
        if view.reads:
            self._queue(stream)
        self._advance(stream)

    def _queue(self, stream: Stream) -> None:
        """A job for the next document, if all that it takes is here."""
        if stream.is_queued or not stream.has_begun:
            return
        if all(self._streams[member].next > stream.next for member in stream.view.reads):
            stream.is_queued = True
            heapq.heappush(self._jobs, (stream.next, stream.view.number))

    def _place(self, site: str, stream: Stream, reader: Reader) -> None:
        """Where to go on with a reader that has just connected, or a stream that has just begun."""
        if reader.sent == UNKNOWN and stream.has_begun:
            reader.sent = max(reader.wants, reader.settled, stream.begin)
            if reader.wants == UNKNOWN:
                self._starts[site][stream.view.number] = reader.sent

    def _settle_by(self, stream: Stream, reader: Reader, settled: int) -> None:
        before = reader.settled
        reader.settled = max(before, settled)
        if stream.has_begun:
            for document in range(max(before, stream.begin), min(reader.settled, stream.next)):
                self._use(stream, document)
                self._confirm(stream, document)

    def _use(self, stream: Stream, document: int) -> None:
        """One of those who may ask for a result will not ask any more."""
        left = stream.unused[document] = stream.unused[document] - 1
        if not left:
            del stream.unused[document]
            self.held_bytes -= stream.results.pop(document).size_bytes

    def _confirm(self, stream: Stream, document: int) -> None:
        """One of those who have to settle a document has done so."""
        stream.unsettled[document] -= 1
        self._advance(stream)

    def _advance(self, stream: Stream) -> None:
        waiting = [stream]
        while waiting:
            stream = waiting.pop()
            while stream.unsettled.get(stream.settled) == 0:
                del stream.unsettled[stream.settled]
                for member in map(self._streams.__getitem__, stream.view.reads):
                    member.unsettled[stream.settled] -= 1
                    waiting.append(member)
                stream.settled += 1
                if stream.view.supplier:
                    self._to_acknowledge[stream.view.supplier][stream.view.number] = None
