"""Records that Spark tasks return to the driver, each declared once, as a dataclass.

    @dataclass(frozen=True, slots=True)
    class PartitionSummary:                 ddl(PartitionSummary)
        files: tuple[WrittenFile, …]   ──►  "files string, items bigint, …"
        items: int                          arrow_schema(PartitionSummary)
        sources: dict[str, int]             to_batch([summary]) ──► one Arrow row per record
        …                                   from_table(PartitionSummary, table) ──► the records

The type hint of a field decides its column. Other dictionaries travel as JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_origin, get_type_hints

import numpy as np
import pyarrow as pa

from headgate.match.bit_rows import Ints
from headgate.operators.statistics import Report
from headgate.store.log_state import WrittenFile

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class _Column:
    arrow: pa.DataType
    ddl: str
    encode: Callable[[Any], object] = lambda value: value
    decode: Callable[[Any], object] = lambda value: value


_INTEGER = _Column(pa.int64(), "bigint")
_TEXT = _Column(pa.string(), "string")
_PATH = _Column(pa.string(), "string", str, Path)
_NUMBERS = _Column(
    pa.list_(pa.int32()), "array<int>", decode=lambda value: np.array(value, np.int32)
)
_COUNTS = _Column(
    pa.map_(pa.string(), pa.int64()), "map<string,bigint>", lambda value: list(value.items()), dict
)
_JSON = _Column(pa.string(), "string", json.dumps, json.loads)
_FILES = _Column(
    pa.string(),
    "string",
    lambda files: json.dumps([asdict(each) for each in files]),
    lambda text: tuple(WrittenFile(**each) for each in json.loads(text)),
)


_known_columns: dict[object, dict[str, _Column]] = {}


def _columns(record: type[Any]) -> dict[str, _Column]:
    if record not in _known_columns:
        hints = get_type_hints(record)
        columns = {field.name: _column(hints[field.name]) for field in fields(record)}
        _known_columns[record] = columns
    return _known_columns[record]


def _column(hint: object) -> _Column:
    known = {
        int: _INTEGER,
        str: _TEXT,
        Path: _PATH,
        dict[str, int]: _COUNTS,
        dict[str, str]: _JSON,
        Report: _JSON,
        tuple[WrittenFile, ...]: _FILES,
    }
    if get_origin(hint) is np.ndarray and hint == Ints:
        return _NUMBERS
    assert hint in known, f"no column type for {hint}"
    return known[hint]


def arrow_schema(record: type) -> pa.Schema:
    return pa.schema([pa.field(name, each.arrow) for name, each in _columns(record).items()])


def ddl(record: type) -> str:
    """The schema as Spark's DDL, for `mapInArrow` and `transformWithState`."""
    return ", ".join(f"`{name}` {each.ddl}" for name, each in _columns(record).items())


def to_batch(records: Sequence[object]) -> pa.RecordBatch:
    """One row per record; all of one type, at least one."""
    record = type(records[0])
    columns = {
        name: [each.encode(getattr(value, name)) for value in records]
        for name, each in _columns(record).items()
    }
    return pa.RecordBatch.from_pydict(columns, arrow_schema(record))


def to_row(record: object) -> dict[str, object]:
    """The record as a Spark row's values."""
    columns = _columns(type(record))
    return {name: each.encode(getattr(record, name)) for name, each in columns.items()}


def from_table(record: type[Record], table: pa.Table) -> list[Record]:
    """The records that all tasks of a batch have returned."""
    columns = _columns(record)
    return [
        record(**{name: each.decode(row[name]) for name, each in columns.items()})
        for row in table.to_pylist()
    ]
