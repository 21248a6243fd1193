"""What the parts of a run share: settings, counters, and the context that connects them.

    Run ── makes ──► RunContext ◄── BatchRunner, MaterialiseStage, joins, Dispatcher

The parts know the context and not each other: all that they have in common is the log (run_log.py).
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from headgate.catalog.catalog import Catalog
from headgate.deliver.settings import DeliverySettings
from headgate.pipeline.delivery import Where
from headgate.pipeline.feed_budget import DEFAULT_RULES, BudgetRules, FeedBudget
from headgate.pipeline.methods import DEFAULT_METHODS, Methods
from headgate.pipeline.operator_stage import RULES, OperatorLedger, OperatorRules
from headgate.pipeline.planner import CurrentPlans, Planner
from headgate.pipeline.run_log import RunLog
from headgate.store.data_folder import DataFolder
from headgate.windows.stage import LATENESS_DEFAULT_S

RECENT_S = 10.0
LATENCIES_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Tally:
    """The counters of a run at one instant."""

    batches: int = 0
    items: int = 0
    matched: int = 0
    matches: int = 0
    joined: int = 0
    items_per_s: float = 0.0
    latency_p50_ms: float = 0.0
    latency_p99_ms: float = 0.0
    by_source: dict[str, int] = field(default_factory=dict)
    finished_s: dict[str, float] = field(default_factory=dict)
    """For each query when its last batch was finished, in seconds since 1970."""
    batch_s: dict[str, float] = field(default_factory=dict)
    """For each query how long its last batch took."""
    by_query: dict[str, int] = field(default_factory=dict)
    """Items of each query."""


class Meters:
    """Thread-safe. Rates are those of the last ten seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._by_source: Counter[str] = Counter()
        self._recent: deque[tuple[float, int]] = deque()
        self._latencies: deque[float] = deque(maxlen=LATENCIES_KEPT)
        self._finished_s: dict[str, float] = {}
        self._batch_s: dict[str, float] = {}
        self._by_query: Counter[str] = Counter()

    def add(self, **counts: int) -> None:
        with self._lock:
            self._counts.update(counts)

    def add_batch(
        self, sources: Iterable[tuple[str, int]], *, seconds: float, query: str = ""
    ) -> None:
        now = time.monotonic()
        with self._lock:
            self._finished_s[query], self._batch_s[query] = time.time(), seconds
            for source, items in sources:
                self._by_source[source] += items
                self._by_query[query] += items
                self._counts["items"] += items
                self._recent.append((now, items))
            self._counts["batches"] += 1
            self._latencies.append(seconds)

    def add_items(self, sources: Mapping[str, int]) -> None:
        """Items that a stage has made."""
        with self._lock:
            self._by_source.update(sources)
            self._counts["items"] += sum(sources.values())

    def tally(self) -> Tally:
        now = time.monotonic()
        with self._lock:
            while self._recent and self._recent[0][0] < now - RECENT_S:
                self._recent.popleft()
            rate = sum(items for _, items in self._recent) / RECENT_S
            ordered = sorted(self._latencies)
            counts, by_source = dict(self._counts), dict(self._by_source)
            finished_s, batch_s = dict(self._finished_s), dict(self._batch_s)
            by_query = dict(self._by_query)
        return Tally(
            **{name: counts[name] for name in _COUNTED if name in counts},
            items_per_s=rate,
            latency_p50_ms=1e3 * quantile(ordered, 0.50),
            latency_p99_ms=1e3 * quantile(ordered, 0.99),
            by_source=by_source,
            finished_s=finished_s,
            batch_s=batch_s,
            by_query=by_query,
        )


_COUNTED = ("batches", "items", "matched", "matches", "joined")


def quantile(ordered: list[float], share: float) -> float:
    """
    >>> quantile([1.0, 2.0, 3.0], 0.5)
    2.0
    """
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What the operator of a run decides."""

    folder: Path
    deliver: DeliverySettings
    log: str = ""
    """The address of the log (store/open_storage.py); empty for the folder."""
    base: Path | None = None
    """The folder that statements may read files from; without one, they read none."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the sources: allow, budget, interval_min_s, … (pipeline/sources/)."""
    store_days: int = 30
    lateness_s: float = LATENESS_DEFAULT_S
    """How long window joins wait for late items (windows/stage.py)."""
    operators: OperatorRules = RULES
    """The order in it is replaced by that of `methods`."""
    methods: Methods = DEFAULT_METHODS
    budget: BudgetRules = DEFAULT_RULES
    """What a feed may cost before it is suspended (feed_budget.py)."""
    deliver_in: Where = "thread"
    """Where deliveries are made (delivery.py); a process needs `catalog_url`."""
    catalog_url: str = ""
    state: str = ""
    """The delivery database; by default a file in the folder, PostgreSQL where workers run on
    several hosts."""

    @property
    def operator_rules(self) -> OperatorRules:
        """How this run calls operators, and in which order."""
        return replace(self.operators, order=self.methods.operator_order)


def _ignore(_text: str) -> None:
    """Progress that nobody shows."""


@dataclass(slots=True, eq=False)
class RunContext:
    """Made once by Run. All members are safe for all threads of the run."""

    folder: DataFolder
    catalog: Catalog
    planner: Planner
    log: RunLog
    ledger: OperatorLedger
    operators: OperatorRules = RULES
    budget: FeedBudget = field(default_factory=lambda: FeedBudget(cores=1))
    meters: Meters = field(default_factory=Meters)
    note: Callable[[str], None] = _ignore
    """Called with a line of progress on long work."""
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def plans(self) -> CurrentPlans:
        """What is registered now, as the data path needs it."""
        return self.planner.current
