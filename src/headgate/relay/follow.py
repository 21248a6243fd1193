"""The side of a reader: it dials its supplier, says where it is, takes results, acknowledges.

A connection that is lost is made again, with growing pauses; what was under way comes again, as the
reader says what it has. A supplier that sends what it must not is told so and left; it may be
better the next time.
"""

from __future__ import annotations

import asyncio
import random
import time

from headgate.model.errors import RelayError
from headgate.relay.core import RelayCore
from headgate.relay.frames import (
    Kind,
    pack_marks,
    pack_number,
    pack_resume,
    unpack_json,
    unpack_marks,
    unpack_results,
)
from headgate.relay.wire import QUIET_S, Role, Wire, dial

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
    await wire.write(Kind.RESUME, pack_resume(state.positions(supplier), window=window))
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


def _take(core: RelayCore, supplier: str, kind: Kind, content: bytes) -> None:
    state, counts = core.state, core.counts
    match kind:
        case Kind.RESULTS:
            for view, document, result in unpack_results(content):
                known = core.recipes.received(supplier, view, document, result)
                if state.receive(supplier, view, document, known):
                    counts["received"] += 1
                else:
                    counts["again"] += 1
        case Kind.STARTS:
            for view, document in unpack_marks(content):
                state.start(supplier, view, document)
        case Kind.NEWS:
            told = unpack_json(content)
            if not all(isinstance(sites, list) for sites in told.values()):
                raise RelayError("news are views with lists of sites")
            try:
                news = {int(view): _texts(sites) for view, sites in told.items()}
            except ValueError:
                raise RelayError("news are of views by number") from None
            core.news.hear(supplier, news)
            core.wake_readers()
        case Kind.ALIVE:
            pass
        case Kind.REFUSED:
            raise RelayError(f"{supplier} refuses: {unpack_json(content).get('error')}")
        case _:
            raise RelayError(f"{supplier} sends a frame of kind {kind.name}, which is no reader's")


def _texts(found: object) -> list[str]:
    return [str(each) for each in found] if isinstance(found, list) else []


async def _tell(core: RelayCore, supplier: str, wire: Wire, window: int) -> None:
    event = core.for_supplier[supplier]
    while True:
        if marks := core.state.take_acknowledgements(supplier):
            await wire.write(Kind.SETTLED, pack_marks(marks))
            await asyncio.sleep(GATHERING_S)
        if core.state.window != window:
            window = core.state.window
            await wire.write(Kind.WINDOW, pack_number(window))
        if not await heard_within(event, QUIET_S):
            await wire.write(Kind.ALIVE)


async def heard_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event and clear it; False if it does not come in time."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    event.clear()
    return True
