"""A near-optimal configuration for many views, with a certified bound ([Delta §3.3]).

    prices (lagrangian_dual)  ──►  cheapest choice of each view  ──►  repair  ──►  improvement
              └── lower bound ────────────────────────── gap ──────────────────────────┘

The problem is NP-hard ([Delta], Proposition 3.1), and an ILP solver takes minutes for 100,000
views. Here the limits are relaxed into prices; at the best prices few views feed too many others.
The repair works on a `FeedState`:

    relieve      move readers of overloaded views to where they lose least, at the dual's prices
    improve      give each view the choice of least utilisation that fits
    exchange     give a view the place of a reader that loses less elsewhere than the view gains

`rank` is an order of the views. A view reads only views of lower rank, so there is never a cycle.

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
"""After this many steps of the prices, a configuration is built and compared with the bound; then
after 2 STEPS more, 3 STEPS more, and so on, since later steps improve it less."""
RISE_MIN, GAP_STILL = 0.0002, 0.01
"""The ascent ends if a series of steps raises the bound by less than RISE_MIN of it and the gap is
below GAP_STILL of it."""
CLIMBING = 0.6
"""The share of the time for the ascent of the prices; the rest is for improving the choices."""
PASSES_MAX = 8
GAIN_MIN = 5e-4
"""A pass that gains less than this share of the utilisation is the last one."""
ALL_WAYS, FEW_WAYS, READERS_TRIED = 1_000, 3, 32
"""Limits of an exchange: rewritings tried for a view, and readers tried for a full member."""
VIEWS_AT_ONCE = 2_000
"""The clock is read after this many views."""
STALLED = 0.001
"""A pass that lowers the source's load by less than this share is the last one."""


def configure_lagrangian(
    problem: Problem, *, time_s: float = 60.0, gap: float = GAP
) -> SolverResult:
    """Minimise utilisation until the gap is at most `gap`, the ascent ends, or time is over."""
    began = time.monotonic()
    until, climb_until = began + time_s, began + CLIMBING * time_s
    graph, component = dual_graph(problem)
    ascent = Ascent(problem, graph)
    best_choice: Longs | None = None
    best, before, steps = np.inf, -np.inf, 0
    while not ascent.is_done and time.monotonic() < climb_until:
        steps += STEPS
        prices = ascent.climb(steps=steps, until=climb_until)
        state, rank = _state_at(problem, graph, component, prices)
        if _keep_limits(state, prices.price, rank, until):
            reached = utilization_of(problem, state.choice)
            if reached < best:
                best_choice, best = state.choice, reached
                ascent.reached = reached
        risen, before = prices.bound - before, prices.bound
        is_still = risen <= RISE_MIN * before and best - before <= GAP_STILL * before
        if best - before <= gap * before or is_still:
            break
    if ascent.is_impossible:
        return SolverResult(None, np.inf)
    bound = ascent.best.bound
    if best - bound <= gap * bound:
        return SolverResult(best_choice, bound, ascent.best.price)
    state, rank = _state_at(problem, graph, component, ascent.best)
    if _keep_limits(state, ascent.best.price, rank, until):
        _descend(problem, state, rank, bound * (1 + gap), until)
        if utilization_of(problem, state.choice) < best:
            best_choice = state.choice
    return SolverResult(best_choice, bound, ascent.best.price)


def _state_at(
    problem: Problem, graph: DualGraph, component: Longs, prices: Prices
) -> tuple[FeedState, Longs]:
    """The cheapest choices at these prices, restricted to a rank so that there is no cycle; and
    that rank."""
    rank = _rank(graph, component, prices.price)
    return feed_state(problem, _admissible(graph, rank, prices.choice, prices.price)), rank


def _rank(graph: DualGraph, component: Longs, price: Floats) -> Longs:
    if not (graph.part >= 0).any():
        return component
    rank: Longs = rank_views(graph, component, price)
    return rank


def _admissible(graph: DualGraph, rank: Longs, choice: Longs, price: Floats) -> Longs:
    """The choices; one that reads a view of higher rank is replaced by the cheapest other one."""
    admissible = choice.copy()
    restrict_to_order(graph, rank, price, admissible)
    return admissible


