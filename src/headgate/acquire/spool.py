"""The spool: posted events, durable when `append` returns, readable by position.

    spool/1.events, 2.events, …     segments of 64 MB; all processes append to the last one
    spool/synced                    how far everything is on disk: segment and byte
    spool/lock                      held while frames are appended

One `append` is one frame (spool_frames.py), so it is there as a whole or not at all. A *position*
is a number: the segment and the byte at which a frame begins.

Invariant: a frame that `synced` covers is on disk and never changes. `append` returns after that,
and readers read no further. A process that dies while it appends leaves a frame that is cut off or
has a wrong checksum; whoever appends next, or opens the spool to read, truncates it. Whole frames
that were written but not yet synced are kept: their sender got no answer and may send them again.

Group commit: threads that append at the same time are written and synced together, by one of them.
Processes take turns by the lock.

A frame with a *key* is appended once: whoever appends the same key again gets the position of the
first. Keys are in the frames, so they are known as long as the frames are there, at most for KEY_S,
to every process and after a crash. A process that meets its first key reads all frames; later it
reads those that were appended since. One segment that nobody reads any more is kept for that.

Cost: one fsync (1 to 5 ms) per group of appends. A reader learns of new events by reading the 24
bytes of `synced`: it lists no folder and scans no file.

Rejected: a file per writer, because positions would be vectors; SQLite, because its rows cost ten
times the bytes; acknowledging before the sync, because a publish that was acknowledged must survive
a loss of power.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from headgate.acquire.spool_frames import (
    FIRST,
    Frame,
    NewFrame,
    byte_of,
    encode_frame,
    position_of,
    read_frames,
    segment_of,
)
from headgate.model.errors import InvalidValue, StateError

SEGMENT_BYTES = 64_000_000
_SYNCED = struct.Struct("<QQI")
KEY_S = 86_400.0
KEYS_MAX = 500_000
"""So many keys a process knows; it forgets the oldest."""


@dataclass(slots=True)
class _Waiting:
    """A frame that waits to be written, and then its position or an error."""

    frame: NewFrame
    encoded: bytes
    position: int = 0
    error: Exception | None = None
    is_done: bool = False
    repeats: _Waiting | None = None
    """One with the same key that is written with it."""


class _Keys:
    """The keys of frames that are in the spool, the oldest first. The lock of the spool is held."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[int, int, str]] = {}
        self._read_to = 0

    def catch_up(self, spool: Spool, end: int) -> None:
        for frame in spool.frames(max(self._read_to, spool.first()), end):
            if frame.key:
                self._known[frame.source, frame.key] = frame.position, frame.posted_us, frame.digest
        self._read_to = end
        while len(self._known) > KEYS_MAX:
            del self._known[next(iter(self._known))]

    def position_of(self, frame: NewFrame, *, now_us: int) -> int | None:
        """Where a frame with this key is."""
        position, posted_us, digest = self._known.get((frame.source, frame.key), (0, 0, ""))
        if not position or now_us - posted_us > KEY_S * 1e6:
            return None
        _require_same(frame.digest, digest)
        return position


def _require_same(digest: str, other: str) -> None:
    if digest != other:
        raise InvalidValue("this idempotency key was used for other events")


@dataclass(slots=True, eq=False)
class Spool:
    """Thread-safe; any number of processes may have it open."""

    folder: Path
    _waiting: list[_Waiting] = field(default_factory=list)
    _is_writing: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _recovered: int = 0
    """The position up to which this process knows that all frames are whole."""
    _keys: _Keys = field(default_factory=_Keys)

    # --- appending --------------------------------------------------------------------------------

    def append(
        self, source: str, lines: Sequence[bytes], *, kind: str = "stream", key: str = ""
    ) -> int:
        """Append events; returns their position when they are on disk."""
        (position,) = self.append_many([NewFrame(source, lines, kind, key)])
        if isinstance(position, InvalidValue):
            raise position
        return position

    def append_many(self, frames: Sequence[NewFrame]) -> list[int | InvalidValue]:
        """Append frames together; their positions when all are on disk. A key that was used for
        something else is an error of that frame alone."""
        now_us = int(time.time() * 1e6)
        entries = [_Waiting(each, encode_frame(each, posted_us=now_us)) for each in frames]
        if not entries:
            return []
        last = entries[-1]  # those that come together are taken together
        with self._changed:
            self._waiting += entries
            while not last.is_done and self._is_writing:
                self._changed.wait()
            if not last.is_done:
                self._is_writing = True
                group, self._waiting = self._waiting, []
        if not last.is_done:
            self._write_group(group)
        found: list[int | InvalidValue] = []
        for entry in entries:
            if entry.error is not None and not isinstance(entry.error, InvalidValue):
                raise entry.error
            found.append(entry.error or entry.position)
        return found

    def _write_group(self, group: Sequence[_Waiting]) -> None:
        error: Exception | None = None
        try:
            with self._locked():
                self._write(group)
        except Exception as problem:
            error = problem
        with self._changed:
            for entry in group:
                entry.error, entry.is_done = error or entry.error, True
            self._is_writing = False
            self._changed.notify_all()

    def _write(self, group: Sequence[_Waiting]) -> None:
        end = self._recover()
        new = self._without_repeats(group, end)
        if new:
            self._write_new(new, end)
        for each in group:
            if each.repeats is not None:
                each.position = each.repeats.position

    def _without_repeats(self, group: Sequence[_Waiting], end: int) -> Sequence[_Waiting]:
        """Those that must be written: not those whose key is in the spool, or in the group."""
        if not any(each.frame.key for each in group):
            return group
        self._keys.catch_up(self, end)
        now_us = int(time.time() * 1e6)
        firsts: dict[tuple[str, str], _Waiting] = {}
        new: list[_Waiting] = []
        for each in group:
            frame = each.frame
            try:
                if not frame.key:
                    new.append(each)
                elif (position := self._keys.position_of(frame, now_us=now_us)) is not None:
                    each.position = position
                elif (first := firsts.setdefault((frame.source, frame.key), each)) is each:
                    new.append(each)
                else:
                    _require_same(frame.digest, first.frame.digest)
                    each.repeats = first
            except InvalidValue as error:
                each.error = error
        return new

    def _write_new(self, group: Sequence[_Waiting], end: int) -> None:
        segment, byte = segment_of(end), byte_of(end)
        if byte >= SEGMENT_BYTES:
            segment, byte = segment + 1, 0
        path = self._segment(segment)
        is_new = not path.exists()
        file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
        try:
            os.lseek(file, byte, os.SEEK_SET)
            _write_all(file, b"".join(each.encoded for each in group))
            os.fdatasync(file)
        finally:
            os.close(file)
        if is_new:
            _sync_folder(self.folder)
        for each in group:
            each.position = position_of(segment, byte)
            byte += len(each.encoded)
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
            for frame in read_frames(path, segment_of(end), byte_of(end), size):
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
            yield from read_frames(path, segment, begin, until, with_events=with_events)

    def release(self, position: int) -> None:
        """Readers need nothing before this position: delete whole segments before it, except for
        the last one, because of its keys."""
        segment = segment_of(position) - 2
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


def leave_out_segments(folder: Path, count: int) -> None:
    """Posts to this spool, which nobody has open, begin so many segments later. Those between are
    empty: readers find no gap."""
    last = max((int(each.stem) for each in folder.glob("*.events")), default=0)
    for number in range(last + 1, last + count + 1):
        (folder / f"{number}.events").touch(mode=0o600)
    _sync_folder(folder)


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
