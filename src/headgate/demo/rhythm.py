"""When the n-th item of a feed is published, and which one is the newest by now.

Law: times grow with n, and two of them are half a gap to one and a half gaps apart.

    n            7         8         9         10            each item has its own slot,
    slot     |---------|---------|---------|---------|       in whose first half it comes
    item       ^       ^            ^        ^

A gap is so many seconds, divided by the pace. Slots are counted from 1970, not from the start of
the newsroom: a reader that comes back after a restart finds numbers that it has not seen.

Cost: a few hashes, whatever n is. Rejected: gaps of random length, one added to the other, which
would need all earlier ones to know the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from headgate.demo.texts import Scene
from headgate.demo.words import PLACES, Place

SCENE_S = 60.0
"""How long Muse stay in a city, in seconds at pace 1."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The seed of all texts, and how much faster than in the demo everything comes."""

    seed: int = 0
    pace: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.pace) and self.pace > 0):
            raise ValueError(f"a pace is a number above 0, not {self.pace}")

    def random(self, name: str, number: int) -> Random:
        """The randomness of one item: the same each time."""
        return Random(f"{self.seed}/{name}/{number}")

    def published_s(self, name: str, gap_s: float, number: int) -> float:
        """Seconds since 1970."""
        delay = self.random(f"delay/{name}", number).random() / 2
        return (number + delay) * gap_s / self.pace

    def published(self, name: str, gap_s: float, number: int) -> datetime:
        """In whole seconds, as RFC 822 has no others; never later than the moment itself."""
        return datetime.fromtimestamp(math.floor(self.published_s(name, gap_s, number)), UTC)

    def latest(self, name: str, gap_s: float, now_s: float) -> int:
        """The number of the newest item."""
        number = int(now_s * self.pace / gap_s) + 1
        while self.published_s(name, gap_s, number) > now_s:
            number -= 1
        return number

    def scene(self, gap_s: float, number: int) -> Scene:
        """The same for all feeds at one time, whatever their gaps."""
        at = int(number * gap_s / SCENE_S)
        return Scene(self._place(at), self._place(at + 1))

    def _place(self, at: int) -> Place:
        return PLACES[(at + self.seed) % len(PLACES)]
