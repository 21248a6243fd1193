"""Files that are read as a whole: Parquet with a row for each item, XML with one item."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from lxml import etree

from headgate.acquire.file_parts import DOCUMENT_BYTES_MAX
from headgate.acquire.item_rows import Columns
from headgate.acquire.read_json import LINES_AT_ONCE, Found
from headgate.acquire.rejected import Rejects
from headgate.acquire.row_builder import RowBuilder
from headgate.match.arrow_types import STORED_AS
from headgate.match.item_columns import utc
from headgate.model.errors import InvalidValue
from headgate.model.json_values import value_of_json
from headgate.model.values import Type, Value
from headgate.model.xml_text import safe_parser


def read_parquet(path: Path, columns: Columns, rejects: Rejects) -> Iterator[Found]:
    """The rows of the file. A column that cannot be cast as a whole is converted row by row."""
    first = 1
    try:
        file = pq.ParquetFile(path)
        names = [each for each in columns.schema.names if each in file.schema_arrow.names]
        for batch in file.iter_batches(LINES_AT_ONCE, columns=[str(each) for each in names]):
            found = _cast(batch, columns)
            if found is None:
                yield _row_by_row(batch, columns, rejects, first)
            elif batch.num_rows:
                yield found, pa.array(range(first, first + batch.num_rows), pa.int64())
            first += batch.num_rows
    except (pa.ArrowException, OSError, ValueError) as error:
        # What was read before stays read: a damaged file is damaged at the same place again.
        rejects.add(None, f"no Parquet from row {first} on: {error}")


def _cast(batch: pa.RecordBatch, columns: Columns) -> dict[str, pa.Array] | None:
    found: dict[str, pa.Array] = {}
    for each in columns.schema.attributes:
        name, type_ = str(each.name), STORED_AS[each.type]
        if name not in batch.schema.names:
            found[name] = pa.nulls(batch.num_rows, type_)
            continue
        values = batch.column(name)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if not _same_kind(values.type, type_):
            return None
        try:
            # Nanoseconds are cut off, not refused; everything else has to fit.
            is_fine = pa.types.is_timestamp(values.type) and values.type.unit == "ns"
            found[name] = values.cast(type_, safe=not is_fine)
        except pa.ArrowException:
            return None
    return None if any(found[each].null_count for each in columns.keys) else found


def _same_kind(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Casts that mean the same as the careful way: numbers to numbers, texts to texts."""
    types = pa.types
    if types.is_floating(wanted):
        return bool(
            types.is_floating(stored) or types.is_integer(stored) or types.is_decimal(stored)
        )
    if types.is_timestamp(wanted):
        return bool(types.is_timestamp(stored) or types.is_date(stored))
    kinds = (
        (types.is_integer, types.is_integer),
        (types.is_boolean, types.is_boolean),
        (types.is_string, types.is_string),
        (types.is_large_string, types.is_string),
        (types.is_binary, types.is_binary),
        (types.is_large_binary, types.is_binary),
    )
    return any(left(stored) and right(wanted) for left, right in kinds)


def _row_by_row(batch: pa.RecordBatch, columns: Columns, rejects: Rejects, first: int) -> Found:
    builder = RowBuilder(columns, rejects)
    for number, row in enumerate(batch.to_pylist(), first):
        try:
            attributes = {
                str(each.name): _value(str(each.name), row[each.name], each.type)
                for each in columns.schema.attributes
                if row.get(each.name) is not None
            }
        except (InvalidValue, OverflowError) as error:
            rejects.add(number, error, repr(row)[:1_000])
        else:
            builder.add_attributes(number, attributes, repr(row)[:1_000])
    found, lines = builder.take()
    return found, pa.array(lines, pa.int64())


def _value(name: str, value: object, type_: Type) -> Value:
    if isinstance(value, datetime) and type_ is Type.TIMESTAMP:
        return utc(value)
    if isinstance(value, bytes) and type_ is Type.BYTES:
        return value
    try:
        return value_of_json(value, type_)
    except InvalidValue as reason:
        raise InvalidValue(f"attribute '{name}': {reason}", subject=name) from None


def read_document(data: bytes, name: str, columns: Columns, rejects: Rejects) -> Iterator[Found]:
    """The document as one item, in Unicode and without its prolog."""
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
    found, lines = builder.take()
    yield found, pa.array(lines, pa.int64())
