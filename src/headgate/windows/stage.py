"""The join stage: evaluates the parts of plans above their leaves, as items arrive ([RoSeS §3.2]).

The oracle, tests/plan/execute.py, defines the output of a plan over finite streams, by event time.
Live, items arrive late and out of order, each at an instant that is recorded once. With a given
lateness L and retention R,

    D(p) = max(arrived(p), time(p) + L)         the primary item p is decided at D(p); its join
                                                arrives at the nodes above at D(p)
    u(p) = max(time(p), D(p) − L − R)           later than L + R, it sees what is still kept

Invariant: p is joined with exactly those items of the window at u(p) that have time ≤ time(p), had
arrived by D(p), and satisfy the predicate with it.

So u(p) = time(p) for all items at most R later than L: these see their whole window. The output is
a function of items, arrivals, L and R alone, whatever the batches, and equals that of `execute`
where no item is late. Late items are counted, never dropped.

    push ──► leaves ──► nodes by number ──► items of feeds      all that is due until an instant,
               └──► waiting ──► joins       (graph.py)          in one step (flow.py)

Within a step each node sees all its input before the nodes above it run; windows take in everything
that arrived, and lookups exclude what arrived after their instant. So a step may span any number of
instants, and a join may use the same window as a join below it.

Cost: the matcher's for all leaves (one compiled program per source); then one step per leaf, node
or window that an item comes to; probe.py has the cost of a lookup. State: items of windows, by
reference; waiting items.

Rejected: one step per instant (a batch of 10,000 late items has 10,000 instants); dropping late
items behind a watermark (a replay with other batches would drop others); Spark's own state
(docs/design/2026-11-16-window-joins.md)."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import count

from headgate.match.batch import batch_of_items, microseconds
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import compile_program
from headgate.model.filters import Filter
from headgate.model.schema import Schema
from headgate.plan.algebra import Plan
from headgate.windows.arrivals import NEVER_US, SECOND_US, Arrival, Element, FeedOutput, instant_of
from headgate.windows.flow import Flow, WaitingItem
from headgate.windows.graph import build_graph, replay_horizons

BATCH = 4_096


class LeafMatcher:
    """The leaves on one source, as one compiled program. It has no state."""

    def __init__(self, leaves: Mapping[Filter, int], schema: Schema) -> None:
        self._matcher = ProgramMatcher(compile_program(list(leaves), schema))
        self._numbers = list(leaves.values())

    def match(self, elements: Sequence[Element]) -> dict[int, list[Element]]:
        """The items in each leaf, by the number of the leaf, in their order."""
        by_leaf: dict[int, list[Element]] = {}
        for start in range(0, len(elements), BATCH):
            batch = elements[start : start + BATCH]
            program = self._matcher.program
            matches = self._matcher.match(batch_of_items([e.item for e in batch], program.types))
            for position, element in enumerate(batch):
                for leaf in matches.of(position).tolist():
                    by_leaf.setdefault(self._numbers[leaf], []).append(element)
        return by_leaf


LATENESS_DEFAULT_S = 60.0
"""Covers clock skew, queues and batches. An item of a polled feed is mostly older than that when it
arrives, and is decided on arrival; waiting for the slowest feed would delay all others."""
RETENTION_DEFAULT_S = 86_400.0
"""Items of a feed that could not be fetched for a day still see their whole windows."""
SLICE = 4_096
"""The number of arrivals per step, plus further ones of the same instant."""


class JoinStage:
    """For one thread. Items come in by `push`, each once, and out by `advance`.

    `sources` are those whose items it needs; `unsupported` are the feeds that it cannot evaluate,
    each with the reason; `late` counts late items by source.
    """

    def __init__(
        self,
        plans: Mapping[str, Plan],
        schemas: Mapping[str, Schema],
        *,
        lateness_s: float = LATENESS_DEFAULT_S,
        retention_s: float = RETENTION_DEFAULT_S,
    ) -> None:
        """From the normalised plans of feeds by name, and the schemas of sources by name."""
        self.plans = plans
        self.graph = build_graph(plans)
        self.sources = frozenset(self.graph.leaves)
        self.unsupported = self.graph.unsupported
        self.lateness_us = round(lateness_s * SECOND_US)
        self.kept_us = self.lateness_us + round(retention_s * SECOND_US)
        self._matchers = {
            source: LeafMatcher(leaves, schemas[source])
            for source, leaves in self.graph.leaves.items()
        }
        self.begin({})

    def begin(self, known_from: Mapping[str, datetime]) -> None:
        """Reset the state. Items of these sources until the given times will not be pushed, though
        they exist; `is_complete` says whether that matters."""
        self.late = dict.fromkeys(sorted(self.sources), 0)
        self.flow = Flow(self.graph, lateness_us=self.lateness_us, kept_us=self.kept_us)
        self.flow.set_known_from({name: microseconds(time) for name, time in known_from.items()})
        self._instant_us = NEVER_US
        self._queue: list[Element] = []
        self._waiting: list[tuple[int, int, WaitingItem]] = []
        self._number = count()

    def push(self, arrivals: Sequence[Arrival]) -> None:
        """Take items that arrived after the instant of the last `advance`, in any order."""
        for arrival in arrivals:
            item = arrival.item
            if item.source not in self.sources:
                continue
            time_us, arrived_us = microseconds(item.time), microseconds(arrival.arrived)
            assert arrived_us > self._instant_us, "it arrived at an instant that is decided already"
            on_time_us = time_us + self.lateness_us
            self._queue.append(Element(item, time_us, arrived_us, max(arrived_us, on_time_us)))
            self.late[item.source] += arrived_us > on_time_us

    def advance(self, safe: datetime) -> list[FeedOutput]:
        """All outputs decided until this instant; all items that arrived until then were pushed.

        Ordered by instant of decision, then time, source and id of the item: the outputs of all
        calls are the same sequence, however often it is called.
        """
        safe_us = microseconds(safe)
        self._queue.sort(key=lambda each: each.arrived_us)
        outputs: list[FeedOutput] = []
        while self._instant_us < safe_us:
            many = len(self._queue) > SLICE
            outputs += self._step(min(self._queue[SLICE].arrived_us if many else safe_us, safe_us))
        return outputs

    def next_decision(self) -> datetime | None:
        """The next instant at which an item is decided, as far as is known now."""
        instants = [self._waiting[0][0]] if self._waiting else []
        if self._queue:
            instants.append(min(each.arrived_us for each in self._queue))
        return instant_of(min(instants)) if instants else None

    def horizon(
        self, now: datetime, *, guess_s: float = RETENTION_DEFAULT_S
    ) -> dict[str, datetime]:
        """For each source, the time from which its items are needed to rebuild the state of `now`.
        For windows of the `last n items` it is a guess, which rebuild.py checks."""
        horizons = replay_horizons(
            self.graph,
            lateness_us=self.lateness_us,
            kept_us=self.kept_us,
            guess_us=round(guess_s * SECOND_US),
        )
        return {source: instant_of(microseconds(now) - own) for source, own in horizons.items()}

    def is_complete(self) -> bool:
        """Whether the state is the same as if all items had been pushed (`begin`)."""
        return self.flow.is_complete(self._instant_us)

    @property
    def waiting(self) -> int:
        """The number of items that wait until they are due, once per leaf."""
        return len(self._waiting)

    def _step(self, instant_us: int) -> list[FeedOutput]:
        """Process everything that is due until an instant."""
        arrived: dict[str, list[Element]] = {}
        taken = 0
        while taken < len(self._queue) and self._queue[taken].arrived_us <= instant_us:
            arrived.setdefault(self._queue[taken].item.source, []).append(self._queue[taken])
            taken += 1
        del self._queue[:taken]
        due: list[WaitingItem] = []
        while self._waiting and self._waiting[0][0] <= instant_us:
            due.append(heapq.heappop(self._waiting)[2])
        leaves: dict[int, list[Element]] = {}
        for source, elements in arrived.items():
            leaves |= self._matchers[source].match(elements)
        outputs, waiting = self.flow.step(instant_us, leaves, due)
        for item in waiting:
            heapq.heappush(self._waiting, (item.element.due_us, next(self._number), item))
        self._instant_us = instant_us
        return outputs
