"""How many items each source has had lately, by stretch of time, and when its last one arrived.

    file of the log ──► postings of its sources ──► (source, stretch, items), kept while the log has
                                                    the file: files never change
    all files       ──► one matrix: sources × stretches

The stretches are as long as the age of the log needs, up to 14 days: a log of an hour is told by
stretches of five minutes, an old one by half days.

Cost: each file is read once, a byte or two for each item; no item is read. Then a request costs an
addition of small arrays for each file. (`recent_counts.py` is exact to the second, for few keys.)
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from headgate.match.batch import microseconds
from headgate.match.bit_rows import Longs
from headgate.store.log_state import LogFile
from headgate.store.log_view import LogView

STRETCHES = 28
WIDTHS_S = (60, 300, 900, 3_600, 10_800, 43_200)
SPAN_S = STRETCHES * WIDTHS_S[-1]
"""The longest time that is told by stretches."""


@dataclass(frozen=True, slots=True, eq=False)
class ActivityOfSource:
    items: int
    """In all that the log has."""
    last_us: int
    """When the last one arrived; −1 if there is none."""
    counts: Longs
    """Items by stretch, the newest last; int64 [STRETCHES]."""


@dataclass(frozen=True, slots=True, eq=False)
class SourceActivity:
    """All sources of a log at an instant."""

    start_us: int
    """When the first stretch begins."""
    width_s: int
    by_source: dict[str, int]
    items: Longs
    last_us: Longs
    counts: Longs
    """int64 [sources, STRETCHES]"""

    def of(self, source: str) -> ActivityOfSource:
        """`source` is the name that is kept."""
        place = self.by_source.get(source)
        if place is None:
            return ActivityOfSource(0, -1, np.zeros(STRETCHES, np.int64))
        return ActivityOfSource(
            int(self.items[place]), int(self.last_us[place]), self.counts[place]
        )


@dataclass(frozen=True, slots=True, eq=False)
class _FileSummary:
    """What one file has of each of its sources; all arrays int64 [sources of the file], but those
    of stretches [pairs]."""

    source: Longs
    items: Longs
    last_us: Longs
    pair_source: Longs
    pair_stretch: Longs
    """Since 1970."""
    pair_items: Longs


class ActivityReader:
    """For one thread at a time."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        """A number for each source that was ever seen."""
        self._summaries: dict[tuple[str, int, int], _FileSummary] = {}
        """By file, width of the stretches, and first row that is not trimmed."""

    def read(self, view: LogView, now: datetime) -> SourceActivity:
        return view.ask(lambda: self._read(view, microseconds(now)))

    @staticmethod
    def nothing(now: datetime) -> SourceActivity:
        """Of a log that is not there yet."""
        width_s, none = WIDTHS_S[0], np.zeros(0, np.int64)
        first = microseconds(now) // (width_s * 1_000_000) - STRETCHES + 1
        counts = np.zeros((0, STRETCHES), np.int64)
        return SourceActivity(first * width_s * 1_000_000, width_s, {}, none, none, counts)

    def _read(self, view: LogView, now_us: int) -> SourceActivity:
        files = view.index.files
        age_s = (now_us - min((each.arrived_us for each in files), default=now_us)) / 1e6
        width_s = next((each for each in WIDTHS_S if each * STRETCHES > age_s), WIDTHS_S[-1])
        first_stretch = now_us // (width_s * 1_000_000) - STRETCHES + 1
        keys = {(file.items, width_s, view.first_row(file)): file for file in files}
        self._summaries = {
            key: self._summaries.get(key) or self._summary(view, file, width_s, key[2])
            for key, file in keys.items()
        }
        items = np.zeros(len(self._numbers), np.int64)
        last_us = np.full(len(self._numbers), -1, np.int64)
        counts = np.zeros((len(self._numbers), STRETCHES), np.int64)
        for each in self._summaries.values():
            items[each.source] += each.items
            last_us[each.source] = np.maximum(last_us[each.source], each.last_us)
            stretch = each.pair_stretch - first_stretch
            shown = (stretch >= 0) & (stretch < STRETCHES)
            np.add.at(counts, (each.pair_source[shown], stretch[shown]), each.pair_items[shown])
        start_us = first_stretch * width_s * 1_000_000
        return SourceActivity(start_us, width_s, dict(self._numbers), items, last_us, counts)

    def _summary(self, view: LogView, file: LogFile, width_s: int, first: int) -> _FileSummary:
        segment = view.index.segment(file)
        for name in segment.source_names:
            self._numbers.setdefault(name, len(self._numbers))
        source = np.array([self._numbers[name] for name in segment.source_names], np.int64)
        keys, rows = segment.sources.pairs()
        keys, rows = keys[rows >= first], rows[rows >= first]
        arrived_us = segment.runs.arrivals(rows)
        stretch = arrived_us // (width_s * 1_000_000)
        last_us = np.full(source.size, -1, np.int64)
        np.maximum.at(last_us, keys, arrived_us)
        lowest = int(stretch.min()) if stretch.size else 0
        wide = int(stretch.max()) - lowest + 1 if stretch.size else 1
        pairs = np.bincount(keys * wide + stretch - lowest, minlength=1)
        used = np.flatnonzero(pairs)
        return _FileSummary(
            source=source,
            items=np.bincount(keys, minlength=source.size).astype(np.int64),
            last_us=last_us,
            pair_source=source[used // wide] if source.size else used,
            pair_stretch=used % wide + lowest,
            pair_items=pairs[used].astype(np.int64),
        )
