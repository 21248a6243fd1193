"""What each feed takes while it runs, and which feeds are suspended because they take too much.

    tasks ── costs by feed, items ──► FeedBudget ── over budget ──► catalog: suspended, with reason
                                                                        │ planner
                                                                        ▼
                                      the next snapshot is without the feed, and mutes its atoms

A feed is over its budget if, in the last minute, it has taken

    more than SHARE of the CPU time that the cores of the run have, and
    more than `cpu_us_min` for each item that was read

The second condition keeps feeds that are cheap for each item when a run reads a backlog as fast as
it can: then everything that is evaluated takes a share of whole cores. If all feeds of a tenant
together take more than its quota (catalog/limits.py), its costliest is suspended, one after the
other.

*The last minute* is a decaying sum: what was spent t seconds ago counts exp(−t / 60). So nothing is
kept for each batch, and a feed that has been over its budget for a few seconds is not suspended for
it, unless it has used up the budget of the whole minute in them.

What is metered: patterns, similar texts and operators in the match stage (feed_costs.py), window
joins (windows/join_costs.py), results of table joins (table_join_stage.py), stylesheets of
materialised feeds (materialise.py). Other conditions cost nanoseconds. Suspended by mistake, a feed
is resumed by `headgate resume`; the items of the time between are in the log, and `headgate
backtest` finds them.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.model.errors import printable
from headgate.plan.price import us_text
from headgate.store.whole_files import write_whole

MINUTE_S = 60.0
SHARE_DEFAULT = 0.2
CPU_US_MIN = 50.0
FORGOTTEN_S = 1e-4
"""A feed that has spent less in the last minute is not kept."""
SHOWN_MAX = 1_000


@dataclass(frozen=True, slots=True)
class BudgetRules:
    share: float = SHARE_DEFAULT
    """Of the CPU time of all cores of the run; 0: no feed is suspended."""
    cpu_us_min: float = CPU_US_MIN
    """A feed that takes less for each item is never over its budget."""


DEFAULT_RULES = BudgetRules()


@dataclass(frozen=True, slots=True)
class Overspent:
    feed: int
    reason: str


class _Decaying:
    """A sum in which old amounts count less and less."""

    __slots__ = ("_at_s", "_sum")

    def __init__(self) -> None:
        self._sum, self._at_s = 0.0, 0.0

    def add(self, amount: float, now_s: float) -> None:
        self._sum = self.at(now_s) + amount
        self._at_s = max(now_s, self._at_s)

    def at(self, now_s: float) -> float:
        return self._sum * math.exp(-max(now_s - self._at_s, 0.0) / MINUTE_S)


class FeedBudget:
    """Thread-safe."""

    def __init__(
        self,
        rules: BudgetRules = DEFAULT_RULES,
        *,
        cores: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules, self._cores, self._clock = rules, max(cores, 1), clock
        self._lock = threading.Lock()
        self._spent_s: dict[int, _Decaying] = {}
        self._items = _Decaying()
        self._total_s: dict[int, float] = {}
        self._written = b"{}"

    def add(self, costs: Mapping[str, int], *, items: int = 0) -> None:
        """What tasks have spent: µs by feed, and how many items they have read."""
        now_s = self._clock()
        with self._lock:
            self._items.add(items, now_s)
            for key, cpu_us in costs.items():
                feed = int(key)
                self._spent_s.setdefault(feed, _Decaying()).add(cpu_us / 1e6, now_s)
                self._total_s[feed] = self._total_s.get(feed, 0.0) + cpu_us / 1e6

    def overspent(
        self, quotas: Mapping[str, int] = {}, tenant_of: Callable[[int], str] = lambda _: ""
    ) -> list[Overspent]:
        """The feeds to suspend now, the costliest first. They are forgotten: a feed that is resumed
        begins anew. `quotas` are the percents of the cores that tenants may take."""
        now_s, rules = self._clock(), self._rules
        with self._lock:
            spent = {feed: each.at(now_s) for feed, each in self._spent_s.items()}
            self._spent_s = {
                feed: each for feed, each in self._spent_s.items() if spent[feed] >= FORGOTTEN_S
            }
            items = max(self._items.at(now_s), 1.0)
            ordered = sorted(spent.items(), key=lambda each: -each[1])
            over = [
                self._overspent(feed, cpu_s, items)
                for feed, cpu_s in ordered
                if rules.share
                and cpu_s > rules.share * self._cores * MINUTE_S
                and 1e6 * cpu_s / items > rules.cpu_us_min
            ]
            if not over and quotas:
                over = self._above_quotas(ordered, quotas, tenant_of)
            for each in over:
                self._spent_s.pop(each.feed, None)
        return over

    def _above_quotas(
        self,
        ordered: Sequence[tuple[int, float]],
        quotas: Mapping[str, int],
        tenant_of: Callable[[int], str],
    ) -> list[Overspent]:
        """The costliest feed of each tenant that is above its quota."""
        by_tenant: dict[str, list[tuple[int, float]]] = {}
        for feed, cpu_s in ordered:
            by_tenant.setdefault(tenant_of(feed), []).append((feed, cpu_s))
        over: list[Overspent] = []
        for tenant, percent in quotas.items():
            feeds = by_tenant.get(tenant, [])
            share = 100 * sum(cpu_s for _, cpu_s in feeds) / (self._cores * MINUTE_S)
            if share > percent:
                reason = (
                    f"all feeds took {share:.0f} % of the cores in the last minute, above the "
                    f"quota of {percent} %, and this one most"
                )
                over.append(Overspent(feeds[0][0], reason))
        return over

    def _overspent(self, feed: int, cpu_s: float, items: float) -> Overspent:
        share, each = 100 * cpu_s / (self._cores * MINUTE_S), us_text(1e6 * cpu_s / items)
        return Overspent(
            feed,
            f"it took {share:.0f} % of the cores in the last minute, {each} for each item that was "
            f"read; {100 * self._rules.share:.0f} % are allowed",
        )

    def totals(self) -> dict[int, float]:
        """CPU seconds by feed since the start, the costliest first."""
        with self._lock:
            return dict(sorted(self._total_s.items(), key=lambda each: -each[1]))

    def write(self, path: Path, names: Mapping[int, str]) -> None:
        """The totals of the costliest feeds by name, for `explain` and `stats`."""
        named = {names[feed]: cpu_s for feed, cpu_s in self.totals().items() if feed in names}
        content = json.dumps(dict(list(named.items())[:SHOWN_MAX])).encode()
        if content != self._written:
            write_whole(path, content)
            self._written = content


def suspension_kind(reason: str) -> str:
    """What has suspended a feed, in a word: its cost, the quota of its tenant, or a request.

    >>> suspension_kind("it took 31 % of the cores in the last minute, …"), suspension_kind("noisy")
    ('cpu', 'request')
    """
    if reason.startswith("it took "):
        return "cpu"
    return "quota" if reason.startswith("all feeds took ") else "request"


def read_costs(path: Path) -> dict[str, float]:
    """CPU seconds by feed in the run of this folder; empty where nothing was metered."""
    try:
        content = json.loads(path.read_bytes())
        return {printable(str(name)): float(cpu_s) for name, cpu_s in content.items()}
    except (FileNotFoundError, ValueError, AttributeError, TypeError):
        return {}
