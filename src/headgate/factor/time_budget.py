"""How long an optimiser may take: it looks at the clock between its steps, and gives up in time."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field


class TimeBudgetExceeded(Exception):
    """There was no time to finish; nothing is returned."""


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """So many seconds, from when it is made."""

    seconds: float
    _began: float = field(default_factory=time.perf_counter)

    def left_s(self) -> float:
        return self.seconds - (time.perf_counter() - self._began)

    def check(self, what: str) -> None:
        if self.left_s() < 0:
            raise TimeBudgetExceeded(f"{what} did not end within {self.seconds:g} s")


UNLIMITED = TimeBudget(math.inf)
