"""Questions to the log, answered from segments: what does a feed have, and since when?

    since(feed, position)    the items of a feed from a position on, in order
    last(feed, count)        the last items of a feed
    feeds_of(position)       the feeds that have an item

A feed is asked for by its number, a source by its name. An answer is a list of `ItemPlace`:
position, file, and row in the file. A reader that wants the items themselves reads those rows of
the Parquet file (read_store.py).

Cost: a binary search in the segment of each file from the position on, and decoding the feed's rows
of those files. Segments are mapped once and kept; those of files that were merged or trimmed are
dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import repeat
from typing import NamedTuple

import numpy as np

from headgate.match.bit_rows import Longs
from headgate.store.log import LogFile, LogReader
from headgate.store.log_storage import LogStorage
from headgate.store.segment import Segment, one_run, open_segment


class ItemPlace(NamedTuple):
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
        """The segment of a file, with the positions of its rows."""
        segment = self._segments.get(file.segment)
        if segment is None:
            segment = open_placed(self._reader.storage, file)
            self._segments[file.segment] = segment
        return segment

    def since(self, key: int | str, position: int, *, limit: int | None = None) -> list[ItemPlace]:
        """The items of a feed (by number) or source (by name) from a position on, in order; with a
        limit, the first of them."""
        position = max(position, self.first_position)
        places: list[ItemPlace] = []
        for file in self.files:
            if file.end <= position:
                continue
            if limit is not None and len(places) >= limit:
                # Files are ordered by their first positions: all that follow lie behind this one.
                places = sorted(places)[:limit]
                if limit == 0 or places[-1].position < file.first:
                    break
            places += self._places(file, self._rows(file, key, position)[:limit])
        return sorted(places)[:limit]

    def last(self, key: int | str, count: int) -> list[ItemPlace]:
        """The last items of a feed or source, in order."""
        places: list[ItemPlace] = []
        if not count:
            return places
        for file in sorted(self.files, key=lambda each: -each.end):
            if len(places) >= count:
                places = sorted(places)[-count:]
                if places[0].position >= file.end:
                    break
            rows = self._rows(file, key, self.first_position)
            places += self._places(file, rows[-count:])
        return sorted(places)[-count:]

    def feeds_of(self, position: int) -> Longs:
        """The numbers of the feeds that have the item at a position; none if it was trimmed."""
        if position < self.first_position:
            return np.zeros(0, np.int64)
        for file in self.files:
            if file.first <= position < file.end:
                segment = self.segment(file)
                row = segment.runs.first_row_at(position, file.rows)
                if segment.runs.positions(np.array([row]))[0] == position:
                    return segment.feeds.keys_of(row)
        return np.zeros(0, np.int64)

    def _rows(self, file: LogFile, key: int | str, position: int) -> Longs:
        """The rows of a feed or source from a position on."""
        segment = self.segment(file)
        first = segment.runs.first_row_at(position, file.rows)
        if isinstance(key, str):
            return segment.rows_of_source(key, first=first)
        return segment.feeds.rows(key, first=first)

    def _places(self, file: LogFile, rows: Longs) -> Iterable[ItemPlace]:
        if not rows.size:
            return ()
        positions = self.segment(file).runs.positions(rows)
        return map(ItemPlace, positions.tolist(), repeat(file), rows.tolist())


def open_placed(storage: LogStorage, file: LogFile) -> Segment:
    """The segment of a file of the log; that of a batch gets its positions from the entry."""
    segment = open_segment(storage.map(file.segment))
    if segment.runs.row.size:
        return segment
    return replace(segment, runs=one_run(file.first, file.arrived_us))
