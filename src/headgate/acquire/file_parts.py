"""Parts of files, which the file log numbers, and how a file is cut into parts.

    lines of JSON   ┌── 8 MB ──┬── 8 MB ──┬─ rest ─┐   cut after line ends (also after 30,000
    CSV             │ number 4 │ number 5 │  6     │   lines), so that several tasks read a large
                                                       file; CSV after record ends
    a longer line or record     a part of its own, which is rejected without reading it
    array, Parquet, document    the whole file

A line end in CSV ends a record unless it is between quotes, which is only known from the beginning.
A stretch without quotes is cut at any line end; in one with quotes the reader itself (read_csv.py)
finds the record ends, so that parts give exactly the records of the whole. The parts of a file
follow each other without a gap, and begin after its header or byte order mark.

A part has a checksum of its bytes. A later reader reads the same bytes, or finds that the file was
changed and rejects the part; a number never gives other rows.

Cost: each file is read once to be cut, at about 1 GB/s; CSV with quotes at about 50 MB/s.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.acquire.limits import DEFAULT_LIMITS
from headgate.acquire.read_csv import BOM, complete_end, extents, line_after, read_header

PART_BYTES = 8_000_000
FINGERPRINT_BYTES = 512 * 1024
_PARQUET = b"PAR1"
_PARQUET_BYTES_MIN = 12
_ROOT = re.compile(rb"<([A-Za-z_\x80-\xff][^\s<>/]*)")
"""The first element of an XML document: what precedes it begins with '<?' or '<!'."""

LINES, LONG, ARRAY, TABLE, WHOLE = "lines", "long", "array", "csv", "whole"
"""Shapes of a part: JSON lines, a line or record that is too long, a JSON array, CSV, a file."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A range of bytes of a file, with a checksum. Written as JSON into the log."""

    source: str
    kind: str
    format: str
    path: str
    """Relative to the base folder."""
    shape: str
    begin: int
    end: int
    first_line: int
    taken_us: int
    """When it was taken: microseconds since 1970."""
    checksum: int
    rows: int
    """An estimate of the rows; an upper bound where a line is a row."""
    generation: int = 1
    """Counts how often the file was rewritten."""
    continues: bool = False
    """It begins within a line whose beginning was taken before."""
    header: tuple[str, ...] = ()
    number: int = 0
    line_end: str = "\n"

    @property
    def place(self) -> str:
        """The prefix of the ids of its items: path and generation.

        >>> FilePart("s", "stream", "json", "a.json", LINES, 0, 9, 1, 0, 0, 1, generation=2).place
        'a.json#2'
        """
        return self.path if self.generation == 1 else f"{self.path}#{self.generation}"


@dataclass(frozen=True, slots=True)
class NewParts:
    """The new parts of a file, the byte where they end, and the number of the next line."""

    parts: tuple[FilePart, ...]
    end: int
    next_line: int
    shape: str
    header: tuple[str, ...] = field(default=())
    line_end: str = "\n"


def shape_of(file: BinaryIO, format_: str) -> str:
    """The shape of a file of this format."""
    if format_ == "csv":
        return TABLE
    if format_ != "json":
        return WHOLE
    file.seek(0)
    start = file.read(4096).removeprefix(BOM).lstrip()
    return ARRAY if start.startswith(b"[") else LINES


def looks_complete(file: BinaryIO, format_: str) -> bool:
    """Whether a file ends as a complete one does. Lines and CSV may always be continued later."""
    shape = shape_of(file, format_)
    if shape not in (ARRAY, WHOLE):
        return True
    file.seek(0)
    start = file.read(4096)
    file.seek(0, 2)
    file.seek(max(file.tell() - 4096, 0))
    end = file.read(4096).rstrip()
    if shape == ARRAY:
        return end.endswith(b"]") and end[:-1].rstrip().endswith((b"}", b"["))
    if format_ == "parquet":
        # The four bytes at the beginning and at the end are the same ones in a file just begun.
        has_footer = len(start) >= _PARQUET_BYTES_MIN
        return has_footer and start.startswith(_PARQUET) and end.endswith(_PARQUET)
    root = _ROOT.search(start)
    return root is not None and end.endswith(b"</" + root[1] + b">")


