"""Rows of a table between Arrow columns and the bytes that a server keeps of each row.

    Symbol  PER   @id      @time          key      join     payload
    GOOG    51.7  GOOG@…   …        ──►   t GOOG   t goog   n 51.7 | t GOOG ‖ t GOOG@… | i …
                                                            body              origin

A value is a tag and its bytes (`key_bytes.py`). Values are in the order of the schema, numbers
before texts, so that selection values are found quickly. A key has texts as they are written, a
join value as they compare. The *body* of a payload is the row; after it comes the origin of this
version: the item's id and time. So a row that arrives again with equal values is no change.

Invariant: `columns(payloads(rows))` are the rows, and `numbers` are their values as boxes.py reads
constants. Whole columns are processed at a time, except for links: the form in which a link
compares is computed once per distinct link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.batch import column_texts
from headgate.match.item_columns import STORED_AS
from headgate.match.texts import Bytes, TextColumn, Texts, frozen
from headgate.model.errors import StateError
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.tables import row_format_kernels as kernels
from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.changes import Mask, copy_texts
from headgate.tables.key_bytes import BOOL, BYTES, LONG, MISSING, NUMBER, TEXT

ORIGIN = (Attribute("@id", Type.TEXT), Attribute("@time", Type.TIMESTAMP))
WORDS = (Type.INT, Type.FLOAT, Type.TIMESTAMP)
Words = npt.NDArray[np.uint64]
EXACT = 2**53


@dataclass(frozen=True, slots=True, eq=False)
class EncodedColumn:
    """One attribute of all rows, encoded; `put` appends it to each row."""

    tags: Bytes
    lengths: Longs
    put: Callable[[Longs, Bytes], None]


@dataclass(frozen=True, eq=False)  # no slots: cached properties need a dictionary
class RowFormat:
    schema: Schema
    on: tuple[str, ...]
    partitioned_by: tuple[str, ...] | None = None
    """The join attributes that determine the bucket; None: all of them."""

    @cached_property
    def body(self) -> tuple[Attribute, ...]:
        """The attributes in the order in which they are encoded."""
        return tuple(sorted(self.schema.attributes, key=lambda each: each.type not in WORDS))

    @property
    def is_partitioned_by_key(self) -> bool:
        """Whether a row's key determines its bucket, so that it never moves to another one."""
        keys = {str(each.name) for each in self.schema.attributes if each.key}
        return keys >= set(self.on if self.partitioned_by is None else self.partitioned_by)

    def keys(self, rows: pa.RecordBatch) -> Texts:
        attributes = [each for each in self.schema.attributes if each.key]
        columns = [_key_column(rows.column(str(each.name)), each.type) for each in attributes]
        return _encoded(columns, rows.num_rows)

    def joins(self, rows: pa.RecordBatch) -> tuple[Texts, Mask]:
        """The encoded join values, and which rows lack one: those join with nothing."""
        return self._joins(rows, self.on)

    def partition_values(self, rows: pa.RecordBatch) -> tuple[Texts, Mask] | None:
        """The encoded values that determine the bucket, and which rows lack one; None if these are
        the join values."""
        return None if self.partitioned_by is None else self._joins(rows, self.partitioned_by)

    def _joins(self, rows: pa.RecordBatch, names: Sequence[str]) -> tuple[Texts, Mask]:
        columns = []
        for name in names:
            attribute = self.schema.get(name)
            assert attribute is not None, "checked when the feed was created"
            columns.append(_join_column(rows.column(name), attribute.type))
        missing = np.zeros(rows.num_rows, np.bool_)
        for part in columns:
            missing |= part.tags == MISSING
        return _encoded(columns, rows.num_rows), missing

    def payloads(self, rows: pa.RecordBatch) -> tuple[Texts, Longs]:
        """The encoded rows with their origin, and the length of each without it."""
        body = [_plain_column(rows.column(str(each.name)), each.type) for each in self.body]
        origin = [_plain_column(rows.column(str(each.name)), each.type) for each in ORIGIN]
        lengths = sum((part.lengths for part in body), np.zeros(rows.num_rows, np.int64))
        return _encoded([*body, *origin], rows.num_rows), lengths

    def numbers(self, payloads: Texts, names: Sequence[str]) -> Floats:
        """The values of these attributes, [row, attribute]; NaN where they are missing."""
        numbers = np.full((len(payloads), max(1, len(names))), np.nan)
        cursor, ends = payloads.start[:-1].copy(), payloads.start[1:]
        for attribute in self.body:
            if attribute.type not in WORDS:
                break
            tags, words = _words(payloads.data, ends, cursor)
            if attribute.name in names:
                column = list(names).index(attribute.name)
                values = words.view(np.float64 if attribute.type is Type.FLOAT else np.int64)
                numbers[:, column] = np.where(tags == MISSING, np.nan, values)
        return numbers

    def columns(self, payloads: Texts) -> dict[str, pa.Array]:
        """All attributes and the origin, by name."""
        cursor, ends = payloads.start[:-1].copy(), payloads.start[1:]
        return {
            str(attribute.name): _column(payloads.data, ends, cursor, attribute.type)
            for attribute in (*self.body, *ORIGIN)
        }


def _encoded(columns: Sequence[EncodedColumn], count: int) -> Texts:
    """The columns concatenated row by row."""
    start = np.zeros(count + 1, np.int64)
    np.cumsum(sum((each.lengths for each in columns), np.zeros(count, np.int64)), out=start[1:])
    out = np.empty(int(start[-1]), np.uint8)
    cursor = start[:-1].copy()
    for column in columns:
        column.put(cursor, out)
    return Texts(start, frozen(out))


