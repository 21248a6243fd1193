"""Parts of files, which the file log numbers, and how a file is cut into parts.

    lines of JSON   ┌── 8 MB ──┬── 8 MB ──┬─ rest ─┐   cut after line ends, so that several tasks
    CSV             │ number 4 │ number 5 │  6     │   read a large file; CSV after record ends
    array, Parquet, document    the whole file

A line end in CSV ends a record unless it is between quotes, which is only known from the beginning.
A stretch without quotes is cut at any line end; in one with quotes the reader itself (read_csv.py)
finds the record ends, so that parts give exactly the records of the whole.

A part has a checksum of its bytes. A later reader reads the same bytes, or finds that the file was
changed and rejects the part; a number never gives other rows.

Cost: each file is read once to be cut, at about 1 GB/s; CSV with quotes at about 50 MB/s.
"""

from __future__ import annotations

import csv
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.acquire.limits import LINE_BYTES_MAX
from headgate.acquire.read_csv import record_end

PART_BYTES = 8_000_000
ARRAY_BYTES_MAX = 100_000_000
DOCUMENT_BYTES_MAX = 10_000_000
FINGERPRINT_BYTES = 512 * 1024
BOM = b"\xef\xbb\xbf"
_PARQUET = b"PAR1"
_ROOT = re.compile(rb"<([A-Za-z_\x80-\xff][^\s<>/]*)")
"""The first element of an XML document: what precedes it begins with '<?' or '<!'."""

LINES, LONG, ARRAY, TABLE, WHOLE = "lines", "long", "array", "csv", "whole"
"""Shapes of a part: JSON lines, one line that is too long, a JSON array, CSV records, a file."""


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
        return start.startswith(_PARQUET) and end.endswith(_PARQUET)
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
        header, begin = read_header(file)
        if begin >= size and not whole:
            return NewParts((), 0, 1, TABLE)  # the header itself may not be complete
        before = replace(before, begin=begin, first_line=2, header=header)
    end = size if whole else _last_record_end(file, before.begin, size)
    if end <= before.begin:
        return NewParts((), before.begin, before.first_line, TABLE, before.header)
    parts: list[FilePart] = []
    header = before.header
    while before.begin < end:
        part, lines = _with_checksum(file, before, _record_part_end(file, before, end))
        parts.append(part)
        first_line = before.first_line + lines
        before = replace(before, begin=part.end, first_line=first_line, continues=False)
    return NewParts(tuple(parts), end, before.first_line, TABLE, header)


def _record_part_end(file: BinaryIO, before: FilePart, end: int) -> int:
    """Where the part that begins with `before` ends: after a record."""
    begin = before.begin
    if end - begin <= PART_BYTES:
        return end
    file.seek(begin)
    data = file.read(PART_BYTES)
    if b'"' not in data and (cut_at := data.rfind(b"\n") + 1):
        return begin + cut_at
    lines = read_file_lines(file, begin, end)
    skipped = len(next(lines, b"")) if before.continues else 0  # as the reader does
    return begin + skipped + record_end(lines, least=PART_BYTES - skipped)


def read_file_lines(file: BinaryIO, begin: int, end: int) -> Iterator[bytes]:
    """The lines within these bytes; lines that are too long are cut."""
    file.seek(begin)
    while begin < end:
        line = file.readline(min(LINE_BYTES_MAX + 2, end - begin))
        if not line:
            return
        begin += len(line)
        yield line


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
        cut_at = data.rfind(b"\n") + 1
        if begin + len(data) >= size and (whole or is_complete(data[cut_at:])):
            cut_at = len(data)
        if cut_at:
            data = data[:cut_at]
            yield begin + cut_at, LINES, zlib.crc32(data), data.count(b"\n")
            begin += cut_at
        elif begin + len(data) < size:
            end, ended = _end_of_line(file, begin + len(data), size)
            if not ended and not whole:
                return
            # The part is rejected without reading it, so it needs no checksum.
            yield end, LONG, 0, int(ended)
            begin = end
        else:
            return


def _end_of_line(file: BinaryIO, begin: int, size: int) -> tuple[int, bool]:
    file.seek(begin)
    while begin < size:
        data = file.read(min(PART_BYTES, size - begin))
        if not data:
            break
        line_end = data.find(b"\n")
        if line_end >= 0:
            return begin + line_end + 1, True
        begin += len(data)
    return begin, False


def is_complete(tail: bytes) -> bool:
    """Whether a last line without a line end is a complete JSON object."""
    if not 0 < len(tail) <= LINE_BYTES_MAX or not tail.rstrip().endswith(b"}"):
        return False
    try:
        return isinstance(json.loads(tail.decode("utf-8")), dict)
    except (ValueError, RecursionError):
        return False


def read_header(file: BinaryIO) -> tuple[tuple[str, ...], int]:
    """The names in the first line of a CSV file, and where its records begin.

    There are no names if the line cannot be read; the reader of the part then rejects it.
    """
    file.seek(0)
    line = file.readline(LINE_BYTES_MAX)
    try:
        names = next(csv.reader([line.decode("utf-8-sig")], strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        names = []
    return tuple(each.strip() for each in names), len(line)


def _last_record_end(file: BinaryIO, begin: int, size: int) -> int:
    """The position after the last line end that is not between quotes."""
    end, position, quotes = begin, begin, 0
    file.seek(begin)
    while position < size:
        data = file.read(min(PART_BYTES, size - position))
        if not data:
            break
        line_end = data.rfind(b"\n")
        while line_end >= 0 and (quotes + data.count(b'"', 0, line_end)) % 2:
            line_end = data.rfind(b"\n", 0, line_end)
        if line_end >= 0:
            end = position + line_end + 1
        quotes += data.count(b'"')
        position += len(data)
    return end


def _with_checksum(file: BinaryIO, before: FilePart, end: int) -> tuple[FilePart, int]:
    """The part from `before.begin` to `end` with its checksum, and its number of line ends."""
    counted = {TABLE: b"\n", ARRAY: b"{"}.get(before.shape)
    checksum = lines = rows = 0
    for data in read_range(file, before.begin, end):
        checksum = zlib.crc32(data, checksum)
        lines += data.count(b"\n")
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
