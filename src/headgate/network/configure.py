"""Choosing a configuration: first utilisation, then latency ([Delta §3.2]).

    1. utilisation    by HiGHS where the graph is small, by prices and repair where it is large
    2. latency        LOGA, from there

Which solver: up to ILP_MEMBERS_MAX reads in the graph HiGHS proves the optimum, mostly within
seconds, and gets half of the time for it. Beyond, or where it has found nothing by then, the
Lagrangian takes over. Where that fails to keep limits that are very tight, or leaves a large gap in
a graph of moderate size, HiGHS gets what time is left.
Every plan says how far at most it is from the optimum: `gap`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from headgate.model.errors import PlanError
from headgate.network.configuration import Configuration, check_configuration, utilization_of
from headgate.network.configuration_problem import Problem, Solution
from headgate.network.ilp import configure_ilp
from headgate.network.lagrangian import configure_lagrangian
from headgate.network.loga import READERS_MAX, RELAXED, loga

ILP_MEMBERS_MAX = 30_000
POOR, IMPROVABLE_MAX = 0.01, 200_000
"""A gap above this is worth HiGHS's time in graphs of at most so many reads."""
TIME_S = 60.0
RISE_MAX = 0.07
"""By how much LOGA may raise utilisation: what the paper's did at most (§5.4)."""


class Solver(StrEnum):
    ILP = "ilp"
    LAGRANGIAN = "lagrangian"


@dataclass(frozen=True, slots=True, eq=False)
class NetworkPlan:
    """`cheap` has the least utilisation that was found, `fast` is what LOGA made of it."""

    cheap: Configuration
    fast: Configuration
    bound: float
    """No configuration within the limits has a utilisation below this."""
    solver: Solver
    solving_s: float
    latency_s: float
    """What LOGA took."""

    @property
    def gap(self) -> float:
        """By what share of the bound the utilisation is above it, at most."""
        return gap_of(self.cheap.utilization, self.bound)


def gap_of(utilization: float, bound: float) -> float:
    if utilization <= bound:
        return 0.0
    return (utilization - bound) / bound if bound > 0 else float("inf")


def configure(
    problem: Problem,
    *,
    time_s: float = TIME_S,
    relaxed: float = RELAXED,
    rise_max: float | None = RISE_MAX,
    readers_max: int | None = READERS_MAX,
) -> NetworkPlan:
    """`relaxed`, `rise_max` and `readers_max` are for LOGA; with None for the last two it runs as
    printed (loga.py)."""
    began = time.monotonic()
    cheap, bound, solver = configure_utilization(problem, time_s=time_s)
    solved = time.monotonic()
    fast = loga(cheap, relaxed=relaxed, rise_max=rise_max, readers_max=readers_max)
    check_configuration(fast)
    took = solved - began, time.monotonic() - solved
    return NetworkPlan(cheap, fast, bound, solver, *took)


def configure_utilization(
    problem: Problem, *, time_s: float = TIME_S
) -> tuple[Configuration, float, Solver]:
    """The configuration, a bound, and who found it."""
    until = time.monotonic() + time_s
    is_small = len(problem.rewritings.members) <= ILP_MEMBERS_MAX
    found, solver = Solution(None, -np.inf), Solver.LAGRANGIAN
    if is_small:
        found, solver = configure_ilp(problem, time_s=time_s / 2), Solver.ILP
    if found.choice is None and found.bound < np.inf:
        left_s = max(1.0, until - time.monotonic())
        found, solver = configure_lagrangian(problem, time_s=left_s), Solver.LAGRANGIAN
    if not is_small and _is_poor(problem, found):
        left_s = max(1.0, until - time.monotonic())
        exact = configure_ilp(problem, time_s=left_s)
        if found.choice is None or _is_better(problem, exact, found):
            found = Solution(exact.choice, max(exact.bound, found.bound))
            solver = Solver.ILP
    if found.choice is None:
        raise PlanError(_why_not(problem, is_proven=bool(found.bound == np.inf)))
    configuration = Configuration.of(problem, found.choice)
    check_configuration(configuration)
    return configuration, min(found.bound, utilization_of(problem, found.choice)), solver


def _is_poor(problem: Problem, found: Solution) -> bool:
    """Nothing was found, or what was found may be far off and HiGHS can do better in the time."""
    if found.choice is None:
        return found.bound < np.inf
    gap = gap_of(utilization_of(problem, found.choice), found.bound)
    return gap > POOR and len(problem.rewritings.members) <= IMPROVABLE_MAX


def _is_better(problem: Problem, one: Solution, other: Solution) -> bool:
    if one.choice is None or other.choice is None:
        return False
    return utilization_of(problem, one.choice) < utilization_of(problem, other.choice)


def _why_not(problem: Problem, *, is_proven: bool) -> str:
    """What to raise: the source must at least serve what nobody else can."""
    alone = int((np.diff(problem.rewritings.view_start) == 0).sum())
    said = "there is no configuration" if is_proven else "no configuration was found"
    return (
        f"{said} within the limits: the source may feed {problem.limits.source:,} views, "
        f"and {alone:,} of {problem.rewritings.view_count:,} can be served by nobody else; "
        "raise the limit of the source or those of the views"
    )
