"""When an operator is left alone for a while: a circuit breaker.

An operator that hangs costs its time limit and a new process for each item, and one that raises
after a second of waiting for a database costs that second. If it fails always, the stream must not
wait for it each time.

    closed ── so many failures in a row ──► open ── after a pause ──► probing: one item
      ▲                                       ▲                          │
      └── an answer ──────────────────────────┼──────────────────────────┤
                                              └── a failure: twice the pause

Only failures *in a row* count: an operator that fails on every second item is asked every item.
"""

from __future__ import annotations

import time
from collections.abc import Callable

STOPS_MAX = 3
"""In a row, of what needs a new process."""
FAILURES_MAX = 100
"""In a row, of whatever kind."""
PAUSE_S, PAUSE_MAX_S = 1.0, 60.0


class Breaker:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = self._stops = 0
        self._pause_s = PAUSE_S
        self._open_until = 0.0
        self._probing = False

    @property
    def paused(self) -> bool:
        return self._clock() < self._open_until

    @property
    def probing(self) -> bool:
        """The pause is over, but nothing has been answered since: one item is to be tried."""
        return self._probing and not self.paused

    def answered(self) -> None:
        self._failures = self._stops = 0
        self._pause_s, self._probing = PAUSE_S, False

    def failed(self, count: int = 1, *, stopped: bool = False) -> None:
        self._failures += count
        self._stops += stopped
        if self._probing or self._failures >= FAILURES_MAX or self._stops >= STOPS_MAX:
            self._open_until = self._clock() + self._pause_s
            self._pause_s = min(2 * self._pause_s, PAUSE_MAX_S)
            self._probing = True
