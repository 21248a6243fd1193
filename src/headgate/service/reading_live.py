"""`GET /v1/reading/live`: how many items arrive in what the caller reads, as lines of JSON.

    {"position": 4711, "items": 3, "feeds": {"News": 3, "Rock": 1}}

A line has what has arrived below `position` since the line before: the items of the chosen feeds,
each counted once, and those of every followed feed that has any. A page shows that there is
something new, and reads it when somebody wants to see it; so a line has no items, and at most one
comes in LINE_S, however many items there are.

A client is a position, as in live.py. When something has arrived, the index of the log is asked for
the feeds of this client alone. Many clients make each of them wait longer, so that all together ask
about WATCHERS_PER_S times a second. Who comes back after WINDOW_MAX items is told of these; a page
shows such counts as "1,000+" anyway. A stream ends when its token does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from headgate.catalog.principals import Scope
from headgate.model.errors import HeadgateError
from headgate.service.caller import AnyCaller, Caller
from headgate.service.live import BEAT_S, LINES
from headgate.service.problems import RESPONSES
from headgate.service.reading_items import FeedName, LabelName, chosen_feeds, reading_of
from headgate.service.reading_log import Reading
from headgate.service.reading_windows import WINDOW_MAX

LINE_S = 1.0
WATCHERS_PER_S = 1_000
BEAT = b"\n"
router = APIRouter(prefix="/v1/reading", tags=["reading"], responses=RESPONSES)


class ReadingArrivals(BaseModel):
    """What has arrived since the line before."""

    position: int = Field(description="Behind the last of them: `since` of who comes back.")
    items: int = Field(description="Of the chosen feeds, each counted once.")
    feeds: dict[str, int] = Field(description="Of all followed feeds that have any.")


@router.get(
    "/live",
    response_class=StreamingResponse,
    responses={200: {"model": ReadingArrivals, "content": {LINES: {}}}},
)
async def follow_reading(
    request: Request,
    caller: AnyCaller,
    feed: FeedName = None,
    label: LabelName = None,
    since: Annotated[
        int | None, Query(ge=0, le=2**62, description="The position of the first; none: now.")
    ] = None,
) -> StreamingResponse:
    """How many items arrive in the followed feeds, from a position on; lines of JSON."""
    token = request.headers.get("authorization", "").partition(" ")[2]
    reading = await run_in_threadpool(reading_of, caller)
    chosen = {each.feed_id for each in chosen_feeds(reading, feed, label)}
    log = caller.service.log
    end = await run_in_threadpool(log.end) if log.is_there else 0
    stream = ReadingStream(caller, token, reading, chosen)
    return StreamingResponse(stream.follow(end if since is None else since), media_type=LINES)


@dataclass(slots=True)
class ReadingStream:
    caller: Caller
    token: str
    reading: Reading
    chosen: Collection[int]
    """Ids of the feeds whose items are counted."""

    async def follow(self, position: int) -> AsyncIterator[bytes]:
        hub = self.caller.service.live
        beat_at = time.monotonic() + BEAT_S
        yield BEAT
        while not self.caller.service.log.is_there:  # the first run makes it
            await asyncio.sleep(LINE_S)
            if time.monotonic() >= beat_at:
                if not await self._may_go_on():
                    return
                yield BEAT
                beat_at = time.monotonic() + BEAT_S
        with hub.watching():
            while True:
                arrived = hub.arrived  # what arrives from now on sets it
                found = await run_in_threadpool(self._look, position)
                position = found.position
                if found.feeds:
                    yield found.model_dump_json().encode() + b"\n"
                if time.monotonic() >= beat_at:
                    if not await self._may_go_on():
                        return
                    yield BEAT
                    beat_at = time.monotonic() + BEAT_S
                await asyncio.sleep(LINE_S * max(1.0, hub.watchers / WATCHERS_PER_S))
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(beat_at - time.monotonic(), 0.0)):
                        await arrived.wait()

    def _look(self, start: int) -> ReadingArrivals:
        """What has arrived from a position on."""
        reading = self.reading
        reading.first, reading.end = self.caller.service.log.ask(
            lambda view: (view.index.first_position, view.index.next_position)
        )
        feeds = reading.followed
        found = reading.matches(feeds, max(start, reading.end - WINDOW_MAX), reading.end)
        counts = np.bincount(found.feed, minlength=len(feeds))
        is_chosen = np.array([each.feed_id in self.chosen for each in feeds], bool)
        return ReadingArrivals(
            position=max(reading.end, start),
            items=np.unique(found.position[is_chosen[found.feed]]).size,
            feeds={
                each.name: int(count) for each, count in zip(feeds, counts, strict=True) if count
            },
        )

    async def _may_go_on(self) -> bool:
        """Whether the token is valid; what is followed is read anew."""
        known = await self.caller.service.principals.look(self.token)
        if known is None or Scope.READ not in known.principal.scopes:
            return False
        try:
            self.reading = await run_in_threadpool(reading_of, self.caller)
        except HeadgateError:
            return False
        return True
