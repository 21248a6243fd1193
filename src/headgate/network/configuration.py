"""A configuration: one way to serve each view ([Delta §2.1], "CFG"), and what it costs (§2.2).

      D ──► v1 ──► v4          choice[v] is the number of a rewriting, or SOURCE
      D ──► v2 ─┬► v3          v3 reads v1 and v2: it is on level 2, and waits for the slower one
            v1 ─┘

Law (checked by `check_configuration`): one choice for each view, among its own; no cycle, so that
every view is fed from the source in the end; no view and not the source feeds more than its limit.

    utilization    the sum of U(a) over the chosen rewritings
    latency        the sum of λ(v) over views, where λ(v) = max λ(members) + l(a), and λ(D) = 0
    cost           α · utilization + β · latency
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.model.errors import PlanError
from headgate.network import configuration_kernels as kernels
from headgate.network.configuration_kernels import ABSENT, SOURCE
from headgate.network.configuration_problem import Floats, Longs, Problem

__all__ = ["ABSENT", "SOURCE", "Configuration", "check_configuration"]


@dataclass(frozen=True, slots=True, eq=False)
class Configuration:
    """The choices, with what follows from them; made by `of`."""

    problem: Problem
    choice: Longs
    order: Longs
    """Views, each after those it reads; all of them, unless there is a cycle."""
    level: Longs
    loads: Longs
    """How many views each one feeds; the last place is the source's."""

    @staticmethod
    def of(problem: Problem, choice: Longs) -> Configuration:
        rewritings = problem.rewritings
        arrays = rewritings.member_start, rewritings.members, choice
        order, level = kernels.feeding_order(*arrays)
        loads = np.zeros(rewritings.view_count + 1, np.int64)
        kernels.count_loads(*arrays, loads)
        return Configuration(problem, choice, order, level, loads)

    @property
    def utilization(self) -> float:
        return utilization_of(self.problem, self.choice)

    def latencies_s(self) -> Floats:
        rewritings, costs = self.problem.rewritings, self.problem.costs
        found: Floats = kernels.latencies(
            rewritings.member_start,
            rewritings.members,
            self.choice,
            self.order,
            costs.latency_s,
            costs.source_latency_s,
        )
        return found

    @property
    def latency_s(self) -> float:
        return float(self.latencies_s().sum())

    def cost(self, *, alpha: float, beta: float) -> float:
        return alpha * self.utilization + beta * self.latency_s

    @property
    def rewritten_share(self) -> float:
        """Of all views, those that other views serve."""
        return float(np.mean(self.choice != SOURCE)) if len(self.choice) else 0.0

    @property
    def views_per_rewriting(self) -> float:
        chosen = self.choice[self.choice != SOURCE]
        start = self.problem.rewritings.member_start
        return float(np.mean(start[chosen + 1] - start[chosen])) if len(chosen) else 0.0

    def reads(self) -> list[list[int]]:
        """Of each view the views that it reads; none if the source serves it."""
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
    """Refuse what is no configuration within the limits, and say why."""
    problem, choice = configuration.problem, configuration.choice
    start = problem.rewritings.view_start
    views = problem.rewritings.view_count
    if len(choice) != views:
        raise PlanError(f"{len(choice):,} choices for {views:,} views")
    own = (choice >= start[:-1]) & (choice < start[1:]) | (choice == SOURCE)
    if not own.all():
        raise PlanError(f"view {int(np.argmin(own))} has a rewriting that is not its own")
    if len(configuration.order) < views:
        fed = np.zeros(views, np.bool_)
        fed[configuration.order] = True
        raise PlanError(f"view {int(np.argmin(fed))} is not fed from the source: there is a cycle")
    over = configuration.loads > np.append(problem.limits.views, problem.limits.source)
    if over.any():
        at = int(np.argmax(over))
        who = "the source" if at == views else f"view {at}"
        limit = problem.limits.source if at == views else int(problem.limits.views[at])
        raise PlanError(f"{who} feeds {configuration.loads[at]:,} views, more than {limit:,}")
