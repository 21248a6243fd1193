"""The schedule of the demo: when item n of a feed is published, and which item is the newest.

Invariant: publication times increase with n, and the distance between two neighbours is between
half a gap and one and a half gaps.

    n            7         8         9         10            each item has a time slot and is
    slot     |---------|---------|---------|---------|       published in the first half of it
    item       ^       ^            ^        ^

A gap is a number of seconds, divided by the pace. Slots are counted from 1970, not from the start
of the server, so that item numbers go on increasing after a restart.

Cost: a few hashes for any n. Rejected: a running sum of random gaps, because the time of item n
would then depend on all earlier items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from headgate.demo.stories import PLACES, Place, TourStops

TOUR_STOP_S = 60.0
"""The time that Muse stay in one city, in seconds at pace 1."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The seed of all texts, and the speed of publication: pace 2 publishes twice as often."""

    seed: int = 0
    pace: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.pace) and self.pace > 0):
            raise ValueError(f"a pace is a number above 0, not {self.pace}")

    def random(self, name: str, number: int) -> Random:
        """The random generator of one item; equal arguments give equal generators."""
        return Random(f"{self.seed}/{name}/{number}")

    def published_s(self, name: str, gap_s: float, number: int) -> float:
        """The publication time in seconds since 1970."""
        delay = self.random(f"delay/{name}", number).random() / 2
        return (number + delay) * gap_s / self.pace

    def published(self, name: str, gap_s: float, number: int) -> datetime:
        """The publication time rounded down to whole seconds, the resolution of RFC 822."""
        return datetime.fromtimestamp(math.floor(self.published_s(name, gap_s, number)), UTC)

    def latest(self, name: str, gap_s: float, now_s: float) -> int:
        """The number of the newest item that is published at `now_s`."""
        number = int(now_s * self.pace / gap_s) + 1
        while self.published_s(name, gap_s, number) > now_s:
            number -= 1
        return number

    def tour_stops(self, gap_s: float, number: int) -> TourStops:
        """The stops at the time of this item; equal for all feeds at the same time."""
        stop = int(number * gap_s / TOUR_STOP_S)
        return TourStops(self._place(stop), self._place(stop + 1))

    def _place(self, stop: int) -> Place:
        return PLACES[(stop + self.seed) % len(PLACES)]
