"""Choose a configuration: a solver minimises utilisation, then LOGA lowers latency ([Delta §3.2]).

    problem ──► solver ──► cheap configuration ──► LOGA ──► fast configuration

The solvers by name (`SOLVERS`):

    ilp           HiGHS solves the integer program and proves the optimum ([Delta §3.3])
    lagrangian    prices and repair: near-optimal with a certified bound, for large graphs (§3.4)
    auto          ilp for at most ILP_READS_MAX reads in the rewritability graph, else lagrangian

`auto` gives HiGHS half of the time; if it has found no configuration by then, the Lagrangian
continues. If the Lagrangian leaves a gap above POOR_GAP in a graph of at most IMPROVABLE_READS_MAX
reads, or cannot keep very tight limits, HiGHS gets the remaining time.

Invariant: both configurations keep all limits, and `bound` is a lower bound of the utilisation
within them, so every plan states its maximal distance to the optimum (`gap`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from headgate.model.errors import InvalidValue, PlanError, alternatives, did_you_mean
from headgate.network.configuration import Configuration, check_configuration, utilization_of
from headgate.network.configuration_problem import Problem, SolverResult
from headgate.network.ilp import configure_ilp
from headgate.network.lagrangian import configure_lagrangian
from headgate.network.loga import READERS_MAX, RELAXED, loga

ILP_READS_MAX = 30_000
"""`auto` uses HiGHS up to this many reads: mostly it proves the optimum within seconds."""
POOR_GAP, IMPROVABLE_READS_MAX = 0.01, 200_000
"""A larger gap is worth HiGHS's time in graphs of at most this many reads."""
TIME_S = 60.0
RISE_MAX = 0.07
"""By how much LOGA may raise utilisation: the maximum that the paper observed (§5.4)."""


class Solver(StrEnum):
    AUTO = "auto"
    ILP = "ilp"
    LAGRANGIAN = "lagrangian"


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """The result of a solver, with the solver that found it and why that one was used."""

    result: SolverResult
    solver: Solver
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class NetworkPlan:
    """`cheap` has the least utilisation that was found; `fast` is `cheap` after LOGA."""

    cheap: Configuration
    fast: Configuration
    """The same as `cheap` where LOGA was not run."""
    bound: float
    """No configuration within the limits has a utilisation below this."""
    solver: Solver
    reason: str
    """Why this solver was used."""
    requested: Solver
    has_run_loga: bool
    solving_s: float
    latency_s: float
    """The time that LOGA took."""

    @property
    def gap(self) -> float:
        """The relative gap between the utilisation and the bound: at most this far from optimal."""
        return gap_of(self.cheap.utilization, self.bound)


def gap_of(utilization: float, bound: float) -> float:
    if utilization <= bound:
        return 0.0
    return (utilization - bound) / bound if bound > 0 else float("inf")


def solver_named(name: str) -> Solver:
    """The solver of this name; InvalidValue with the nearest name where there is none."""
    try:
        return Solver(name)
    except ValueError:
        hint = did_you_mean(name, SOLVERS) or f"use {alternatives(list(SOLVERS))}"
        raise InvalidValue(f"there is no solver '{name}': {hint}") from None


def configure(
    problem: Problem,
    *,
    solver: Solver = Solver.AUTO,
    use_loga: bool = True,
    time_s: float = TIME_S,
    relaxed: float = RELAXED,
    rise_max: float | None = RISE_MAX,
    readers_max: int | None = READERS_MAX,
) -> NetworkPlan:
    """Plan with a solver, then with LOGA.

    `relaxed`, `rise_max` and `readers_max` are parameters of LOGA; with None for the last two it
    runs as printed in the paper (loga.py).
    """
    began = time.monotonic()
    solved = solve(problem, solver=solver, time_s=time_s)
    cheap, bound = configured(problem, solved.result)
    solved_at = time.monotonic()
    fast = cheap
    if use_loga:
        fast = loga(cheap, relaxed=relaxed, rise_max=rise_max, readers_max=readers_max)
        check_configuration(fast)
    return NetworkPlan(
        cheap,
        fast,
        bound,
        solver=solved.solver,
        reason=solved.reason,
        requested=solver,
        has_run_loga=use_loga,
        solving_s=solved_at - began,
        latency_s=time.monotonic() - solved_at,
    )


