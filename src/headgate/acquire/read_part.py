"""Reads one part of a file as rows; reading it again gives the same rows and the same rejects.

lines of JSON, arrays    read_json.py       Parquet          below
CSV records              read_csv.py        XML documents    below: one item per file
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from lxml import etree

from headgate.acquire.file_parts import (
    ARRAY,
    ARRAY_BYTES_MAX,
    DOCUMENT_BYTES_MAX,
    LINES,
    LONG,
    TABLE,
    FilePart,
    read_file_lines,
    read_range,
)
from headgate.acquire.item_rows import RowBuilder, SourceColumns, instant, places_of
from headgate.acquire.limits import LINE_BYTES_MAX
from headgate.acquire.read_csv import read_records
from headgate.acquire.read_json import LINES_AT_ONCE, ReadRows, read_array, read_lines
from headgate.acquire.rejected import TEXT_MAX, Rejects
from headgate.acquire.scan_files import is_below
from headgate.match.item_columns import STORED_AS, utc
from headgate.model.errors import InvalidValue
from headgate.model.items import value_of_json
from headgate.model.schema import Schema
from headgate.model.text import safe_parser
from headgate.model.values import Type, Value


def read_part(part: FilePart, base: Path, folder: Path, schema: Schema) -> Iterator[pa.RecordBatch]:
    """The rows of the part. Rejected records are written to the folder after the last row."""
    rejects = Rejects(part.source, part.path)
    columns = SourceColumns(part.source, part.kind, schema)
    for attributes, lines in _checked_rows(part, base, columns, rejects):
        if len(lines):
            yield columns.rows(attributes, _places(part, lines), instant(part.taken_us))
    rejects.write(folder, str(part.number))


def _places(part: FilePart, lines: pa.Array) -> pa.Array:
    if part.kind == "documents":
        return pa.array([part.place] * len(lines), pa.string())
    return places_of(part.place, lines)


def _checked_rows(
    part: FilePart, base: Path, columns: SourceColumns, rejects: Rejects
) -> Iterator[ReadRows]:
    path = base / part.path
    if not is_below(path, base.resolve()):
        rejects.add(None, "a symbolic link leads out of the base folder")
        return
    try:
        with path.open("rb") as file:
            if part.shape == LONG:
                file.seek(part.begin)
                text = file.read(TEXT_MAX)
                reason = f"the line has more than {LINE_BYTES_MAX:,} bytes"
                rejects.add(part.first_line, reason, text)
            elif checksum(file, part) != part.checksum:
                rejects.add(None, "the file was changed before it was read")
            else:
                yield from _read(part, file, path, columns, rejects)
    except OSError as error:
        rejects.add(None, f"the file cannot be read: {error.strerror}")


def _read(
    part: FilePart, file: BinaryIO, path: Path, columns: SourceColumns, rejects: Rejects
) -> Iterator[ReadRows]:
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
        lines = read_file_lines(file, part.begin, part.end)
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
            None, f"the array has more than {ARRAY_BYTES_MAX:,} bytes: write one object per line"
        )
    elif part.shape == ARRAY:
        yield from read_array(b"".join(read_range(file, 0, part.end)), columns, rejects)
    else:
        end = min(part.end, DOCUMENT_BYTES_MAX + 1)
        data = b"".join(read_range(file, 0, end))
        yield from read_document(data, part.path, columns, rejects)


def checksum(file: BinaryIO, part: FilePart) -> int:
    """The checksum of the part's current bytes; −1 if the file has become shorter."""
    crc, size = 0, 0
    for data in read_range(file, part.begin, part.end):
        crc = zlib.crc32(data, crc)
        size += len(data)
    return crc if size == part.end - part.begin else -1


# --- Parquet and XML ------------------------------------------------------------------------------