def _keep_limits(state: FeedState, price: Floats, rank: Longs, until: float) -> bool:
    """Repair choices that exceed limits; returns whether all limits are kept.

    The limits of views come first; views that fit nowhere else go to the source. Then the source is
    relieved. If it still feeds too many views, exchanges make room for them elsewhere, with a price
    on the source that is above all other costs.
    """
    limit = int(state.limit[-1])
    state.limit[-1] = UNLIMITED
    relieve(state, price, rank)
    assert not excess(state)
    state.limit[-1] = limit
    relieve(state, price, rank)
    source_price = np.zeros(len(state.loads))
    source_price[-1] = state.source_utilization.max(initial=0.0) + state.utilization.max(
        initial=0.0
    )
    while state.loads[-1] > limit and time.monotonic() < until:
        before = int(state.loads[-1])
        _exchange(state, source_price, rank, ALL_WAYS, until)
        if before - state.loads[-1] <= STALLED * before:
            break
    if excess(state):
        return False
    improve(state, np.zeros(len(state.loads)), rank)
    return True


def _exchange(state: FeedState, price: Floats, rank: Longs, ways: int, until: float) -> None:
    """One pass of exchanges, until the time is over. With ALL_WAYS, only views that the source
    serves are exchanged."""
    views = len(state.choice)
    for first in range(0, views, VIEWS_AT_ONCE):
        if time.monotonic() > until:
            return
        view_range = first, min(first + VIEWS_AT_ONCE, views)
        tries = ways, READERS_TRIED
        exchange(state, price, rank, tries, view_range, ways == ALL_WAYS)


def _descend(problem: Problem, state: FeedState, rank: Longs, enough: float, until: float) -> None:
    """Improve the choices until utilisation is at most `enough`, a pass gains little, or time is
    over."""
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
def reads_only_earlier(state, rank, view, r):  # type: ignore[no-untyped-def]
    """Whether all members of rewriting r have a lower rank than the view."""
    for slot in range(state.member_start[r], state.member_start[r + 1]):
        if rank[state.members[slot]] >= rank[view]:
            return False
    return True


@nb.njit(nogil=True, cache=True)
def cost_at(state, view, r, price):  # type: ignore[no-untyped-def]
    """The utilisation of a choice plus the prices of the views that it reads."""
    if r == SOURCE:
        return state.source_utilization[view] + price[price.shape[0] - 1]
    cost = state.utilization[r]
    for slot in range(state.member_start[r], state.member_start[r + 1]):
        cost += price[state.members[slot]]
    return cost


@nb.njit(nogil=True, cache=True)
def cheapest_fit(state, view, price, rank, without):  # type: ignore[no-untyped-def]
    """(cost, choice): the cheapest choice that fits and does not read `without`, or NO_FIT.

    price is float64 [view, and last the source].
    """
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
            and reads_only_earlier(state, rank, view, r)
        ):
            best, taken = cost, r
    return best, taken


@nb.njit(nogil=True, cache=True)
def readers(state, member):  # type: ignore[no-untyped-def]
    """The views that read `member`, a view or the source."""
    last = state.loads.shape[0] - 1
    views, count = np.empty(state.loads[member], np.int64), 0
    if member == last:
        for view in range(last):
            if state.choice[view] == SOURCE:
                views[count] = view
                count += 1
        return views
    slot = state.head[member]
    while slot != NONE:
        views[count] = state.slot_view[slot]
        count += 1
        slot = state.forward[slot]
    return views


@nb.njit(nogil=True, cache=True)
def relieve(state, price, rank):  # type: ignore[no-untyped-def]
    """Move readers away from views, and the source, above their limit; returns the excess left."""
    left = 0
    for member in range(state.loads.shape[0]):
        if state.loads[member] > state.limit[member]:
            _relieve_view(state, price, rank, member)
            left += max(0, state.loads[member] - state.limit[member])
    return left


