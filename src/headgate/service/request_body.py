"""Bodies of requests, within limits of size and time.

A body that is too large is refused, and so is one that takes longer than `BODY_S`. Both connections
are closed. Of a body that is too large the rest is read and thrown away first, up to a limit: many
clients send all of it before they look for an answer, and a connection that is closed before would
take the answer with it.

`read_body` is for resources that read the bytes themselves; `LimitedBodies` limits what the
framework reads for all others.
"""

from __future__ import annotations

import asyncio

from fastapi import HTTPException, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_BYTES_MAX = 16_384
THROWN_AWAY_MAX = 64_000_000
BODY_S = 10.0
_CLOSE = {"connection": "close"}


async def read_body(request: Request, *, bytes_max: int = BODY_BYTES_MAX) -> bytes:
    body, received = bytearray(), 0
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                received += len(chunk)
                if received <= bytes_max:
                    body += chunk
                elif received > THROWN_AWAY_MAX:
                    break
    except TimeoutError:
        raise (_too_large() if received > bytes_max else _too_slow()) from None
    if received > bytes_max:
        raise _too_large()
    return bytes(body)


class LimitedBodies:
    """Middleware: no request has a larger body than `bytes_max`, or sends it slower than BODY_S."""

    def __init__(self, app: ASGIApp, bytes_max: int) -> None:
        self._app, self._bytes_max = app, bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        received, until = 0, asyncio.get_running_loop().time() + BODY_S
        has_ended = False

        async def limited() -> Message:
            nonlocal received, has_ended
            if has_ended:  # waits for the end of the connection
                return await receive()
            while True:
                try:
                    async with asyncio.timeout_at(until):
                        message = await receive()
                except TimeoutError:
                    raise (_too_large() if received > self._bytes_max else _too_slow()) from None
                received += len(message.get("body", b""))
                has_ended = not message.get("more_body", False)
                if received <= self._bytes_max:
                    return message
                if has_ended or received > THROWN_AWAY_MAX:
                    raise _too_large()

        await self._app(scope, limited, send)


def _too_large() -> HTTPException:
    return HTTPException(413, "The request is too large", _CLOSE)


def _too_slow() -> HTTPException:
    return HTTPException(408, "The request takes too long", _CLOSE)
