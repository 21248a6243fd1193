"""What somebody reads, out of the log and the rows of catalog/reading.py.

    followed feeds ──► matches in a window of the log ──► ids ──► read? starred? ──► page
    watermarks, marks ─────────────────────────────────────────────┘

A page is found window by window (reading_windows.py) from one of its ends. The cost follows from
the postings of the reader's feeds in these windows, never from the items of other feeds.

    unread items   begin at the lowest watermark: nothing below it is unread, but what a mark keeps
    unread counts  stop at COUNT_MAX for a feed; readers show "1000+"
    trimmed items  are read; they are there only if they are starred

An id names a position, and anybody can make one up; so an item is shown, marked or starred only
after the log has said that one of the reader's feeds has it. reading_marks.py changes what is here
read.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.catalog.following import FollowedFeed
from headgate.catalog.reading import StarredItem
from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.match.bit_rows import Longs
from headgate.service.log_access import LogAccess
from headgate.service.reader_ids import item_id, parts_of
from headgate.service.reading_windows import (
    ReaderMatches,
    array_of,
    clusters,
    reader_matches,
    windows,
)
from headgate.store.log_items import LoggedItem, logged_item

COUNT_MAX = 1_000
INSTANT_US_MAX = 2**62
POSITION_MAX = 2**40
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class WantedItems:
    """Which items a page has."""

    feeds: Sequence[FollowedFeed]
    start: int = 0
    end: int | None = None
    """Positions from `start` to before `end`."""
    is_read: bool | None = None
    is_starred: bool | None = None
    after: int | None = None
    """The last id of the page before."""
    is_ascending: bool = False
    limit: int = 20

    def has(self, id_: int) -> bool:
        """Whether an id is behind the page before."""
        if self.after is None:
            return True
        return id_ > self.after if self.is_ascending else id_ < self.after


class ItemReference(NamedTuple):
    """References sort by id."""

    id: int
    arrived_us: int


@dataclass(frozen=True, slots=True)
class ReferencePage:
    references: Sequence[ItemReference]
    has_more: bool


@dataclass(frozen=True, slots=True)
class ReadingEntry:
    id: int
    feed_id: int
    kept: str
    """The name of the feed, as it is kept."""
    item: LoggedItem
    is_read: bool
    is_starred: bool


@dataclass(slots=True)
class UnreadCount:
    count: int = 0
    newest_us: int = 0


@dataclass(eq=False)
class Reading:
    """What a principal reads, as it is at the beginning of a request. For one thread."""

    catalog: TenantCatalog
    log: LogAccess
    feeds: list[FollowedFeed] = field(init=False)
    """All that have a watermark, also those that are not followed any more."""
    first: int = field(init=False, default=0)
    end: int = field(init=False, default=0)
    """The positions of the log."""

    def __post_init__(self) -> None:
        self.feeds = self.catalog.followed_feeds()
        if self.log.is_there:
            self.first, self.end = self.log.ask(
                lambda view: (view.index.first_position, view.index.next_position)
            )

    def forget(self) -> None:
        """What is remembered of marks and stars has changed."""
        for name in ("marks", "stars", "_mark_arrays"):
            self.__dict__.pop(name, None)

    @property
    def followed(self) -> list[FollowedFeed]:
        return [each for each in self.feeds if each.is_followed]

    @cached_property
    def marks(self) -> Mapping[int, bool]:
        return self.catalog.reading_marks()

    @cached_property
    def stars(self) -> Mapping[int, StarredItem]:
        return self.catalog.list_stars()

    def position_at(self, instant_us: int) -> int:
        """The first position that arrived after this instant."""
        if not self.log.is_there or instant_us >= INSTANT_US_MAX:
            return self.end
        return self.log.ask(lambda view: view.index.position_at(max(instant_us, 0)))

    # --- pages ------------------------------------------------------------------------------------

    def page(self, wanted: WantedItems) -> ReferencePage:
        """The next items, the newest first unless `is_ascending` says otherwise."""
        found: list[ItemReference] = []
        parts = self._starred_parts(wanted) if wanted.is_starred else self._log_parts(wanted)
        for part in parts:
            behind = [each for each in part if wanted.has(each.id)]
            found += sorted(behind, reverse=not wanted.is_ascending)
            if len(found) > wanted.limit:
                break
        return ReferencePage(found[: wanted.limit], len(found) > wanted.limit)

    def _log_parts(self, wanted: WantedItems) -> Iterator[list[ItemReference]]:
        start, end = self._range(wanted)
        ids = np.array([each.feed_id for each in wanted.feeds], np.int64)
        for low, high in windows(start, end, is_ascending=wanted.is_ascending):
            found = self.matches(wanted.feeds, low, high)
            chosen = np.ones(found.position.size, bool)
            if wanted.is_read is not None:
                chosen &= self.read_mask(found.position, low, high) == wanted.is_read
            if wanted.is_starred is False:
                chosen &= ~np.isin(found.position, array_of(self.stars))
            yield [
                ItemReference(item_id(position, feed), us)
                for position, feed, us in zip(
                    found.position[chosen].tolist(),
                    ids[found.feed[chosen]].tolist(),
                    found.arrived_us[chosen].tolist(),
                    strict=True,
                )
            ]

    def _range(self, wanted: WantedItems) -> tuple[int, int]:
        """The positions that a page may have."""
        start, end = max(wanted.start, self.first), self.end
        if wanted.end is not None:
            end = min(end, wanted.end)
        if wanted.after is not None:
            position, _ = parts_of(wanted.after)
            if wanted.is_ascending:
                start = max(start, position)
            else:
                end = min(end, position + 1)
        if wanted.is_read is False:
            start = max(start, self._unread_start(wanted.feeds))
        return start, end

    def _starred_parts(self, wanted: WantedItems) -> Iterator[list[ItemReference]]:
        """Out of the copies. They are few, so there is one part. Among all feeds, an item is there
        once if none of its feeds is followed any more."""
        ids = {each.feed_id for each in wanted.feeds}
        is_all = ids >= {each.feed_id for each in self.followed}
        end = POSITION_MAX if wanted.end is None else wanted.end
        places = [each for each in self.stars if wanted.start <= each < end]
        if wanted.is_read is not None:
            states = self.read_states(places)
            places = [each for each in places if states[each] == wanted.is_read]
        part: list[ItemReference] = []
        for position in places:
            star = self.stars[position]
            shown = [each for each in star.feed_ids if each in ids]
            shown = shown or list(star.feed_ids[:1] if is_all else ())
            part += [ItemReference(item_id(position, each), star.arrived_us) for each in shown]
        yield part

    def unread_counts(self) -> dict[int, UnreadCount]:
        """Of each followed feed, by its id; at most COUNT_MAX."""
        active = self.followed
        counts = {each.feed_id: UnreadCount() for each in active}
        start = max(self._unread_start(active), self.first)
        for low, high in windows(start, self.end, is_ascending=False):
            active = [
                each
                for each in active
                if counts[each.feed_id].count < COUNT_MAX and self._unread_start([each]) < high
            ]
            if not active:
                break
            found = self.matches(active, low, high)
            unread = ~self.read_mask(found.position, low, high)
            numbers = np.bincount(found.feed[unread], minlength=len(active))
            newest = np.zeros(len(active), np.int64)
            np.maximum.at(newest, found.feed[unread], found.arrived_us[unread])
            for each, number, us in zip(active, numbers.tolist(), newest.tolist(), strict=True):
                count = counts[each.feed_id]
                count.count = min(count.count + number, COUNT_MAX)
                count.newest_us = max(count.newest_us, us)
        return counts

    # --- items ------------------------------------------------------------------------------------

    def entries(self, ids: Collection[int]) -> dict[int, ReadingEntry]:
        """The items with these ids, as far as the reader's feeds have them or they are starred."""
        places = {id_: parts_of(id_) for id_ in ids}
        positions = {position for position, _ in places.values()}
        having, copies = self.having(positions), self.catalog.starred_items(positions)
        items = self.items([each for each in having if each not in copies])
        items |= {position: _item_of(copy) for position, copy in copies.items()}
        states = self.read_states(items)
        kept = {each.feed_id: each.kept for each in self.feeds}
        found: dict[int, ReadingEntry] = {}
        for id_, (position, feed_id) in places.items():
            copy = copies.get(position)
            feed_ids = {*having.get(position, ()), *(copy.feed_ids if copy else ())}
            if position in items and feed_id in feed_ids:
                name = kept.get(feed_id) or (copy.kept if copy else "")
                found[id_] = ReadingEntry(
                    id_, feed_id, name, items[position], states[position], copy is not None
                )
        return found

    def items(self, positions: Collection[int]) -> dict[int, LoggedItem]:
        """What the log has at these positions. The caller knows that the reader may see it."""
        if not positions:
            return {}
        wanted = sorted(positions)
        rows = self.log.ask(lambda view: view.read(view.places(wanted)))
        return {row.position: row for row in rows}

    def read_states(self, positions: Collection[int]) -> dict[int, bool]:
        """Whether the items at these positions are read."""
        states: dict[int, bool] = {}
        for cluster in clusters(positions):
            low, high = int(cluster[0]), int(cluster[-1]) + 1
            mask = self.read_mask(cluster, low, high) | (cluster < self.first)
            states |= dict(zip(cluster.tolist(), mask.tolist(), strict=True))
        return states

    def having(
        self, positions: Collection[int], feeds: Sequence[FollowedFeed] | None = None
    ) -> dict[int, set[int]]:
        """The ids of feeds that have the items at these positions, of all feeds of the reader
        unless some are given; without items that none has."""
        feeds = self.feeds if feeds is None else feeds
        having: dict[int, set[int]] = {}
        for cluster in clusters(positions):
            found = self.matches(feeds, int(cluster[0]), int(cluster[-1]) + 1)
            chosen = np.isin(found.position, cluster)
            for place, position in zip(
                found.feed[chosen].tolist(), found.position[chosen].tolist(), strict=True
            ):
                having.setdefault(position, set()).add(feeds[place].feed_id)
        return having

    # --- questions to the log ---------------------------------------------------------------------

    def matches(self, feeds: Sequence[FollowedFeed], low: int, high: int) -> ReaderMatches:
        """The items that these feeds have in a range of positions."""
        low, high = max(low, self.first), min(high, self.end)
        if not feeds or low >= high:
            return ReaderMatches(*np.zeros((3, 0), np.int64))
        return self.log.ask(lambda view: reader_matches(view, feeds, low, high))

    def read_mask(self, positions: Longs, low: int, high: int) -> Bools:
        """Which of the items at these positions, all of them in a range, are read."""
        covering = [each for each in self.feeds if each.read_below > low]
        below = np.array([each.read_below for each in covering], np.int64)
        found = self.matches(covering, low, high)
        covered = found.position[found.position < below[found.feed]]
        read: Bools = np.isin(positions, covered)
        kept_unread, marked_read = self._mark_arrays
        read[np.isin(positions, kept_unread)] = False
        read[np.isin(positions, marked_read)] = True
        return read

    @cached_property
    def _mark_arrays(self) -> tuple[Longs, Longs]:
        """The positions of marks: kept unread, read."""
        marks = self.marks
        return (
            array_of([each for each, is_read in marks.items() if not is_read]),
            array_of([each for each, is_read in marks.items() if is_read]),
        )

    def _unread_start(self, feeds: Sequence[FollowedFeed]) -> int:
        """No item of these feeds below this position is unread."""
        lowest = min((each.read_below for each in feeds), default=self.end)
        kept_unread, _ = self._mark_arrays
        return min(lowest, int(kept_unread.min())) if kept_unread.size else lowest


# --- copies of starred items ----------------------------------------------------------------------


def copy_of(item: LoggedItem) -> bytes:
    """The item as it is kept with a star: a row of Arrow, so its values keep their types."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, item.batch.schema) as writer:
        writer.write_batch(item.batch)
    return zlib.compress(sink.getvalue())


def _item_of(star: StarredItem) -> LoggedItem:
    with pa.ipc.open_stream(zlib.decompress(star.content)) as reader:
        (batch,) = list(reader)
    return logged_item(star.position, star.arrived_us, batch)
