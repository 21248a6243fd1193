"""Questions to the log, answered from segments: what does a feed have, and since when?

    since(feed, position)    the items of a feed from a position on, in order
    last(feed, count)        the last items of a feed
    feeds_of(position)       the feeds that have an item
    matches(feeds, a, b)     the items of many feeds in a range of positions, as arrays
    position_at(instant)     the first item that arrived after an instant

A feed is asked for by its number, a source by its name. An answer is a list of `ItemPlace`:
position, file, row in the file, and instant of arrival. `log_items.py` reads the items themselves.

Cost: a binary search in the segment of each file from the position on, and decoding the feed's rows
of those files. Segments are mapped once and kept; those of files that were merged or trimmed are
dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import NamedTuple

import numpy as np

from headgate.match.bit_rows import Longs
from headgate.store.log import LogReader
from headgate.store.log_state import LogFile
from headgate.store.log_storage import LogStorage
from headgate.store.postings import Bytes, Postings, count_rows, decode_all
from headgate.store.segment import Segment, one_run, open_segment


class ItemPlace(NamedTuple):
    """An item in the log. Places sort by position."""

    position: int
    file: LogFile
    row: int
    arrived_us: int


class FeedMatches(NamedTuple):
    """Items of several feeds or sources, one element of each array (int64) for each match."""

    key: Longs
    """The number of the feed; of sources, the place of the name in the list that was asked for."""
    position: Longs
    arrived_us: Longs
    file: Longs
    """The place of the file in `LogIndex.files`, as long as that is not refreshed."""
    row: Longs


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
    def storage(self) -> LogStorage:
        return self._reader.storage

    @property
    def arrived_us(self) -> int:
        """The instant of the last entry."""
        return self._reader.state.arrived_us

    @property
    def files(self) -> tuple[LogFile, ...]:
        return self._reader.state.files

    def refresh(self) -> bool:
        """Whether something has been appended since."""
        before = self._reader.state.seq
        self._reader.refresh()
        if self._reader.state.seq == before:
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

    def last(self, key: int | str, count: int, *, end: int | None = None) -> list[ItemPlace]:
        """The last items of a feed or source (before position `end`), in order."""
        places: list[ItemPlace] = []
        if not count:
            return places
        for file in sorted(self.files, key=lambda each: -each.end):
            if len(places) >= count:
                places = sorted(places)[-count:]
                if places[0].position >= file.end:
                    break
            rows = self._rows(file, key, self.first_position)
            if end is not None and end < file.end:
                before = self.segment(file).runs.first_row_at(end, file.rows)
                rows = rows[: int(np.searchsorted(rows, before))]
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

    def matches(self, feeds: Longs, start: int, end: int) -> FeedMatches:
        """The items that these feeds (ascending numbers) have from `start` to before `end`. It
        reads the keys of the segments in the range, and the rows of the feeds that it finds."""
        parts: list[FeedMatches] = []
        for number, file in self._between(start, end):
            postings = self.segment(file).feeds
            places = common_places(postings.keys, feeds)
            parts.append(self._matches(number, postings, places, postings.keys, (start, end)))
        return _joined(parts)

    def source_matches(self, names: Sequence[str], start: int, end: int) -> FeedMatches:
        """The same for sources."""
        number_of = {name: number for number, name in enumerate(names)}
        parts: list[FeedMatches] = []
        for number, file in self._between(start, end):
            segment = self.segment(file)
            known = [number_of.get(name, -1) for name in segment.source_names]
            keys = np.asarray(known, np.int64)[segment.sources.keys]
            places = np.flatnonzero(keys >= 0)
            parts.append(self._matches(number, segment.sources, places, keys, (start, end)))
        return _joined(parts)

    def matches_of(self, key: int | str, start: int, end: int) -> FeedMatches:
        """The same for one feed or source."""
        if isinstance(key, str):
            return self.source_matches([key], start, end)
        return self.matches(np.array([key], np.int64), start, end)

    def position_at(self, instant_us: int) -> int:
        """The first position of an item that arrived after this instant. Positions and instants
        grow together, so all items before it arrived until then."""
        found = self.next_position
        for file in self.files:
            if file.first >= found:
                break
            if file.arrived_us > instant_us:
                found = file.first
                break
            runs = self.segment(file).runs
            run = int(np.searchsorted(runs.arrived_us, instant_us, side="right"))
            if run < runs.row.size:
                found = min(found, int(runs.base[run]))
        return max(found, self.first_position)

    def places_at(self, positions: Longs) -> list[ItemPlace]:
        """The items at these positions, which are ascending and distinct; trimmed ones are left
        out."""
        wanted = positions[np.searchsorted(positions, self.first_position) :]
        places: list[ItemPlace] = []
        for file in self.files:
            first, last = np.searchsorted(wanted, [file.first, file.end])
            if first == last:
                continue
            inside = wanted[first:last]
            runs = self.segment(file).runs
            run = np.searchsorted(runs.base, inside, side="right") - 1
            rows = runs.row[run] + inside - runs.base[run]
            ends = np.append(runs.row[1:], file.rows)[run]
            places += self._places(file, rows[rows < ends])
        return sorted(places)

    def _between(self, start: int, end: int) -> Iterator[tuple[int, LogFile]]:
        """The files with positions in a range, with their places in `files`."""
        for number, file in enumerate(self.files):
            if file.first >= end:
                return
            if file.end > start:
                yield number, file

    def _matches(
        self,
        file_number: int,
        postings: Postings,
        places: Longs,
        keys: Longs,
        between: tuple[int, int],
    ) -> FeedMatches:
        """The rows of the keys at some places of the postings, within a range of positions."""
        counts, rows = rows_at(postings, places)
        runs = self.segment(self.files[file_number]).runs
        position = runs.positions(rows)
        inside = (position >= max(between[0], self.first_position)) & (position < between[1])
        rows = rows[inside]
        return FeedMatches(
            key=np.repeat(keys[places], counts)[inside],
            position=position[inside],
            arrived_us=runs.arrivals(rows),
            file=np.full(rows.size, file_number, np.int64),
            row=rows,
        )

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
        runs = self.segment(file).runs
        positions, arrivals = runs.positions(rows), runs.arrivals(rows)
        return map(ItemPlace, positions.tolist(), repeat(file), rows.tolist(), arrivals.tolist())


def open_placed(storage: LogStorage, file: LogFile) -> Segment:
    """The segment of a file of the log; that of a batch gets its positions from the entry."""
    segment = open_segment(storage.map(file.segment))
    if segment.runs.row.size:
        return segment
    return replace(segment, runs=one_run(file.first, file.arrived_us))


def common_places(keys: Longs, wanted: Longs) -> Longs:
    """The places in `keys` of those that are wanted too; both are ascending and distinct."""
    if not keys.size or not wanted.size:
        return np.zeros(0, np.int64)
    if keys.size <= wanted.size:
        place = np.minimum(np.searchsorted(wanted, keys), wanted.size - 1)
        return np.flatnonzero(wanted[place] == keys)
    place = np.searchsorted(keys, wanted)
    inside = place[place < keys.size]
    common: Longs = inside[keys[inside] == wanted[: inside.size]]
    return common


def rows_at(postings: Postings, places: Longs) -> tuple[Longs, Longs]:
    """How many rows the keys at these places have, and the rows, one key after the other."""
    begin, size = postings.start[places], np.diff(postings.start)[places]
    start = np.zeros(places.size + 1, np.int64)
    np.cumsum(size, out=start[1:])
    gathered = np.repeat(begin - start[:-1], size) + np.arange(start[-1])
    data: Bytes = postings.data[gathered]
    counts = np.zeros(places.size, np.int64)
    count_rows(start, data, counts)
    return counts, decode_all(start, data)


def _joined(parts: Sequence[FeedMatches]) -> FeedMatches:
    if not parts:
        return FeedMatches(*np.zeros((5, 0), np.int64))
    return FeedMatches(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
