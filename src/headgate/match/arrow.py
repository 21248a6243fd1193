"""Arrow record batches as batches for the program. Nulls are missing values, and so is NaN.

Ordered columns are taken as arrays, without a copy where Arrow's layout allows it. Items are made
of the other columns only if an atom asks for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.batch import EPOCH, ORDERED_TYPES, Batch, Column, Texts
from headgate.model.errors import InvalidValue
from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.model.values import Link, Type, Value, Xml

_STORED_AS = {
    Type.INT: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.BOOL: pa.bool_(),
    Type.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Type.TEXT: pa.string(),
    Type.LINK: pa.string(),
    Type.XML: pa.string(),
    Type.BYTES: pa.binary(),
}


def batch_of_arrow(table: pa.RecordBatch, schema: Schema) -> Batch:
    """The batch of these columns; a column that the schema does not know is not looked at.

    A column whose values do not fit its attribute's type is an error that names it.
    """
    cast: dict[str, pa.Array] = {}
    types: dict[str, Type] = {}
    for attribute in schema.attributes:
        at = table.schema.get_field_index(attribute.name)
        if at >= 0:
            name = str(attribute.name)
            cast[name], types[name] = _cast(name, table.column(at), attribute.type), attribute.type
    columns = {
        name: _column(cast[name], types[name]) for name in cast if types[name] in ORDERED_TYPES
    }
    texts = {name: _texts(cast[name]) for name in cast if types[name] is Type.TEXT}
    return Batch(table.num_rows, columns, _LazyItems(cast, types, table.num_rows), texts)


def _texts(column: pa.Array) -> Texts:
    """The column's own buffers; a null has no bytes once it is filled with an empty text."""
    filled = pc.fill_null(column, "")
    _, offsets, data = filled.buffers()
    start = np.frombuffer(offsets, np.int32)[filled.offset : filled.offset + len(filled) + 1]
    if data is None or not len(filled):
        return Texts(np.zeros(len(filled) + 1, np.int64), np.zeros(0, np.uint8))
    return Texts(start.astype(np.int64), np.frombuffer(data, np.uint8))


def _cast(name: str, column: pa.Array, type_: Type) -> pa.Array:
    try:
        return column.cast(_STORED_AS[type_])
    except pa.ArrowException as reason:
        detail = str(reason).split("\n", maxsplit=1)[0]
        raise InvalidValue(
            f"column '{name}' of {column.type} does not fit {type_}: {detail}", subject=name
        ) from None


def _column(column: pa.Array, type_: Type) -> Column:
    valid = np.asarray(column.is_valid())
    if type_ is Type.FLOAT:
        numbers = np.asarray(pc.fill_null(column, 0.0))
        return numbers, valid & ~np.isnan(numbers)
    whole = column.cast(pa.int64())
    return np.asarray(pc.fill_null(whole, 0)).astype(np.int64, copy=False), valid


class _LazyItems(Sequence[Item]):
    """The items of a batch, made when the first of them is asked for."""

    def __init__(self, columns: dict[str, pa.Array], types: dict[str, Type], count: int) -> None:
        self._columns, self._types, self._count = columns, types, count
        self._made: list[Item] | None = None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Item]: ...
    def __getitem__(self, at: int | slice) -> Item | Sequence[Item]:
        if self._made is None:
            self._made = self._make()
        return self._made[at]

    def _make(self) -> list[Item]:
        attributes: list[dict[str, Value]] = [{} for _ in range(self._count)]
        for name, column in self._columns.items():
            for own, value in zip(attributes, column.to_pylist(), strict=True):
                if value is not None:
                    own[name] = _value(value, self._types[name])
        return [Item(str(at), "", EPOCH, own) for at, own in enumerate(attributes)]


def _value(value: Value, type_: Type) -> Value:
    match type_:
        case Type.LINK:
            return Link(value)
        case Type.XML:
            return Xml(value)
        case Type.TIMESTAMP:
            assert isinstance(value, datetime)
            return value.astimezone(UTC)
    return value
