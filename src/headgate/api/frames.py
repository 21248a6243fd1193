"""Frames of any library as Arrow batches, and items as what the program takes.

A frame is anything that gives its columns to Arrow: a pyarrow Table, RecordBatch or
RecordBatchReader, a pandas or Polars DataFrame, and everything else that has the Arrow PyCapsule
interface (`__arrow_c_stream__` or `__arrow_c_array__`). Only the attributes' columns are taken.

    Arrow type                                       type of an attribute
    int8 … int64, uint8 … uint64                     int (a value above 2^63 - 1 is an error), float
    float16, float32, float64, decimals              float, int (where all values are whole numbers)
    bool                                             bool
    timestamp, date32, date64                        timestamp (without a zone: UTC)
    string, large_string, string_view, dictionary    text, link, xml
    binary, large_binary, binary_view, fixed size    bytes
    null                                             any: all values are missing

The first attribute type of a line is the one that `Matcher.from_frame` infers. Columns of other
types are refused by name. Null is a missing value, and so is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from headgate.match.matcher import BatchSize
from headgate.model.errors import InvalidValue, did_you_mean
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import (
    INT_MAX,
    INT_MIN,
    Link,
    Type,
    Value,
    Xml,
    coerce,
    describe,
    parse_timestamp,
    with_article,
)

_FITTING = {
    Type.INT: {Type.INT, Type.FLOAT},
    Type.FLOAT: {Type.INT, Type.FLOAT},
    Type.LINK: {Type.TEXT},
    Type.XML: {Type.TEXT},
}
_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)


# --- schemas ------------------------------------------------------------------------------------


def schema_of(given: object) -> Schema:
    """The schema that a mapping of names to types, or a pyarrow Schema, stands for.

    An error names the attribute whose name or type is none.
    """
    if isinstance(given, Schema):
        return given
    if isinstance(given, pa.Schema):
        return Schema(tuple(_inferred(each) for each in given))
    if not isinstance(given, Mapping):
        raise InvalidValue(
            "a schema is a mapping of attributes to types, such as {'price': 'float'}; "
            "use Matcher.from_frame for the columns of a frame"
        )
    return Schema(tuple(_declared(name, type_) for name, type_ in given.items()))


def _declared(name: str, type_: object) -> Attribute:
    _check_name(name)
    if type_ not in list(Type):
        hint = did_you_mean(str(type_), list(Type)) or f"known are {', '.join(Type)}"
        raise InvalidValue(f"'{name}' has no type '{type_}'; {hint}", subject=name)
    return Attribute(name, Type(str(type_)))


def _inferred(column: pa.Field) -> Attribute:
    _check_name(column.name)
    type_ = type_of(column.type)
    if type_ is None:
        raise InvalidValue(
            f"column '{column.name}' of {column.type} fits no type of an attribute: "
            f"leave it out or cast it",
            subject=column.name,
        )
    return Attribute(column.name, type_)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or "`" in name:
        raise InvalidValue(f"{name!r} is no name of an attribute: use visible characters")


def type_of(arrow: pa.DataType) -> Type | None:
    """The type of an attribute whose values are in such a column; none if it fits no type."""
    if types.is_dictionary(arrow):
        return Type.TEXT if type_of(arrow.value_type) is Type.TEXT else None
    if types.is_boolean(arrow):
        return Type.BOOL
    if types.is_integer(arrow):
        return Type.INT
    if types.is_floating(arrow) or types.is_decimal(arrow):
        return Type.FLOAT
    if types.is_timestamp(arrow) or types.is_date(arrow):
        return Type.TIMESTAMP
    if types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow):
        return Type.TEXT
    if types.is_fixed_size_binary(arrow) or types.is_binary_view(arrow):
        return Type.BYTES
    return Type.BYTES if types.is_binary(arrow) or types.is_large_binary(arrow) else None


# --- frames -------------------------------------------------------------------------------------


def frame_schema(frame: object) -> pa.Schema:
    """The columns of a frame."""
    if _is_pandas(frame):
        return pa.Schema.from_pandas(frame, preserve_index=False)
    return _reader(frame).schema


def batches_of(frame: object, schema: Schema, size: BatchSize) -> Iterator[pa.RecordBatch]:
    """The attributes' columns of a frame, checked, in batches of at most `size.rows` rows.

    An attribute without a column is missing in all rows. A frame that has none of the attributes is
    an error, as is a column whose type does not fit.
    """
    reader = _pandas_reader(frame, schema) if _is_pandas(frame) else _reader(frame)
    columns = attribute_columns(reader.schema, schema)
    for batch in reader:
        yield from parts_of(select_columns(batch, columns), size)


def parts_of(batch: pa.RecordBatch, size: BatchSize) -> Iterator[pa.RecordBatch]:
    """The rows of a batch in equal parts of about `size.rows` rows, which may change between two
    parts. A small last part would cost nearly as much as a large one."""
    start = 0
    while start < batch.num_rows:
        left = batch.num_rows - start
        part = batch.slice(start, -(-left // max(1, round(left / size.rows))))
        yield part
        start += part.num_rows


def attribute_columns(columns: pa.Schema, schema: Schema) -> dict[str, Type]:
    """The attributes that have a column, each with its type; an error if one does not fit."""
    found: dict[str, Type] = {}
    for attribute in schema.attributes:
        name, places = str(attribute.name), columns.get_all_field_indices(attribute.name)
        if len(places) > 1:
            raise InvalidValue(f"the frame has {len(places)} columns '{name}'", subject=name)
        if places:
            arrow = columns.field(places[0]).type
            fits = types.is_null(arrow) or type_of(arrow) in _FITTING.get(
                attribute.type, {attribute.type}
            )
            if not fits:
                raise InvalidValue(
                    f"column '{name}' of {arrow} does not fit {attribute.type}", subject=name
                )
            found[name] = attribute.type
    if schema.attributes and not found:
        raise InvalidValue(
            f"the frame has none of the attributes {', '.join(schema.names[:12])}; "
            f"its columns are {', '.join(columns.names[:12])}"
        )
    return found


def select_columns(batch: pa.RecordBatch, columns: Mapping[str, Type]) -> pa.RecordBatch:
    """These columns alone, in a form that match/batch.py can cast."""
    arrays = {name: _castable(batch.column(name), type_) for name, type_ in columns.items()}
    if not arrays:  # a schema without attributes still has rows
        return batch.select([])
    return pa.RecordBatch.from_pydict(arrays)


def _castable(column: pa.Array, type_: Type) -> pa.Array:
    if type_ is Type.INT and types.is_floating(column.type):
        return pc.if_else(pc.is_nan(column), None, column)
    if types.is_dictionary(column.type):  # Arrow has no `take` for dictionaries of string views
        texts = column.dictionary.cast(pa.string())
        return pa.DictionaryArray.from_arrays(column.indices, texts)
    if types.is_date(column.type):
        return column.cast(pa.timestamp("us"))
    return column


def _is_pandas(frame: object) -> bool:
    return type(frame).__module__.split(".")[0] == "pandas" and hasattr(frame, "columns")


def _pandas_reader(frame: object, schema: Schema) -> pa.RecordBatchReader:
    """Only the attributes' columns are converted: others may hold anything."""
    labels = list(frame.columns)  # type: ignore[attr-defined]
    places = [place for place, label in enumerate(labels) if label in schema.names]
    if not places:
        return (
            pa.schema([pa.field(str(label), pa.null()) for label in labels])
            .empty_table()
            .to_reader()
        )
    try:
        chosen = frame.iloc[:, places]  # type: ignore[attr-defined]
        return pa.Table.from_pandas(chosen, preserve_index=False).to_reader()
    except (pa.ArrowException, ValueError) as reason:
        raise InvalidValue(f"the frame cannot be read: {reason}") from None


