"""What a run of deliveries did, in numbers and in the words of its errors."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

ERRORS_MAX = 100


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong for one subscription."""

    subscription: int
    error: str


@dataclass(slots=True)
class Report:
    """Filled by all workers. Deliveries are counted, not messages.

    `postponed` counts subscriptions whose time has not come, `unfinished` those with more to do.
    """

    runs: int = 0
    sent: int = 0
    failed: int = 0
    dead: int = 0
    postponed: int = 0
    unfinished: int = 0
    files_written: int = 0
    recovered: int = 0
    sent_by_kind: Counter[str] = field(default_factory=Counter)
    errors: list[Failure] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, **counts: int) -> None:
        with self._lock:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)

    def add_sent(self, kind: str, count: int) -> None:
        with self._lock:
            self.sent += count
            self.sent_by_kind[kind] += count

    def add_error(self, subscription: int, error: str) -> None:
        """The first hundred are kept; `failed` and `dead` count all."""
        with self._lock:
            if len(self.errors) < ERRORS_MAX:
                self.errors.append(Failure(subscription, error))
