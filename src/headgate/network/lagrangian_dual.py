"""The Lagrangian dual: prices for reading a view, and the lower bound that follows from them.

Each reader of view m pays price[m], and price[m] · B_out is subtracted in total. Then the choices
of views are independent of each other:

    L(price) = Σ_v min over rewritings r of v ( U(r) + Σ_{m in r} price[m] )  −  Σ_m price[m] B_out

Invariant: for all prices of zero or more, L is at most the utilisation of any configuration within
the limits. If the rewritability graph has cycles, each strongly connected component must be
entered: one of its views reads nothing of the component. `reward` is the multiplier of this
constraint.

The prices rise by Polyak's rule, along loads − limits plus a share of the previous step. The step
aims a little above the best bound so far, but not above a known configuration, and shrinks when
nothing is gained. Each step reads every member of every rewriting once; two threads share the
views.

If no configuration keeps the limits, the prices rise without end. This is proved as soon as the
bound is above the sum of the dearest choices of all views.

Rejected: the LP by HiGHS. Its bound is the same, because the minimum over each view is integral,
but it took 88 s on a graph of 2.66 million rewritings.
"""

from __future__ import annotations

import heapq
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.network.configuration import SOURCE, count_loads
from headgate.network.configuration_problem import UNLIMITED, Floats, Ints, Longs, Problem

THREADS = 2
SMALL = 200_000
"""With fewer members, a second thread costs more than it saves."""
AIM = 0.1
"""How far above the best bound a step aims, as a share of it."""
MOMENTUM = 0.8
"""The share of the previous direction: on XMark views 0.8 needs two thirds of the steps of 0.5."""
PATIENCE, SHRINK, SCALE_MIN = 6, 0.6, 1e-4
"""After PATIENCE steps without gain, the ascent returns to the best prices with smaller steps."""


class DualGraph(NamedTuple):
    """The rewritability graph for the kernels."""

    view_start: Longs  # [view + 1]
    member_start: Longs  # [rewriting + 1]
    members: Ints
    utilization: Floats  # [rewriting]
    source_utilization: Floats  # [view]
    part: Longs  # [view]: the component with cycles that it is in, or -1
    enters: npt.NDArray[np.bool_]  # [rewriting]: it reads nothing of its view's component


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """Prices, their lower bound, and the cheapest choice of each view at these prices."""

    price: Floats
    bound: float
    choice: Longs


def dual_graph(problem: Problem) -> tuple[DualGraph, Longs]:
    """The graph, and the component of each view; components that are read have lower numbers."""
    rewritings, costs = problem.rewritings, problem.costs
    arrays = rewritings.view_start, rewritings.member_start, rewritings.members
    component: Longs = components(*arrays)
    sizes = np.bincount(component, minlength=1)
    numbers = np.where(sizes > 1, np.cumsum(sizes > 1) - 1, -1)
    part = numbers[component] if len(component) else np.zeros(0, np.int64)
    enters = np.zeros(len(costs.utilization), np.bool_)
    if (part >= 0).any():
        mark_entrances(*arrays, part, enters)
    return DualGraph(*arrays, costs.utilization, costs.source_utilization, part, enters), component


def _dearest(graph: DualGraph) -> float:
    """An upper bound of the utilisation of any configuration, with a margin for rounding."""
    dearest = graph.source_utilization.copy()
    owner = np.repeat(np.arange(len(dearest)), np.diff(graph.view_start))
    np.maximum.at(dearest, owner, graph.utilization)
    return float(dearest.sum()) * (1 + 1e-6) + 1e-6


