"""A batch of items as columns, made from items or from an Arrow record batch: the matcher's input.

    int, float, bool, timestamp    an array of 64-bit numbers, and which items have one
    text, xml, link, bytes         a `TextColumn`: bytes, and the forms of them that atoms look at,
                                   each computed once (texts.py)

A value that is not of its attribute's type counts as missing, and so do null and NaN. Columns of
Arrow are taken without a copy where their layout allows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeGuard

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.item_columns import STORED_AS
from headgate.match.texts import TextColumn, Texts, frozen, texts_of
from headgate.model.atoms import TimestampPart
from headgate.model.errors import InvalidValue
from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.model.values import Kind, Type, Value, is_missing, kind_of, kind_of_type

Column = tuple[npt.NDArray[np.int64] | npt.NDArray[np.float64], npt.NDArray[np.bool_]]
Key = tuple[str, TimestampPart | None]
"""An attribute, or a part of the timestamp that it holds."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_US = 86_400_000_000
ORDERED_TYPES = (Type.INT, Type.FLOAT, Type.BOOL, Type.TIMESTAMP)


@dataclass(frozen=True, slots=True)
class Batch:
    """`columns` has the attributes that are stored as numbers, `texts` all others."""

    size: int
    columns: Mapping[str, Column]
    texts: Mapping[str, TextColumn] = field(default_factory=dict)

    def column(self, key: Key) -> Column | None:
        name, part = key
        column = self.columns.get(name)
        if part is None or column is None:
            return column
        return part_of(column[0].astype(np.int64, copy=False), part), column[1]

    def columns_of(self, attribute: str | None, *types: Type) -> list[TextColumn]:
        """The column of an attribute, or all columns; only those of these types."""
        if attribute is None:
            columns = list(self.texts.values())
        else:
            columns = [self.texts[attribute]] if attribute in self.texts else []
        return [column for column in columns if column.type in types]


def batch_of_items(items: Sequence[Item], types: Mapping[str, Type]) -> Batch:
    """The batch of these items; a value that is not of its attribute's type counts as missing."""
    columns: dict[str, Column] = {}
    texts: dict[str, TextColumn] = {}
    for name, type_ in types.items():
        values = [item.attributes.get(name) for item in items]
        if type_ in ORDERED_TYPES:
            columns[name] = _column(values, type_)
        else:
            texts[name] = _text_column(values, type_)
    return Batch(len(items), columns, texts)


def _text_column(values: Sequence[Value | None], type_: Type) -> TextColumn:
    kind = kind_of_type(type_)
    valid = np.array([_is_of(value, kind) for value in values], bool)
    encoded = [_bytes(value) if ok else b"" for value, ok in zip(values, valid, strict=True)]
    return TextColumn(texts_of(encoded), valid, type_)


def _bytes(value: Value | None) -> bytes:
    # JSON can hold half of a surrogate pair; the stream goes on nevertheless.
    assert isinstance(value, str | bytes)
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")


def _column(values: Sequence[Value | None], type_: Type) -> Column:
    kind = kind_of_type(type_)
    valid = np.array([_is_of(value, kind) for value in values], bool)
    numbers = [_number(value) if ok else 0 for value, ok in zip(values, valid, strict=True)]
    if type_ is Type.FLOAT:
        return np.array(numbers, np.float64), valid
    return np.array(numbers, np.int64), valid


def _is_of(value: Value | None, kind: Kind) -> TypeGuard[Value]:
    return value is not None and not is_missing(value) and kind_of(value) is kind


def _number(value: Value | None) -> int | float:
    if isinstance(value, datetime):
        return microseconds(value)
    assert isinstance(value, int | float)
    return value


def microseconds(instant: datetime) -> int:
    """Since 1970, in UTC; exact."""
    return (instant - EPOCH) // timedelta(microseconds=1)


