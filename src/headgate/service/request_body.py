"""Bodies of requests, within limits of size and time.

A body that is too large is refused as soon as that is known: by its declared length, or when the
bytes have come. A client that sends it slower than `BODY_S` is refused, too. Both connections are
closed: the rest of the body is not read.
"""

from __future__ import annotations

import asyncio

from fastapi import HTTPException, Request

BODY_BYTES_MAX = 16_384
BODY_S = 10.0
_CLOSE = {"connection": "close"}


async def read_body(request: Request) -> bytes:
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared[:20]) > BODY_BYTES_MAX:
        raise _too_large()
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > BODY_BYTES_MAX:
                    raise _too_large()
    except TimeoutError:
        raise HTTPException(408, "The request takes too long", _CLOSE) from None
    return bytes(body)


def _too_large() -> HTTPException:
    return HTTPException(413, "The request is too large", _CLOSE)
