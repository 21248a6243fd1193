"""A near-optimal configuration for many views, with a certified bound ([Delta §3.3]).

    prices (lagrangian_dual)  ──►  cheapest choice of each view  ──►  repair  ──►  improvement
              └── lower bound ────────────────────────── gap ──────────────────────────┘

The problem is NP-hard ([Delta], Proposition 3.1), and an ILP solver takes minutes for 100,000
views. Here the limits are relaxed into prices; at the best prices few views feed too many others.
The repair works on a `FeedState`:

    relieve      readers of overloaded views move to where they lose least, at the dual's prices
    improve      each view takes the least utilisation that fits
    exchange     a view takes the places of others that lose less elsewhere than it gains

`rank` is an order of the views: a view reads only views before it, so there is never a cycle.

Invariant: the configuration is acyclic and within the limits, or none is returned; the bound is
below the utilisation of every configuration, whatever the repair did.

Cost: each step of the prices and each pass of the repair is linear in the rewritability graph.
"""

from __future__ import annotations

import time

import numba as nb
import numpy as np

from headgate.network.configuration import SOURCE, utilization_of
from headgate.network.configuration_problem import UNLIMITED, Floats, Longs, Problem, SolverResult
from headgate.network.feed_state import (
    NO_FIT,
    NONE,
    FeedState,
    excess,
    feed_state,
    fits,
    reads,
    switch,
)
from headgate.network.lagrangian_dual import (
    Ascent,
    DualGraph,
    Prices,
    dual_graph,
    rank_views,
    reduced_cost,
)

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


def configure_lagrangian(
    problem: Problem, *, time_s: float = 60.0, gap: float = GAP
) -> SolverResult:
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
        return SolverResult(None, np.inf)
    bound = ascent.best.bound
    if best - bound <= gap * bound:
        return SolverResult(found, bound, ascent.best.price)
    state, rank = _state_at(problem, graph, component, ascent.best)
    if _keep_limits(state, ascent.best.price, rank, until):
        _descend(problem, state, rank, bound * (1 + gap), until)
        if utilization_of(problem, state.choice) < best:
            found = state.choice
    return SolverResult(found, bound, ascent.best.price)


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
    keep_before(graph, rank, price, found)
    return found


def _keep_limits(state: FeedState, price: Floats, rank: Longs, until: float) -> bool:
    """First those of the views, where the source takes who finds no place; then the source's own:
    who loses least leaves it. If too few can, others make room for them, at a price of the source
    that makes it the dearest."""
    limit = int(state.limit[-1])
    state.limit[-1] = UNLIMITED
    relieve(state, price, rank)
    assert not excess(state)
    state.limit[-1] = limit
    relieve(state, price, rank)
    asked = np.zeros(len(state.loads))
    asked[-1] = state.source_utilization.max(initial=0.0) + state.utilization.max(initial=0.0)
    while state.loads[-1] > limit and time.monotonic() < until:
        before = int(state.loads[-1])
        _exchange(state, asked, rank, ALL_WAYS, until)
        if before - state.loads[-1] <= STALLED * before:
            break
    if excess(state):
        return False
    improve(state, np.zeros(len(state.loads)), rank)
    return True


def _exchange(state: FeedState, price: Floats, rank: Longs, ways: int, until: float) -> None:
    """One pass, as far as the time allows. With all ways, only of those that the source serves."""
    views = len(state.choice)
    for first in range(0, views, AT_ONCE):
        if time.monotonic() > until:
            return
        some = first, min(first + AT_ONCE, views)
        tries = ways, READERS_ASKED
        exchange(state, price, rank, tries, some, ways == ALL_WAYS)


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
            improve(state, free, rank)
            reached = utilization_of(problem, state.choice)
        if before - reached <= GAIN_MIN * before:
            return


# Kernels of the repair.


@nb.njit(nogil=True, cache=True)
def all_before(state, rank, view, r):  # type: ignore[no-untyped-def]
    for slot in range(state.member_start[r], state.member_start[r + 1]):
        if rank[state.members[slot]] >= rank[view]:
            return False
    return True


@nb.njit(nogil=True, cache=True)
def cost_at(state, view, r, price):  # type: ignore[no-untyped-def]
    """The utilisation of a choice, and what it pays at these prices."""
    if r == SOURCE:
        return state.source_utilization[view] + price[price.shape[0] - 1]
    cost = state.utilization[r]
    for slot in range(state.member_start[r], state.member_start[r + 1]):
        cost += price[state.members[slot]]
    return cost


@nb.njit(nogil=True, cache=True)
def cheapest_fit(state, view, price, rank, without):  # type: ignore[no-untyped-def]
    """The cheapest choice that fits and does not read `without`, and its cost; or NO_FIT."""
    best, taken = np.inf, NO_FIT
    last = state.loads.shape[0] - 1
    if without != last and fits(state, view, SOURCE):
        best, taken = cost_at(state, view, SOURCE, price), SOURCE
    for r in range(state.first[view], state.end[view]):
        cost = cost_at(state, view, r, price)
        if (
            cost < best
            and not reads(state, r, without)
            and fits(state, view, r)
            and all_before(state, rank, view, r)
        ):
            best, taken = cost, r
    return best, taken


