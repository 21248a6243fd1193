"""The items of a window: rows in the order of arrival, indexes on them, and their expiry.

    row       0     1     2     3
    items     a     b     c     d          an item is held by reference, by any number of windows
    times     8:00  8:05  7:59  8:07       event time: the order of the window
    arrived   8:10  8:10  8:10  8:20       a lookup at 8:12 does not see row 3

A primary item p that is decided at D sees (stage.py has the invariant)

    u = max(time of p, D − retention − lateness)    of the window at u, those with time ≤ time of p

For a time window that is a range of times. For the `last n items` it is the n greatest by position
until u: rows are also sorted by position, and the first of the n gives the range; rows with the
same time may be before it, which is tested for each candidate.

**Expiry.** After instant m no lookup goes back beyond m − kept − size, or, for the last n items,
beyond the n greatest until m − kept. Older rows are expired, and lookups skip them. When half of
all rows are expired, the others are renumbered. So expiry costs O(1) per row, amortised; the median
of times says when to check again.

Rejected: a tree by time (each removal would go through every index); buckets of time with indexes
of their own (each lookup would visit all buckets, and a window of three months would expire by
days); removing rows one by one (chains would need links in both directions)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

import numpy as np

from headgate.match.bit_rows import Longs
from headgate.model.duration import Duration, WindowSize
from headgate.model.items import Item
from headgate.windows.access_path import EqualTo, OrderedBy, Path, SimilarTo
from headgate.windows.arrivals import NEVER_US, SECOND_US, Element, Position, position
from headgate.windows.find_pairs import Pairs, WindowBounds
from headgate.windows.growing_array import GrowingArray
from headgate.windows.similar_index import SimilarIndex
from headgate.windows.value_indexes import EqualityIndex, OrderedWindowIndex

FOREVER_US = 2**62
Index = EqualityIndex | SimilarIndex | OrderedWindowIndex


class WindowState:
    """The items of one window with their indexes."""

    def __init__(self, size: WindowSize, *, kept_us: int) -> None:
        self.kept_us = kept_us
        self.size_us = size.seconds * SECOND_US if isinstance(size, Duration) else None
        self.count = 0 if isinstance(size, Duration) else size.count
        self.items: list[Item] = []
        self.times = GrowingArray(np.int64)
        self.arrived = GrowingArray(np.int64)
        self.equal: dict[str, EqualityIndex] = {}
        self.similar: dict[str, SimilarIndex] = {}
        self.ordered: dict[str, OrderedWindowIndex] = {}
        self._order: list[tuple[Position, int]] = []
        self._recent: list[int] = []
        self._median_us = NEVER_US

    @property
    def indexes(self) -> list[Index]:
        return [*self.equal.values(), *self.similar.values(), *self.ordered.values()]

    def prepare(self, path: Path) -> None:
        """Create the index that the path needs, before the first row."""
        assert not self.items, "indexes are made before the window is filled"
        match path:
            case EqualTo(_, name):
                self.equal.setdefault(name, EqualityIndex(name))
            case OrderedBy(_, _, name):
                self.ordered.setdefault(name, OrderedWindowIndex(name))
            case SimilarTo(_, name, threshold):
                index = self.similar.setdefault(name, SimilarIndex(name, threshold))
                index.lower_threshold(threshold)

    def insert(self, elements: Sequence[Element]) -> None:
        """Add items that arrived since the last call."""
        self._recent = []
        if self.size_us is not None:
            span = self.size_us + self.kept_us
            elements = [each for each in elements if each.time_us > each.arrived_us - span]
        items = [each.item for each in elements]
        if self.size_us is None:
            for row, item in enumerate(items, len(self.items)):
                insort(self._order, (position(item), row))
                self._recent.append(row)
        self.items += items
        self.times.extend([each.time_us for each in elements], len(items))
        self.arrived.extend([each.arrived_us for each in elements], len(items))
        for index in self.indexes:
            index.insert([item.attributes.get(index.attribute) for item in items])

    def bounds(self, decided: Sequence[Element]) -> tuple[WindowBounds, list[Position | None]]:
        """The bounds of the window for each primary item; for the last n items also the position of
        the first of them, if there are n."""
        positions: list[Position | None] = [None] * len(decided)
        low: list[int] = []
        for lookup, element in enumerate(decided):
            until = max(element.time_us, element.due_us - self.kept_us)
            if self.size_us is not None:
                low.append(until - self.size_us)
                continue
            positions[lookup] = first = self._first_of_last(until, element.due_us)
            low.append(NEVER_US if first is None else first[0] - 1)
        bounds = WindowBounds(
            np.array(low, np.int64),
            np.array([each.time_us for each in decided], np.int64),
            np.array([each.due_us for each in decided], np.int64),
            self.times.array,
            self.arrived.array,
        )
        return bounds, positions

    def _first_of_last(self, until_us: int, instant_us: int) -> Position | None:
        """The first of the last n items until some time that had arrived by an instant."""
        end = bisect_left(self._order, ((until_us + 1,),))
        start = end - self.count
        arrived = self.arrived.array
        # Only rows of the last insertion can have arrived after the instant.
        later = [(position(self.items[r]), r) for r in self._recent if arrived[r] > instant_us]
        for entry in sorted(later, reverse=True):
            place = bisect_left(self._order, entry)
            start -= start <= place < end
        return self._order[start][0] if start >= 0 else None

    def in_order(self, pairs: Pairs, positions: Sequence[Position | None]) -> Pairs:
        """The pairs without those whose row comes before the first of the last n items."""
        if self.size_us is not None:
            return pairs
        times = self.times.array[pairs.rows].tolist()
        kept = [
            # Only rows with the same time can be before the first one.
            (first := positions[lookup]) is None
            or time > first[0]
            or position(self.items[row]) >= first
            for lookup, row, time in zip(*(each.tolist() for each in pairs), times, strict=True)
        ]
        within = np.array(kept, bool)
        return Pairs(pairs.lookups[within], pairs.rows[within])

    def expire(self, instant_us: int) -> None:
        """Drop expired rows, if they are many; everything until this instant is decided."""
        rows = len(self.items)
        if self.size_us is None:
            end = bisect_left(self._order, ((instant_us - self.kept_us + 1,),))
            dead = max(0, end - self.count)
            if 2 * dead > rows:
                self._keep(np.sort(np.array([row for _, row in self._order[dead:]], np.int64)))
            return
        bound = instant_us - self.kept_us - self.size_us
        if rows == 0 or bound < self._median_us:
            return
        times = self.times.filled
        alive = np.flatnonzero(times > bound)
        if 2 * alive.size <= rows:
            self._keep(alive)
            times = self.times.filled
        self._median_us = int(np.median(times)) + 1 if times.size else NEVER_US

    def _keep(self, rows: Longs) -> None:
        self.items = [self.items[row] for row in rows.tolist()]
        self.times.replace(self.times.array[rows])
        self.arrived.replace(self.arrived.array[rows])
        if self.size_us is None:
            self._order = sorted((position(item), row) for row, item in enumerate(self.items))
            self._recent = []
        for index in self.indexes:
            index.keep(rows)

    def is_complete(self, instant_us: int, uncertain_us: int) -> bool:
        """Whether no later lookup sees rows with a time until `uncertain_us`, which may be wrong or
        missing."""
        if uncertain_us <= NEVER_US:
            return True
        cut = instant_us - self.kept_us
        if self.size_us is not None:
            return uncertain_us <= cut - self.size_us
        first = self._first_of_last(cut, instant_us)
        return first is not None and first[0] > uncertain_us
