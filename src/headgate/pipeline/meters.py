"""What a run counts while it runs: for the display, the summary and Prometheus."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

RECENT_S = 10.0
LATENCIES_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Tally:
    """How far a run has come."""

    batches: int = 0
    items: int = 0
    matched: int = 0
    matches: int = 0
    joined: int = 0
    put: int = 0
    sent: int = 0
    failed: int = 0
    items_per_s: float = 0.0
    latency_p50_ms: float = 0.0
    latency_p99_ms: float = 0.0
    by_source: dict[str, int] = field(default_factory=dict)


class Meters:
    """Thread-safe. Rates are those of the last ten seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._by_source: Counter[str] = Counter()
        self._recent: deque[tuple[float, int]] = deque()
        self._latencies: deque[float] = deque(maxlen=LATENCIES_KEPT)

    def add(self, **counts: int) -> None:
        with self._lock:
            self._counts.update(counts)

    def add_batch(self, sources: Iterable[tuple[str, int]], *, seconds: float) -> None:
        now = time.monotonic()
        with self._lock:
            for source, items in sources:
                self._by_source[source] += items
                self._counts["items"] += items
                self._recent.append((now, items))
            self._counts["batches"] += 1
            self._latencies.append(seconds)

    def tally(self) -> Tally:
        now = time.monotonic()
        with self._lock:
            while self._recent and self._recent[0][0] < now - RECENT_S:
                self._recent.popleft()
            rate = sum(items for _, items in self._recent) / RECENT_S
            ordered = sorted(self._latencies)
            counts, by_source = dict(self._counts), dict(self._by_source)
        return Tally(
            **{name: counts[name] for name in _COUNTED if name in counts},
            items_per_s=rate,
            latency_p50_ms=1e3 * quantile(ordered, 0.50),
            latency_p99_ms=1e3 * quantile(ordered, 0.99),
            by_source=by_source,
        )


_COUNTED = ("batches", "items", "matched", "matches", "joined", "put", "sent", "failed")


def quantile(ordered: list[float], share: float) -> float:
    """
    >>> quantile([1.0, 2.0, 3.0], 0.5)
    2.0
    """
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0
