"""Attributes become rows of items: ids, times, and the conversion of items one by one.

**Ids** must be the same when a part is read again, and differ for different contents.

    the attribute `id`, if a stream has it      17            the source promises that it is unique
    the key of a table, and the place           ACME@stocks.json:3   a row changes more than once
    the place alone                             tickets.json:3       file and line; the generation
                                                tickets.json#2:3     of a file that was rewritten

A text that is too long for an id is replaced by its hash.

**The time** is the attribute `time`, `timestamp` or `published`, if it is declared as a timestamp,
present, and not in the future; otherwise the instant at which the part was taken, which is stored
with the part. An item from the future would advance a stream's watermark so far that all other
items would be late.

`RowBuilder` converts items one by one, and rejects those that do not fit. It is the reference for
the faster ways of the readers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headgate.acquire.rejected import Rejects
from headgate.match.item_columns import ID, OWN, SOURCE, STORED_AS, TIME, item_columns
from headgate.model.checked_xml import xml_problem
from headgate.model.errors import InvalidValue
from headgate.model.items import attributes_of_json
from headgate.model.schema import Schema
from headgate.model.values import Type, Value

ID_LENGTH_MAX = 500
TIME_NAMES = ("time", "timestamp", "published")


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """Makes rows of the items of one source."""

    source: str
    kind: str
    schema: Schema

    @property
    def keys(self) -> tuple[str, ...]:
        """The key attributes of a table, which every row must have; empty for other sources."""
        if self.kind != "table":
            return ()
        return tuple(str(each.name) for each in self.schema.attributes if each.key)

    def stored(self, arrays: Mapping[str, pa.Array]) -> dict[str, pa.Array] | None:
        """Columns that a library has read, as `RowBuilder` gives them: no negative zero. None if a
        document is not accepted, and so each row must be looked at."""
        stored = dict(arrays)
        for attribute in self.schema.attributes:
            name = str(attribute.name)
            if attribute.type is Type.FLOAT:
                stored[name] = pc.add(stored[name], 0.0)
            elif attribute.type is Type.XML and any(
                text is not None and xml_problem(text) for text in stored[name].to_pylist()
            ):
                return None
        return stored

    def rows(
        self,
        attributes: Mapping[str, pa.Array],
        places: pa.Array,
        taken: pa.Array | pa.Scalar,
    ) -> pa.RecordBatch:
        """Rows of these attributes; `places` are where each row was read, `taken` when."""
        count = len(places)
        item_fields = {
            SOURCE: pa.repeat(pa.scalar(self.source, pa.string()), count),
            ID: self._ids(attributes, places),
            TIME: self._times(attributes, taken, count),
        }
        fields = item_columns(self.schema)
        arrays = [
            item_fields[field.name] if field.name in item_fields else attributes[field.name]
            for field in fields
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=fields)

    def _ids(self, attributes: Mapping[str, pa.Array], places: pa.Array) -> pa.Array:
        if self.kind == "table" and self.keys:
            keys = [_as_text(attributes[each]) for each in self.keys]
            key = pc.binary_join_element_wise(*keys, "|") if len(keys) > 1 else keys[0]
            return _bounded_ids(pc.binary_join_element_wise(key, places, "@"))
        declared = self.schema.get("id")
        if self.kind == "stream" and declared is not None:
            return _bounded_ids(pc.coalesce(_as_text(attributes["id"]), places))
        return places

    def _times(
        self, attributes: Mapping[str, pa.Array], taken: pa.Array | pa.Scalar, count: int
    ) -> pa.Array:
        default = taken if isinstance(taken, pa.Array) else pa.repeat(taken, count)
        stated = [
            attributes[name]
            for name in TIME_NAMES
            if (declared := self.schema.get(name)) and declared.type is Type.TIMESTAMP
        ]
        if not stated:
            return default
        time = pc.coalesce(*stated, default)
        return pc.if_else(pc.less_equal(time, default), time, default)


def instant(microseconds: int) -> pa.Scalar:
    return pa.scalar(microseconds, pa.int64()).cast(OWN[TIME])


def places_of(prefix: str, numbers: pa.Array) -> pa.Array:
    """`prefix:number` for each number."""
    return pc.binary_join_element_wise(pa.scalar(prefix), numbers.cast(pa.string()), ":")


def _as_text(values: pa.Array) -> pa.Array:
    if pa.types.is_string(values.type):
        return values
    if pa.types.is_binary(values.type):
        return pa.array(
            [None if each is None else each.hex() for each in values.to_pylist()], pa.string()
        )
    return values.cast(pa.string())


def _bounded_ids(ids: pa.Array) -> pa.Array:
    lengths = pc.utf8_length(ids)
    if not len(ids) or pc.max(lengths).as_py() <= ID_LENGTH_MAX:
        return ids
    return pa.array([_bounded_id(each) for each in ids.to_pylist()], pa.string())


def _bounded_id(text: str) -> str:
    if len(text) <= ID_LENGTH_MAX:
        return text
    return f"long:{hashlib.sha256(text.encode()).hexdigest()[:32]}"


class RowBuilder:
    """Collects items of one source, and returns them as columns."""

    def __init__(self, columns: SourceColumns, rejects: Rejects) -> None:
        self._columns = columns
        self._rejects = rejects
        self._rows: list[tuple[int, Mapping[str, Value], bytes | str]] = []
        declared = columns.schema.attributes
        self._documents = [str(each.name) for each in declared if each.type is Type.XML]

    @property
    def schema(self) -> Schema:
        return self._columns.schema

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, line: int, value: object, text: bytes | str) -> None:
        """Add a JSON value; it is rejected unless it is an object that fits the schema."""
        if not isinstance(value, dict):
            self._rejects.add(line, "expected an object", text)
            return
        try:
            attributes = attributes_of_json(value, self._columns.schema)
        except (InvalidValue, OverflowError) as error:
            self._rejects.add(line, error, text)
            return
        self.add_attributes(line, attributes, text)

    def add_attributes(self, line: int, attributes: Mapping[str, Value], text: bytes | str) -> None:
        """Add an item, unless one of its documents is not accepted or a key is missing."""
        for name in self._documents:
            document = attributes.get(name)
            if isinstance(document, str) and (problem := xml_problem(document)):
                self._rejects.add(line, f"attribute '{name}': {problem}", text)
                return
        self.add_checked(line, attributes, text)

    def add_checked(self, line: int, attributes: Mapping[str, Value], text: bytes | str) -> None:
        """Add an item whose documents were checked before."""
        missing = [each for each in self._columns.keys if each not in attributes]
        if missing:
            self._rejects.add(line, f"the key '{missing[0]}' is missing", text)
        else:
            self._rows.append((line, attributes, text))

    def take(self) -> tuple[dict[str, pa.Array], list[int]]:
        """The columns of the items added since the last call, and their lines."""
        rows, self._rows = self._rows, []
        try:
            return self._arrays([each[1] for each in rows]), [each[0] for each in rows]
        except (pa.ArrowException, UnicodeError, OverflowError, ValueError):
            kept = [each for each in rows if self._fits(*each)]
            return self._arrays([each[1] for each in kept]), [each[0] for each in kept]

    def _fits(self, line: int, attributes: Mapping[str, Value], text: bytes | str) -> bool:
        """Whether Arrow accepts the values; it refuses, for example, a lone surrogate in a text."""
        try:
            self._arrays([attributes])
        except (pa.ArrowException, UnicodeError, OverflowError, ValueError) as error:
            self._rejects.add(line, error, text)
            return False
        return True

    def _arrays(self, rows: Sequence[Mapping[str, Value]]) -> dict[str, pa.Array]:
        return {
            str(attribute.name): pa.array(
                [row.get(attribute.name) for row in rows], STORED_AS[attribute.type]
            )
            for attribute in self._columns.schema.attributes
        }
