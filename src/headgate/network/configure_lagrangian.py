"""A configuration for many views, and a bound that certifies how good it is.

    prices (lagrangian_dual)  ──►  what each view takes at them  ──►  repaired  ──►  improved
              └── lower bound ────────────────────────── gap ──────────────────────────┘

The problem is NP-hard ([Delta], Proposition 3.1), and a solver takes minutes for 100,000 views.
Here capacities are priced; at the best prices few views are fed too often. Their readers go where
they lose least (repair_kernels.py), then single views and pairs of views change places as long as
utilisation falls.

Law: the configuration is acyclic and within the limits, or there is none to return; the bound is
below every configuration's utilisation, whatever the repair did.

Cost: each step of the prices and each pass of the repair is linear in the rewritability graph.
"""

from __future__ import annotations

import time

import numpy as np

from headgate.network import repair_kernels
from headgate.network.configuration import utilization_of
from headgate.network.configuration_problem import UNLIMITED, Floats, Longs, Problem
from headgate.network.feed_state import feed_state
from headgate.network.feed_state_kernels import FeedState, excess
from headgate.network.lagrangian_dual import Ascent, DualGraph, Prices, dual_graph
from headgate.network.rank_kernels import rank_views
from headgate.network.solution import Solution

GAP = 0.005
STEPS = 20
"""After so many steps of the prices, a configuration is made and compared with the bound; then
after twice as many, three times as many: early prices leave much to gain, later ones little."""
RISE_MIN = 0.0002
"""Prices stand still when so many steps raise the bound by less than this share …"""
GAP_STILL = 0.01
"""… which is the end if the gap is below this; else their steps become smaller, and go on."""
CLIMBING = 0.6
"""The share of the time that is for the prices; the rest is for going downhill."""
PASSES_MAX = 8
GAIN_MIN = 5e-4
"""A pass that gains less than this share is the last one."""
ALL_WAYS, FEW_WAYS, READERS_ASKED = 1_000, 3, 32
AT_ONCE = 2_000
"""Views between two looks at the clock."""
STALLED = 0.001
"""A pass that takes less than this share from the source is the last one."""


def configure_lagrangian(problem: Problem, *, time_s: float = 60.0, gap: float = GAP) -> Solution:
    """Until the gap is certified, the prices stand still, or the time is over."""
    began = time.monotonic()
    until, climb_until = began + time_s, began + CLIMBING * time_s
    graph, component = dual_graph(problem)
    ascent = Ascent(problem, graph)
    found: Longs | None = None
    best, before, steps = np.inf, -np.inf, 0
    while not ascent.is_done and time.monotonic() < climb_until:
        steps += STEPS
        prices = ascent.climb(steps=steps, until=climb_until)
        state, rank = _state_at(problem, graph, component, prices)
        if _keep_limits(state, prices.price, rank, until):
            reached = utilization_of(problem, state.choice)
            if reached < best:
                found, best = state.choice, reached
                ascent.reached = reached
        risen, before = prices.bound - before, prices.bound
        is_still = risen <= RISE_MIN * before and best - before <= GAP_STILL * before
        if best - before <= gap * before or is_still:
            break
    if ascent.is_impossible:
        return Solution(None, np.inf)
    bound = ascent.best.bound
    if best - bound <= gap * bound:
        return Solution(found, bound, ascent.best.price)
    state, rank = _state_at(problem, graph, component, ascent.best)
    if _keep_limits(state, ascent.best.price, rank, until):
        _descend(problem, state, rank, bound * (1 + gap), until)
        if utilization_of(problem, state.choice) < best:
            found = state.choice
    return Solution(found, bound, ascent.best.price)


def _state_at(
    problem: Problem, graph: DualGraph, component: Longs, prices: Prices
) -> tuple[FeedState, Longs]:
    """What views take at these prices, without cycles, and the order that there is none by."""
    rank = _rank(graph, component, prices.price)
    return feed_state(problem, _admissible(graph, rank, prices.choice, prices.price)), rank


def _rank(graph: DualGraph, component: Longs, price: Floats) -> Longs:
    if not (graph.part >= 0).any():
        return component
    found: Longs = rank_views(graph, component, price)
    return found


def _admissible(graph: DualGraph, rank: Longs, choice: Longs, price: Floats) -> Longs:
    """The choices, with the cheapest that reads only what is before it where one does not."""
    found = choice.copy()
    repair_kernels.keep_before(graph, rank, price, found)
    return found


def _keep_limits(state: FeedState, price: Floats, rank: Longs, until: float) -> bool:
    """First those of the views, where the source takes who finds no place; then the source's own:
    who loses least leaves it. If too few can, others make room for them, at a price of the source
    that makes it the dearest."""
    limit = int(state.limit[-1])
    state.limit[-1] = UNLIMITED
    repair_kernels.relieve(state, price, rank)
    assert not excess(state)
    state.limit[-1] = limit
    repair_kernels.relieve(state, price, rank)
    asked = np.zeros(len(state.loads))
    asked[-1] = state.source_utilization.max(initial=0.0) + state.utilization.max(initial=0.0)
    while state.loads[-1] > limit and time.monotonic() < until:
        before = int(state.loads[-1])
        _exchange(state, asked, rank, ALL_WAYS, until)
        if before - state.loads[-1] <= STALLED * before:
            break
    if excess(state):
        return False
    repair_kernels.improve(state, np.zeros(len(state.loads)), rank)
    return True


def _exchange(state: FeedState, price: Floats, rank: Longs, ways: int, until: float) -> None:
    """One pass, as far as the time allows. With all ways, only of those that the source serves."""
    views = len(state.choice)
    for first in range(0, views, AT_ONCE):
        if time.monotonic() > until:
            return
        some = first, min(first + AT_ONCE, views)
        tries = ways, READERS_ASKED
        repair_kernels.exchange(state, price, rank, tries, some, ways == ALL_WAYS)


def _descend(problem: Problem, state: FeedState, rank: Longs, enough: float, until: float) -> None:
    """Until utilisation is low enough, nothing more is gained, or the time is over."""
    free = np.zeros(len(state.loads))
    reached = utilization_of(problem, state.choice)
    for _ in range(PASSES_MAX):
        before = reached
        for ways in (ALL_WAYS, FEW_WAYS):
            if reached <= enough or time.monotonic() > until:
                return
            _exchange(state, free, rank, ways, until)
            repair_kernels.improve(state, free, rank)
            reached = utilization_of(problem, state.choice)
        if before - reached <= GAIN_MIN * before:
            return
