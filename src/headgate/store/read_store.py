"""Queries over the files of the store, in SQL, by DuckDB; and the rows that they find.

    SELECT … FROM {rows} WHERE …        {rows}: @source @id @time @feeds @inner @arrived
                                                filename file_row_number

`StoreReader` asks some hundred files at a time, so a caller can stop early and show progress. It
reads finished batches only (item_files.py). A file that is gone was removed by retention. A damaged
file is found by bisection, recorded in `damaged`, and left out.

SQL sees only Headgate's own columns: DuckDB does not distinguish `Price` from `price`, and items
may have both. A query therefore finds *locations* (file and row), and `read_rows` reads the rows
from the row groups that contain them. A row of a source that is no longer registered can be read
too: the file has the names of its attributes.

Invariant: a query gives the same rows, however the files are divided.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.match.item_columns import FEEDS, ID, INNER, SOURCE, TIME, items_from_arrow, utc
from headgate.model.errors import printable
from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.store.data_folder import DataFolder
from headgate.store.item_files import ARRIVED, StoredFile, finished_batches, stored_files

FILES_AT_ONCE = 512
_ROWS = "read_parquet($files, hive_partitioning = false, filename = true, file_row_number = true)"
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    # Nothing is fetched from anywhere: what is needed is built in.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}

Parameters = Mapping[str, object]


class StoreReader:
    """For one thread."""

    def __init__(self, folder: DataFolder) -> None:
        self.folder = folder
        self.damaged: dict[Path, str] = {}
        """Files that could not be read, each with the reason."""
        self._connection = duckdb.connect(config=_SETTINGS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def files(self, *, since: datetime | None = None) -> list[StoredFile]:
        """The files of finished batches, the oldest first; `since` a day that is not over yet."""
        finished = finished_batches(self.folder.batches)
        day = None if since is None else since.astimezone(UTC).date()
        return finished.only(stored_files(self.folder.store, since=day))

    def use(self, name: str, table: pa.Table) -> None:
        """Register a table that queries may use by this name."""
        self._connection.register(name, table)

    def query_in_steps(
        self, query: str, files: Sequence[StoredFile], parameters: Parameters | None = None
    ) -> Iterator[pa.Table]:
        """One result per some hundred files. The query must allow that."""
        for start in range(0, len(files), FILES_AT_ONCE):
            yield from self.query(query, files[start : start + FILES_AT_ONCE], parameters)

    def query(
        self, query: str, files: Sequence[StoredFile], parameters: Parameters | None = None
    ) -> Iterator[pa.Table]:
        """One result, or several if a file has to be left out."""
        sound = [each for each in files if each.path not in self.damaged]
        if not sound:
            return
        try:
            names = [_literal(each.path) for each in sound]
            found = self._connection.sql(
                query.format(rows=_ROWS), params={**(parameters or {}), "files": names}
            )
            answer = found.to_arrow_table()
        except duckdb.Error as error:
            if len(sound) == 1:
                self._leave_out(sound[0].path, error)
                return
        else:
            yield answer
            return
        half = len(sound) // 2
        yield from self.query(query, sound[:half], parameters)
        yield from self.query(query, sound[half:], parameters)

    def _leave_out(self, path: Path, error: duckdb.Error) -> None:
        if path.exists():
            self.damaged[path] = first_line(error).replace(str(path), path.name)


def _literal(path: Path) -> str:
    """DuckDB reads file names as patterns: escape the special characters."""
    return re.sub(r"[*?\[]", r"[\g<0>]", str(path))


# --- rows -----------------------------------------------------------------------------------------

REASON_LENGTH_MAX = 200
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ANNOTATIONS = "@annotations"
"""The joined items as JSON; only results of joins have this column."""
_OWN = {SOURCE, ID, TIME, FEEDS, INNER, ARRIVED.name, ANNOTATIONS}


class RowLocation(NamedTuple):
    """Where a row is stored. Locations sort by arrival."""

    arrived_us: int
    path: str
    row: int


@dataclass(frozen=True, slots=True, eq=False)
class StoredRow:
    """A stored item; `attributes` has the values that are not null."""

    source: str
    id: str
    time: datetime
    arrived: datetime
    attributes: Mapping[str, object]
    feeds: tuple[int, ...]
    inner: tuple[int, ...]
    annotations: Sequence[Mapping[str, object]]
    """The items that joins have added."""
    batch: pa.RecordBatch

    def item(self, schema: Schema) -> Item:
        (item,) = items_from_arrow(self.batch, schema)
        return item


def from_microseconds(us: int) -> datetime:
    return EPOCH + timedelta(microseconds=us)


def to_microseconds(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)


def first_line(error: Exception) -> str:
    """The first line of an error, for messages."""
    return printable(str(error).split("\n", maxsplit=1)[0])[:REASON_LENGTH_MAX]


def locations_in(answer: pa.Table) -> list[RowLocation]:
    """The locations in a result with these columns."""
    columns = (answer.column(name).to_pylist() for name in ("arrived", "filename", "row"))
    return [RowLocation(*each) for each in zip(*columns, strict=True)]


def read_rows(
    locations: Iterable[RowLocation], damaged: dict[Path, str]
) -> list[tuple[RowLocation, StoredRow]]:
    """The rows in this order. Files that are gone give none; damaged ones are added to `damaged`
    with the reason."""
    ordered = list(locations)
    numbers_by_path: dict[str, list[int]] = {}
    for place in ordered:
        numbers_by_path.setdefault(place.path, []).append(place.row)
    found: dict[tuple[str, int], StoredRow] = {}
    for path, numbers in numbers_by_path.items():
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


# --- by id ----------------------------------------------------------------------------------------


def find_item(
    reader: StoreReader, id_: str, *, source: str | None = None, since: datetime | None = None
) -> list[StoredRow]:
    """All rows with this id, of one source or of any, in the order in which they arrived."""
    query = (
        'SELECT epoch_us("@arrived") AS arrived, filename, file_row_number AS row FROM {rows} '
        'WHERE "@id" = $id AND ($source IS NULL OR "@source" = $source) '
        'AND epoch_us("@arrived") >= $since'
    )
    since_us = 0 if since is None else to_microseconds(since)
    parameters: dict[str, object] = {"id": id_, "source": source, "since": since_us}
    answers = reader.query_in_steps(query, reader.files(since=since), parameters)
    locations = sorted(place for answer in answers for place in locations_in(answer))
    return [row for _, row in read_rows(locations, reader.damaged)]
