"""The oracle of the readers of parts: reads one line after the other."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pyarrow as pa
from bench.hostile_inputs import file_doors

from headgate.acquire.item_rows import SourceColumns, instant, places_of
from headgate.match.item_columns import items_from_arrow
from headgate.model.errors import InvalidValue
from headgate.model.items import Item, attributes_of_json
from headgate.model.schema import Schema
from headgate.model.values import Type, Value

SCHEMA = Schema(tuple(each for each in file_doors.SCHEMA.attributes if each.type is not Type.XML))
"""Without the document: the oracle does not check XML."""
COLUMNS = SourceColumns("S", "stream", SCHEMA)


def naive_line(line: bytes, schema: Schema = SCHEMA) -> dict[str, Value] | None:
    """The attributes in a line; None if it must be rejected."""
    try:
        value = json.loads(line.decode("utf-8"))
        if not isinstance(value, dict):
            return None
        attributes = attributes_of_json(value, schema)
        for attribute in attributes.values():
            if isinstance(attribute, str):
                attribute.encode()  # a lone surrogate cannot be stored
    except (ValueError, RecursionError, InvalidValue, OverflowError):
        return None
    return attributes


def naive(data: bytes, schema: Schema = SCHEMA) -> tuple[dict[int, dict[str, Value]], set[int]]:
    """The attributes by line, and the lines that must be rejected."""
    rows: dict[int, dict[str, Value]] = {}
    wrong: set[int] = set()
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip(b" \t\r"):
            attributes = naive_line(line, schema)
            if attributes is None:
                wrong.add(number)
            else:
                rows[number] = attributes
    return rows, wrong


def items(
    batches: Iterable[tuple[dict[str, pa.Array], pa.Array]], columns: SourceColumns = COLUMNS
) -> list[Item]:
    return [
        item
        for attributes, lines in batches
        for item in items_from_arrow(
            columns.rows(attributes, places_of("f", lines), instant(0)), columns.schema
        )
    ]


def same_rows(actual: list[Item], rows: dict[int, dict[str, Value]]) -> bool:
    """Whether rows are equal; NaN equals NaN, and 1 differs from 1.0 and true."""
    by_line = {int(each.id.rpartition(":")[2]): dict(each.attributes) for each in actual}
    return repr(sorted(by_line.items())) == repr(sorted(rows.items()))
