"""Connections between relays: `follow` as a reader, `RelayServer` as a supplier.

A reader dials its supplier, sends its position in each view, receives results and acknowledges
them. A lost connection is made again, with growing pauses, and the supplier repeats what the reader
does not have. A supplier that violates the protocol is sent the reason and disconnected; the reader
tries again later.

The listening side serves readers with results, accepts documents from publishers, and answers
status requests. A reader has one connection: a new one closes the old one, which may be dead. A
slow reader delays only its own connection; results that it has not acknowledged are held within its
window.
"""

from __future__ import annotations

import asyncio
import random
import time

from headgate.model.errors import RelayError, StateError
from headgate.relay.core import RelayCore
from headgate.relay.deployment import Address
from headgate.relay.recipes import TupleResult
from headgate.relay.source import RelaySource
from headgate.relay.streams import RelayMessage
from headgate.relay.tuple_frames import encode_failure
from headgate.relay.wire import (
    KEY_BYTES,
    QUIET_S,
    SILENCE_S,
    FrameKind,
    Introduction,
    Role,
    Wire,
    answer,
    dial,
    pack_json,
    pack_marks,
    pack_number,
    pack_results,
    pack_resume,
    unpack_json,
    unpack_marks,
    unpack_number,
    unpack_results,
    unpack_resume,
)

PAUSE_MIN_S, PAUSE_MAX_S = 0.05, 2.0
GATHERING_S = 0.01
"""Acknowledgements are in no hurry: those of so long go together."""
GONE = (OSError, EOFError)


async def follow(core: RelayCore, supplier: str) -> None:
    """Results from a supplier, for ever."""
    address = core.deployment.addresses[supplier]
    pause_s, since = PAUSE_MIN_S, time.monotonic()
    while True:
        try:
            wire = await dial(address, supplier, core.introduction(Role.READER), core.secret)
            began = time.monotonic()
            try:
                await _read_from(core, supplier, wire)
            finally:
                core.suppliers.discard(supplier)
                since = time.monotonic()
                if since - began > PAUSE_MAX_S:  # else it may be one that refuses us every time
                    pause_s = PAUSE_MIN_S
                await wire.close()
        except GONE as error:
            core.troubles[supplier] = f"cannot be reached at {address}: {_told(error)}"
        except RelayError as error:
            core.refuse(supplier, error)
            core.troubles[supplier] = str(error)
        await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
        pause_s = min(2 * pause_s, PAUSE_MAX_S)
        if time.monotonic() - since > core.settings.lost_after_s:
            core.news.lost(supplier)
            core.wake_readers()


def _told(error: BaseException) -> str:
    if isinstance(error, asyncio.IncompleteReadError):
        return "it has closed the connection"
    return str(error) or type(error).__name__


async def _read_from(core: RelayCore, supplier: str, wire: Wire) -> None:
    state = core.state
    state.take_acknowledgements(supplier)  # they are part of the positions
    window = state.window
    await wire.write(FrameKind.RESUME, pack_resume(state.positions(supplier), window=window))
    core.suppliers.add(supplier)
    core.troubles.pop(supplier, None)
    core.news.found(supplier)
    core.wake_readers()
    telling = asyncio.create_task(_tell(core, supplier, wire, window))
    hearing = asyncio.create_task(_hear(core, supplier, wire))
    await first_to_end(telling, hearing)


async def first_to_end(*tasks: asyncio.Task[None]) -> None:
    """Wait for one of the tasks to end, end the others, and raise what it raised."""
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in tasks:
            each.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for found in ended:
        if isinstance(found, Exception):
            raise found


async def _hear(core: RelayCore, supplier: str, wire: Wire) -> None:
    try:
        while True:
            kind, content = await wire.read(limit=core.settings.frame_bytes_max)
            _take(core, supplier, kind, content)
            core.wake()
    except RelayError as error:
        await wire.refuse(str(error))
        raise


