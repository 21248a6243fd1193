"""Reading an HTTP response: its headers, its status, and its body, decompressed within a limit.

    gzip, x-gzip    one member or several; bytes behind the last are ignored
    deflate         with zlib's header, as specified, or without, as some servers send it
    identity        unchanged

A kilobyte of gzip can hold a megabyte. The decompressor therefore returns no more bytes than are
still allowed, and the rest is never unpacked. httpx's own decoders unpack a whole chunk at once
and are not used for that reason. Memory: the limit, and one chunk.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from headgate.model.errors import FetchError

PERMANENT = frozenset({301, 308})
TEMPORARY = frozenset({302, 303, 307})

_MAX_AGE = re.compile(r"(?:^|[,\s])max-age=\"?(\d{1,9})", re.IGNORECASE)


def read_headers(raw: Iterable[tuple[bytes, bytes]], *, bytes_max: int) -> dict[str, str]:
    """The headers by name in lower case; of repeated ones, the first."""
    headers: dict[str, str] = {}
    size = 0
    for name, value in raw:
        size += len(name) + len(value)
        # Headers are Latin-1 by the standard, but often UTF-8, as in `Location: /é`.
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            text = value.decode("latin-1")
        headers.setdefault(name.decode("latin-1").lower(), text.strip())
    if size > bytes_max:
        raise FetchError(f"the response has more than {bytes_max:,} bytes of headers")
    return headers


def retry_after_s(text: str, *, now: datetime, max_s: float) -> float | None:
    """The wait that a `Retry-After` header asks for, in seconds or as a date (RFC 9110 §10.2.3).

    >>> retry_after_s("120", now=datetime.now(UTC), max_s=60.0)
    60.0
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:10]), max_s)
    date = http_date(text)
    return None if date is None else min(max((date - now).total_seconds(), 0.0), max_s)


def http_date(text: str) -> datetime | None:
    """A date as in RFC 9110 §5.6.7 or RFC 5322; None if the text is not one."""
    try:
        date = parsedate_to_datetime(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def max_age_s(headers: Mapping[str, str]) -> float | None:
    """How long the response is fresh (`Cache-Control: max-age`); None if not stated."""
    match = _MAX_AGE.search(headers.get("cache-control", ""))
    return float(match[1]) if match else None


def check_length(headers: Mapping[str, str], *, bytes_max: int) -> None:
    """Refuse a body whose `Content-Length` is too large, before reading it."""
    text = headers.get("content-length", "")
    if text.isascii() and text.isdigit() and int(text[:18]) > bytes_max:
        raise FetchError(f"the body has {int(text[:18]):,} bytes, more than {bytes_max:,}")


def status_error(
    status: int, headers: Mapping[str, str], *, now: datetime, retry_max_s: float
) -> FetchError:
    """The error for any other status than success, not modified and redirects."""
    meaning = {
        401: "it requires authentication",
        403: "access is denied",
        404: "there is no such page",
        410: "the feed is gone permanently",
        429: "too many requests",
    }.get(status, "server error" if status >= 500 else "unexpected status")
    return FetchError(
        f"the server answered {status}: {meaning}",
        status=status,
        retry_after_s=retry_after_s(headers.get("retry-after", ""), now=now, max_s=retry_max_s),
    )


# --- the body -------------------------------------------------------------------------------------

MEMBERS_MAX = 100
OVERHEAD_MAX = 10_000
"""The most that compression may add to an incompressible body."""
_GZIP_MAGIC = b"\x1f\x8b"


def decompress(chunks: Iterable[bytes], *, coding: str, bytes_max: int) -> bytes:
    """The decompressed body.

    >>> decompress([zlib.compress(b"rock")], coding="deflate", bytes_max=4)
    b'rock'
    """
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return _collect(chunks, bytes_max)
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise FetchError(
            f"the body has the content coding '{coding[:40]}', which was not requested"
        )
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
    """An incremental decompressor that stops at a limit."""

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
        """Unpack data of one gzip member; return the bytes after its end."""
        # One byte more than allowed, so that a body that is too large is detected.
        length_max = self._bytes_max - len(self._body) + 1
        try:
            self._body += engine.decompress(data, length_max)
        except zlib.error as error:
            raise FetchError(f"the body cannot be decompressed: {error}") from None
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
    """A decompressor with zlib's header if the first two bytes are one (RFC 1950 §2.2)."""
    has_header = head[0] & 0x0F == 8 and int.from_bytes(head[:2]) % 31 == 0
    return zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)
