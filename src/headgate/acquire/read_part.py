"""Reads one part of a file as rows; reading it again gives the same rows and the same rejects.

Each reader accounts for every byte or row of the part (rejected.py); `read_part` checks the
balance.

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

from headgate.acquire.file_parts import (
    ARRAY,
    LINES,
    LONG,
    TABLE,
    FilePart,
    read_range,
)
from headgate.acquire.item_rows import RowBuilder, SourceColumns, instant, places_of
from headgate.acquire.limits import DEFAULT_LIMITS
from headgate.acquire.read_csv import read_records
from headgate.acquire.read_json import LINES_AT_ONCE, ReadRows, read_array, read_lines
from headgate.acquire.rejected import TEXT_MAX, Rejects
from headgate.acquire.scan_files import is_below
from headgate.match.item_columns import STORED_AS, utc
from headgate.model.checked_xml import checked_xml
from headgate.model.errors import InvalidValue
from headgate.model.items import value_of_json
from headgate.model.schema import Schema
from headgate.model.values import Type, Value, Xml


def read_part(part: FilePart, base: Path, folder: Path, schema: Schema) -> Iterator[pa.RecordBatch]:
    """The rows of the part. Rejected records are written to the folder after the last row."""
    rejects = Rejects(part.source, part.path)
    columns = SourceColumns(part.source, part.kind, schema)
    items = 0
    for attributes, lines in read_rows(part, base, columns, rejects):
        if len(lines):
            items += len(lines)
            yield columns.rows(attributes, _places(part, lines), instant(part.taken_us))
    rejects.balance(part.end - part.begin, items=items)
    rejects.write(folder, str(part.number))


def _places(part: FilePart, lines: pa.Array) -> pa.Array:
    if part.kind == "documents":
        return pa.array([part.place] * len(lines), pa.string())
    return places_of(part.place, lines)


def read_rows(
    part: FilePart, base: Path, columns: SourceColumns, rejects: Rejects
) -> Iterator[ReadRows]:
    path, size = base / part.path, part.end - part.begin
    if not is_below(path, base.resolve()):
        rejects.take(size)
        rejects.add(None, "a symbolic link leads out of the base folder")
        return
    try:
        with path.open("rb") as file:
            if part.shape == LONG:
                file.seek(part.begin)
                text = file.read(TEXT_MAX)
                reason = f"it has more than {DEFAULT_LIMITS.record_bytes_max:,} bytes"
                rejects.take(size)
                rejects.add(part.first_line, f"the line or record is too long: {reason}", text)
            elif checksum(file, part) != part.checksum:
                rejects.take(size)
                rejects.add(None, "the file was changed before it was read")
            else:
                yield from _read(part, file, path, columns, rejects)
    except OSError as error:
        rejects.add(None, f"the file cannot be read: {error.strerror}")
        rejects.take(size - rejects.taken)


def _read(
    part: FilePart, file: BinaryIO, path: Path, columns: SourceColumns, rejects: Rejects
) -> Iterator[ReadRows]:
    size, limits = part.end - part.begin, DEFAULT_LIMITS
    if part.format == "parquet":
        yield from read_parquet(path, columns, rejects)
        rejects.take(size, records=0)  # its rows were counted
        return
    if part.shape == ARRAY and size > limits.array_bytes_max:
        rejects.take(size)
        reason = f"the array has more than {limits.array_bytes_max:,} bytes"
        rejects.add(None, f"{reason}: write one object per line")
        return
    if part.shape not in (LINES, TABLE, ARRAY) and size > limits.xml.bytes_max:
        rejects.take(size)
        rejects.add(None, f"the document has more than {limits.xml.bytes_max:,} bytes")
        return
    data = b"".join(read_range(file, part.begin, part.end))
    if part.shape == LINES:
        first_line, continues = part.first_line, part.continues
        yield from read_lines(data, columns, rejects, first_line=first_line, continues=continues)
    elif part.shape == TABLE:
        yield from read_records(
            data,
            part.header,
            columns,
            rejects,
            first_line=part.first_line,
            continues=part.continues,
            line_end=part.line_end,
        )
    elif part.shape == ARRAY:
        yield from read_array(data, columns, rejects)
    else:
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
    first, items = 1, 0
    try:
        file = pq.ParquetFile(path)
        end = first + file.metadata.num_rows
        names = [each for each in columns.schema.names if each in file.schema_arrow.names]
        for name in names:
            if file.schema_arrow.names.count(str(name)) > 1:
                raise ValueError(f"it has two columns '{name}'")
        for batch in file.iter_batches(LINES_AT_ONCE, columns=[str(each) for each in names]):
            rejects.take(0, records=batch.num_rows)
            arrays = _cast(batch, columns)
            if arrays is None:
                found = _row_by_row(batch, columns, rejects, first)
            else:
                found = arrays, pa.array(range(first, first + batch.num_rows), pa.int64())
            items += len(found[1])
            if len(found[1]):
                yield found
            first += batch.num_rows
        if first != end:
            # A page whose header is damaged is skipped by the library without a word.
            missing = max(end - first, 1)
            rejects.take(0, records=missing)
            reason = f"the Parquet file is damaged: {end - first:,} of its rows are missing"
            rejects.add(None, reason, count=missing)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        # Rows before the damage are kept: a second read finds the same ones.
        lost = max(rejects.records - items - rejects.count, 0)
        rejects.take(0, records=int(not lost))
        reason = f"the Parquet file is damaged from row {first} on: {error}"
        rejects.add(None, reason, count=max(lost, 1))


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
            if pa.types.is_string(type_):
                values.validate(full=True)  # the library does not check that it is UTF-8
            is_nanoseconds = pa.types.is_timestamp(values.type) and values.type.unit == "ns"
            arrays[name] = values.cast(type_, safe=not is_nanoseconds)
        except pa.ArrowException:
            return None
    if any(arrays[each].null_count for each in columns.keys):
        return None
    return columns.stored(arrays)


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
    names = batch.schema.names
    values = [_python_values(batch.column(name)) for name in names]
    for number in range(first, first + batch.num_rows):
        row = {name: column[number - first] for name, column in zip(names, values, strict=True)}
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


def _python_values(column: pa.Array) -> list[object]:
    """The values of a column; bytes for a text that is not UTF-8."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [_text_or_bytes(each) for each in column.cast(pa.binary()).to_pylist()]


def _text_or_bytes(value: bytes | None) -> str | bytes | None:
    try:
        return None if value is None else value.decode("utf-8")
    except UnicodeDecodeError:
        return value


def _converted(name: str, value: object, type_: Type) -> Value:
    if isinstance(value, datetime) and type_ is Type.TIMESTAMP:
        return utc(value)
    if isinstance(value, bytes) and type_ is Type.BYTES:
        return value
    if isinstance(value, bytes):
        raise InvalidValue(f"attribute '{name}': the text is not UTF-8", subject=name)
    try:
        return value_of_json(value, type_)
    except InvalidValue as reason:
        raise InvalidValue(f"attribute '{name}': {reason}", subject=name) from None


def read_document(
    data: bytes, name: str, columns: SourceColumns, rejects: Rejects
) -> Iterator[ReadRows]:
    """The document as one item, as text without its prolog (model/checked_xml.py)."""
    rejects.take(len(data))
    try:
        text = checked_xml(data, DEFAULT_LIMITS.xml)
    except InvalidValue as error:
        rejects.add(None, error, data)
        return
    builder = RowBuilder(columns, rejects)
    builder.add_checked(1, {"document": Xml(text), "name": name}, data)
    arrays, lines = builder.take()
    yield arrays, pa.array(lines, pa.int64())
