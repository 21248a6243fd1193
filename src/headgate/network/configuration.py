"""A configuration: one way to serve each view ([Delta §2.1], "CFG"), and what it costs (§2.2).

      D ──► v1 ──► v4          choice[v] is the number of a rewriting, or SOURCE
      D ──► v2 ─┬► v3          v3 reads v1 and v2: it is on level 2, and waits for the slower one
            v1 ─┘

Invariant (`check_configuration`): each view has one choice among its own rewritings; there is no
cycle, so every view is fed from the source in the end; no view feeds more than its limit, nor does
the source.

    utilization    the sum of U(a) over the chosen rewritings
    latency        the sum of λ(v) over views, where λ(v) = max λ(members) + l(a), and λ(D) = 0
    cost           α · utilization + β · latency
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np

from headgate.model.errors import PlanError
from headgate.network.configuration_problem import Floats, Longs, Problem

__all__ = ["ABSENT", "SOURCE", "Configuration", "check_configuration"]


@dataclass(frozen=True, slots=True, eq=False)
class Configuration:
    """The choices and the levels and loads that follow from them. Made by `of`."""

    problem: Problem
    choice: Longs
    order: Longs
    """Views in topological order, each after those it reads; without views on or behind cycles."""
    level: Longs
    loads: Longs
    """[view, and last the source]: how many views it feeds."""

    @staticmethod
    def of(problem: Problem, choice: Longs) -> Configuration:
        rewritings = problem.rewritings
        arrays = rewritings.member_start, rewritings.members, choice
        order, level = feeding_order(*arrays)
        loads = np.zeros(rewritings.view_count + 1, np.int64)
        count_loads(*arrays, loads)
        return Configuration(problem, choice, order, level, loads)

    @property
    def utilization(self) -> float:
        return utilization_of(self.problem, self.choice)

    def latencies_s(self) -> Floats:
        rewritings, costs = self.problem.rewritings, self.problem.costs
        latency_s: Floats = latencies(
            rewritings.member_start,
            rewritings.members,
            self.choice,
            self.order,
            costs.latency_s,
            costs.source_latency_s,
        )
        return latency_s

    @property
    def latency_s(self) -> float:
        return float(self.latencies_s().sum())

    def cost(self, *, alpha: float, beta: float) -> float:
        return alpha * self.utilization + beta * self.latency_s

    @property
    def rewritten_share(self) -> float:
        """The share of views that other views serve."""
        return float(np.mean(self.choice != SOURCE)) if len(self.choice) else 0.0

    @property
    def views_per_rewriting(self) -> float:
        chosen = self.choice[self.choice != SOURCE]
        start = self.problem.rewritings.member_start
        return float(np.mean(start[chosen + 1] - start[chosen])) if len(chosen) else 0.0

    def reads(self) -> list[list[int]]:
        """For each view, the views that it reads; none if the source serves it."""
        rewritings = self.problem.rewritings
        start, members = rewritings.member_start, rewritings.members
        return [
            members[start[r] : start[r + 1]].tolist() if r != SOURCE else []
            for r in self.choice.tolist()
        ]

    def views_by_level(self) -> Longs:
        """How many views are on level 1, 2, …"""
        return np.bincount(self.level, minlength=2)[1:].astype(np.int64)


def utilization_of(problem: Problem, choice: Longs) -> float:
    from_source = choice == SOURCE
    chosen = problem.costs.utilization[choice[~from_source]]
    return float(chosen.sum() + problem.costs.source_utilization[from_source].sum())


def check_configuration(configuration: Configuration) -> None:
    """Raise PlanError if a choice is not valid, there is a cycle, or a limit is exceeded."""
    problem, choice = configuration.problem, configuration.choice
    start = problem.rewritings.view_start
    views = problem.rewritings.view_count
    if len(choice) != views:
        raise PlanError(f"a configuration has {len(choice):,} choices for {views:,} views")
    is_valid = (choice >= start[:-1]) & (choice < start[1:]) | (choice == SOURCE)
    if not is_valid.all():
        raise PlanError(f"view {int(np.argmin(is_valid))} has a rewriting that is not its own")
    if len(configuration.order) < views:
        fed = np.zeros(views, np.bool_)
        fed[configuration.order] = True
        raise PlanError(f"view {int(np.argmin(fed))} is not fed from the source: there is a cycle")
    over = configuration.loads > np.append(problem.limits.views, problem.limits.source)
    if over.any():
        number = int(np.argmax(over))
        name = "the source" if number == views else f"view {number}"
        limit = problem.limits.source if number == views else int(problem.limits.views[number])
        raise PlanError(f"{name} feeds {configuration.loads[number]:,} views, more than {limit:,}")


# Kernels. `member_start` and `members` are those of the rewritability graph.

SOURCE = -1
ABSENT = -2
"""The choice of a view that was removed."""


@nb.njit(nogil=True, cache=True)
def count_loads(member_start, members, choice, loads):  # type: ignore[no-untyped-def]
    """Fill loads, int64 [view, and last the source], with the number of views that each feeds."""
    loads[:] = 0
    for view in range(choice.shape[0]):
        r = choice[view]
        if r == SOURCE:
            loads[loads.shape[0] - 1] += 1
        elif r >= 0:
            for slot in range(member_start[r], member_start[r + 1]):
                loads[members[slot]] += 1


@nb.njit(nogil=True, cache=True)
def feeding_order(member_start, members, choice):  # type: ignore[no-untyped-def]
    """A topological order of the views, and their levels.

    choice  int64 [view]
    Returns order, int64, shorter than `choice` if there is a cycle; and level, int64 [view]: 1 from
    the source, else one more than the highest of its members.
    """
    views = choice.shape[0]
    feeds, waits, level = _who_feeds_whom(member_start, members, choice)
    order, end = np.empty(views, np.int64), 0
    for view in range(views):
        if choice[view] == SOURCE:
            level[view] = 1
            order[end] = view
            end += 1
    position = 0
    while position < end:
        view = order[position]
        position += 1
        for slot in range(feeds[0][view], feeds[0][view + 1]):
            reader = feeds[1][slot]
            level[reader] = max(level[reader], level[view] + 1)
            waits[reader] -= 1
            if waits[reader] == 0:
                order[end] = reader
                end += 1
    return order[:end], level


@nb.njit(nogil=True, cache=True)
def _who_feeds_whom(member_start, members, choice):  # type: ignore[no-untyped-def]
    views = choice.shape[0]
    start, waits = np.zeros(views + 1, np.int64), np.zeros(views, np.int64)
    for view in range(views):
        if choice[view] >= 0:
            for slot in range(member_start[choice[view]], member_start[choice[view] + 1]):
                start[members[slot] + 1] += 1
                waits[view] += 1
    start[:] = np.cumsum(start)
    readers, place = np.empty(start[views], np.int64), start.copy()
    for view in range(views):
        if choice[view] >= 0:
            for slot in range(member_start[choice[view]], member_start[choice[view] + 1]):
                readers[place[members[slot]]] = view
                place[members[slot]] += 1
    return (start, readers), waits, np.zeros(views, np.int64)


@nb.njit(nogil=True, cache=True)
def readers_of_all(member_start, members, choice):  # type: ignore[no-untyped-def]
    """(start, readers): the views that read view v are readers[start[v] : start[v + 1]]."""
    feeds, _, _ = _who_feeds_whom(member_start, members, choice)
    return feeds


@nb.njit(nogil=True, cache=True)
def latencies(member_start, members, choice, order, local_s, source_s):  # type: ignore[no-untyped-def]
    """λ(v), float64 [view]: the latency of its slowest member plus that of its own rewriting.

    order is that of `feeding_order`; local_s is float64 [rewriting]; source_s is float64 [view].
    """
    latency_s = np.zeros(choice.shape[0])
    for position in range(order.shape[0]):
        view = order[position]
        r = choice[view]
        if r == SOURCE:
            latency_s[view] = source_s[view]
            continue
        slowest = 0.0
        for slot in range(member_start[r], member_start[r + 1]):
            slowest = max(slowest, latency_s[members[slot]])
        latency_s[view] = slowest + local_s[r]
    return latency_s