def _plain_column(column: pa.Array, type_: Type) -> EncodedColumn:
    """A column of values as they are written."""
    valid = np.asarray(column.is_valid())
    match type_:
        case Type.INT:
            return _long_column(_integers(column), valid)
        case Type.TIMESTAMP:
            stored = column.cast(STORED_AS[Type.TIMESTAMP], safe=False)
            return _long_column(_integers(stored.cast(pa.int64())), valid)
        case Type.FLOAT:
            return _float_column(_floats(column), valid)
        case Type.BOOL:
            flags = np.asarray(pc.fill_null(column, False)).astype(np.uint8)
            tags = _tags(valid, BOOL)
            lengths = np.where(valid, 2, 1)
            return EncodedColumn(
                tags, lengths, lambda cursor, out: kernels.put_flags(tags, flags, cursor, out)
            )
    tag = BYTES if type_ is Type.BYTES else TEXT
    return _text_column(column_texts(column), valid, tag)


def _key_column(column: pa.Array, type_: Type) -> EncodedColumn:
    """A column of a key, in which 5 and 5.0 are the same."""
    return (
        _canonical_column(column, type_)
        if type_ in (Type.INT, Type.FLOAT)
        else _plain_column(column, type_)
    )


def _join_column(column: pa.Array, type_: Type) -> EncodedColumn:
    """A column in the form in which values compare; NaN is missing."""
    if type_ in (Type.INT, Type.FLOAT):
        return _canonical_column(column, type_)
    if type_ not in (Type.TEXT, Type.LINK, Type.XML):
        return _plain_column(column, type_)
    valid = np.asarray(column.is_valid())
    compared = TextColumn(column_texts(column), valid, type_).compared
    return _text_column(compared, valid, BYTES if type_ is Type.LINK else TEXT)


def _canonical_column(column: pa.Array, type_: Type) -> EncodedColumn:
    valid = np.asarray(column.is_valid())
    if type_ is Type.FLOAT:
        numbers = _floats(column) + 0.0
        return _float_column(numbers, valid & ~np.isnan(numbers))
    whole = _integers(column)
    numbers = whole.astype(np.float64)
    # Beyond 2⁵³ several integers round to one float: only exact ones are encoded as floats.
    exact = (np.abs(numbers) < EXACT) | ((numbers < 2.0**63) & _is_exact(whole, numbers))
    words = np.where(exact, numbers.view(np.uint64), whole.view(np.uint64))
    tags = np.where(exact, NUMBER, LONG).astype(np.uint8)
    return _word_column(np.where(valid, tags, MISSING).astype(np.uint8), words)


def _is_exact(whole: Longs, numbers: Floats) -> Mask:
    near = np.where(numbers < 2.0**63, numbers, 0.0).astype(np.int64)
    is_exact: Mask = near == whole
    return is_exact


def _long_column(whole: Longs, valid: Mask) -> EncodedColumn:
    return _word_column(_tags(valid, LONG), whole.view(np.uint64))


def _float_column(numbers: Floats, valid: Mask) -> EncodedColumn:
    return _word_column(_tags(valid, NUMBER), np.ascontiguousarray(numbers).view(np.uint64))


def _word_column(tags: Bytes, words: Words) -> EncodedColumn:
    lengths = np.where(tags == MISSING, 1, 9)
    return EncodedColumn(
        tags, lengths, lambda cursor, out: kernels.put_words(tags, words, cursor, out)
    )


def _text_column(texts: Texts, valid: Mask, tag: int) -> EncodedColumn:
    tags, start, data = _tags(valid, tag), texts.start, frozen(texts.data)
    lengths = np.where(valid, 5 + np.diff(start), 1)
    return EncodedColumn(
        tags, lengths, lambda cursor, out: kernels.put_texts(tags, start, data, cursor, out)
    )


def _tags(valid: Mask, tag: int) -> Bytes:
    return np.where(valid, tag, MISSING).astype(np.uint8)


def _integers(column: pa.Array) -> Longs:
    filled = pc.fill_null(column, 0)
    return np.ascontiguousarray(np.asarray(filled).astype(np.int64, copy=False))


def _floats(column: pa.Array) -> Floats:
    return np.asarray(pc.fill_null(column, 0.0)).astype(np.float64, copy=False)


def _words(data: Bytes, ends: Longs, cursor: Longs) -> tuple[Bytes, Words]:
    tags, words = np.empty(cursor.size, np.uint8), np.empty(cursor.size, np.uint64)
    _check(kernels.get_words(data, ends, cursor, tags, words))
    return tags, words


def _column(data: Bytes, ends: Longs, cursor: Longs, type_: Type) -> pa.Array:
    stored = STORED_AS[type_]
    if type_ in WORDS:
        tags, words = _words(data, ends, cursor)
        values = words.view(np.float64 if type_ is Type.FLOAT else np.int64)
        return pa.array(values, mask=tags == MISSING).cast(stored)
    tags = np.empty(cursor.size, np.uint8)
    if type_ is Type.BOOL:
        flags = np.empty(cursor.size, np.bool_)
        _check(kernels.get_flags(data, ends, cursor, tags, flags))
        return pa.array(flags, mask=tags == MISSING)
    begin, lengths = np.empty(cursor.size, np.int64), np.empty(cursor.size, np.int64)
    _check(kernels.get_texts(data, ends, cursor, tags, begin, lengths))
    texts = copy_texts(begin, lengths, data)
    offsets = pa.py_buffer(texts.start.astype(np.int32))
    present = tags != MISSING
    valid = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    array = pa.Array.from_buffers(stored, cursor.size, [valid, offsets, pa.py_buffer(texts.data)])
    array.validate(full=True)
    return array


def _check(sound: bool) -> None:
    if not sound:
        raise StateError("a row of a table is damaged: it ends before its last attribute")
