"""Items as Arrow columns: the rows that every source of the pipeline gives, and the conversion.

    @source  @id  @time   price   destination          one row for each item
    Tickets  17   …       150     Paris                null: the item lacks the attribute

The first three columns are never null; no attribute can have such a name. Sources with the same
schema have the same columns, so they share a streaming query: the *group* of a source is a name
made from its schema. This module does not load the kernels of the matcher.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.model.values import Link, Type, Value, Xml

STORED_AS = {
    Type.INT: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.BOOL: pa.bool_(),
    Type.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Type.TEXT: pa.string(),
    Type.LINK: pa.string(),
    Type.XML: pa.string(),
    Type.BYTES: pa.binary(),
}


SOURCE, ID, TIME = "@source", "@id", "@time"
FEEDS, INNER = "@feeds", "@inner"
"""Columns that matching adds: the numbers of the feeds that have the item, and of the joins that
read it."""
FEEDS_FIELD = pa.field(FEEDS, pa.list_(pa.int32()))
INNER_FIELD = pa.field(INNER, pa.list_(pa.int32()))

OWN = {SOURCE: pa.string(), ID: pa.string(), TIME: pa.timestamp("us", tz="UTC")}
_GROUP_NAME = re.compile(r"(?:[a-z]+-|joined\.)([0-9a-f]{12})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRAP = {Type.LINK: Link, Type.XML: Xml}


def item_columns(schema: Schema) -> pa.Schema:
    """The columns of items of this schema."""
    fields = [pa.field(name, type_, nullable=False) for name, type_ in OWN.items()]
    fields += [pa.field(str(each.name), STORED_AS[each.type]) for each in schema.attributes]
    return pa.schema(fields)


def group_of(schema: Schema) -> str:
    """A short name for all sources of this schema."""
    text = repr([(str(each.name), each.type.value) for each in schema.attributes])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def may_hold(group: str, schemas: Collection[str]) -> bool:
    """Whether a group of this name may have items of these schemas. A group that is named after
    another schema has none.

    >>> may_hold("files-0123456789ab", {"0123456789ab"}), may_hold("files-0123456789ab", set())
    (True, False)
    >>> may_hold("materialised.feeds-0123456789ab", set())
    True
    """
    named = _GROUP_NAME.fullmatch(group)
    return named is None or named[1] in schemas


def items_to_arrow(items: Sequence[Item], schema: Schema) -> pa.RecordBatch:
    """The items as rows. Their attributes are of the schema's types."""
    columns: dict[str, Iterable[object]] = {
        SOURCE: [each.source for each in items],
        ID: [each.id for each in items],
        TIME: [each.time for each in items],
    }
    for attribute in schema.attributes:
        name = str(attribute.name)
        columns[name] = [each.attributes.get(name) for each in items]
    fields = item_columns(schema)
    arrays = [pa.array(columns[field.name], field.type) for field in fields]
    return pa.RecordBatch.from_arrays(arrays, schema=fields)


def items_from_arrow(batch: pa.RecordBatch, schema: Schema) -> list[Item]:
    """The rows as items; further columns are ignored."""
    named = {
        str(each.name): _values(batch.column(str(each.name)), each.type)
        for each in schema.attributes
    }
    rows = zip(
        batch.column(SOURCE).to_pylist(),
        batch.column(ID).to_pylist(),
        (time for time in timestamps_of(batch.column(TIME)) if time is not None),
        strict=True,  # none of the three is ever null
    )
    return [
        Item(id_, source, time, _present_attributes(named, at))
        for at, (source, id_, time) in enumerate(rows)
    ]


def utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def timestamps_of(column: pa.Array) -> list[datetime | None]:
    """The values of a timestamp column. Arrow's `to_pylist` loads pandas and takes seven times as
    long."""
    numbers = column.cast(OWN[TIME], safe=False).cast(pa.int64()).to_pylist()
    return [None if each is None else _EPOCH + timedelta(microseconds=each) for each in numbers]


def _values(column: pa.Array, type_: Type) -> Sequence[Value | None]:
    if type_ is Type.TIMESTAMP:
        return timestamps_of(column)
    values: list[Value | None] = column.to_pylist()
    wrap = _WRAP.get(type_)
    return values if wrap is None else [None if each is None else wrap(each) for each in values]


def _present_attributes(named: dict[str, Sequence[Value | None]], row: int) -> dict[str, Value]:
    return {name: value for name, values in named.items() if (value := values[row]) is not None}