class _Dual:
    """The dual function L: its value and a subgradient."""

    def __init__(self, problem: Problem, graph: DualGraph) -> None:
        self.graph = graph
        self.views = len(graph.part)
        self.limit = np.append(problem.limits.views, problem.limits.source).astype(np.float64)
        self.is_free = self.limit >= UNLIMITED
        self.ceiling = _dearest(graph)
        self.parts = int(graph.part.max(initial=-1)) + 1
        self.choice = np.empty(self.views, np.int64)
        self.threads = None if len(graph.members) < SMALL else ThreadPoolExecutor(THREADS)

    def value(self, multipliers: Floats) -> tuple[float, Floats]:
        price, reward = multipliers[: self.views + 1], multipliers[self.views + 1 :]
        total = self._take_cheapest(price, reward)
        loads = np.empty(self.views + 1, np.int64)
        count_loads(self.graph.member_start, self.graph.members, self.choice, loads)
        entrances = np.empty(self.parts, np.int64)
        count_entrances(self.graph, self.choice, entrances)
        limit = np.where(self.is_free, 0.0, self.limit)
        slope = np.where(self.is_free, -1.0, loads - limit)
        bound = total - float(price @ limit) + float(reward.sum())
        return bound, np.concatenate([slope, 1.0 - entrances])

    def _take_cheapest(self, price: Floats, reward: Floats) -> float:
        if self.threads is None:
            return float(take_cheapest(self.graph, price, reward, 0, self.views, self.choice))
        cuts = [self.views * part // THREADS for part in range(THREADS + 1)]
        futures = [
            self.threads.submit(take_cheapest, self.graph, price, reward, first, end, self.choice)
            for first, end in pairwise(cuts)
        ]
        return float(sum(each.result() for each in futures))


class Ascent:
    """Subgradient ascent of the dual; `best` has the best prices so far."""

    def __init__(self, problem: Problem, graph: DualGraph) -> None:
        self._dual = _Dual(problem, graph)
        self._point = np.zeros(self._dual.views + 1 + self._dual.parts)
        self._start = self._point
        self._direction = np.zeros(len(self._point))
        self._scale, self._stale = 1.0, 0
        self.best = Prices(self._point[: self._dual.views + 1], -np.inf, self._dual.choice)
        self.is_done = self.is_impossible = False
        self.reached = np.inf
        """The utilisation of the best known configuration: no bound is above it."""
        self.steps = 0

    def climb(self, *, steps: int, until: float = np.inf) -> Prices:
        """Take this many steps; fewer if the maximum is reached or the clock passes `until`."""
        for _ in range(steps):
            if self.is_done or time.monotonic() > until:
                break
            self._step()
        return self.best

    def _step(self) -> None:
        point = self._point
        value, slope = self._dual.value(point)
        self.steps += 1
        gained = value - self.best.bound
        self._stale = 0 if gained > 1e-5 * abs(value) else self._stale + 1
        if gained > 0:
            self._start = point
            price = point[: self._dual.views + 1]
            self.best = Prices(price, value, self._dual.choice.copy())
        slope[(point <= 0) & (slope < 0)] = 0.0
        self.is_impossible = value > self._dual.ceiling
        if not slope.any() or self._scale < SCALE_MIN or self.is_impossible:
            self.is_done = True
        elif self._stale >= PATIENCE:
            self._scale, self._stale = self._scale * SHRINK, 0
            self._point, self._direction = self._start, np.zeros(len(point))
        else:
            self._move(value, slope)

    def _move(self, value: float, slope: Floats) -> None:
        direction = slope + MOMENTUM * self._direction
        uphill = float(direction @ slope)
        if uphill <= 0:
            direction, uphill = slope, float(slope @ slope)
        bound = self.best.bound
        above = min(AIM * abs(bound), self.reached - bound)
        aim = self._scale * max(above, 1e-9) + (bound - value)
        self._point = np.maximum(0.0, self._point + self._scale * aim / uphill * direction)
        self._direction = direction


# Kernels: the cheapest choice of each view.
#
# price    float64 [view, and last the source]: added to the cost of each reader
# reward   float64 [component]: subtracted from the cost of choices that enter the component


@nb.njit(nogil=True, cache=True)
def reduced_cost(graph, r, price):  # type: ignore[no-untyped-def]
    """The utilisation of a rewriting plus the prices of its members."""
    cost = graph.utilization[r]
    for slot in range(graph.member_start[r], graph.member_start[r + 1]):
        cost += price[graph.members[slot]]
    return cost


@nb.njit(nogil=True, cache=True)
def take_cheapest(graph, price, reward, first, end, choice):  # type: ignore[no-untyped-def]
    """Write the cheapest choice of views first … end − 1 to `choice`; returns their total cost."""
    total = 0.0
    source_price = price[price.shape[0] - 1]
    for view in range(first, end):
        part = graph.part[view]
        best, taken = graph.source_utilization[view] + source_price, SOURCE
        if part >= 0:
            best -= reward[part]
        for r in range(graph.view_start[view], graph.view_start[view + 1]):
            cost = reduced_cost(graph, r, price)
            if part >= 0 and graph.enters[r]:
                cost -= reward[part]
            if cost < best:
                best, taken = cost, r
        choice[view] = taken
        total += best
    return total


@nb.njit(nogil=True, cache=True)
def count_entrances(graph, choice, count):  # type: ignore[no-untyped-def]
    """Write to `count` how many views of each component read nothing of it."""
    count[:] = 0
    for view in range(choice.shape[0]):
        part, r = graph.part[view], choice[view]
        if part >= 0 and (r == SOURCE or graph.enters[r]):
            count[part] += 1


@nb.njit(nogil=True, cache=True)
def mark_entrances(view_start, member_start, members, part, enters):  # type: ignore[no-untyped-def]
    for view in range(view_start.shape[0] - 1):
        for r in range(view_start[view], view_start[view + 1]):
            enters[r] = True
            for slot in range(member_start[r], member_start[r + 1]):
                if part[members[slot]] == part[view]:
                    enters[r] = False


@nb.njit(nogil=True, cache=True)
def components(view_start, member_start, members):  # type: ignore[no-untyped-def]
    """Strongly connected components of the "may read" relation (Tarjan), int64 [view].

    A view that is read never has a component of higher number than its reader.
    """
    views = view_start.shape[0] - 1
    component, low = np.full(views, -1, np.int64), np.full(views, -1, np.int64)
    index, next_slot = np.full(views, -1, np.int64), np.zeros(views, np.int64)
    open_, path = np.empty(views, np.int64), np.empty(views, np.int64)
    opened, depth, counter, count = 0, 0, 0, 0
    for root in range(views):
        if index[root] >= 0:
            continue
        path[0], depth = root, 1
        while depth > 0:
            view = path[depth - 1]
            if index[view] < 0:
                index[view] = low[view] = counter
                counter += 1
                next_slot[view] = member_start[view_start[view]]
                open_[opened] = view
                opened += 1
            end = member_start[view_start[view + 1]]
            while next_slot[view] < end and index[members[next_slot[view]]] >= 0:
                other = members[next_slot[view]]
                if component[other] < 0:
                    low[view] = min(low[view], index[other])
                next_slot[view] += 1
            if next_slot[view] < end:
                path[depth] = members[next_slot[view]]
                depth += 1
                continue
            if low[view] == index[view]:
                while True:
                    opened -= 1
                    component[open_[opened]] = count
                    if open_[opened] == view:
                        break
                count += 1
            depth -= 1
            if depth > 0:
                low[path[depth - 1]] = min(low[path[depth - 1]], low[view])
    return component


# Kernels: an order in which views can be fed if the graph has cycles.
#
# Components come in topological order. Within a component, a heap gives the next view: the one
# that loses least, at the given prices and compared to its best choice, by reading only views that
# have been ranked already.


@nb.njit(nogil=True, cache=True)
def rank_views(graph, component, price):  # type: ignore[no-untyped-def]
    """int64 [view]: the rank of each view; see above."""
    views = component.shape[0]
    owner, waits, start, readers = _inner_reads(graph, component)
    best, heap = np.empty(views), [(np.int64(-1), 0.0, np.int64(-1))]
    for view in range(views):
        least = entry = graph.source_utilization[view] + price[views]
        for r in range(graph.view_start[view], graph.view_start[view + 1]):
            cost = reduced_cost(graph, r, price)
            least = min(least, cost)
            if waits[r] == 0:
                entry = min(entry, cost)
        best[view] = least
        heapq.heappush(heap, (component[view], entry - least, np.int64(view)))
    rank, counter = np.full(views, -1, np.int64), 0
    while len(heap) > 0:
        fed = heapq.heappop(heap)[2]
        if fed < 0 or rank[fed] >= 0:
            continue
        rank[fed] = counter
        counter += 1
        for position in range(start[fed], start[fed + 1]):
            r = readers[position]
            waits[r] -= 1
            if waits[r] == 0 and rank[owner[r]] < 0:
                loss = reduced_cost(graph, r, price) - best[owner[r]]
                heapq.heappush(heap, (component[owner[r]], loss, np.int64(owner[r])))
    return rank


@nb.njit(nogil=True, cache=True)
def _inner_reads(graph, component):  # type: ignore[no-untyped-def]
    """Reads within components: (owner, waits, start, readers).

    owner    int32 [rewriting]  its view
    waits    int32 [rewriting]  how many of its members are in the component of its view
    start    int64 [view + 1]   the rewritings of the same component that read view v are
    readers  int64              readers[start[v] : start[v + 1]]
    """
    views, count = component.shape[0], graph.utilization.shape[0]
    owner, waits = np.empty(count, np.int32), np.zeros(count, np.int32)
    start = np.zeros(views + 1, np.int64)
    for view in range(views):
        for r in range(graph.view_start[view], graph.view_start[view + 1]):
            owner[r] = view
            for slot in range(graph.member_start[r], graph.member_start[r + 1]):
                if component[graph.members[slot]] == component[view]:
                    waits[r] += 1
                    start[graph.members[slot] + 1] += 1
    start[:] = np.cumsum(start)
    readers, place = np.empty(start[views], np.int64), start.copy()
    for r in range(count):
        for slot in range(graph.member_start[r], graph.member_start[r + 1]):
            member = graph.members[slot]
            if component[member] == component[owner[r]]:
                readers[place[member]] = r
                place[member] += 1
    return owner, waits, start, readers
