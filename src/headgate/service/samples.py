"""Samples of sources, kept for a moment: somebody who types asks for the same one with each key.

    key of the source ──► its newest items, read once for all that ask within KEPT_S
                          (who wants fewer gets the newest ones of them)

A sample is of the log, not of a tenant: who may see the source is asked before.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from headgate.api.value_rates import SAMPLE_MAX, SourceSample, sample_of
from headgate.service.log_access import LogAccess

KEPT_S = 20.0
SAMPLES_MAX = 60
ITEMS_MAX = 20_000
"""Of all samples together: an item is some kilobytes."""


@dataclass(slots=True)
class _KeptSample:
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held by who reads it; others wait for what it finds."""
    sample: SourceSample | None = None
    size: int = 0
    """How many items were asked for."""
    read_at: float = 0.0


class SampleMemory:
    """Thread-safe."""

    def __init__(self, log: LogAccess) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._kept: OrderedDict[int | str, _KeptSample] = OrderedDict()

    def sample(self, key: int | str, *, size: int = SAMPLE_MAX) -> SourceSample:
        """The newest items of a source (by kept name) or feed (by number)."""
        kept = self._entry(key)
        with kept.lock:
            sample = kept.sample
            if sample is None or kept.size < size or time.monotonic() - kept.read_at > KEPT_S:
                with self._log.searching() as view:
                    sample = sample_of(view, key, datetime.now(UTC), size=size)
                kept.sample, kept.size, kept.read_at = sample, size, time.monotonic()
        self._trim()
        return replace(sample, items=sample.items[-size:])

    def _entry(self, key: int | str) -> _KeptSample:
        with self._lock:
            kept = self._kept.setdefault(key, _KeptSample())
            self._kept.move_to_end(key)
            return kept

    def _trim(self) -> None:
        """Forget old samples, and the least recently used ones where there are too many."""
        now = time.monotonic()
        with self._lock:
            items = sum(_size(each) for each in self._kept.values())
            for key, kept in list(self._kept.items()):
                is_old = kept.read_at and now - kept.read_at > KEPT_S
                if is_old or len(self._kept) > SAMPLES_MAX or items > ITEMS_MAX:
                    items -= _size(kept)
                    del self._kept[key]


def _size(kept: _KeptSample) -> int:
    return len(kept.sample.items) if kept.sample else 0
