"""Ranges of the log that are asked for what a reader's feeds have.

    windows    of a page: from one of its ends, at first small, each twice as large as the last
    clusters   of single positions: those in the same range of 65,536 together

Each is one question, and a short one: all requests share a view of the log, one at a time
(log_access.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from headgate.catalog.definitions import SOURCE_KINDS
from headgate.catalog.following import FollowedFeed
from headgate.match.bit_rows import Longs
from headgate.store.log_view import LogView

WINDOW_MIN, WINDOW_MAX = 1 << 11, 1 << 19
CLUSTER_BITS = 16


class ReaderMatches(NamedTuple):
    """Which feed has which item, one element of each array (int64) for each match."""

    feed: Longs
    """The place of the feed in the list that was asked for."""
    position: Longs
    arrived_us: Longs


def reader_matches(
    view: LogView, feeds: Sequence[FollowedFeed], low: int, high: int
) -> ReaderMatches:
    """A source is known by its name in the log, a feed by its number (`store.tail.key_of`)."""
    sources = [place for place, each in enumerate(feeds) if each.kind in SOURCE_KINDS]
    others = [place for place, each in enumerate(feeds) if each.kind not in SOURCE_KINDS]
    others.sort(key=lambda place: feeds[place].number)
    numbers = array_of([feeds[place].number for place in others])
    of_feeds = view.index.matches(numbers, low, high)
    of_sources = view.index.source_matches([feeds[place].kept for place in sources], low, high)
    return ReaderMatches(
        np.concatenate(
            [
                array_of(others)[np.searchsorted(numbers, of_feeds.key)],
                array_of(sources)[of_sources.key],
            ]
        ),
        np.concatenate([of_feeds.position, of_sources.position]),
        np.concatenate([of_feeds.arrived_us, of_sources.arrived_us]),
    )


def windows(start: int, end: int, *, is_ascending: bool) -> Iterator[tuple[int, int]]:
    """The range from one of its ends, in parts that become larger."""
    size = WINDOW_MIN
    while start < end:
        if is_ascending:
            high = min(start + size, end)
            yield start, high
            start = high
        else:
            low = max(end - size, start)
            yield low, end
            end = low
        size = min(2 * size, WINDOW_MAX)


def clusters(positions: Collection[int]) -> list[Longs]:
    """Distinct positions in order, those of a short range together."""
    wanted = np.unique(array_of(positions))
    if not wanted.size:
        return []
    return np.split(wanted, np.flatnonzero(np.diff(wanted >> CLUSTER_BITS)) + 1)


def array_of(numbers: Collection[int]) -> Longs:
    return np.fromiter(numbers, np.int64, len(numbers))
