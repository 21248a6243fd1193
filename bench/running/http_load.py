"""A client for many connections at once: requests are bytes, answers are read as far as needed.

A client library would take longer than the server that is measured.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Target:
    host: str
    port: int
    token: str

    def request(self, method: str, path: str, body: bytes = b"", kind: str = "") -> bytes:
        lines = [
            f"{method} {path} HTTP/1.1",
            f"host: {self.host}:{self.port}",
            f"authorization: Bearer {self.token}",
        ]
        if body:
            lines += [f"content-type: {kind}", f"content-length: {len(body)}"]
        return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass(slots=True)
class PostLoad:
    """What was sent and acknowledged."""

    acknowledged: list[int] = field(default_factory=list)
    """The numbers of the requests that were answered by 202."""
    refused: int = 0
    seconds: float = 0.0


async def post(
    target: Target, path: str, body_of: Callable[[int], bytes], *, connections: int, for_s: float
) -> PostLoad:
    """Each connection posts one body after the other; `body_of` makes that of request n."""
    load, numbers = PostLoad(), iter(range(10**12))
    began = time.perf_counter()

    async def client() -> None:
        try:
            reader, writer = await asyncio.open_connection(target.host, target.port)
            while time.perf_counter() - began < for_s:
                number = next(numbers)
                body = body_of(number)
                writer.write(target.request("POST", path, body, "application/x-ndjson"))
                await writer.drain()
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(_length(head))
                if b" 202 " in head[:20]:
                    load.acknowledged.append(number)
                else:
                    load.refused += 1
            writer.close()
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # the server is gone

    await asyncio.gather(*(client() for _ in range(connections)))
    load.seconds = time.perf_counter() - began
    return load


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


async def get(target: Target, path: str, *, header: str = "", times: int) -> tuple[int, bytes]:
    """Get a path again and again over one connection; the status and the head of the answers."""
    reader, writer = await asyncio.open_connection(target.host, target.port)
    lines = [f"GET {path} HTTP/1.1", f"host: {target.host}:{target.port}"]
    request = "\r\n".join([*lines, *([header] if header else []), "", ""]).encode()
    status, head = 0, b""
    for _ in range(times):
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        await reader.readexactly(_length(head) if status == 200 else 0)
    writer.close()
    return status, head


async def follow(
    target: Target, path: str, on_item: Callable[[bytes], None], ready: asyncio.Semaphore
) -> None:
    """Read a stream of events until it is cancelled; `ready` is released when it has begun."""
    reader, writer = await asyncio.open_connection(target.host, target.port)
    try:
        writer.write(target.request("GET", path))
        await writer.drain()
        await reader.readuntil(b"\r\n\r\n")
        ready.release()
        while line := await reader.readline():
            if line.startswith(b"data: "):
                on_item(line)
    finally:
        writer.close()