def _take(core: RelayCore, supplier: str, kind: FrameKind, content: bytes) -> None:
    state, counts = core.state, core.counts
    match kind:
        case FrameKind.RESULTS:
            for view, document, result in unpack_results(content):
                known = core.recipes.received(supplier, view, document, result)
                if state.receive(supplier, view, document, known):
                    counts["received"] += 1
                else:
                    counts["again"] += 1
        case FrameKind.STARTS:
            for view, document in unpack_marks(content):
                state.start(supplier, view, document)
        case FrameKind.NEWS:
            told = unpack_json(content)
            if not all(isinstance(sites, list) for sites in told.values()):
                raise RelayError("news are views with lists of sites")
            try:
                news = {int(view): _texts(sites) for view, sites in told.items()}
            except ValueError:
                raise RelayError("news are of views by number") from None
            core.news.hear(supplier, news)
            core.wake_readers()
        case FrameKind.ALIVE:
            pass
        case FrameKind.REFUSED:
            raise RelayError(f"{supplier} refuses: {unpack_json(content).get('error')}")
        case _:
            raise RelayError(f"{supplier} sends a frame of kind {kind.name}, which is no reader's")


def _texts(found: object) -> list[str]:
    return [str(each) for each in found] if isinstance(found, list) else []


async def _tell(core: RelayCore, supplier: str, wire: Wire, window: int) -> None:
    event = core.for_supplier[supplier]
    while True:
        if marks := core.state.take_acknowledgements(supplier):
            await wire.write(FrameKind.SETTLED, pack_marks(marks))
            await asyncio.sleep(GATHERING_S)
        if core.state.window != window:
            window = core.state.window
            await wire.write(FrameKind.WINDOW, pack_number(window))
        if not await heard_within(event, QUIET_S):
            await wire.write(FrameKind.ALIVE)


async def heard_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event and clear it; False if it does not come in time."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    event.clear()
    return True


# The listening side.

BATCH_BYTES = 2**20
READ_AHEAD_BYTES = 2**18
STRANGERS_MAX = 64
"""So many may be connected without having shown that they belong to the network."""
WINDOW_MAX = 1_000_000
PUBLISHER_SILENCE_S = 3_600.0
"""Nobody depends on a publisher: it may be silent for long."""


