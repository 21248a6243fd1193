"""A body as it was before the server compressed it, never larger than allowed.

    gzip, x-gzip    one member or several; what follows the last is not looked at
    deflate         with zlib's header, as it should be, or without, as some servers send it
    identity        as it is

A kilobyte of gzip can hold a megabyte. So the decompressor is asked for no more bytes than are
still allowed, and whatever remains is never unpacked. httpx's own decoders unpack a whole chunk at
once, and are not used for that reason. Memory: the limit, and one chunk.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from headgate.model.errors import FetchError

MEMBERS_MAX = 100
OVERHEAD_MAX = 10_000
"""What compressing may add to a body that cannot be compressed."""
_GZIP_MAGIC = b"\x1f\x8b"


def decompress(chunks: Iterable[bytes], *, coding: str, bytes_max: int) -> bytes:
    """The body that the chunks are the compressed form of.

    >>> decompress([zlib.compress(b"rock")], coding="deflate", bytes_max=4)
    b'rock'
    """
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return _collect(chunks, bytes_max)
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise FetchError(f"the body is coded as '{coding[:40]}', which was not asked for")
    unpack = _Unpack(gzip=coding != "deflate", bytes_max=bytes_max)
    received = 0
    for chunk in chunks:
        received += len(chunk)
        if received > bytes_max + OVERHEAD_MAX:
            raise too_large(bytes_max)
        unpack.add(chunk)
    return unpack.finish()


def too_large(bytes_max: int) -> FetchError:
    return FetchError(f"the body is larger than {bytes_max:,} bytes")


def _collect(chunks: Iterable[bytes], bytes_max: int) -> bytes:
    body = bytearray()
    for chunk in chunks:
        if len(body) + len(chunk) > bytes_max:
            raise too_large(bytes_max)
        body += chunk
    return bytes(body)


class _Unpack:
    def __init__(self, *, gzip: bool, bytes_max: int) -> None:
        self._gzip = gzip
        self._bytes_max = bytes_max
        self._head = b""
        self._body = bytearray()
        self._members = 1
        self._garbage = False
        self._engine = zlib.decompressobj(zlib.MAX_WBITS | 16) if gzip else None

    def add(self, data: bytes) -> None:
        if self._engine is None:
            self._head += data
            if len(self._head) < 2:
                return
            data, self._engine = self._head, _deflate(self._head)
        while data and not self._garbage:
            data = self._next_member(data) if self._engine.eof else self._feed(self._engine, data)

    def _feed(self, engine: zlib._Decompress, data: bytes) -> bytes:
        """Unpack what there is room for; what is behind the member's end is given back."""
        # One byte more than allowed is asked for, so that too much is noticed.
        room = self._bytes_max - len(self._body) + 1
        try:
            self._body += engine.decompress(data, room)
        except zlib.error as error:
            raise FetchError(f"the body is not what it is coded as: {error}") from None
        if len(self._body) > self._bytes_max:
            raise too_large(self._bytes_max)
        return engine.unused_data

    def _next_member(self, data: bytes) -> bytes:
        if not self._gzip or not data.startswith(_GZIP_MAGIC[: len(data)]):
            self._garbage = True
            return b""
        self._members += 1
        if self._members > MEMBERS_MAX:
            raise FetchError(f"the body has more than {MEMBERS_MAX} gzip members")
        self._engine = zlib.decompressobj(zlib.MAX_WBITS | 16)
        return data

    def finish(self) -> bytes:
        if self._engine is None or not self._engine.eof:
            raise FetchError("the compressed body ends too early")
        return bytes(self._body)


def _deflate(head: bytes) -> zlib._Decompress:
    """With zlib's header, if the first two bytes are one (RFC 1950 §2.2), or else without."""
    has_header = head[0] & 0x0F == 8 and int.from_bytes(head[:2]) % 31 == 0
    return zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)
