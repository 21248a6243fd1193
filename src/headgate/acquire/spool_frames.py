"""The frames of the spool: the events of one `append`, as bytes.

    frame:  length  checksum  events  posted   source, kind, key   events as lines of JSON
            u32     u32       u32     i64      one line of JSON

A *position* is a number: the segment and the byte at which a frame begins.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.model.errors import StateError

FRAME_BYTES_MAX = 16_000_000
_HEAD = struct.Struct("<IIIq")
"""Length of the body, checksum of what follows it, number of events, microseconds since 1970."""
_OFFSET_BITS = 32
FIRST = 1 << _OFFSET_BITS
"""The first position: segment 1, byte 0."""


@dataclass(frozen=True, slots=True)
class NewFrame:
    """Events to append: lines of JSON objects, without line ends."""

    source: str
    lines: Sequence[bytes]
    kind: str = "stream"
    key: str = ""
    """None: they are appended whatever was appended before."""
    digest: str = ""
    """Of what was posted with the key."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The events of one `append`."""

    position: int
    end: int
    """The position of the next frame in the segment."""
    events: int
    posted_us: int
    source: str = ""
    kind: str = ""
    lines: bytes = b""
    key: str = ""
    digest: str = ""

    @property
    def place(self) -> str:
        """The beginning of the ids of its events.

        >>> Frame(FIRST + 17, FIRST + 99, 1, 0).place
        'post:1:17'
        """
        return f"post:{segment_of(self.position)}:{byte_of(self.position)}"


def position_of(segment: int, byte: int) -> int:
    return segment << _OFFSET_BITS | byte


def segment_of(position: int) -> int:
    return position >> _OFFSET_BITS


def byte_of(position: int) -> int:
    return position & (1 << _OFFSET_BITS) - 1


def encode_frame(frame: NewFrame, *, posted_us: int) -> bytes:
    name = [frame.source, frame.kind, *((frame.key, frame.digest) if frame.key else ())]
    lines = frame.lines
    body = json.dumps(name).encode("ascii") + b"\n" + b"\n".join(lines)
    if len(body) > FRAME_BYTES_MAX:
        raise StateError(f"events of {len(body):,} bytes: post at most {FRAME_BYTES_MAX:,} at once")
    rest = struct.pack("<Iq", len(lines), posted_us)
    return _HEAD.pack(len(body), zlib.crc32(body, zlib.crc32(rest)), len(lines), posted_us) + body


def read_frames(
    path: Path, segment: int, begin: int, until: int, *, with_events: bool = True
) -> Iterator[Frame]:
    """The whole frames between two bytes of a segment; it ends where one is cut off or damaged.
    Without events, only the heads are read."""
    with path.open("rb") as file:
        file.seek(begin)
        while begin + _HEAD.size <= until:
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                return
            length, checksum, events, posted_us = _HEAD.unpack(head)
            after = begin + _HEAD.size + length
            if after > until or length > FRAME_BYTES_MAX:
                return
            place = position_of(segment, begin), position_of(segment, after)
            if with_events:
                body = file.read(length)
                if len(body) < length or zlib.crc32(body, zlib.crc32(head[8:])) != checksum:
                    return
                name, _, lines = body.partition(b"\n")
                source, kind, *key = json.loads(name)
                yield Frame(*place, events, posted_us, source, kind, lines, *key)
            else:
                file.seek(length, os.SEEK_CUR)
                yield Frame(*place, events, posted_us)
            begin = after