def cut_parts(file: BinaryIO, before: FilePart, size: int, *, whole: bool) -> NewParts:
    """The parts of a file from the end of `before` on.

    An incomplete last line or record is included only with `whole`.
    """
    if before.shape == LINES:
        return _cut_lines(file, before, size, whole=whole)
    if before.shape == TABLE:
        return _cut_records(file, before, size, whole=whole)
    part, _ = _with_checksum(file, before, size)
    if before.format == "parquet":
        part = replace(part, rows=max(_parquet_rows(file), 1))
    return NewParts((part,), size, 1, before.shape)


def _parquet_rows(file: BinaryIO) -> int:
    """As the footer says; 0 if it is damaged. Rejected: cutting large files between row groups. To
    find out where these begin, pyarrow's metadata of columns is needed, and there a damaged footer
    ends the process (26.0)."""
    try:
        file.seek(0)
        return int(pq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError, ValueError):
        return 0


def _cut_records(file: BinaryIO, before: FilePart, size: int, *, whole: bool) -> NewParts:
    if before.begin == 0:
        file.seek(0)
        header = read_header(file.read(min(size, DEFAULT_LIMITS.record_bytes_max)))
        if header.end >= size and not whole:
            return NewParts((), 0, 1, TABLE)  # the header itself may not be complete
        before = replace(
            before,
            begin=header.end,
            first_line=1 + header.lines,
            header=header.names,
            line_end=header.line_end,
        )
    parts: list[FilePart] = []
    while before.begin < size:
        end, shape = _record_part_end(file, before, size, whole=whole)
        if end <= before.begin:
            break
        part, lines = _with_checksum(file, replace(before, shape=shape), end)
        parts.append(part)
        first_line = before.first_line + lines
        before = replace(before, begin=end, first_line=first_line, continues=False)
    return NewParts(
        tuple(parts), before.begin, before.first_line, TABLE, before.header, before.line_end
    )


def _record_part_end(
    file: BinaryIO, before: FilePart, size: int, *, whole: bool
) -> tuple[int, str]:
    """Where the part ends that begins with `before`, after a record, and its shape; where it
    begins if its first record is not complete."""
    begin, line_end = before.begin, before.line_end
    data = _read_at(file, begin, PART_BYTES, size)
    few = _few_lines(data, line_end.encode())
    # A single record may have more lines than a part.
    for looked_at in dict.fromkeys((few, data)):
        if whole and begin + len(looked_at) >= size:
            if few is data:
                return size, TABLE
            # The first record has many lines, or a quote of it is never closed.
            return begin + next(extents(data, 0, line_end)).end, TABLE
        # What continues a record ends with the line, as the reader sees it.
        start = line_after(looked_at, 0, line_end) if before.continues else 0
        end = complete_end(looked_at, start, line_end)
        if end and looked_at.endswith(line_end.encode(), 0, end):
            return begin + end, TABLE
    if begin + len(data) >= size:
        return begin, TABLE
    return _long_record_end(file, before, size, whole=whole), LONG


def _long_record_end(file: BinaryIO, before: FilePart, size: int, *, whole: bool) -> int:
    """Where a record ends that is longer than a part. If its end is not found, its first line is
    taken, since a quote may never be closed; `begin` if the end may still be written."""
    begin, line_end = before.begin, before.line_end
    if not before.continues:
        data = _read_at(file, begin, DEFAULT_LIMITS.csv_search_bytes_max, size)
        first = next(extents(data, 0, line_end)).end
        if complete_end(data, 0, line_end):
            return begin + first
        if begin + len(data) >= size:
            return begin + (first if whole else 0)
    end, ended = _end_of_line(file, begin, size, line_end.encode())
    return end if ended or whole else begin


def _few_lines(data: bytes, ending: bytes) -> bytes:
    """The data up to as many lines as a part may have: short lines cost as much as long ones."""
    if data.count(ending) <= DEFAULT_LIMITS.part_lines_max:
        return data
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ending[0])
    return data[: int(ends[DEFAULT_LIMITS.part_lines_max - 1]) + 1]