def solve(problem: Problem, *, solver: Solver = Solver.AUTO, time_s: float = TIME_S) -> Solved:
    """Minimise utilisation; `SOLVERS` has the function of each solver."""
    return SOLVERS[solver](problem, time_s)


def configured(problem: Problem, result: SolverResult) -> tuple[Configuration, float]:
    """The configuration of a result and its bound; PlanError if none was found."""
    if result.choice is None:
        raise PlanError(_infeasible_text(problem, is_proven=bool(result.bound == np.inf)))
    configuration = Configuration.of(problem, result.choice)
    check_configuration(configuration)
    return configuration, min(result.bound, utilization_of(problem, result.choice))


def _solve_auto(problem: Problem, time_s: float) -> Solved:
    until = time.monotonic() + time_s
    reads = len(problem.rewritings.members)
    size = f"the graph has {reads:,} reads"
    is_small = reads <= ILP_READS_MAX
    result, solver = SolverResult(None, -np.inf), Solver.LAGRANGIAN
    reason = f"{size}, more than {ILP_READS_MAX:,}"
    if is_small:
        result, solver = configure_ilp(problem, time_s=time_s / 2), Solver.ILP
        reason = f"{size}, at most {ILP_READS_MAX:,}"
    if result.choice is None and result.bound < np.inf:
        left_s = max(1.0, until - time.monotonic())
        result, solver = configure_lagrangian(problem, time_s=left_s), Solver.LAGRANGIAN
        if is_small:
            reason = f"{size}, and the ILP found nothing within {time_s / 2:,.0f} s"
    if not is_small and _is_poor(problem, result):
        left_s = max(1.0, until - time.monotonic())
        exact = configure_ilp(problem, time_s=left_s)
        if result.choice is None or _is_better(problem, exact, result):
            result = SolverResult(exact.choice, max(exact.bound, result.bound))
            solver, reason = Solver.ILP, f"{size}, and it improved on what lagrangian found"
    return Solved(result, solver, reason)


def _solve_ilp(problem: Problem, time_s: float) -> Solved:
    return Solved(configure_ilp(problem, time_s=time_s), Solver.ILP, "requested")


def _solve_lagrangian(problem: Problem, time_s: float) -> Solved:
    return Solved(configure_lagrangian(problem, time_s=time_s), Solver.LAGRANGIAN, "requested")


SOLVERS: Mapping[str, Callable[[Problem, float], Solved]] = {
    Solver.AUTO: _solve_auto,
    Solver.ILP: _solve_ilp,
    Solver.LAGRANGIAN: _solve_lagrangian,
}


def _is_poor(problem: Problem, result: SolverResult) -> bool:
    """Nothing was found, or the gap is large and HiGHS can close it in the remaining time."""
    if result.choice is None:
        return result.bound < np.inf
    gap = gap_of(utilization_of(problem, result.choice), result.bound)
    return gap > POOR_GAP and len(problem.rewritings.members) <= IMPROVABLE_READS_MAX


def _is_better(problem: Problem, new: SolverResult, old: SolverResult) -> bool:
    if new.choice is None or old.choice is None:
        return False
    return utilization_of(problem, new.choice) < utilization_of(problem, old.choice)


def _infeasible_text(problem: Problem, *, is_proven: bool) -> str:
    """The message if there is no configuration. The source must serve views without rewriting."""
    alone = int((np.diff(problem.rewritings.view_start) == 0).sum())
    finding = "there is no configuration" if is_proven else "no configuration was found"
    return (
        f"{finding} within the limits: the source may feed {problem.limits.source:,} views, "
        f"and {alone:,} of {problem.rewritings.view_count:,} views have no rewriting; "
        "raise the limit of the source or those of the views"
    )