def instant_at(microseconds_: int) -> datetime:
    """The instant so many microseconds since 1970, in UTC; exact."""
    return EPOCH + timedelta(microseconds=microseconds_)


def part_of(values: npt.NDArray[np.int64], part: TimestampPart) -> npt.NDArray[np.int64]:
    """A part of timestamps, as the naive evaluator takes it."""
    parts: npt.NDArray[np.int64]
    match part:
        case TimestampPart.DATE:
            parts = values - values % DAY_US
        case TimestampPart.WEEKDAY:
            parts = (values // DAY_US + 3) % 7 + 1  # 1970 began on a Thursday
        case TimestampPart.HOUR:
            parts = values // 3_600_000_000 % 24
        case TimestampPart.MINUTE:
            parts = values // 60_000_000 % 60
        case TimestampPart.SECOND:
            parts = values // 1_000_000 % 60
        case _:
            parts = _calendar_part(values.astype("datetime64[us]"), part)
    return parts


def _calendar_part(
    stamps: npt.NDArray[np.datetime64], part: TimestampPart
) -> npt.NDArray[np.int64]:
    months = stamps.astype("datetime64[M]")
    parts: npt.NDArray[np.int64] = (stamps.astype("datetime64[D]") - months).astype(np.int64) + 1
    if part is TimestampPart.YEAR:
        parts = stamps.astype("datetime64[Y]").astype(np.int64) + 1970
    elif part is TimestampPart.MONTH:
        parts = months.astype(np.int64) % 12 + 1
    return parts


def batch_of_arrow(table: pa.RecordBatch, schema: Schema) -> Batch:
    """The batch of these columns. A column that the schema does not have is ignored; one whose
    values do not fit its attribute's type raises `InvalidValue`, which names it."""
    columns: dict[str, Column] = {}
    texts: dict[str, TextColumn] = {}
    for attribute in schema.attributes:
        index = table.schema.get_field_index(attribute.name)
        if index >= 0:
            name, type_ = str(attribute.name), attribute.type
            column = _cast(name, table.column(index), type_)
            if type_ in ORDERED_TYPES:
                columns[name] = _arrow_column(column, type_)
            else:
                texts[name] = TextColumn(column_texts(column), _valid(column), type_)
    return Batch(table.num_rows, columns, texts)


def column_texts(column: pa.Array) -> Texts:
    """The buffers of an Arrow column as texts; a null becomes an empty text."""
    filled = _filled(column, b"" if pa.types.is_binary(column.type) else "")
    _, offsets, data = filled.buffers()
    if data is None or not len(filled):
        return texts_of([b""] * len(filled))
    start = np.frombuffer(offsets, np.int32)[filled.offset : filled.offset + len(filled) + 1]
    return Texts(start.astype(np.int64), frozen(np.frombuffer(data, np.uint8)))


def _cast(name: str, column: pa.Array, type_: Type) -> pa.Array:
    try:
        stored = column.cast(STORED_AS[type_])
        if type_ not in ORDERED_TYPES:
            stored.validate(full=True)  # kernels rely on valid UTF-8
        return stored
    except pa.ArrowException as reason:
        detail = str(reason).split("\n", maxsplit=1)[0]
        raise InvalidValue(
            f"column '{name}' of {column.type} does not fit {type_}: {detail}", subject=name
        ) from None


def _arrow_column(column: pa.Array, type_: Type) -> Column:
    valid = _valid(column)
    if type_ is Type.FLOAT:
        numbers = np.asarray(_filled(column, 0.0))
        return numbers, valid & ~np.isnan(numbers)
    integers = column.cast(pa.int64())
    return np.asarray(_filled(integers, 0)).astype(np.int64, copy=False), valid


# Most columns have no nulls: then nothing is computed or copied.


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(column.is_valid()) if column.null_count else np.ones(len(column), bool)


def _filled(column: pa.Array, value: object) -> pa.Array:
    return pc.fill_null(column, value) if column.null_count else column