def _read_at(file: BinaryIO, begin: int, most: int, size: int) -> bytes:
    file.seek(begin)
    return file.read(min(most, size - begin))


def _cut_lines(file: BinaryIO, before: FilePart, size: int, *, whole: bool) -> NewParts:
    parts: list[FilePart] = []
    begin, line = before.begin, before.first_line
    if begin == 0:
        file.seek(0)
        begin = len(BOM) if file.read(len(BOM)) == BOM else 0
    continues = before.continues
    for end, shape, checksum, lines in _line_ranges(file, begin, size, whole=whole):
        parts.append(
            replace(
                before,
                shape=shape,
                begin=begin,
                end=end,
                first_line=line,
                checksum=checksum,
                rows=max(lines, 1),
                continues=continues,
            )
        )
        begin, line, continues = end, line + lines, False
    return NewParts(tuple(parts), begin, line, LINES)


def _line_ranges(
    file: BinaryIO, begin: int, size: int, *, whole: bool
) -> Iterator[tuple[int, str, int, int]]:
    """The end of each part, its shape, its checksum, and its number of line ends."""
    while begin < size:
        file.seek(begin)
        data = file.read(min(PART_BYTES, size - begin))
        data = _few_lines(data, b"\n")
        cut_at = data.rfind(b"\n") + 1
        if begin + len(data) >= size and (whole or is_complete(data[cut_at:])):
            cut_at = len(data)
        if cut_at:
            data = data[:cut_at]
            yield begin + cut_at, LINES, zlib.crc32(data), data.count(b"\n")
            begin += cut_at
        elif begin + len(data) < size:
            end, ended = _end_of_line(file, begin + len(data), size, b"\n")
            if not ended and not whole:
                return
            # The part is rejected without reading it, so it needs no checksum.
            yield end, LONG, 0, int(ended)
            begin = end
        else:
            return


def _end_of_line(file: BinaryIO, begin: int, size: int, ending: bytes) -> tuple[int, bool]:
    file.seek(begin)
    while begin < size:
        data = file.read(min(PART_BYTES, size - begin))
        if not data:
            break
        found = data.find(ending)
        if found >= 0:
            return begin + found + 1, True
        begin += len(data)
    return begin, False


def is_complete(tail: bytes) -> bool:
    """Whether a last line without a line end is a complete JSON object."""
    if not 0 < len(tail) <= DEFAULT_LIMITS.record_bytes_max or not tail.rstrip().endswith(b"}"):
        return False
    try:
        return isinstance(json.loads(tail.decode("utf-8")), dict)
    except (ValueError, RecursionError):
        return False


def _with_checksum(file: BinaryIO, before: FilePart, end: int) -> tuple[FilePart, int]:
    """The part from `before.begin` to `end` with its checksum, and its number of line ends."""
    ending = before.line_end.encode()
    counted = {TABLE: ending, ARRAY: b"{"}.get(before.shape)
    checksum = lines = rows = 0
    for data in read_range(file, before.begin, end):
        checksum = zlib.crc32(data, checksum)
        lines += data.count(ending)
        rows += data.count(counted) if counted else 0
    return replace(before, end=end, checksum=checksum, rows=max(rows, 1)), lines


def read_range(file: BinaryIO, begin: int, end: int) -> Iterator[bytes]:
    file.seek(begin)
    while begin < end:
        data = file.read(min(PART_BYTES, end - begin))
        if not data:
            return
        begin += len(data)
        yield data


def fingerprint(path: Path, end: int) -> str:
    """A hash of the first `end` bytes; beyond 1 MB, of their first and last 512 kB."""
    digest = blake2b(str(end).encode(), digest_size=16)
    with path.open("rb") as file:
        digest.update(file.read(min(end, FINGERPRINT_BYTES)))
        file.seek(max(end - FINGERPRINT_BYTES, min(end, FINGERPRINT_BYTES)))
        digest.update(file.read(max(end - file.tell(), 0)))
    return digest.hexdigest()
