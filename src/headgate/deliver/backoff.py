"""When to try again: later each time, and not all at the same moment.

    failures   1      2      3      4      5    …   cap
    wait      30 s   60 s    2 min  4 min  8 min    6 h      times a random factor from 0.5 to 1

The factor keeps a thousand subscriptions to one receiver from coming back together. What the
receiver says itself (Retry-After) counts if it is longer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import random


@dataclass(frozen=True, slots=True)
class Backoff:
    first_s: float = 30.0
    max_s: float = 6 * 3_600.0
    chance: Callable[[], float] = random

    def wait_s(self, failures: int, retry_after_s: float | None = None) -> float:
        """
        >>> Backoff(chance=lambda: 1.0).wait_s(3)
        120.0
        """
        doubled = min(self.max_s, self.first_s * 2.0 ** min(max(failures - 1, 0), 60))
        return max(doubled * (0.5 + 0.5 * self.chance()), retry_after_s or 0.0)
