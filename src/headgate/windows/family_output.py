"""The outputs of a family as flat arrays: items, their partners, their feeds.

    row          0            1
    primary      n1           n2              a row of the item's columns
    partners     p7 p3        p7              rows of the window, the latest item first
    feeds        17 44 9      44              numbers of feeds

One output is one row, whatever the number of its feeds. The order of partners depends on the items
alone: the latest first, then by source and id, as deliver/ writes them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.match.bit_rows import Ints, Longs
from headgate.plan import algebra
from headgate.windows.column_window import ColumnWindow
from headgate.windows.find_pairs import Pairs
from headgate.windows.log_rows import SourceRows

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class FamilyOutput:
    """Outputs of one family: primary items, their partners in the window, their feeds."""

    family: str
    window: ColumnWindow
    primary: SourceRows
    due_us: Longs
    partner_start: Longs
    """Row n has the partners partners[partner_start[n] : partner_start[n + 1]]."""
    partners: Longs
    """Rows of the window, the latest item first."""
    feed_start: Ints
    feeds: Ints
    """Likewise the numbers of the feeds."""

    def with_feeds(self) -> FamilyOutput | None:
        """Only the rows that have feeds; None if there are none."""
        kept = np.flatnonzero(np.diff(self.feed_start))
        if not kept.size:
            return None
        if kept.size == len(self.primary):
            return self
        partner_start, partners = _take_lists(self.partner_start, self.partners, kept)
        # Rows without feeds have none to drop.
        feed_start = np.append(self.feed_start[:-1][kept], self.feed_start[-1:])
        return replace(
            self,
            primary=self.primary.take(kept),
            due_us=self.due_us[kept],
            partner_start=partner_start,
            partners=partners,
            feed_start=feed_start,
        )


def latest_first(pairs: Pairs, found: Longs, window: ColumnWindow) -> tuple[Longs, Longs]:
    """The partners of each lookup in `found`, the latest first, then by source and id; at most
    PARTNERS_MAX of each."""
    times = window.times.array[pairs.rows]
    order = np.lexsort((-times, pairs.lookups))
    lookups, rows, times = pairs.lookups[order], pairs.rows[order], times[order]
    same = (np.diff(lookups) == 0) & (np.diff(times) == 0)
    if same.any():
        _sort_ties(rows, same, window)
    start = np.append(np.searchsorted(lookups, found), rows.size).astype(np.int64)
    sizes = np.diff(start)
    if sizes.size and sizes.max() > algebra.PARTNERS_MAX:
        rank = np.arange(rows.size) - np.repeat(start[:-1], sizes)
        rows = rows[rank < algebra.PARTNERS_MAX]
        np.cumsum(np.minimum(sizes, algebra.PARTNERS_MAX), out=start[1:])
    return start, rows


def _sort_ties(rows: Longs, same: Flags, window: ColumnWindow) -> None:
    """Sort by source and id where the time is the same: same[n] says so of rows n and n + 1."""
    bounds = np.flatnonzero(np.concatenate(([True], ~same, [True]))).tolist()
    for begin, end in pairwise(bounds):
        if end - begin > 1:
            tied = rows[begin:end]
            items = window.rows.items(tied)
            order = sorted(range(end - begin), key=lambda at: (items[at].source, items[at].id))
            rows[begin:end] = tied[order]


def _take_lists(start: Longs, values: Longs, rows: Longs) -> tuple[Longs, Longs]:
    """The lists of these rows, as starts and values."""
    sizes = np.diff(start)[rows]
    new_start = np.zeros(rows.size + 1, np.int64)
    np.cumsum(sizes, out=new_start[1:])
    first = np.repeat(start[rows] - new_start[:-1], sizes)
    return new_start, values[np.arange(first.size) + first]


class FeedLists(NamedTuple):
    """The feeds of slots (SourceJoins), and the instant after which each feed decides."""

    start: Ints  # [slot + 1]
    feeds: Ints
    from_us: Longs  # [feed]


@nb.njit(nogil=True, cache=True)
def write_feeds(rows, slots, lists, due_us, seen, mark, start, out):  # type: ignore[no-untyped-def]
    """In: pairs (rows[n], slots[n]), int64, by row; FeedLists; due_us int64 [row]; seen int64
    [feed], all below `mark`. Out: the feeds of row r are out[start[r] : start[r + 1]] (both
    int32), each once, and only those that decide at its instant. Returns how many there are."""
    used, done = 0, 0
    for entry in range(rows.shape[0]):
        row = rows[entry]
        while done < row:
            done += 1
            start[done] = used
        slot = slots[entry]
        for place in range(lists.start[slot], lists.start[slot + 1]):
            feed = lists.feeds[place]
            if seen[feed] != mark + row and lists.from_us[feed] < due_us[row]:
                seen[feed] = mark + row
                out[used] = feed
                used += 1
    while done < start.shape[0] - 1:
        done += 1
        start[done] = used
    return used
