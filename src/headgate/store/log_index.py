"""Questions to the log, answered from segments: what does a feed have, and since when?

    since(feed, position)    the items of a feed from a position on, in order
    last(feed, count)        the last items of a feed
    feeds_of(position)       the feeds that have an item

A feed is asked for by its number, a source by its name. An answer is a list of `Place`: the file,
the row in it, and the position. A reader that wants the items themselves reads those rows of the
Parquet file (read_store.py).

Cost: a binary search in the segment of each file from the position on, and decoding the feed's rows
of those files. Segments are mapped once and kept; those of files that were merged or trimmed are
dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from headgate.match.bit_rows import Longs
from headgate.store.log import LogFile, LogReader
from headgate.store.log_storage import LogStorage
from headgate.store.segment import Segment, open_segment


class Place(NamedTuple):
    """An item in the log. Places sort by position."""

    position: int
    file: LogFile
    row: int


class LogIndex:
    """For one thread. `refresh` brings it up to date; in between it does not change."""

    def __init__(self, storage: LogStorage) -> None:
        self._reader = LogReader(storage)
        self._segments: dict[str, Segment] = {}
        self.refresh()

    @property
    def next_position(self) -> int:
        return self._reader.state.next_position

    @property
    def first_position(self) -> int:
        return self._reader.state.first_position

    @property
    def files(self) -> tuple[LogFile, ...]:
        return self._reader.state.files

    def refresh(self) -> bool:
        """Whether something has been appended since."""
        if not self._reader.refresh():
            return False
        live = {file.segment for file in self.files}
        for name in self._segments.keys() - live:
            del self._segments[name]
        return True

    def segment(self, file: LogFile) -> Segment:
        segment = self._segments.get(file.segment)
        if segment is None:
            segment = open_segment(self._reader.storage.map(file.segment))
            self._segments[file.segment] = segment
        return segment

    def since(self, key: int | str, position: int, *, limit: int | None = None) -> list[Place]:
        """The items of a feed (by number) or source (by name) from a position on, in order; with a
        limit, the first of them."""
        position = max(position, self.first_position)
        places: list[Place] = []
        for file in self.files:
            if file.end <= position:
                continue
            # Files are ordered by their first positions: all that follow lie behind this one.
            if limit is not None and len(places) >= limit and places[limit - 1][0] < file.first:
                break
            rows = self._rows(file, key, first=file.first_row_at(position))
            if rows.size:
                places = sorted([*places, *_places(file, rows[:limit])])
        return places[:limit]

    def last(self, key: int | str, count: int) -> list[Place]:
        """The last items of a feed or source, in order."""
        places: list[Place] = []
        for file in sorted(self.files, key=lambda each: -each.end):
            if len(places) >= count and places[-count].position >= file.end:
                break
            rows = self._rows(file, key, first=file.first_row_at(self.first_position))
            places = sorted([*_places(file, rows[-count:]), *places])[-count:] if count else []
        return places

    def feeds_of(self, position: int) -> Longs:
        """The numbers of the feeds that have the item at a position; none if it was trimmed."""
        for file in self.files:
            if file.first <= position < file.end and position >= self.first_position:
                row = file.first_row_at(position)
                if file.positions(np.array([row]))[0] == position:
                    return self.segment(file).feeds.keys_of(row)
        return np.zeros(0, np.int64)

    def _rows(self, file: LogFile, key: int | str, *, first: int) -> Longs:
        segment = self.segment(file)
        if isinstance(key, str):
            return segment.rows_of_source(key, first=first)
        return segment.feeds.rows(key, first=first)


def _places(file: LogFile, rows: Longs) -> Iterable[Place]:
    positions = file.positions(rows)
    return (
        Place(position, file, row)
        for position, row in zip(positions.tolist(), rows.tolist(), strict=True)
    )
