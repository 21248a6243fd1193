"""A local server of many feeds that publish by the clock, and of bombs.

Feed n publishes an entry every `period_s`; its document has the last ones. The id of an entry names
the feed and the number of the entry, and so the instant at which it was published. Feeds are spread
over addresses of 127.0.0.0/8, as they are on the Internet, and each bomb has an address of its own.
All *names* of a slow address are spellings of that address, which the system's resolver
understands: 0x7f.9.0.9, 0x7f.9.9, 0x7f090009, …
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from email.utils import formatdate
from functools import cache

ADDRESSES_MAX = 250
SLOW_ADDRESS = (127, 9, 0, 9)

Send = Callable[[bytes], Awaitable[None]]
Bomb = Callable[[Send], Awaitable[None]]

_OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
_GOOD = b"<rss version='2.0'><channel><item><guid>1</guid><title>0</title></item></channel></rss>"


def plain(body: bytes, headers: bytes = b"") -> Bomb:
    async def bomb(send: Send) -> None:
        await send(_OK + b"Content-Length: %d\r\n" % len(body) + headers + b"\r\n" + body)

    return bomb


async def trickle(send: Send) -> None:
    await send(_OK + b"\r\n")
    for byte in _GOOD * 100:
        await send(bytes([byte]))
        await asyncio.sleep(1.0)


async def slow_headers(send: Send) -> None:
    for byte in _OK + b"x: " + b"y" * 10_000:
        await send(bytes([byte]))
        await asyncio.sleep(1.0)


async def silent(_send: Send) -> None:
    await asyncio.sleep(3_600.0)


async def endless(send: Send) -> None:
    await send(_OK + b"\r\n<rss><channel>")
    while True:
        await send(b"<item><title>x</title></item>" * 2_000)


async def endless_headers(send: Send) -> None:
    await send(_OK)
    while True:
        await send(b"x: y\r\n" * 1_000)


async def redirect_loop(send: Send) -> None:
    await send(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /again\r\n\r\n")


def zipped(size: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(1_000_000)
    parts = [packer.compress(zeros) for _ in range(size // len(zeros))]
    return b"".join(parts) + packer.flush()


def in_item(content: bytes) -> bytes:
    return (
        b"<rss><channel><item><title>x</title><description>"
        + content
        + (b"</description></item></channel></rss>")
    )


@cache
def bombs() -> dict[str, Bomb]:
    entities = b"".join(b"<!ENTITY e%d '%s'>" % (n, b"&e%d;" % (n - 1) * 10) for n in range(1, 9))
    many = b"".join(b"<item><guid>%d</guid><title>0</title></item>" % n for n in range(200_000))
    return {
        "trickle": trickle,
        "slow-headers": slow_headers,
        "silent": silent,
        "endless": endless,
        "endless-headers": endless_headers,
        "redirect-loop": redirect_loop,
        "gzip": plain(zipped(100_000_000), b"Content-Encoding: gzip\r\n"),
        "deep": plain(b"<rss><channel><item>" + b"<a>" * 3_999 + b"</a>" * 3_999),
        "entities": plain(b"<!DOCTYPE rss [<!ENTITY e0 'x'>" + entities + b"]>" + in_item(b"&e8;")),
        "entries": plain(b"<rss><channel>" + many + b"</channel></rss>"),
        "tags": plain(in_item(b"<b/>" * 900_000)),
        "markup": plain(in_item(b"&lt;b&gt;" * 300_000)),
        "encoding": plain(
            _GOOD.decode().encode("utf-16") + b"\xff\xfe\x00",
            b"Content-Type: text/xml; charset=utf-7\r\n",
        ),
        "binary": plain(bytes(range(256)) * 30_000),
        "json": plain(b'{"items": ' + b"[" * 1_000_000),
    }


def slow_names(count: int) -> list[str]:
    """Spellings of the slow address, one as good as the other for `inet_aton`."""
    first, *rest = SLOW_ADDRESS
    joined = [
        [first, *rest],
        [first, rest[0], rest[1] * 256 + rest[2]],
        [first, (rest[0] * 256 + rest[1]) * 256 + rest[2]],
        [((first * 256 + rest[0]) * 256 + rest[1]) * 256 + rest[2]],
    ]
    names = []
    for parts in joined:
        ways = [(hex(n), str(n), f"0x0{n:x}", f"0{n:o}", f"00{n:o}") for n in parts]
        names += [".".join(chosen) for chosen in itertools.product(*ways)]
    # A URL with leading zeros and without a hexadecimal number is refused.
    return [each for each in dict.fromkeys(names) if "x" in each][:count]


class SoakServer:
    """Listens until it is closed; runs in a thread of its own."""

    def __init__(self, feeds: int, *, period_s: float, entries: int) -> None:
        self.feeds, self.period_s, self.entries = feeds, period_s, entries
        self.requests: Counter[str] = Counter()
        """By the kind of feed."""
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready, self._stop = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        if not self._ready.wait(30.0) or not self.port:
            raise RuntimeError("the server of feeds does not start")

    def __enter__(self) -> SoakServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10.0)

    def urls(self) -> list[str]:
        return [f"http://{self._address(n)}:{self.port}/{n}" for n in range(self.feeds)]

    def bomb_urls(self, names: int) -> list[str]:
        """Each bomb, and the names of the slow address."""
        single = [f"http://127.8.0.{n + 1}:{self.port}/{kind}" for n, kind in enumerate(bombs())]
        return single + [f"http://{each}:{self.port}/trickle" for each in slow_names(names)]

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._ready.set()
            self._loop.close()

    async def _serve(self) -> None:
        addresses = sorted({self._address(n) for n in range(self.feeds)})
        addresses += [f"127.8.0.{n + 1}" for n in range(len(bombs()))]
        addresses.append(".".join(map(str, SLOW_ADDRESS)))
        first = await asyncio.start_server(self._answer, addresses[0], 0)
        self.port = first.sockets[0].getsockname()[1]
        rest = await asyncio.start_server(self._answer, addresses[1:], self.port)
        self._ready.set()
        await self._stop.wait()
        first.close()
        rest.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for each in others:
            each.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def send(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        # A handler that is cancelled would be reported by asyncio.
        with suppress(OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode("latin-1").lstrip("/")
                if path.isdecimal():
                    self.requests["good"] += 1
                    body = self._document(int(path))
                    await send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                    continue
                self.requests["bomb"] += 1
                await bombs().get(path, redirect_loop)(send)
                break
        writer.close()

    def _document(self, number: int) -> bytes:
        shift = number * 0.618034 % 1.0 * self.period_s
        last = int((time.time() - shift) // self.period_s)
        entries = "".join(
            f"<item><guid>{number}:{entry}</guid><title>news</title>"
            f"<pubDate>{formatdate(entry * self.period_s + shift)}</pubDate></item>"
            for entry in range(last, last - self.entries, -1)
        )
        return f"<rss version='2.0'><channel>{entries}</channel></rss>".encode()

    def _address(self, number: int) -> str:
        """A host is fetched from once a second, so there are four feeds on each if possible."""
        return f"127.1.0.{number % min(self.feeds // 4 + 1, ADDRESSES_MAX) + 1}"
