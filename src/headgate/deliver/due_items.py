"""Who gets what in a range of the log: the items that are due for each subscription, as arrays.

    segments in [start, end) ── keys ∩ subscribed feeds ──► matches (feed, position, arrival)
    matches × subscriptions of their feeds ──► pairs, without
        items that arrived before the subscription was made, or after its end
        repeats of what it has had from another source (repeats.py)

Cost: without a match, the intersection of two sorted arrays for each segment of the range. Every
step works on all subscriptions at once; Python sees only those for which something is due.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.deliver.repeats import latest_repeated_us
from headgate.deliver.subscription_table import SubscriptionTable
from headgate.match.bit_rows import Longs
from headgate.store.log_index import FeedMatches, ItemPlace, LogIndex

PAIRS_MAX = 2_000_000
"""A range with more pairs of an item and a subscription is halved, down to one position."""

Select = Callable[[Longs], npt.NDArray[np.bool_]]
"""Which of these rows of the table are looked at."""


class DueItems(NamedTuple):
    """The items of one subscription, ascending."""

    row: int
    positions: Longs
    arrived_us: Longs


class TooManyPairs(Exception):
    """The range has more pairs than are handled at once."""


@dataclass(frozen=True, slots=True)
class DueQuery:
    """For one thread."""

    index: LogIndex
    table: SubscriptionTable

    def due(self, select: Select, start: int, end: int) -> list[DueItems]:
        """What is due in a range for the rows that are selected; `TooManyPairs` where the range
        can be halved."""
        matches = self._matches(start, end)
        if not matches.key.size:
            return []
        feeds, first = np.unique(matches.key, return_index=True)
        place, row = self.table.rows_of_feeds(feeds)
        chosen = select(row)
        place, row = place[chosen], row[chosen]
        counts = np.diff(np.append(first, matches.key.size))[place]
        if counts.sum() > PAIRS_MAX and end - start > 1:
            raise TooManyPairs
        pair_row = np.repeat(row, counts)
        offset = np.repeat(first[place] - np.cumsum(counts) + counts, counts)
        pair_match = offset + np.arange(pair_row.size)
        return self._grouped(matches, pair_row, pair_match)

    def of_subscription(self, row: int, start: int, end: int) -> DueItems:
        """What is due for one subscription in a range."""
        feed = int(self.table.rows.feed[row])
        if feed >= 0:
            matches = self.index.matches(np.array([feed]), start, end)
        else:
            matches = self.index.source_matches([str(self.table.feed_key(row))], start, end)
            matches = matches._replace(key=np.full(matches.key.size, feed))
        count = matches.key.size
        found = self._grouped(matches, np.full(count, row), np.arange(count))
        none = np.zeros(0, np.int64)
        return found[0] if found else DueItems(row, none, none)

    def last_of_subscription(self, row: int, end: int, count: int) -> DueItems:
        """The last items before a position, of all that the subscription has had."""
        asked = count
        while True:
            places = self.index.last(self.table.feed_key(row), asked, end=end)
            matches = self._of_places(int(self.table.rows.feed[row]), places)
            found = self._grouped(matches, np.full(len(places), row), np.arange(len(places)))
            enough = bool(found) and found[0].positions.size >= count
            old = bool(places) and places[0].arrived_us <= self.table.rows.created_us[row]
            if enough or old or len(places) < asked:
                break
            asked *= 2
        if not found:
            none = np.zeros(0, np.int64)
            return DueItems(row, none, none)
        return DueItems(row, found[0].positions[-count:], found[0].arrived_us[-count:])

    def _of_places(self, feed: int, places: list[ItemPlace]) -> FeedMatches:
        numbers = {file.items: number for number, file in enumerate(self.index.files)}
        columns = (
            [feed] * len(places),
            [each.position for each in places],
            [each.arrived_us for each in places],
            [numbers[each.file.items] for each in places],
            [each.row for each in places],
        )
        return FeedMatches(*(np.asarray(each, np.int64) for each in columns))

    def _matches(self, start: int, end: int) -> FeedMatches:
        """All matches of subscribed feeds and sources in a range, sorted by key."""
        table = self.table
        of_feeds = self.index.matches(table.feeds, start, end)
        of_sources = self.index.source_matches(table.source_names, start, end)
        of_sources = of_sources._replace(key=table.keys_of_sources(of_sources.key))
        both = FeedMatches(
            *(np.concatenate(pair) for pair in zip(of_feeds, of_sources, strict=True))
        )
        order = np.argsort(both.key, kind="mergesort")
        return FeedMatches(*(each[order] for each in both))

    def _grouped(self, matches: FeedMatches, rows: Longs, places: Longs) -> list[DueItems]:
        """The pairs that hold, by subscription."""
        rows, places = self._valid(matches, rows, places)
        if rows.size and self.table.check(rows):
            rows, places = self._valid(matches, rows, places)
        rows, places = self._without_repeats(matches, rows, places)
        position, arrived_us = matches.position[places], matches.arrived_us[places]
        order = np.lexsort((position, rows))
        rows, position, arrived_us = rows[order], position[order], arrived_us[order]
        distinct, first = np.unique(rows, return_index=True)
        bounds = np.append(first, rows.size).tolist()
        return [
            DueItems(row, position[a:b], arrived_us[a:b])
            for row, a, b in zip(distinct.tolist(), bounds[:-1], bounds[1:], strict=True)
        ]

    def _valid(self, matches: FeedMatches, rows: Longs, places: Longs) -> tuple[Longs, Longs]:
        arrived_us, table = matches.arrived_us[places], self.table.rows
        valid = (table.created_us[rows] < arrived_us) & (arrived_us < table.expires_us[rows])
        return rows[valid], places[valid]

    def _without_repeats(
        self, matches: FeedMatches, rows: Longs, places: Longs
    ) -> tuple[Longs, Longs]:
        if not rows.size:
            return rows, places
        used, at = np.unique(places, return_inverse=True)
        created_us = self.table.rows.created_us[rows]
        chosen = FeedMatches(*(each[used] for each in matches))
        latest = latest_repeated_us(self.index, chosen, since_us=int(created_us.min()))
        kept = latest[at] <= created_us
        return rows[kept], places[kept]
