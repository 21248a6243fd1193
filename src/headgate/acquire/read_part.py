"""A part of a file as rows, and what of it was rejected; the same each time it is read."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from headgate.acquire.file_parts import (
    ARRAY,
    ARRAY_BYTES_MAX,
    DOCUMENT_BYTES_MAX,
    LINE_BYTES_MAX,
    LINES,
    LONG,
    TABLE,
    Part,
    read_range,
)
from headgate.acquire.item_rows import Columns, moment, places_of
from headgate.acquire.read_csv import read_records
from headgate.acquire.read_json import Found, read_array, read_lines
from headgate.acquire.read_whole import read_document, read_parquet
from headgate.acquire.rejected import TEXT_MAX, Rejects
from headgate.acquire.scan_files import is_below
from headgate.model.schema import Schema


def read_part(part: Part, base: Path, folder: Path, schema: Schema) -> Iterator[pa.RecordBatch]:
    """The rows of the part; what is rejected is in the folder when the last row has been read."""
    rejects = Rejects(part.source, part.path)
    columns = Columns(part.source, part.kind, schema)
    for attributes, lines in _found(part, base, columns, rejects):
        if len(lines):
            yield columns.rows(attributes, _places(part, lines), moment(part.taken_us))
    rejects.write(folder, str(part.number))


def _places(part: Part, lines: pa.Array) -> pa.Array:
    if part.kind == "documents":
        return pa.array([part.place] * len(lines), pa.string())
    return places_of(part.place, lines)


def _found(part: Part, base: Path, columns: Columns, rejects: Rejects) -> Iterator[Found]:
    path = base / part.path
    if not is_below(path, base.resolve()):
        rejects.add(None, "it leads out of the base folder by a symbolic link")
        return
    try:
        with path.open("rb") as file:
            if part.shape == LONG:
                file.seek(part.begin)
                text = file.read(TEXT_MAX)
                reason = f"the line has more than {LINE_BYTES_MAX:,} bytes"
                rejects.add(part.first_line, reason, text)
            elif checksum(file, part) != part.checksum:
                rejects.add(None, "the file was changed after it was taken, and before it was read")
            else:
                yield from _read(part, file, path, columns, rejects)
    except OSError as error:
        rejects.add(None, f"the file cannot be read: {error.strerror}")


def _read(
    part: Part, file: BinaryIO, path: Path, columns: Columns, rejects: Rejects
) -> Iterator[Found]:
    size = part.end - part.begin
    if part.shape == LINES:
        yield from read_lines(
            b"".join(read_range(file, part.begin, part.end)),
            columns,
            rejects,
            first_line=part.first_line,
            continues=part.continues,
        )
    elif part.shape == TABLE:
        lines = _lines(file, part.begin, part.end)
        yield from read_records(
            lines,
            part.header,
            columns,
            rejects,
            first_line=part.first_line,
            continues=part.continues,
        )
    elif part.format == "parquet":
        yield from read_parquet(path, columns, rejects)
    elif part.shape == ARRAY and size > ARRAY_BYTES_MAX:
        rejects.add(
            None, f"an array of more than {ARRAY_BYTES_MAX:,} bytes; write an object a line"
        )
    elif part.shape == ARRAY:
        yield from read_array(b"".join(read_range(file, 0, part.end)), columns, rejects)
    else:
        end = min(part.end, DOCUMENT_BYTES_MAX + 1)
        data = b"".join(read_range(file, 0, end))
        yield from read_document(data, part.path, columns, rejects)


def checksum(file: BinaryIO, part: Part) -> int:
    """That of the part's bytes as they are now; of fewer bytes, none that a part can have."""
    found, size = 0, 0
    for data in read_range(file, part.begin, part.end):
        found = zlib.crc32(data, found)
        size += len(data)
    return found if size == part.end - part.begin else -1


def _lines(file: BinaryIO, begin: int, end: int) -> Iterator[bytes]:
    """Lines within these bytes, cut where they are too long."""
    file.seek(begin)
    while begin < end:
        line = file.readline(min(LINE_BYTES_MAX + 2, end - begin))
        if not line:
            return
        begin += len(line)
        yield line
