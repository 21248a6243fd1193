"""Failures of operators: their kinds and counts, and the circuit breaker. One failure is one item.

An operator that hangs costs its time limit and a new process for each item, and one that raises
after a second of waiting for a database costs that second. If it always fails, the stream must not
wait for it each time. So a breaker for each operator stops calling it for a while:

    closed ── so many failures in a row ──► open ── after a pause ──► probing: one item
      ▲                                       ▲                          │
      └── an answer ──────────────────────────┼──────────────────────────┤
                                              └── a failure: twice the pause

Only failures *in a row* count: an operator that fails on every second item is called for each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from headgate.model.errors import printable

MESSAGE_LENGTH_MAX = 500


class Failure(StrEnum):
    RAISED = "raised"
    """It raised an exception."""
    WRONG = "wrong answer"
    """Its answer is not of the form or the types that it should have."""
    LATE = "late"
    """It took longer than it may; its process was killed."""
    DIED = "died"
    """Its process ended: a crash in C, no memory, a call of `exit`."""
    PAUSED = "paused"
    """It was not called, as it had failed too often in a row."""
    NOT_LOADED = "not loaded"
    """There is no function to call."""


FailureCounts = dict[Failure, tuple[int, str]]
"""The number of items, and the last message."""


@dataclass(slots=True)
class Failures:
    """The failures of one operator."""

    counts: dict[Failure, int] = field(default_factory=dict)
    last: str = ""

    def add(self, failure: Failure, count: int, message: str) -> None:
        self.counts[failure] = self.counts.get(failure, 0) + count
        # The message of the failure before the pause is the useful one.
        if failure is not Failure.PAUSED or not self.last:
            self.last = short(message)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def to_json(self) -> dict[str, object]:
        return {"counts": {str(each): count for each, count in self.counts.items()}} | (
            {"last": self.last} if self.last else {}
        )

    def merge(self, report: Mapping[str, object]) -> None:
        """Add the counts of another process."""
        counts, last = report.get("counts"), report.get("last")
        assert isinstance(counts, Mapping)
        for name, count in counts.items():
            self.add(Failure(name), int(count), str(last or self.last))


def short(message: str) -> str:
    """The message on one line and of a bounded length; an operator may say anything."""
    text = printable(message[: 2 * MESSAGE_LENGTH_MAX]).strip()
    return text if len(text) <= MESSAGE_LENGTH_MAX else text[: MESSAGE_LENGTH_MAX - 1] + "…"


STOPS_MAX = 3
"""So many failures in a row that need a new process open the breaker …"""
FAILURES_MAX = 100
"""… and so many failures in a row of any kind."""
PAUSE_MIN_S, PAUSE_MAX_S = 1.0, 60.0


class Breaker:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = self._stops = 0
        self._pause_s = PAUSE_MIN_S
        self._open_until = 0.0
        self._probing = False

    @property
    def paused(self) -> bool:
        return self._clock() < self._open_until

    @property
    def probing(self) -> bool:
        """The pause is over, and nothing has been answered since: try one item."""
        return self._probing and not self.paused

    def answered(self) -> None:
        self._failures = self._stops = 0
        self._pause_s, self._probing = PAUSE_MIN_S, False

    def failed(self, count: int = 1, *, stopped: bool = False) -> None:
        self._failures += count
        self._stops += stopped
        if self._probing or self._failures >= FAILURES_MAX or self._stops >= STOPS_MAX:
            self._open_until = self._clock() + self._pause_s
            self._pause_s = min(2 * self._pause_s, PAUSE_MAX_S)
            self._probing = True
