"""All rows of the log with an id: an item, its earlier versions, and the results of its joins; and
the row at a position.

    files, newest first ──► of the group, with the source ──► row groups whose ids may be this one
                        ──► column @id ──► places ──► items, with their feeds and join inputs

All files are looked at, as an id may occur more than once: a table's row has a version for each
change, a join's result has the id of its item, and two sources may use the same id. Files are left
out by their group, if the schema of the source is known, and by the sources of their segment; row
groups by the least and the greatest id in them.

Cost: the column `@id` of what is left. Of 10,000,000 random ids, of which statistics leave out
none, `headgate bench log` read all in 5.5 s on two cores that other work shared.

Rejected: postings of ids, a list for each id, for a question that people ask now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.match.bit_rows import Longs
from headgate.match.item_columns import ID, SOURCE, may_hold
from headgate.store.log_index import ItemPlace
from headgate.store.log_items import ANNOTATIONS, LoggedItem
from headgate.store.log_state import LogFile
from headgate.store.log_view import LogView, places_in
from headgate.store.log_writer import JOINED

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class FoundRow:
    """A row of the log, the feeds that have it, and the feeds whose joins or patterns read it."""

    item: LoggedItem
    feeds: tuple[int, ...]
    inputs: tuple[int, ...]

    @property
    def is_result(self) -> bool:
        """Whether it is the result of a join, with what was joined."""
        return ANNOTATIONS in self.item.batch.schema.names


def find_item(
    view: LogView,
    id_: str,
    *,
    source: str | None = None,
    schemas: Collection[str] | None = None,
    note: Note = lambda _: None,
) -> list[FoundRow]:
    """All rows with this id, of one source or of any, in the order in which they arrived. `schemas`
    are the names of the schemas (item_columns.group_of) that the item may have; None: any."""

    def find() -> list[FoundRow]:
        files = [each for each in view.files() if schemas is None or may_hold(each.group, schemas)]
        places: list[ItemPlace] = []
        for done, file in enumerate(reversed(files)):
            note(f"{done:,} of {len(files):,} files")
            with view.reading(file):
                places += _places_in(view, file, id_, source)
        return [_found(view, item, place) for item, place in _read(view, sorted(places))]

    return view.ask(find)


def row_at(view: LogView, position: int) -> FoundRow | None:
    """The row at a position; None if there is none, or not any more."""

    def find() -> FoundRow | None:
        found = [_found(view, item, place) for item, place in _read(view, view.places([position]))]
        return found[0] if found else None

    return view.ask(find)


def _places_in(view: LogView, file: LogFile, id_: str, source: str | None) -> list[ItemPlace]:
    segment = view.index.segment(file)
    has_sources = not file.group.startswith(JOINED)
    if has_sources and source is not None and source not in segment.source_names:
        return []
    first = view.first_row(file)
    rows = [each for each in _rows_with(view, file, id_, source) if each >= first]
    return places_in(file, segment.runs, np.array(rows, np.int64))


def _rows_with(view: LogView, file: LogFile, id_: str, source: str | None) -> Iterator[int]:
    columns = [ID] if source is None else [ID, SOURCE]
    with pq.ParquetFile(pa.BufferReader(view.storage.map(file.items))) as parquet:
        column = parquet.schema_arrow.get_field_index(ID)
        start = 0
        for group in range(parquet.num_row_groups):
            metadata = parquet.metadata.row_group(group)
            if _may_have(metadata.column(column).statistics, id_):
                table = parquet.read_row_group(group, columns)
                yield from (start + _matching(table, id_, source)).tolist()
            start += metadata.num_rows


def _may_have(statistics: pq.Statistics | None, id_: str) -> bool:
    if statistics is None or not statistics.has_min_max:
        return True
    return bool(statistics.min <= id_ <= statistics.max)


def _matching(table: pa.Table, id_: str, source: str | None) -> Longs:
    mask = pc.equal(table.column(ID), id_)
    if source is not None:
        mask = pc.and_(mask, pc.equal(table.column(SOURCE), source))
    return np.flatnonzero(np.asarray(mask))


def _read(view: LogView, places: list[ItemPlace]) -> list[tuple[LoggedItem, ItemPlace]]:
    place_at = {place.position: place for place in places}
    return [(item, place_at[item.position]) for item in view.read(places)]


def _found(view: LogView, item: LoggedItem, place: ItemPlace) -> FoundRow:
    segment = view.index.segment(place.file)
    feeds, inputs = (each.keys_of(place.row) for each in (segment.feeds, segment.inputs))
    return FoundRow(item, tuple(feeds.tolist()), tuple(inputs.tolist()))
