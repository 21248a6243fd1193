"""The input and output types of the join stage, and instants as integers of microseconds.

Microseconds are exact, compare fast, and do not end at the year 9999: the end of a window or the
instant of a decision may lie outside the range of `datetime`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from headgate.match.batch import EPOCH, microseconds
from headgate.model.items import Item

SECOND_US = 1_000_000
NEVER_US = -(2**62)
"""Before every instant."""
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_FIRST_US, _LAST_US = microseconds(_FIRST), microseconds(_LAST)


@dataclass(frozen=True, slots=True)
class Arrival:
    """An item and the instant of its arrival, which is recorded before its first use, so that every
    replay has the same."""

    item: Item
    arrived: datetime


@dataclass(frozen=True, slots=True)
class FeedOutput:
    """An item with its annotations, the feeds that output it, and the instant of the decision."""

    feeds: tuple[str, ...]
    item: Item
    decided_at: datetime


class Element(NamedTuple):
    """An item in the graph, with its event time, its arrival and the instant of its decision."""

    item: Item
    time_us: int
    arrived_us: int
    due_us: int


Position = tuple[int, str, str, list[object]]


def position(item: Item) -> Position:
    """The sort key of an item in its stream, which orders a window of `last n items`."""
    entries = sorted((each.join, sorted(map(position, each.items))) for each in item.annotations)
    return microseconds(item.time), item.source, item.id, [*entries]


def instant_of(us: int) -> datetime:
    """The instant as a `datetime`, clipped to the range of `datetime`.

    >>> instant_of(1_500_000).isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    """
    if us <= _FIRST_US:
        return _FIRST
    return _LAST if us >= _LAST_US else EPOCH + timedelta(microseconds=us)