class RelayServer:
    def __init__(self, core: RelayCore, source: RelaySource | None) -> None:
        self._core, self._source = core, source
        self._strangers = 0
        self._sessions: dict[str, asyncio.Task[None]] = {}
        self._open: set[asyncio.Task[None]] = set()

    async def listen(self, at: Address) -> asyncio.Server:
        return await asyncio.start_server(self._accept, at.host, at.port, limit=READ_AHEAD_BYTES)

    async def end(self, server: asyncio.Server) -> None:
        server.close()
        for each in self._open:
            each.cancel()
        if self._open:
            await asyncio.wait(self._open)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(Wire(reader, writer)))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, wire: Wire) -> None:
        core = self._core
        try:
            if self._strangers >= STRANGERS_MAX:
                raise RelayError("too many connections that have not introduced themselves")
            self._strangers += 1
            try:
                who = await answer(
                    wire,
                    core.site,
                    network=core.deployment.network,
                    plan=core.deployment.plan_id,
                    secret=core.secret,
                    check=self._check,
                )
            finally:
                self._strangers -= 1
            match who.role:
                case Role.READER:
                    await self._serve_reader(wire, who.site)
                case Role.PUBLISHER:
                    await self._serve_publisher(wire)
                case Role.WATCHER:
                    await self._serve_watcher(wire)
        except RelayError as error:
            core.refuse("a peer", error)
            await wire.refuse(str(error))
        except GONE:
            core.counts["lost connections"] += 1
        finally:
            await wire.close()

    def _check(self, who: Introduction) -> None:
        core = self._core
        if who.role is Role.READER and who.site not in core.for_reader:
            raise RelayError(f"{who.site} reads nothing from {core.site}")
        if who.role is Role.PUBLISHER and self._source is None:
            raise RelayError(f"documents are published at {core.deployment.source}, not here")

    async def _serve_reader(self, wire: Wire, site: str) -> None:
        core = self._core
        limit = core.settings.frame_bytes_max
        positions, window = unpack_resume(
            await wire.expect(FrameKind.RESUME, limit=limit, within_s=SILENCE_S)
        )
        while (before := self._sessions.pop(site, None)) is not None:
            before.cancel()
            await asyncio.wait([before])
        core.state.resume(site, positions, window=_window(window))
        core.news.repeat(site)
        core.readers.add(site)
        core.for_reader[site].set()
        own = self._sessions[site] = asyncio.create_task(self._both_ways(wire, site))
        try:
            await own
        except asyncio.CancelledError:
            if not own.cancelled():  # the whole relay ends
                own.cancel()
                raise
        finally:
            if self._sessions.get(site) is own:
                del self._sessions[site]
                core.readers.discard(site)

    async def _both_ways(self, wire: Wire, site: str) -> None:
        telling = asyncio.create_task(self._tell(wire, site))
        hearing = asyncio.create_task(self._hear(wire, site))
        await first_to_end(telling, hearing)

    async def _tell(self, wire: Wire, site: str) -> None:
        core = self._core
        event = core.for_reader[site]
        while True:
            messages = core.state.take_messages(site, bytes_max=BATCH_BYTES)
            if starts := core.state.take_starts(site):
                await wire.write(FrameKind.STARTS, pack_marks(starts.items()))
            if news := core.news.take(site):
                await wire.write(FrameKind.NEWS, pack_json(news))
            await self._send(wire, messages)
            if not messages and not await heard_within(event, QUIET_S):
                await wire.write(FrameKind.ALIVE)

    async def _send(self, wire: Wire, messages: list[RelayMessage]) -> None:
        """In frames of about BATCH_BYTES; what is too large for any frame is sent as a failure."""
        limit, batch, size = self._core.settings.frame_bytes_max, list[_Packed](), 0
        for each in messages:
            assert isinstance(each.result, TupleResult)
            content = each.result.content
            if len(content) > limit - BATCH_BYTES:
                content = encode_failure(f"a result of {len(content):,} bytes is too large")
            batch.append((each.view, each.document, content))
            size += len(content)
            self._core.counts["bytes forwarded"] += len(content)
            if size >= BATCH_BYTES:
                await wire.write(FrameKind.RESULTS, pack_results(batch))
                batch, size = [], 0
        if batch:
            await wire.write(FrameKind.RESULTS, pack_results(batch))
        self._core.counts["forwarded"] += len(messages)

    async def _hear(self, wire: Wire, site: str) -> None:
        core = self._core
        while True:
            kind, content = await wire.read(limit=core.settings.frame_bytes_max)
            match kind:
                case FrameKind.SETTLED:
                    for view, settled in unpack_marks(content):
                        core.state.acknowledge(site, view, settled)
                case FrameKind.WINDOW:
                    core.state.set_window(site, _window(unpack_number(content)))
                case FrameKind.ALIVE:
                    continue
                case FrameKind.REFUSED:
                    raise RelayError(f"{site} refuses what it was sent")
                case _:
                    raise RelayError(f"{site} sends a frame of kind {kind.name} as a reader")
            core.wake()

    async def _serve_publisher(self, wire: Wire) -> None:
        assert self._source is not None
        telling = asyncio.create_task(self._tell_publisher(wire, self._source))
        hearing = asyncio.create_task(self._hear_publisher(wire, self._source))
        await first_to_end(telling, hearing)

    async def _hear_publisher(self, wire: Wire, source: RelaySource) -> None:
        while True:
            limit = self._core.settings.frame_bytes_max
            kind, content = await wire.read(limit=limit, within_s=PUBLISHER_SILENCE_S)
            if kind is not FrameKind.PUBLISH or len(content) < KEY_BYTES:
                raise RelayError("expected a document with its key")
            key = content[:KEY_BYTES]
            try:
                number = await source.publish(key, content[KEY_BYTES:])
            except (RelayError, StateError) as error:
                self._core.counts["documents refused"] += 1
                await wire.write(FrameKind.REJECTED, key + str(error).encode())
            else:
                await wire.write(FrameKind.ACCEPTED, key + pack_number(number))

    async def _tell_publisher(self, wire: Wire, source: RelaySource) -> None:
        event = asyncio.Event()
        source.followers.add(event)
        try:
            while True:
                await wire.write(FrameKind.EVERYWHERE, pack_number(source.settled))
                if not await heard_within(event, QUIET_S):
                    await wire.write(FrameKind.ALIVE)
        finally:
            source.followers.discard(event)

    async def _serve_watcher(self, wire: Wire) -> None:
        while True:
            kind, _ = await wire.read(limit=self._core.settings.frame_bytes_max)
            if kind is FrameKind.STATUS:
                status = self._core.status()
                if self._source is not None:
                    status["documents"] = self._source.status()
                await wire.write(FrameKind.STATUS, pack_json(status))


_Packed = tuple[int, int, bytes]


def _window(told: int) -> int:
    if not 1 <= told <= WINDOW_MAX:
        raise RelayError(f"a window of {told} documents: expected 1 to {WINDOW_MAX:,}")
    return told