def _reader(frame: object) -> pa.RecordBatchReader:
    if isinstance(frame, pa.RecordBatchReader):
        return frame
    if isinstance(frame, pa.Table):
        return frame.to_reader()
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(frame)
    if hasattr(frame, "__arrow_c_array__"):
        batch = pa.record_batch(frame)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    raise InvalidValue(
        f"{type(frame).__name__} is no frame: expected a DataFrame of pandas or Polars, a table of "
        "pyarrow, or anything else with __arrow_c_stream__"
    )


# --- items --------------------------------------------------------------------------------------


def item_of(values: Mapping[str, object], schema: Schema) -> Item:
    """The item with these attributes. Others are ignored; None and NaN are missing."""
    if not isinstance(values, Mapping):
        raise InvalidValue(f"an item is a mapping of attributes to values, not {type(values)}")
    attributes: dict[str, Value] = {}
    for attribute in schema.attributes:
        value = values.get(attribute.name)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            continue
        try:
            attributes[str(attribute.name)] = _value(value, attribute.type)
        except InvalidValue as reason:
            raise InvalidValue(
                f"attribute '{attribute.name}': {reason}", subject=attribute.name
            ) from None
    return Item("", "", _NO_TIME, attributes)


def _value(value: object, type_: Type) -> Value:
    """The value as one of the type, or `InvalidValue`."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    match value:
        case datetime():
            value = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        case Decimal():
            value = float(value)
        case bytearray() | memoryview():
            value = bytes(value)
    match type_, value:
        case Type.INT, float() if value.is_integer():
            value = int(value)
        case Type.INT, float():
            raise InvalidValue(f"expected an int, found {describe(value)}")
        case Type.TIMESTAMP, str():
            return parse_timestamp(value)
        case Type.LINK, str():
            return Link(value)
        case Type.XML, str():
            return Xml(value)
    if not isinstance(value, int | float | str | datetime | bytes):
        raise InvalidValue(f"expected {with_article(type_)}, found a value of {type(value)}")
    if isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
        raise InvalidValue("an integer has at most 64 bits")
    return coerce(str(value) if type_ is Type.TEXT and isinstance(value, str) else value, type_)
