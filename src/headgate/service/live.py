"""`GET /v1/feeds/{name}/live`: the items of a feed or source as they arrive, as server-sent events
or lines of JSON.

    client: a position ──► live_hub.py: recent batches ──► items, the next position
                   └─ older than those: from the log ─────►

A client is a position, and nothing else is kept for it: one that reads slowly falls behind the
recent batches and is served from the log. The id of an event is the position of its item, so a
client that comes back with `Last-Event-ID` goes on behind it, after a restart of the service too:
nothing is lost, and nothing comes twice. While nothing arrives, an event without data moves the id
on, so that a client of a quiet feed does not come back to an old position.

A stream ends when its token is revoked or expires, or when the feed is not seen any more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from headgate.catalog.principals import Scope
from headgate.model.errors import HeadgateError
from headgate.service.caller import AnyCaller, Caller
from headgate.service.definitions import Name
from headgate.service.items import ITEMS_MAX
from headgate.service.live_hub import LiveItem, LiveKey, encoded
from headgate.service.problems import RESPONSES

BEAT_S = 15.0
"""So often an idle stream shows that it is there, and each looks whether it may go on."""
EVENTS, LINES = "text/event-stream", "application/x-ndjson"
router = APIRouter(prefix="/v1", tags=["items"], responses=RESPONSES)


@router.get(
    "/feeds/{name}/live",
    response_class=StreamingResponse,
    responses={200: {"content": {EVENTS: {}, LINES: {}}}},
)
async def follow_feed(
    name: Name,
    request: Request,
    caller: AnyCaller,
    since: Annotated[
        int | None, Query(ge=0, le=2**62, description="The position of the first; none: now.")
    ] = None,
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> StreamingResponse:
    """The items of a feed or source from a position on, and then as they arrive. With `Accept:
    application/x-ndjson` they are lines of JSON, otherwise server-sent events whose ids are
    positions."""
    caller.require(Scope.READ)
    hub = caller.service.live
    key = await hub.key_of(name, caller.catalog)
    if last_event_id is not None and last_event_id.isdecimal():
        since = int(last_event_id) + 1
    position = hub.position if since is None else since
    if position is None:
        position = await run_in_threadpool(caller.service.log.end)
    is_lines = "ndjson" in request.headers.get("accept", "")
    token = request.headers.get("authorization", "").partition(" ")[2]
    stream = LiveStream(caller, name, key, token, is_lines=is_lines)
    return StreamingResponse(stream.follow(position), media_type=LINES if is_lines else EVENTS)


@dataclass(frozen=True, slots=True)
class LiveStream:
    caller: Caller
    name: str
    key: LiveKey
    token: str
    is_lines: bool

    async def follow(self, position: int) -> AsyncIterator[bytes]:
        hub = self.caller.service.live
        beat_at = check_at = time.monotonic() + BEAT_S
        yield self._beat(position)
        with hub.following(self.key, self.caller.catalog) as followed:
            while True:
                arrived = followed.arrived  # what arrives from now on sets it
                found = hub.after(self.key, position)
                if found is None:
                    found = await run_in_threadpool(self._from_log, position)
                items, next_ = found
                if items:
                    yield b"".join(map(self._event, items))
                    beat_at = time.monotonic() + BEAT_S
                has_moved, position = next_ > position, max(next_, position)
                if time.monotonic() >= check_at:
                    if not await self._may_go_on():
                        return
                    check_at = time.monotonic() + BEAT_S
                if time.monotonic() >= beat_at:
                    yield self._beat(position)
                    beat_at = time.monotonic() + BEAT_S
                if not has_moved:
                    until = min(beat_at, check_at)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(max(until - time.monotonic(), 0.0)):
                            await arrived.wait()

    def _from_log(self, position: int) -> tuple[list[LiveItem], int]:
        page = self.caller.service.log.since(self.key[1], position, ITEMS_MAX)
        return encoded(page.items, self.caller.catalog), page.next

    async def _may_go_on(self) -> bool:
        """Whether the token is valid, and the feed still what it was."""
        service = self.caller.service
        known = await service.principals.look(self.token)
        if known is None or Scope.READ not in known.principal.scopes:
            return False
        try:
            return await service.live.key_of(self.name, self.caller.catalog) == self.key
        except HeadgateError:
            return False

    def _event(self, item: LiveItem) -> bytes:
        if self.is_lines:
            return item.json + b"\n"
        return b"id: %d\ndata: %s\n\n" % (item.position, item.json)

    def _beat(self, position: int) -> bytes:
        """Moves the id on, and shows that the stream is there."""
        if self.is_lines:
            return b"\n"
        return b"id: %d\n\n" % (position - 1) if position else b":\n\n"
