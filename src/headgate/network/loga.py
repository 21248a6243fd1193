"""LOGA: lower latency by replacing rewritings, greedily ([Delta §3.4, Algorithm 2]).

Rewritings are visited by impact, largest first: I(v) = λ(v) · the number of views that v reaches.
(The paper prints "nodes of rg"; since it says that the number changes with each replacement, the
configuration is meant.) Each is replaced by the alternative within the limits that gives the least
latency of the whole configuration, never by the source. Rounds end when nothing changes.

Invariant: λ(cfg) never rises, and the result is that of Algorithm 2 as printed. The printed
algorithm tries each alternative and recomputes λ of all views below. This is not necessary:

    λ of a view below v never falls when λ(v) rises, and λ(cfg) contains λ(v) itself. So the
    alternative with the least λ(cfg) is the one with the least λ(v). It is an improvement if that
    is below the present λ(v).

No replacement makes a cycle, whatever the graph: local latencies are above zero, so every view
below v has a higher λ than v, and an improving alternative reads only views of lower λ.

After a replacement λ is recomputed for the affected views, in the order of their previous λ, which
is a topological order.

Two departures from the paper. `rise_max` limits how much utilisation may rise (by 5 to 7 % in the
paper, without a limit): rounds begin with a price on utilisation that falls to zero from round to
round, so the replacements with the best ratio come first. `readers_max` limits the readers of a
view: the model has no queues and ignores that a view with b readers sends b times, so LOGA as
printed overloads the fastest views; the wait at a view is b · bytes / bandwidth.

Cost: a round reads each member of each rewriting once, plus the changes; 100,000 views take one to
two seconds. Counting reachable views takes one step for each pair of a view and a view below it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace

import numba as nb
import numpy as np

from headgate.network.configuration import SOURCE, Configuration
from headgate.network.feed_state import NONE, feed_state, fits, switch

RELAXED = 1.5
"""The factor by which LOGA may exceed the limits, because the ILP uses them up (§5.4)."""
RATES = tuple(4.0**power for power in range(3, -4, -1))
"""Prices of utilisation in the first rounds: the relative gain in latency that a relative rise in
utilisation must bring."""

READERS_MAX = 12
"""Readers of a view. In the simulator 8 to 20 give about the same latency."""

LEFT_MIN = 1e-6
"""An allowance below this share of the utilisation is used up."""


@dataclass(frozen=True, slots=True)
class LogaRound:
    """The result of one round of LOGA."""

    replaced: int
    latency_s: float
    utilization: float


OnRound = Callable[[LogaRound], None]


def loga(
    configuration: Configuration,
    *,
    relaxed: float = RELAXED,
    rise_max: float | None = None,
    readers_max: int | None = None,
    on_round: OnRound | None = None,
) -> Configuration:
    """A configuration with lower latency, within limits that are relaxed by a factor.

    With `rise_max`, utilisation rises by this share at most; with `readers_max`, no view gets more
    readers than that. Without either, this is Algorithm 2 as printed. `on_round` is called after
    each round.
    """
    problem = configuration.problem
    problem = replace(problem, limits=problem.limits.relaxed(relaxed))
    state = feed_state(problem, configuration.choice)
    if readers_max is not None:
        state.limit[:-1] = np.minimum(state.limit[:-1], readers_max)
    latency, utilization = configuration.latencies_s(), configuration.utilization
    left = np.inf if rise_max is None else rise_max * utilization
    rates = iter(() if rise_max is None else RATES)
    rate = next(rates, 0.0)
    while True:
        reach = count_reachable(state)
        order = np.argsort(-latency * reach, kind="stable")
        order = order[state.choice[order] != SOURCE]
        price = rate * float(latency.sum()) / max(utilization, 1e-9)
        replaced, used = replace_in_order(state, latency, order, reach, price, left)
        left, utilization = left - used, utilization + used
        if on_round is not None:
            on_round(LogaRound(int(replaced), float(latency.sum()), utilization))
        if rate == 0.0 and not replaced:
            return Configuration.of(problem, state.choice)
        rate = next(rates, 0.0) if left > LEFT_MIN * utilization else 0.0


# Kernels.


@nb.njit(nogil=True, cache=True)
def count_reachable(state):  # type: ignore[no-untyped-def]
    """int64 [view]: how many views it feeds, directly or through others."""
    views = state.choice.shape[0]
    reach, seen = np.zeros(views, np.int64), np.full(views, -1, np.int32)
    queue = np.empty(views, np.int64)
    for view in range(views):
        queue[0], position, end = view, 0, 1
        while position < end:
            slot = state.head[queue[position]]
            position += 1
            while slot != NONE:
                reader = state.slot_view[slot]
                if seen[reader] != view:
                    seen[reader] = view
                    queue[end] = reader
                    end += 1
                slot = state.forward[slot]
        reach[view] = end - 1
    return reach


@nb.njit(nogil=True, cache=True)
def latency_through(state, latency, r):  # type: ignore[no-untyped-def]
    """λ of a view with this rewriting."""
    slowest = 0.0
    for slot in range(state.member_start[r], state.member_start[r + 1]):
        slowest = max(slowest, latency[state.members[slot]])
    return slowest + state.latency_s[r]


@nb.njit(nogil=True, cache=True)
def latency_now(state, latency, view):  # type: ignore[no-untyped-def]
    if state.choice[view] == SOURCE:
        return state.source_latency_s[view]
    return latency_through(state, latency, state.choice[view])


@nb.njit(nogil=True, cache=True)
def best_fit(state, latency, view, below, rate, allowance):  # type: ignore[no-untyped-def]
    """The best rewriting that lowers λ(v) within the limits and the allowance, or NONE.

    Its value is the gain in latency of v and the `below` views below it, minus `rate` for each unit
    of utilisation that it adds. At a rate of zero this is the rewriting with the least λ(v).
    """
    best, taken = 0.0, NONE
    now = state.utilization[state.choice[view]]
    for r in range(state.first[view], state.end[view]):
        gain = latency[view] - latency_through(state, latency, r)
        added = state.utilization[r] - now
        pays = gain * (below + 1) - rate * added
        if gain > 0 and pays > best and added <= allowance and fits(state, view, r):
            best, taken = pays, r
    return taken


@nb.njit(nogil=True, cache=True)
def spread(state, latency, view):  # type: ignore[no-untyped-def]
    """Recompute λ of a view, and of the views below it that change.

    A view is visited whenever a view that it reads has changed. λ rises along every edge, so in the
    order of λ almost all views are visited once.
    """
    heap = [(latency[view], np.int64(view))]
    last = np.int64(NONE)
    while len(heap) > 0:
        _, current = heapq.heappop(heap)
        if current == last:
            continue
        last = current
        now = latency_now(state, latency, current)
        if now == latency[current]:
            continue
        latency[current] = now
        slot = state.head[current]
        while slot != NONE:
            reader = np.int64(state.slot_view[slot])
            heapq.heappush(heap, (latency[reader], reader))
            slot = state.forward[slot]


@nb.njit(nogil=True, cache=True)
def replace_in_order(state, latency, order, reach, rate, allowance):  # type: ignore[no-untyped-def]
    """One round of Algorithm 2, lines 6 to 16: (number of replacements, utilisation added)."""
    replaced, used = 0, 0.0
    for view in order:
        before = state.choice[view]
        r = best_fit(state, latency, view, reach[view], rate, allowance - used)
        if r != NONE:
            used += state.utilization[r] - state.utilization[before]
            switch(state, view, r)
            spread(state, latency, view)
            replaced += 1
    return replaced, used
