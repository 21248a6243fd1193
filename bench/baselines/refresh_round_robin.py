"""The baseline of refresh.py: all feeds one after the other, whatever they publish."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class RoundRobin:
    """Every feed waits as long as every other one."""

    def __init__(self, feeds: Iterable[str], *, interval_min_s: float = 300.0) -> None:
        self._interval_min_s = interval_min_s
        self._queue = deque((feed, 0.0) for feed in feeds)

    def next_due(self, now: float, budget: int) -> list[str]:
        """The feeds that were fetched longest ago, at most so many."""
        due: list[str] = []
        while len(due) < budget and self._queue and self._queue[0][1] <= now:
            feed, _ = self._queue.popleft()
            self._queue.append((feed, now + self._interval_min_s))
            due.append(feed)
        return due