@nb.njit(nogil=True, cache=True)
def readers(state, member):  # type: ignore[no-untyped-def]
    """The views that read a view, or that the source serves."""
    last = state.loads.shape[0] - 1
    found, count = np.empty(state.loads[member], np.int64), 0
    if member == last:
        for view in range(last):
            if state.choice[view] == SOURCE:
                found[count] = view
                count += 1
        return found
    slot = state.head[member]
    while slot != NONE:
        found[count] = state.slot_view[slot]
        count += 1
        slot = state.forward[slot]
    return found


@nb.njit(nogil=True, cache=True)
def relieve(state, price, rank):  # type: ignore[no-untyped-def]
    """Take readers from all that feed too many; by how much limits are exceeded after that."""
    left = 0
    for member in range(state.loads.shape[0]):
        if state.loads[member] > state.limit[member]:
            _relieve_one(state, price, rank, member)
            left += max(0, state.loads[member] - state.limit[member])
    return left


@nb.njit(nogil=True, cache=True)
def _relieve_one(state, price, rank, member):  # type: ignore[no-untyped-def]
    who = readers(state, member)
    regret = np.empty(who.shape[0])
    for at in range(who.shape[0]):
        cost, _ = cheapest_fit(state, who[at], price, rank, member)
        regret[at] = cost - cost_at(state, who[at], state.choice[who[at]], price)
    for at in np.argsort(regret, kind="mergesort"):
        if state.loads[member] <= state.limit[member] or not np.isfinite(regret[at]):
            return
        _, r = cheapest_fit(state, who[at], price, rank, member)
        if r != NO_FIT:
            switch(state, who[at], r)


@nb.njit(nogil=True, cache=True)
def improve(state, free, rank):  # type: ignore[no-untyped-def]
    """Each view takes the least utilisation that fits; what is gained. `free` is a price of 0."""
    gained = 0.0
    for view in range(state.choice.shape[0]):
        now = cost_at(state, view, state.choice[view], free)
        cost, r = cheapest_fit(state, view, free, rank, NONE)
        if r != NO_FIT and cost < now:
            switch(state, view, r)
            gained += now - cost
    return gained


@nb.njit(nogil=True, cache=True)
def exchange(state, free, rank, tries, some, only_source):  # type: ignore[no-untyped-def]
    """Each of some views, or each that the source serves, asks readers of full views to make room;
    what is gained. `tries` limits how many rewritings a view tries, and how many readers it asks.
    """
    (ways, asked), (first, end) = tries, some
    gained = 0.0
    for view in range(first, end):
        if only_source and state.choice[view] != SOURCE:
            continue
        left = ways
        for r in range(state.first[view], state.end[view]):
            gain = cost_at(state, view, state.choice[view], free) - state.utilization[r]
            if gain > 0 and all_before(state, rank, view, r):
                gained += make_room(state, free, rank, asked, (view, r, gain))
                left -= 1
                if left == 0:
                    break
    return gained


@nb.njit(nogil=True, cache=True)
def make_room(state, free, rank, asked, wish):  # type: ignore[no-untyped-def]
    """Give a view its rewriting, if one reader of each full member loses less elsewhere in all than
    the view gains; what is gained, or 0 if all is as before."""
    view, r, gain = wish
    start = state.member_start[r]
    size, loss = state.member_start[r + 1] - start, 0.0
    moved, back = np.full(size, NONE, np.int64), np.empty(size, np.int64)
    now = state.choice[view]
    for at in range(size):
        member = state.members[start + at]
        if state.loads[member] < state.limit[member] or reads(state, now, member):
            continue
        most, who, where = gain - loss, NONE, NO_FIT
        slot, left = state.head[member], asked
        while slot != NONE and left > 0:
            other = state.slot_view[slot]
            slot, left = state.forward[slot], left - 1
            cost, instead = cheapest_fit(state, other, free, rank, member)
            lost = cost - cost_at(state, other, state.choice[other], free)
            if other != view and instead != NO_FIT and lost < most:
                most, who, where = lost, other, instead
        if who == NONE:
            break
        moved[at], back[at] = who, state.choice[who]
        switch(state, who, where)
        loss += most
    if fits(state, view, r):
        switch(state, view, r)
        return gain - loss
    for at in range(size - 1, -1, -1):
        if moved[at] != NONE:
            switch(state, moved[at], back[at])
    return 0.0


@nb.njit(nogil=True, cache=True)
def keep_before(graph, rank, price, choice):  # type: ignore[no-untyped-def]
    """Replace choices that read what is not before them by the cheapest that do not."""
    for view in range(choice.shape[0]):
        if choice[view] == SOURCE or all_before(graph, rank, view, choice[view]):
            continue
        best = graph.source_utilization[view] + price[price.shape[0] - 1]
        choice[view] = SOURCE
        for r in range(graph.view_start[view], graph.view_start[view + 1]):
            cost = reduced_cost(graph, r, price)
            if cost < best and all_before(graph, rank, view, r):
                best, choice[view] = cost, r
