"""How many items some feeds and sources have: in all, in the last day, in the last hour; and when
the last one arrived.

    files, newest first ──► postings of these keys ──► of an old file they are counted,
                                                       of a file of the last day decoded

Cost: a binary search for each key in the segment of each file, and the postings of these keys,
about a byte for each item. No item is read. (`stats.py` reads all postings, for all feeds.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from headgate.match.batch import instant_at, microseconds
from headgate.store.log_state import LogFile
from headgate.store.log_view import LogView
from headgate.store.postings import Postings

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@dataclass(slots=True)
class RecentCounts:
    items: int = 0
    last_day: int = 0
    last_hour: int = 0
    last_us: int = -1
    """When the last one arrived; −1 if there is none."""

    @property
    def last_arrived(self) -> datetime | None:
        return None if self.last_us < 0 else instant_at(self.last_us)


def count_recent(
    view: LogView, keys: Sequence[int | str], now: datetime
) -> dict[int | str, RecentCounts]:
    """The counts of feeds (by number) and sources (by name)."""

    def count() -> dict[int | str, RecentCounts]:
        counts = {key: RecentCounts() for key in keys}
        for file in sorted(view.index.files, key=lambda each: -each.end):
            _add_file(view, file, counts, now)
        return counts

    return view.ask(count)


def _add_file(
    view: LogView, file: LogFile, counts: dict[int | str, RecentCounts], now: datetime
) -> None:
    segment = view.index.segment(file)
    first = view.first_row(file)
    day, hour = (view.first_row(file, since_us=microseconds(now - span)) for span in (DAY, HOUR))
    is_old = first == 0 and day == file.rows
    newest_us = int(segment.runs.arrived_us[-1])
    sources = {name: n for n, name in enumerate(segment.source_names) if name in counts}
    for key, found in counts.items():
        postings: Postings = segment.sources if isinstance(key, str) else segment.feeds
        number = sources.get(key, -1) if isinstance(key, str) else key
        if is_old and found.last_us >= newest_us:
            found.items += postings.count(number)
            continue
        rows = postings.rows(number, first=first)
        if rows.size:
            found.items += rows.size
            found.last_day += int(rows.size - np.searchsorted(rows, day))
            found.last_hour += int(rows.size - np.searchsorted(rows, hour))
            found.last_us = max(found.last_us, int(segment.runs.arrivals(rows[-1:])[0]))


def count_items(view: LogView, keys: Sequence[int | str]) -> int:
    """How many items these feeds and sources have, all of them together."""
    total = 0
    for file in view.index.files:
        segment, first = view.index.segment(file), view.first_row(file)
        numbers = {name: number for number, name in enumerate(segment.source_names)}
        for key in keys:
            postings = segment.sources if isinstance(key, str) else segment.feeds
            number = numbers.get(key, -1) if isinstance(key, str) else key
            total += (
                postings.count(number) if not first else postings.rows(number, first=first).size
            )
    return total
