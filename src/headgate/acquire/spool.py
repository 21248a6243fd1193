"""The spool: posted events, durable when `append` returns, readable by position.

    spool/1.events, 2.events, …     segments of 64 MB; all processes append to the last one
    spool/synced                    how far everything is on disk: segment and byte
    spool/lock                      held while frames are appended

    frame:  length  checksum  events  posted   source and kind   events as lines of JSON
            u32     u32       u32     i64      one line of JSON

One `append` is one frame, so it is there as a whole or not at all. A *position* is a number: the
segment and the byte at which a frame begins.

Invariant: a frame that `synced` covers is on disk and never changes. `append` returns after that,
and readers read no further. A process that dies while it appends leaves a frame that is cut off or
has a wrong checksum; whoever appends next, or opens the spool to read, truncates it. Whole frames
that were written but not yet synced are kept: their sender got no answer and may send them again.

Group commit: threads that append at the same time are written and synced together, by one of them.
Processes take turns by the lock.

Cost: one fsync (1 to 5 ms) per group of appends. A reader learns of new events by reading the 24
bytes of `synced`: it lists no folder and scans no file.

Rejected: a file per writer, because positions would be vectors; SQLite, because its rows cost ten
times the bytes; acknowledging before the sync, because a publish that was acknowledged must survive
a loss of power.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from headgate.model.errors import StateError

SEGMENT_BYTES = 64_000_000
FRAME_BYTES_MAX = 16_000_000
_HEAD = struct.Struct("<IIIq")
"""Length of the body, checksum of what follows it, number of events, microseconds since 1970."""
_SYNCED = struct.Struct("<QQI")
_OFFSET_BITS = 32
FIRST = 1 << _OFFSET_BITS
"""The first position: segment 1, byte 0."""


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


def encode_frame(source: str, kind: str, lines: Sequence[bytes], *, posted_us: int) -> bytes:
    """The bytes of a frame. A line is a JSON object without line ends."""
    body = json.dumps([source, kind]).encode("ascii") + b"\n" + b"\n".join(lines)
    if len(body) > FRAME_BYTES_MAX:
        raise StateError(f"events of {len(body):,} bytes: post at most {FRAME_BYTES_MAX:,} at once")
    rest = struct.pack("<Iq", len(lines), posted_us)
    return _HEAD.pack(len(body), zlib.crc32(body, zlib.crc32(rest)), len(lines), posted_us) + body


@dataclass(slots=True)
class _Waiting:
    """A frame that waits to be written, and then its position or an error."""

    frame: bytes
    position: int = 0
    error: Exception | None = None
    is_done: bool = False


@dataclass(slots=True)
class Spool:
    """Thread-safe; any number of processes may have it open."""

    folder: Path
    _waiting: list[_Waiting] = field(default_factory=list)
    _is_writing: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _recovered: int = 0
    """The position up to which this process knows that all frames are whole."""

    # --- appending --------------------------------------------------------------------------------

    def append(self, source: str, lines: Sequence[bytes], *, kind: str = "stream") -> int:
        """Append events; returns their position when they are on disk."""
        entry = _Waiting(encode_frame(source, kind, lines, posted_us=int(time.time() * 1e6)))
        with self._changed:
            self._waiting.append(entry)
            while not entry.is_done and self._is_writing:
                self._changed.wait()
            if not entry.is_done:
                self._is_writing = True
                group, self._waiting = self._waiting, []
        if not entry.is_done:
            self._write_group(group)
        if entry.error is not None:
            raise entry.error
        return entry.position

    def _write_group(self, group: Sequence[_Waiting]) -> None:
        error: Exception | None = None
        try:
            with self._locked():
                self._write(group)
        except Exception as problem:
            error = problem
        with self._changed:
            for entry in group:
                entry.error, entry.is_done = error, True
            self._is_writing = False
            self._changed.notify_all()

    def _write(self, group: Sequence[_Waiting]) -> None:
        end = self._recover()
        segment, byte = segment_of(end), byte_of(end)
        if byte >= SEGMENT_BYTES:
            segment, byte = segment + 1, 0
        path = self._segment(segment)
        is_new = not path.exists()
        file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
        try:
            os.lseek(file, byte, os.SEEK_SET)
            _write_all(file, b"".join(each.frame for each in group))
            os.fdatasync(file)
        finally:
            os.close(file)
        if is_new:
            _sync_folder(self.folder)
        for each in group:
            each.position = position_of(segment, byte)
            byte += len(each.frame)
        self._publish(position_of(segment, byte))

    # --- recovery ---------------------------------------------------------------------------------

    def open(self) -> int:
        """Make the spool ready to be read; returns the position up to which all is synced."""
        with self._locked():
            return self._recover()

    def _recover(self) -> int:
        """The end of the last whole frame, with everything before it synced; what was cut off after
        it is removed. The caller holds the lock."""
        published = self._published()
        end = max(published, self._recovered) or position_of(max(self._segments(), default=1), 0)
        while self._segment(segment_of(end) + 1).exists():
            end = position_of(segment_of(end) + 1, 0)
        path = self._segment(segment_of(end))
        size = path.stat().st_size if path.exists() else 0
        if size > byte_of(end):
            for frame in self._frames_of(segment_of(end), byte_of(end), size):
                end = frame.end
            with path.open("r+b") as file:
                file.truncate(byte_of(end))
                os.fsync(file.fileno())
        elif size < byte_of(end):
            raise StateError(f"'{path}' is shorter than what was synced: {size} < {byte_of(end)}")
        if end != published:
            self._publish(end)
        self._recovered = end
        return end

    def _publish(self, end: int) -> None:
        """`synced` is not synced itself: after a loss of power it may be behind, never ahead."""
        self._recovered = end
        packed = struct.pack("<QQ", segment_of(end), byte_of(end))
        file = os.open(self.folder / "synced", os.O_CREAT | os.O_WRONLY, 0o600)
        try:
            os.pwrite(file, packed + struct.pack("<I", zlib.crc32(packed)), 0)
        finally:
            os.close(file)

    def _published(self) -> int:
        for _ in range(100):
            try:
                content = (self.folder / "synced").read_bytes()
            except FileNotFoundError:
                return 0
            if len(content) == _SYNCED.size:
                segment, byte, checksum = _SYNCED.unpack(content)
                if zlib.crc32(content[:-4]) == checksum:
                    return position_of(segment, byte)
            time.sleep(0.001)  # it is being replaced
        return 0

    # --- reading ----------------------------------------------------------------------------------

    def first(self) -> int:
        """The first position that the spool still has."""
        return position_of(min(self._segments(), default=1), 0)

    def _segments(self) -> list[int]:
        return [int(each.stem) for each in self.folder.glob("*.events")]

    def end(self) -> int:
        """The position up to which events can be read; 0 if the spool was never opened."""
        return self._published()

    def frames(self, start: int, end: int, *, with_events: bool = True) -> Iterator[Frame]:
        """The frames between two positions. Without events, only the heads are read."""
        start = max(start, FIRST)
        for segment in range(segment_of(start), segment_of(end) + 1):
            path = self._segment(segment)
            if not path.exists():
                if segment == segment_of(end) and not byte_of(end):
                    return
                raise StateError(
                    f"the spool '{self.folder}' does not have segment {segment} any more"
                )
            begin = byte_of(start) if segment == segment_of(start) else 0
            until = byte_of(end) if segment == segment_of(end) else path.stat().st_size
            yield from self._frames_of(segment, begin, until, with_events=with_events)

    def _frames_of(
        self, segment: int, begin: int, until: int, *, with_events: bool = True
    ) -> Iterator[Frame]:
        """The whole frames of a segment; it ends where one is cut off or damaged."""
        with self._segment(segment).open("rb") as file:
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
                    source, kind = json.loads(name)
                    yield Frame(*place, events, posted_us, source, kind, lines)
                else:
                    file.seek(length, os.SEEK_CUR)
                    yield Frame(*place, events, posted_us)
                begin = after

    def release(self, position: int) -> None:
        """Readers need nothing before this position: delete whole segments before it."""
        segment = segment_of(position) - 1
        while segment > 0 and self._segment(segment).exists():
            self._segment(segment).unlink(missing_ok=True)
            segment -= 1

    def _segment(self, number: int) -> Path:
        return self.folder / f"{number}.events"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(self.folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)  # which releases the lock


def _write_all(file: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
