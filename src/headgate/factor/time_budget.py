"""A limit on the time of an optimiser, which checks it between its steps and gives up in time."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field


class TimeBudgetExceeded(Exception):
    """An optimiser did not finish within its time budget and has no result."""


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """A number of seconds, counted from the construction of this object."""

    seconds: float
    _began: float = field(default_factory=time.perf_counter)

    def left_s(self) -> float:
        return self.seconds - (time.perf_counter() - self._began)

    def check(self, task: str) -> None:
        if self.left_s() < 0:
            raise TimeBudgetExceeded(f"{task} did not end within {self.seconds:g} s")


UNLIMITED = TimeBudget(math.inf)
