"""What the readers of parts are compared with: one line after the other, in the obvious way."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pyarrow as pa

from headgate.acquire.item_rows import SourceColumns, instant, places_of
from headgate.match.item_columns import items_from_arrow
from headgate.model.errors import InvalidValue
from headgate.model.items import Item, attributes_of_json
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type, Value

SCHEMA = Schema(
    (
        Attribute("whole", Type.INT),
        Attribute("part", Type.FLOAT),
        Attribute("flag", Type.BOOL),
        Attribute("title", Type.TEXT),
        Attribute("at", Type.TIMESTAMP),
        Attribute("link", Type.LINK),
        Attribute("data", Type.BYTES),
    )
)
COLUMNS = SourceColumns("S", "stream", SCHEMA)


def naive_line(line: bytes, schema: Schema = SCHEMA) -> dict[str, Value] | None:
    """The attributes in a line, or nothing where it is to be rejected."""
    try:
        found = json.loads(line.decode("utf-8"))
        if not isinstance(found, dict):
            return None
        attributes = attributes_of_json(found, schema)
        for each in attributes.values():
            if isinstance(each, str):
                each.encode()  # half a character can be stored nowhere
    except (ValueError, RecursionError, InvalidValue, OverflowError):
        return None
    return attributes


def naive(data: bytes, schema: Schema = SCHEMA) -> tuple[dict[int, dict[str, Value]], set[int]]:
    """By line the attributes, and the lines that are to be rejected."""
    rows: dict[int, dict[str, Value]] = {}
    wrong: set[int] = set()
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip(b" \t\r"):
            found = naive_line(line, schema)
            if found is None:
                wrong.add(number)
            else:
                rows[number] = found
    return rows, wrong


def items(
    found: Iterable[tuple[dict[str, pa.Array], pa.Array]], columns: SourceColumns = COLUMNS
) -> list[Item]:
    return [
        item
        for attributes, lines in found
        for item in items_from_arrow(
            columns.rows(attributes, places_of("f", lines), instant(0)), columns.schema
        )
    ]


def same_rows(found: list[Item], rows: dict[int, dict[str, Value]]) -> bool:
    """NaN is the same as NaN here, and 1 is another one than 1.0 or true."""
    got = {int(each.id.rpartition(":")[2]): dict(each.attributes) for each in found}
    return repr(sorted(got.items())) == repr(sorted(rows.items()))