def read_parquet(path: Path, columns: SourceColumns, rejects: Rejects) -> Iterator[ReadRows]:
    """The rows of the file. A column that cannot be cast as a whole is converted row by row."""
    first = 1
    try:
        file = pq.ParquetFile(path)
        end = first + file.metadata.num_rows
        names = [each for each in columns.schema.names if each in file.schema_arrow.names]
        for batch in file.iter_batches(LINES_AT_ONCE, columns=[str(each) for each in names]):
            arrays = _cast(batch, columns)
            if arrays is None:
                yield _row_by_row(batch, columns, rejects, first)
            elif batch.num_rows:
                yield arrays, pa.array(range(first, first + batch.num_rows), pa.int64())
            first += batch.num_rows
        if first != end:
            # A page whose header is damaged is skipped by the library without a word.
            rejects.add(
                None, f"the Parquet file is damaged: {end - first:,} of its rows are missing"
            )
    except (pa.ArrowException, OSError, ValueError) as error:
        # Rows before the damage are kept: a second read finds the same ones.
        rejects.add(None, f"the Parquet file is damaged from row {first} on: {error}")


def _cast(batch: pa.RecordBatch, columns: SourceColumns) -> dict[str, pa.Array] | None:
    arrays: dict[str, pa.Array] = {}
    for attribute in columns.schema.attributes:
        name, type_ = str(attribute.name), STORED_AS[attribute.type]
        if name not in batch.schema.names:
            arrays[name] = pa.nulls(batch.num_rows, type_)
            continue
        values = batch.column(name)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if not _same_kind(values.type, type_):
            return None
        try:
            # Nanoseconds are truncated; other casts must not lose information.
            is_nanoseconds = pa.types.is_timestamp(values.type) and values.type.unit == "ns"
            arrays[name] = values.cast(type_, safe=not is_nanoseconds)
        except pa.ArrowException:
            return None
    return None if any(arrays[each].null_count for each in columns.keys) else arrays


def _same_kind(stored: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast gives the same values as the conversion row by row."""
    types = pa.types
    if types.is_floating(target):
        return bool(
            types.is_floating(stored) or types.is_integer(stored) or types.is_decimal(stored)
        )
    if types.is_timestamp(target):
        return bool(types.is_timestamp(stored) or types.is_date(stored))
    kinds = (
        (types.is_integer, types.is_integer),
        (types.is_boolean, types.is_boolean),
        (types.is_string, types.is_string),
        (types.is_large_string, types.is_string),
        (types.is_binary, types.is_binary),
        (types.is_large_binary, types.is_binary),
    )
    return any(left(stored) and right(target) for left, right in kinds)


def _row_by_row(
    batch: pa.RecordBatch, columns: SourceColumns, rejects: Rejects, first: int
) -> ReadRows:
    builder = RowBuilder(columns, rejects)
    for number, row in enumerate(batch.to_pylist(), first):
        try:
            attributes = {
                str(attribute.name): _converted(
                    str(attribute.name), row[attribute.name], attribute.type
                )
                for attribute in columns.schema.attributes
                if row.get(attribute.name) is not None
            }
        except (InvalidValue, OverflowError) as error:
            rejects.add(number, error, repr(row)[:1_000])
        else:
            builder.add_attributes(number, attributes, repr(row)[:1_000])
    arrays, lines = builder.take()
    return arrays, pa.array(lines, pa.int64())


def _converted(name: str, value: object, type_: Type) -> Value:
    if isinstance(value, datetime) and type_ is Type.TIMESTAMP:
        return utc(value)
    if isinstance(value, bytes) and type_ is Type.BYTES:
        return value
    try:
        return value_of_json(value, type_)
    except InvalidValue as reason:
        raise InvalidValue(f"attribute '{name}': {reason}", subject=name) from None


def read_document(
    data: bytes, name: str, columns: SourceColumns, rejects: Rejects
) -> Iterator[ReadRows]:
    """The document as one item, as text without its prolog."""
    if len(data) > DOCUMENT_BYTES_MAX:
        rejects.add(None, f"the document has more than {DOCUMENT_BYTES_MAX:,} bytes", data)
        return
    try:
        root = etree.fromstring(data, safe_parser())
    except (etree.XMLSyntaxError, ValueError) as error:
        rejects.add(None, f"no well-formed XML: {error}", data)
        return
    if next(root.iter(etree.Entity), None) is not None:
        rejects.add(None, "it uses an entity, and entities are not resolved", data)
        return
    builder = RowBuilder(columns, rejects)
    text = etree.tostring(root, encoding="unicode", with_tail=False)
    builder.add_attributes(1, {"document": text, "name": name}, data)
    arrays, lines = builder.take()
    yield arrays, pa.array(lines, pa.int64())