@nb.njit(nogil=True, cache=True)
def _relieve_view(state, price, rank, member):  # type: ignore[no-untyped-def]
    reader_views = readers(state, member)
    regret = np.empty(reader_views.shape[0])
    for position in range(reader_views.shape[0]):
        cost, _ = cheapest_fit(state, reader_views[position], price, rank, member)
        regret[position] = cost - cost_at(
            state, reader_views[position], state.choice[reader_views[position]], price
        )
    for position in np.argsort(regret, kind="mergesort"):
        if state.loads[member] <= state.limit[member] or not np.isfinite(regret[position]):
            return
        _, r = cheapest_fit(state, reader_views[position], price, rank, member)
        if r != NO_FIT:
            switch(state, reader_views[position], r)


@nb.njit(nogil=True, cache=True)
def improve(state, free, rank):  # type: ignore[no-untyped-def]
    """Give each view the choice of least utilisation that fits; returns the gain.

    free is a price of 0 for each view and the source.
    """
    gained = 0.0
    for view in range(state.choice.shape[0]):
        now = cost_at(state, view, state.choice[view], free)
        cost, r = cheapest_fit(state, view, free, rank, NONE)
        if r != NO_FIT and cost < now:
            switch(state, view, r)
            gained += now - cost
    return gained


@nb.njit(nogil=True, cache=True)
def exchange(state, free, rank, tries, view_range, only_source):  # type: ignore[no-untyped-def]
    """Try to give views better rewritings by moving readers of full members; returns the gain.

    tries        (rewritings tried for a view, readers tried for a full member)
    view_range   (first, end) of the views
    only_source  only views that the source serves
    """
    (ways, readers_max), (first, end) = tries, view_range
    gained = 0.0
    for view in range(first, end):
        if only_source and state.choice[view] != SOURCE:
            continue
        ways_left = ways
        for r in range(state.first[view], state.end[view]):
            gain = cost_at(state, view, state.choice[view], free) - state.utilization[r]
            if gain > 0 and reads_only_earlier(state, rank, view, r):
                gained += make_room(state, free, rank, readers_max, (view, r, gain))
                ways_left -= 1
                if ways_left == 0:
                    break
    return gained


@nb.njit(nogil=True, cache=True)
def make_room(state, free, rank, readers_max, change):  # type: ignore[no-untyped-def]
    """Give a view a rewriting, if moving one reader of each full member loses less than the view
    gains. Returns the net gain, or 0 if nothing has changed.

    change is (view, rewriting, gain).
    """
    view, r, gain = change
    start = state.member_start[r]
    size, loss = state.member_start[r + 1] - start, 0.0
    moved, back = np.full(size, NONE, np.int64), np.empty(size, np.int64)
    now = state.choice[view]
    for position in range(size):
        member = state.members[start + position]
        if state.loads[member] < state.limit[member] or reads(state, now, member):
            continue
        least_loss, moving, new_choice = gain - loss, NONE, NO_FIT
        slot, readers_left = state.head[member], readers_max
        while slot != NONE and readers_left > 0:
            reader = state.slot_view[slot]
            slot, readers_left = state.forward[slot], readers_left - 1
            cost, alternative = cheapest_fit(state, reader, free, rank, member)
            reader_loss = cost - cost_at(state, reader, state.choice[reader], free)
            if reader != view and alternative != NO_FIT and reader_loss < least_loss:
                least_loss, moving, new_choice = reader_loss, reader, alternative
        if moving == NONE:
            break
        moved[position], back[position] = moving, state.choice[moving]
        switch(state, moving, new_choice)
        loss += least_loss
    if fits(state, view, r):
        switch(state, view, r)
        return gain - loss
    for position in range(size - 1, -1, -1):
        if moved[position] != NONE:
            switch(state, moved[position], back[position])
    return 0.0


@nb.njit(nogil=True, cache=True)
def restrict_to_order(graph, rank, price, choice):  # type: ignore[no-untyped-def]
    """Replace choices that read a view of higher rank by the cheapest that do not, in place."""
    for view in range(choice.shape[0]):
        if choice[view] == SOURCE or reads_only_earlier(graph, rank, view, choice[view]):
            continue
        best = graph.source_utilization[view] + price[price.shape[0] - 1]
        choice[view] = SOURCE
        for r in range(graph.view_start[view], graph.view_start[view + 1]):
            cost = reduced_cost(graph, r, price)
            if cost < best and reads_only_earlier(graph, rank, view, r):
                best, choice[view] = cost, r
