"""LOGA: lower latency by replacing rewritings, greedily ([Delta §3.4, Algorithm 2]).

Rewritings are visited by impact, largest first: I(v) = λ(v) · the number of views that v reaches.
(The paper prints "nodes of rg"; since it says that the number changes with each replacement, the
configuration is meant.) Each is replaced by the alternative within the limits that gives the least
latency of the whole configuration, never by the source. Rounds end when nothing changes.

Invariant: λ(cfg) never rises, and the result is that of Algorithm 2 as printed. The printed
algorithm tries each alternative and recomputes λ of all views below. This is not necessary:

    λ of a view below v never falls when λ(v) rises, and λ(cfg) contains λ(v) itself. So the
    alternative with the least λ(cfg) is the one with the least λ(v), and it helps if that is below
    the present λ(v).

There is no cycle either, whatever the graph: every view below v has a λ above v's, because local
latencies are above zero, and an alternative that helps reads only views with a smaller λ.

After a replacement λ is recomputed for the affected views, in the order of their previous λ, which
is a topological order.

Two departures from the paper. `rise_max` limits how much utilisation may rise (by 5 to 7 % in the
paper, without a limit): rounds begin with a price on utilisation that falls to zero from round to
round, so replacements that gain most for least come first. `readers_max` limits the readers of a
view: the model has no queues and ignores that a view with b readers sends b times, so LOGA as
printed crowds the fastest views; the wait at a view is b · bytes / bandwidth.

Cost: a round reads each member of each rewriting once, and what changes; 100,000 views take one to
two seconds. Counting what each view reaches takes as many steps as views have views above them.
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
"""The ILP leaves no room: LOGA may use so many times the limits (§5.4)."""
RATES = tuple(4.0**power for power in range(3, -4, -1))
"""Prices of utilisation to begin with, in shares of latency for a share of utilisation."""

READERS_MAX = 12
"""Few enough that nobody is crowded. In the simulator 8 to 20 do about as well."""

LEFT_MIN = 1e-6
"""An allowance below this share of the utilisation is used up."""


@dataclass(frozen=True, slots=True)
class LogaRound:
    """What one round of LOGA did."""

    replaced: int
    latency_s: float
    utilization: float


Told = Callable[[LogaRound], None]


def loga(
    configuration: Configuration,
    *,
    relaxed: float = RELAXED,
    rise_max: float | None = None,
    readers_max: int | None = None,
    told: Told | None = None,
) -> Configuration:
    """A configuration with lower latency, within limits that are relaxed by a factor.

    With `rise_max`, utilisation rises by this share at most; with `readers_max`, nobody gets more
    readers than that. Without either, this is Algorithm 2 as printed.
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
        if told is not None:
            told(LogaRound(int(replaced), float(latency.sum()), utilization))
        if rate == 0.0 and not replaced:
            return Configuration.of(problem, state.choice)
        rate = next(rates, 0.0) if left > LEFT_MIN * utilization else 0.0


# Kernels.


@nb.njit(nogil=True, cache=True)
def count_reachable(state):  # type: ignore[no-untyped-def]
    """How many views each view feeds, directly or through others."""
    views = state.choice.shape[0]
    found, seen = np.zeros(views, np.int64), np.full(views, -1, np.int32)
    queue = np.empty(views, np.int64)
    for view in range(views):
        queue[0], at, end = view, 0, 1
        while at < end:
            slot = state.head[queue[at]]
            at += 1
            while slot != NONE:
                reader = state.slot_view[slot]
                if seen[reader] != view:
                    seen[reader] = view
                    queue[end] = reader
                    end += 1
                slot = state.forward[slot]
        found[view] = end - 1
    return found


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
    """The rewriting that lowers λ(v) and pays best, within the limits and the allowance, or NONE.

    What it pays is the latency that v and the views below it may gain, less `rate` for each unit of
    utilisation that it adds. At a rate of zero this is the rewriting with the least λ(v).
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
    """Recompute λ of a view and of those below it that it changes.

    A view is looked at again whenever what it reads has changed. λ rises along every feed, so in
    the order of λ almost all are looked at once.
    """
    heap = [(latency[view], np.int64(view))]
    last = np.int64(NONE)
    while len(heap) > 0:
        _, at = heapq.heappop(heap)
        if at == last:
            continue
        last = at
        now = latency_now(state, latency, at)
        if now == latency[at]:
            continue
        latency[at] = now
        slot = state.head[at]
        while slot != NONE:
            reader = np.int64(state.slot_view[slot])
            heapq.heappush(heap, (latency[reader], reader))
            slot = state.forward[slot]


@nb.njit(nogil=True, cache=True)
def replace_in_order(state, latency, order, reach, rate, allowance):  # type: ignore[no-untyped-def]
    """One round of Algorithm 2: lines 6 to 16. How many were replaced, and what that used."""
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
