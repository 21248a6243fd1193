"""The last items of a feed or source, in the order in which they arrived.

    days       …  14  15  16      the last day first; once there are enough, no further day
    a group    3.parquet … 99     of a day the last files first: 8, then 32, then 128, …
                     ◄─────

Within a group, batches arrive in the order of their numbers, so as soon as a group has given
enough rows, its earlier files of the day cannot give later ones. Only the column `@feeds` (or
`@source`) is read to find them; what is shown is read afterwards, from the few places found.

Cost: the files of the last day that has enough, one column of them. A feed that has had nothing for
long costs one column of all days: `since` limits that.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from itertools import groupby

from headgate.store.files import StoredFile, stored_days, stored_files
from headgate.store.finished import Finished, finished
from headgate.store.read_store import StoreReader
from headgate.store.stored_rows import Place, StoredRow, places_in, read_rows
from headgate.store.wanted import Wanted

FILES_FIRST, FILES_MAX, GROWTH = 8, 512, 4


def tail(
    reader: StoreReader,
    wanted: Wanted,
    *,
    lines: int,
    since: datetime | None = None,
    certain: Finished | None = None,
) -> list[StoredRow]:
    """The last ones, the newest last, of the batches that are finished, or were at some moment."""
    if certain is None:
        certain = finished(reader.folder.batches)
    places = _last_places(reader, wanted, lines, since, certain)
    return [row for _, row in read_rows(places, reader.damaged)]


def _last_places(
    reader: StoreReader, wanted: Wanted, lines: int, since: datetime | None, certain: Finished
) -> list[Place]:
    first = None if since is None else since.astimezone(UTC).date()
    found: list[Place] = []
    for day in reversed(stored_days(reader.folder.store)):
        if len(found) >= lines or (first is not None and day < first):
            break
        for files in _groups_of(reader, wanted, day, certain):
            found += _last_of_group(reader, wanted, files, lines, since)
    return sorted(found)[-lines:]


def _groups_of(
    reader: StoreReader, wanted: Wanted, day: date, certain: Finished
) -> Iterator[list[StoredFile]]:
    """The files of each group on this day, by batch."""
    files = certain.only(stored_files(reader.folder.store, on=day))
    for group, own in groupby(files, key=lambda each: each.group):
        if wanted.may_be_in(group):
            yield list(own)


def _last_of_group(
    reader: StoreReader,
    wanted: Wanted,
    files: list[StoredFile],
    lines: int,
    since: datetime | None,
) -> list[Place]:
    question = (
        'SELECT epoch_us("@arrived") AS arrived, filename, file_row_number AS row FROM {rows} '
        f"WHERE {wanted.condition} ORDER BY 1 DESC, 2 DESC, 3 DESC LIMIT $lines"
    )
    parameters = {**wanted.parameters(since), "lines": lines}
    found: list[Place] = []
    end, size = len(files), FILES_FIRST
    while end > 0 and len(found) < lines:
        start = _whole_batch(files, max(0, end - size))
        for answer in reader.ask_at_once(question, files[start:end], parameters):
            found += places_in(answer)
        end, size = start, min(size * GROWTH, FILES_MAX)
    return found


def _whole_batch(files: list[StoredFile], start: int) -> int:
    """The files of one batch arrived at once: they are asked together."""
    while start > 0 and files[start - 1].batch == files[start].batch:
        start -= 1
    return start


class Follower:
    """What has arrived since the last time it was asked, and first since `certain`: with the same,
    `tail` shows what was before, so that nothing is shown twice or left out.

    A group's position is the last batch that was read; as long as no batch is finished, asking
    costs one listing of the batches' records.
    """

    def __init__(self, reader: StoreReader, wanted: Wanted, certain: Finished) -> None:
        self._reader, self._wanted = reader, wanted
        self._seen: dict[str, int] = {}
        self._state: Finished | None = None
        self._last_day = date.min
        self._new_files(certain)

    def look(self) -> list[StoredRow]:
        state = finished(self._reader.folder.batches)
        files = [each for each in self._new_files(state) if self._wanted.may_be_in(each.group)]
        question = (
            'SELECT epoch_us("@arrived") AS arrived, filename, file_row_number AS row FROM {rows} '
            f"WHERE {self._wanted.condition}"
        )
        answers = self._reader.ask(question, files, self._wanted.parameters(None))
        places = sorted(place for answer in answers for place in places_in(answer))
        return [row for _, row in read_rows(places, self._reader.damaged)]

    def _new_files(self, state: Finished) -> list[StoredFile]:
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
