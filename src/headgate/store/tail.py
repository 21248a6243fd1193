"""The last items of a feed or source, in order of arrival; and the items that arrive from now on.

    days       …  14  15  16      the last day first; once there are enough, no further day
    a group    3.parquet … 99     of a day the last files first: 8, then 32, then 128, …
                     ◄─────

Within a group, batches arrive in the order of their numbers. As soon as a group has given enough
rows, its earlier files of the day need not be read. Only the column `@feeds` (or `@source`) is
searched; the rows themselves are read afterwards.

Cost: one column of the files of the last day that has enough items. A feed without recent items
costs one column of all days; `since` limits that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import groupby

from headgate.catalog.definitions import SOURCE_KINDS, CatalogDefinitions, DefinitionKind
from headgate.language.schemas import schemas_of
from headgate.match.item_columns import group_of, may_hold
from headgate.model.errors import UnknownName, did_you_mean
from headgate.plan.why import sources_of
from headgate.store.item_files import (
    JOINED,
    FinishedBatches,
    StoredFile,
    finished_batches,
    stored_days,
    stored_files,
)
from headgate.store.read_store import (
    RowLocation,
    StoredRow,
    StoreReader,
    locations_in,
    read_rows,
    to_microseconds,
)

FILES_FIRST, FILES_MAX, GROWTH = 8, 512, 4


def tail(
    reader: StoreReader,
    selection: ItemSelection,
    *,
    lines: int,
    since: datetime | None = None,
    finished: FinishedBatches | None = None,
) -> list[StoredRow]:
    """The last items, the newest last, of the batches in `finished`; by default of those now."""
    if finished is None:
        finished = finished_batches(reader.folder.batches)
    locations = _last_locations(reader, selection, lines, since, finished)
    return [row for _, row in read_rows(locations, reader.damaged)]


def _last_locations(
    reader: StoreReader,
    selection: ItemSelection,
    lines: int,
    since: datetime | None,
    finished: FinishedBatches,
) -> list[RowLocation]:
    first = None if since is None else since.astimezone(UTC).date()
    found: list[RowLocation] = []
    for day in reversed(stored_days(reader.folder.store)):
        if len(found) >= lines or (first is not None and day < first):
            break
        for files in _groups_of(reader, selection, day, finished):
            found += _last_of_group(reader, selection, files, lines, since)
    return sorted(found)[-lines:]


def _groups_of(
    reader: StoreReader, selection: ItemSelection, day: date, finished: FinishedBatches
) -> Iterator[list[StoredFile]]:
    """The files of each group on this day, by batch."""
    files = finished.only(stored_files(reader.folder.store, on=day))
    for group, own in groupby(files, key=lambda each: each.group):
        if selection.may_be_in(group):
            yield list(own)


def _last_of_group(
    reader: StoreReader,
    selection: ItemSelection,
    files: list[StoredFile],
    lines: int,
    since: datetime | None,
) -> list[RowLocation]:
    query = (
        'SELECT epoch_us("@arrived") AS arrived, filename, file_row_number AS row FROM {rows} '
        f"WHERE {selection.condition} ORDER BY 1 DESC, 2 DESC, 3 DESC LIMIT $lines"
    )
    parameters = {**selection.parameters(since), "lines": lines}
    found: list[RowLocation] = []
    end, size = len(files), FILES_FIRST
    while end > 0 and len(found) < lines:
        start = _whole_batch(files, max(0, end - size))
        for answer in reader.query(query, files[start:end], parameters):
            found += locations_in(answer)
        end, size = start, min(size * GROWTH, FILES_MAX)
    return found


def _whole_batch(files: list[StoredFile], start: int) -> int:
    """Move the start so that the files of one batch, which arrived together, stay together."""
    while start > 0 and files[start - 1].batch == files[start].batch:
        start -= 1
    return start


class Follower:
    """The items that have arrived since the last call of `poll`, at first since `finished`.

    `tail` with the same `finished` shows the items before, so nothing is shown twice or left out. A
    group's position is the last batch that was read. Without new batches a poll costs one listing
    of the batch records.
    """

    def __init__(
        self, reader: StoreReader, selection: ItemSelection, finished: FinishedBatches
    ) -> None:
        self._reader, self._selection = reader, selection
        self._seen: dict[str, int] = {}
        self._state: FinishedBatches | None = None
        self._last_day = date.min
        self._new_files(finished)

    def poll(self) -> list[StoredRow]:
        state = finished_batches(self._reader.folder.batches)
        files = [each for each in self._new_files(state) if self._selection.may_be_in(each.group)]
        query = (
            'SELECT epoch_us("@arrived") AS arrived, filename, file_row_number AS row FROM {rows} '
            f"WHERE {self._selection.condition}"
        )
        answers = self._reader.query_in_steps(query, files, self._selection.parameters(None))
        locations = sorted(place for answer in answers for place in locations_in(answer))
        return [row for _, row in read_rows(locations, self._reader.damaged)]

    def _new_files(self, state: FinishedBatches) -> list[StoredFile]:
        if state.groups and state == self._state:
            return []
        self._state = state
        files = state.only(stored_files(self._reader.folder.store, since=self._last_day))
        fresh = [each for each in files if each.batch > self._seen.get(each.group, -1)]
        for each in fresh:
            self._seen[each.group] = max(self._seen.get(each.group, -1), each.batch)
        if files:
            # A batch that began before midnight may end after the first one of the new day.
            days = sorted({each.day for each in files})
            self._last_day = days[-2] if len(days) > 1 else days[-1]
        return fresh


# --- whose items ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ItemSelection:
    source: str | None = None
    feed: int | None = None
    schemas: Collection[str] | None = None
    """The names of the schemas (columns.group_of) that the items may have; without, any."""

    @property
    def condition(self) -> str:
        own = '"@source" = $source' if self.source is not None else 'list_contains("@feeds", $feed)'
        return f'{own} AND epoch_us("@arrived") >= $since'

    def parameters(self, since: datetime | None) -> dict[str, object]:
        own = {"source": self.source} if self.source is not None else {"feed": self.feed}
        return {**own, "since": 0 if since is None else to_microseconds(since)}

    def may_be_in(self, group: str) -> bool:
        """Results of joins are stored in addition to their items: they belong to feeds, and are no
        further items of their source."""
        if self.source is not None and group.startswith(JOINED):
            return False
        return self.schemas is None or may_hold(group, self.schemas)


def selection_of(name: str, definitions: CatalogDefinitions) -> ItemSelection:
    """For a materialised feed: its transformed items, as subscribers get them."""
    entry = definitions.entry(name)
    if entry is None:
        hint = did_you_mean(name, definitions)
        raise UnknownName(f"there is no source or feed '{name}'" + (f"; {hint}" if hint else ""))
    if entry.kind is DefinitionKind.OPERATOR:
        raise UnknownName(f"'{name}' is an operator, not a source or feed")
    if entry.kind in SOURCE_KINDS:
        return ItemSelection(source=name, schemas=_schemas([name], definitions))
    read = [name, *sources_of(name, definitions)]
    return ItemSelection(feed=entry.number, schemas=_schemas(read, definitions))


def _schemas(names: Collection[str], definitions: CatalogDefinitions) -> frozenset[str]:
    return frozenset(group_of(each) for name in names for each in schemas_of(name, definitions))
