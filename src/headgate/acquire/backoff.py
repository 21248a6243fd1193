"""When to try again after a failure: exponential backoff with jitter.

    failures   1      2      3      4      5    …   max
    wait      30 s   60 s    2 min  4 min  8 min    6 h      times a factor in `spread`

The random factor keeps a thousand subscriptions of one receiver, or feeds of one host, from being
retried together. A `Retry-After` of the server is used if it is longer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import random


@dataclass(frozen=True, slots=True)
class Backoff:
    first_s: float = 30.0
    max_s: float = 6 * 3_600.0
    spread: tuple[float, float] = (0.5, 1.0)
    chance: Callable[[], float] = random

    def wait_s(
        self, failures: int, retry_after_s: float | None = None, *, chance: float | None = None
    ) -> float:
        """The wait after `failures` failures in a row; `chance` (0 to 1) chooses the factor.

        >>> Backoff(chance=lambda: 1.0).wait_s(3)
        120.0
        """
        low, high = self.spread
        factor = low + (high - low) * (self.chance() if chance is None else chance)
        doubled_s = min(self.max_s, self.first_s * 2.0 ** min(max(failures - 1, 0), 60))
        return max(doubled_s * factor, retry_after_s or 0.0)
