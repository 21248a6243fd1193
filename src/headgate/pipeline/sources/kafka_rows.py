"""Kafka messages become rows of items, in the tasks of a query.

    key  value  topic  partition  offset  timestamp  headers  taken      Spark's connector
                     │ value_rows: JSON, all of a batch at once if possible, else one by one;
                     │ Avro and Protobuf one by one (kafka_values.py)
                     ▼
    @source  @id                    @time  price  kafka_key  …           match/item_columns.py
    Clicks   clicks#Bvfm2XZw:0:17   …      150    u17

The attributes are those of the value, a JSON object or what the source's schema file says, and
those that begin with `kafka_` and come from the message (kafka_topics.METADATA). If all declared
attributes come from the message, the value may be anything.

A message without a value (a *tombstone*) deletes the row of its key in a table that says what
happened in an attribute (`changes in`); otherwise it is rejected. The key of the row is the
message's key: a JSON object with the key attributes, or, for a single one, its value as text.

A message that cannot be read is rejected with topic, partition and offset; the rest go on. A task
reads one range of offsets of one partition, and a file of rejected messages is named after it, so a
task that is repeated replaces the file. The time of an item is that of its message, but not later
than the start of its batch, which Spark records and repeats with the batch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.acquire.item_rows import RowBuilder, SourceColumns, places_of
from headgate.acquire.read_csv import value_of_text
from headgate.acquire.read_json import add_json, read_quickly
from headgate.acquire.rejected import Rejects
from headgate.match.item_columns import OWN, STORED_AS, TIME
from headgate.model.errors import InvalidValue
from headgate.model.items import attributes_of_json
from headgate.model.schema import Schema
from headgate.model.values import Type, Value
from headgate.pipeline.sources.kafka_fields import ValueReader
from headgate.pipeline.sources.kafka_topics import METADATA, TopicSource, value_attributes
from headgate.pipeline.sources.kafka_values import value_reader

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "taken")
HEADERS = "headers"
TOMBSTONE = "tombstone"
SHOWN_BYTES = 500
"""Of a rejected value that is no text, in hexadecimal digits."""
ReadStage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def read_messages(sources: Sequence[TopicSource], schema: Schema, folder: Path) -> ReadStage:
    """A stage for `mapInArrow`. Rejected messages are written to the folder after the last row."""

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        readers: dict[tuple[str, str, int], MessageReader] = {}
        for batch in batches:
            for topic, partition, rows in _by_partition(batch):
                for source in (each for each in sources if each.topic == topic):
                    key = source.source, topic, partition
                    if key not in readers:
                        first = rows.column("offset")[0].as_py()
                        readers[key] = MessageReader(source, partition, schema, first)
                    items = readers[key].rows(rows)
                    if items.num_rows:
                        yield items
        for reader in readers.values():
            reader.rejects.balance(0, items=reader.items)
            reader.rejects.write(folder, reader.rejected_name)

    return stage


def _by_partition(batch: pa.RecordBatch) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """The rows of each partition. A task has one, unless partitions were combined."""
    if not batch.num_rows:
        return
    topics = pc.dictionary_encode(batch.column("topic"))
    codes = np.asarray(topics.indices).astype(np.int64) << 32
    codes |= np.asarray(batch.column("partition")).astype(np.int64)
    for code in np.unique(codes):
        rows = batch if (codes == code).all() else batch.filter(pa.array(codes == code))
        yield str(topics.dictionary[int(code >> 32)].as_py()), int(code & 0xFFFFFFFF), rows


class MessageReader:
    """Reads the messages of one partition for one source."""

    def __init__(self, source: TopicSource, partition: int, schema: Schema, first: int) -> None:
        self._source = source
        self._schema = schema
        self._place = f"{source.place}:{partition}"
        self.items = 0
        self.rejects = Rejects(source.source, f"{source.topic}:{partition}")
        digest = hashlib.sha256(f"{source.source}\0{source.place}".encode()).hexdigest()[:12]
        self.rejected_name = f"{digest}-{partition}-{first}"
        own = value_attributes(schema)
        self._values = SourceColumns(source.source, source.kind, own)
        self._reader: ValueReader | None = None
        if source.values is not None:
            self._reader = value_reader(source.values, own, source.changes)
        self._columns = SourceColumns(source.source, source.kind, schema)

    def rows(self, messages: pa.RecordBatch) -> pa.RecordBatch:
        """The items of these messages; the others are rejected."""
        self.rejects.take(0, records=messages.num_rows)
        rows = self._rows(messages)
        self.items += rows.num_rows
        return rows

    def _rows(self, messages: pa.RecordBatch) -> pa.RecordBatch:
        attributes, chosen = self._value_rows(messages)
        if len(chosen) != messages.num_rows:
            messages = messages.take(pa.array(chosen, pa.int64()))
        for attribute in self._schema.attributes:
            name = str(attribute.name)
            if name in METADATA:
                attributes[name] = _metadata(messages, name, attribute.type)
        attributes, messages = self._with_keys(attributes, messages)
        times = messages.column("timestamp").cast(OWN[TIME])
        taken = messages.column("taken").cast(OWN[TIME])
        times = pc.coalesce(times, taken)
        times = pc.if_else(pc.less_equal(times, taken), times, taken)
        return self._columns.rows(
            attributes, places_of(self._place, messages.column("offset")), times
        )

    def _value_rows(self, messages: pa.RecordBatch) -> tuple[dict[str, pa.Array], Sequence[int]]:
        """The attributes of the values, and which messages they are of."""
        everything = range(messages.num_rows)
        if not self._values.schema.attributes:
            return {}, everything
        values = messages.column("value").to_pylist()
        is_json = self._reader is None
        if is_json and None not in values and not any(b"\n" in value for value in values):
            # Each value ends its line, so an empty one at the end is a line too.
            parsed = read_quickly(b"\n".join(values) + b"\n", self._values)
            if parsed is not None:
                return parsed, everything
        offsets = messages.column("offset").to_pylist()
        row_of = {offset: row for row, offset in enumerate(offsets)}
        keys = messages.column("key").to_pylist()
        builder = RowBuilder(self._values, self.rejects)
        for offset, key, value in zip(offsets, keys, values, strict=True):
            if value is None:
                self._add_tombstone(builder, offset, key)
            elif self._reader is None:
                add_json(builder, self.rejects, offset, value)
            else:
                self._add_value(builder, self._reader, offset, value)
        parsed, kept = builder.take()
        return parsed, [row_of[offset] for offset in kept]

    def _add_value(
        self, builder: RowBuilder, reader: ValueReader, offset: int, value: bytes
    ) -> None:
        shown = value[:SHOWN_BYTES].hex()
        try:
            attributes = reader.read(value)
        except InvalidValue as error:
            self.rejects.add(offset, error, shown)
        else:
            builder.add_attributes(offset, attributes, shown)

    def _add_tombstone(self, builder: RowBuilder, offset: int, key: bytes | None) -> None:
        if self._source.kind != "table":
            self.rejects.add(offset, "the message has no value")
        elif not self._source.changes:
            reason = "a message without a value deletes a row only where 'changes in' is registered"
            self.rejects.add(offset, reason, key or b"")
        else:
            try:
                attributes = key_attributes(key, self._values)
            except (InvalidValue, ValueError, RecursionError) as error:
                self.rejects.add(offset, f"the key of a deleted row: {error}", key or b"")
            else:
                attributes[self._source.changes] = TOMBSTONE
                builder.add_attributes(offset, attributes, key or b"")

    def _with_keys(
        self, attributes: dict[str, pa.Array], messages: pa.RecordBatch
    ) -> tuple[dict[str, pa.Array], pa.RecordBatch]:
        """Reject the rows of a table without a key; keys of the value were checked before."""
        for name in (each for each in self._columns.keys if each in METADATA):
            missing = pc.is_null(attributes[name])
            if not pc.any(missing).as_py():
                continue
            for offset in messages.filter(missing).column("offset").to_pylist():
                self.rejects.add(offset, f"the key '{name}' is missing")
            kept = pc.invert(missing)
            attributes = {each: values.filter(kept) for each, values in attributes.items()}
            messages = messages.filter(kept)
        return attributes, messages


def key_attributes(key: bytes | None, columns: SourceColumns) -> dict[str, Value]:
    """The key attributes of a row, from the key of a message.

    >>> from headgate.model.schema import Attribute
    >>> schema = Schema((Attribute("id", Type.INT, key=True), Attribute("op", Type.TEXT)))
    >>> key_attributes(b"17", SourceColumns("Orders", "table", schema))
    {'id': 17}
    >>> key_attributes(b'{"id": 17}', SourceColumns("Orders", "table", schema))
    {'id': 17}
    """
    if key is None:
        raise InvalidValue("the message has none")
    text = key.decode("utf-8")
    keys = tuple(each for each in columns.schema.attributes if each.key)
    if text.lstrip().startswith("{"):
        value = json.loads(text)
        return dict(attributes_of_json(value, Schema(keys)))
    if len(keys) != 1:
        raise InvalidValue("expected a JSON object with the key attributes")
    if text.startswith('"'):
        text = str(json.loads(text))
    return {str(keys[0].name): value_of_text(text, keys[0].type)}


def _metadata(messages: pa.RecordBatch, name: str, type_: Type) -> pa.Array:
    column = name.removeprefix("kafka_")
    stored = STORED_AS[type_]
    if column == HEADERS:
        return pa.array([_headers(each) for each in messages.column(HEADERS).to_pylist()], stored)
    values = messages.column(column)
    if pa.types.is_binary(values.type) and type_ is Type.TEXT:
        return pa.array([_text(each) for each in values.to_pylist()], stored)
    return values.cast(stored)


def _text(value: bytes | None) -> str | None:
    """Bytes that are no text are a missing value."""
    try:
        return None if value is None else value.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _headers(headers: Sequence[Mapping[str, object]] | None) -> str | None:
    """A JSON object; of several headers with the same name the last one."""
    if not headers:
        return None
    found = {}
    for each in headers:
        value = each["value"]
        found[str(each["key"])] = _text(value) if isinstance(value, bytes) else None
    return json.dumps(found, ensure_ascii=False)
