"""Arrow record batches as batches for the program. Nulls are missing values, and so is NaN.

Columns are taken as arrays, without a copy where Arrow's layout allows it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.arrow_types import STORED_AS
from headgate.match.batch import ORDERED_TYPES, Batch, Column
from headgate.match.text_columns import TextColumn
from headgate.match.texts import Texts, frozen, texts_of
from headgate.model.errors import InvalidValue
from headgate.model.schema import Schema
from headgate.model.values import Type


def batch_of_arrow(table: pa.RecordBatch, schema: Schema) -> Batch:
    """The batch of these columns; a column that the schema does not know is not looked at.

    A column whose values do not fit its attribute's type is an error that names it.
    """
    columns: dict[str, Column] = {}
    texts: dict[str, TextColumn] = {}
    for attribute in schema.attributes:
        at = table.schema.get_field_index(attribute.name)
        if at >= 0:
            name, type_ = str(attribute.name), attribute.type
            column = _cast(name, table.column(at), type_)
            if type_ in ORDERED_TYPES:
                columns[name] = _column(column, type_)
            else:
                texts[name] = TextColumn(column_texts(column), np.asarray(column.is_valid()), type_)
    return Batch(table.num_rows, columns, texts)


def column_texts(column: pa.Array) -> Texts:
    """The column's own buffers; a null has no bytes once it is filled with an empty text."""
    filled = pc.fill_null(column, b"" if pa.types.is_binary(column.type) else "")
    _, offsets, data = filled.buffers()
    if data is None or not len(filled):
        return texts_of([b""] * len(filled))
    start = np.frombuffer(offsets, np.int32)[filled.offset : filled.offset + len(filled) + 1]
    return Texts(start.astype(np.int64), frozen(np.frombuffer(data, np.uint8)))


def _cast(name: str, column: pa.Array, type_: Type) -> pa.Array:
    try:
        stored = column.cast(STORED_AS[type_])
        stored.validate(full=True)  # kernels take it for granted that texts are UTF-8
        return stored
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
