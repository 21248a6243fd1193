"""Rows of the store, as items: for the few that are shown.

A question finds the places of rows (read_store.py); here they are read, of each file only the row
groups that hold one. A row is shown even if its source is not registered any more: the file has the
names of its attributes. With the source's schema, a row is an item as filters see it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.match.item_columns import FEEDS, ID, INNER, SOURCE, TIME, items_of_batch, utc
from headgate.model.errors import printable
from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.store.files import ARRIVED

REASON_LENGTH_MAX = 200
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ANNOTATIONS = "@annotations"
"""What joins have joined to the item, as JSON: only what they have found has this column."""
_OWN = {SOURCE, ID, TIME, FEEDS, INNER, ARRIVED.name, ANNOTATIONS}


class Place(NamedTuple):
    """Where a row lies. Places are in the order in which items arrived."""

    arrived_us: int
    path: str
    row: int


@dataclass(frozen=True, slots=True, eq=False)
class StoredRow:
    """An item as the store has it; `attributes` has those that it has, as plain values."""

    source: str
    id: str
    time: datetime
    arrived: datetime
    attributes: Mapping[str, object]
    feeds: tuple[int, ...]
    inner: tuple[int, ...]
    annotations: Sequence[Mapping[str, object]]
    """What joins have joined to it."""
    batch: pa.RecordBatch

    def item(self, schema: Schema) -> Item:
        (item,) = items_of_batch(self.batch, schema)
        return item


def moment(us: int) -> datetime:
    return EPOCH + timedelta(microseconds=us)


def microseconds(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)


def first_line(error: Exception) -> str:
    """What is wrong with a file, for people."""
    return printable(str(error).split("\n", maxsplit=1)[0])[:REASON_LENGTH_MAX]


def places_in(answer: pa.Table) -> list[Place]:
    """The places that a question has found, which has asked for them by these names."""
    columns = (answer.column(name).to_pylist() for name in ("arrived", "filename", "row"))
    return [Place(*each) for each in zip(*columns, strict=True)]


def read_rows(places: Iterable[Place], damaged: dict[Path, str]) -> list[tuple[Place, StoredRow]]:
    """The rows, in the order given. Files that have gone meanwhile give none, and damaged ones
    neither: these are told with the reason."""
    ordered = list(places)
    wanted: dict[str, list[int]] = {}
    for place in ordered:
        wanted.setdefault(place.path, []).append(place.row)
    found: dict[tuple[str, int], StoredRow] = {}
    for path, numbers in wanted.items():
        try:
            for number, batch in _read(Path(path), sorted(set(numbers))):
                found[path, number] = _stored(batch)
        except FileNotFoundError:
            continue
        except (OSError, pa.ArrowException) as error:
            damaged[Path(path)] = first_line(error)
    rows = ((each, found.get((each.path, each.row))) for each in ordered)
    return [(place, row) for place, row in rows if row is not None]


def _read(path: Path, numbers: list[int]) -> Iterable[tuple[int, pa.RecordBatch]]:
    with pq.ParquetFile(path) as file:
        start = 0
        for group in range(file.num_row_groups):
            end = start + file.metadata.row_group(group).num_rows
            inside = [each for each in numbers if start <= each < end]
            if inside:
                table = file.read_row_group(group).take([each - start for each in inside])
                (batch,) = table.combine_chunks().to_batches()
                yield from ((number, batch.slice(at, 1)) for at, number in enumerate(inside))
            start = end


def _stored(batch: pa.RecordBatch) -> StoredRow:
    row = dict(zip(batch.schema.names, (each[0].as_py() for each in batch.columns), strict=True))
    attributes = {
        name: utc(value) if isinstance(value, datetime) else value
        for name, value in row.items()
        if name not in _OWN and value is not None
    }
    return StoredRow(
        source=row[SOURCE],
        id=row[ID],
        time=utc(row[TIME]),
        arrived=utc(row[ARRIVED.name]),
        attributes=attributes,
        feeds=tuple(row[FEEDS] or ()),
        inner=tuple(row[INNER] or ()),
        annotations=json.loads(row.get(ANNOTATIONS) or "[]"),
        batch=batch,
    )
