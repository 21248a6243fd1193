"""ILP, Lagrangian and brute force agree; every configuration is valid and within the limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from tests.network.configuration_problems import problem_of, problems
from tests.network.configure_brute import configure_brute

from headgate.model.errors import InvalidValue, PlanError
from headgate.network.configuration import (
    SOURCE,
    Configuration,
    check_configuration,
    utilization_of,
)
from headgate.network.configuration_problem import Problem
from headgate.network.configure import (
    SOLVERS,
    Solver,
    configure,
    configured,
    solve,
    solver_named,
)
from headgate.network.ilp import configure_ilp
from headgate.network.lagrangian import configure_lagrangian


@given(problems())
@settings(max_examples=150, deadline=None)
def test_the_ilp_equals_brute_force(problem: Problem) -> None:
    best = configure_brute(problem)
    result = configure_ilp(problem)
    if best is None:
        assert result.choice is None
        assert result.bound == np.inf
        return
    assert result.choice is not None
    check_configuration(Configuration.of(problem, result.choice))
    assert utilization_of(problem, result.choice) == pytest.approx(utilization_of(problem, best))
    assert result.bound == pytest.approx(utilization_of(problem, best))


@given(problems())
@settings(max_examples=200, deadline=None)
def test_the_lagrangian_is_within_its_certified_gap(problem: Problem) -> None:
    best = configure_brute(problem)
    result = configure_lagrangian(problem)
    if result.choice is not None:
        check_configuration(Configuration.of(problem, result.choice))
    if best is None:
        assert result.choice is None
        return
    least = utilization_of(problem, best)
    assert result.bound <= least * (1 + 1e-9)
    if result.choice is not None:
        assert utilization_of(problem, result.choice) >= least - 1e-9


@given(problems())
@settings(max_examples=60, deadline=None)
def test_a_configuration_is_found_whenever_there_is_one(problem: Problem) -> None:
    if configure_brute(problem) is None:
        with pytest.raises(PlanError, match="no configuration within the limits"):
            configure(problem)
        return
    plan = configure(problem)
    check_configuration(plan.cheap)
    check_configuration(plan.fast)
    assert plan.gap == pytest.approx(0.0, abs=1e-6)
    assert plan.fast.latency_s <= plan.cheap.latency_s + 1e-9
    assert plan.solver is Solver.ILP


def test_without_limits_each_view_takes_its_cheapest() -> None:
    problem = problem_of([[], [(0,)], [(0,), (1,)], [(1, 2), (0,)]], seed=3)
    result, bound = configured(problem, solve(problem).result)
    assert result.utilization == pytest.approx(bound)
    assert result.choice[0] == SOURCE
    assert configure_lagrangian(problem).bound == pytest.approx(bound)


def test_a_cycle_of_views_is_entered_from_the_source() -> None:
    """Two views that are equal: one must be fed from the source, although both are dear there."""
    problem = problem_of([[(1,)], [(0,)]])
    costs = replace(
        problem.costs, source_utilization=np.array([9.0, 8.0]), utilization=np.array([2.0, 3.0])
    )
    problem = replace(problem, costs=costs)
    for result in (configure_ilp(problem), configure_lagrangian(problem)):
        assert result.choice is not None
        assert sorted(result.choice == SOURCE) == [False, True]
        assert utilization_of(problem, result.choice) == 8 + 2
        assert result.bound == pytest.approx(10, rel=0.02)


def test_the_views_that_lose_least_leave_the_source() -> None:
    """All views are cheapest from the source, which may feed half of them."""
    count = 40
    problem = problem_of([[], *([(0,)] for _ in range(count))], source=1 + count // 2)
    loss = np.random.default_rng(5).permutation(count) + 1.0
    costs = replace(
        problem.costs, utilization=10 + loss, source_utilization=np.full(count + 1, 10.0)
    )
    result = configure_lagrangian(replace(problem, costs=costs))
    assert result.choice is not None
    least = 10.0 * (count + 1) + np.sort(loss)[: count // 2].sum()
    assert utilization_of(replace(problem, costs=costs), result.choice) == pytest.approx(least)
    assert result.bound == pytest.approx(least, rel=0.01)


def test_too_tight_limits_are_rejected_with_a_reason() -> None:
    problem = problem_of([[], [], [(0,)]], source=1)
    with pytest.raises(PlanError, match="the source may feed 1 views, and 2 of 3"):
        configure(problem)


def test_a_problem_without_views() -> None:
    plan = configure(problem_of([]))
    assert plan.gap == 0
    assert len(plan.fast.choice) == 0


def problem_that_loga_improves() -> Problem:
    """View 2 is cheapest from view 1, which has a high latency; from view 0 it costs a bit more."""
    problem = problem_of([[], [(0,)], [(1,), (0,)]])
    costs = replace(
        problem.costs,
        utilization=np.array([1.0, 1.0, 1.01]),
        latency_s=np.array([5.0, 1.0, 1.0]),
        source_utilization=np.array([40.0, 50.0, 50.0]),
        source_latency_s=np.array([1.0, 9.0, 9.0]),
    )
    return replace(problem, costs=costs)


@pytest.mark.parametrize("name", list(SOLVERS))
def test_loga_lowers_latency_after_every_solver(name: str) -> None:
    problem = problem_that_loga_improves()
    plan = configure(problem, solver=solver_named(name))
    assert plan.has_run_loga
    assert plan.cheap.latency_s == pytest.approx(1 + 6 + 7)
    assert plan.fast.latency_s == pytest.approx(1 + 6 + 2)
    assert plan.fast.utilization == pytest.approx(42.01)
    plain = configure(problem, solver=solver_named(name), use_loga=False)
    assert not plain.has_run_loga
    assert plain.fast is plain.cheap
    assert plain.fast.latency_s == plan.cheap.latency_s


def test_a_plan_says_which_solver_was_used_and_why() -> None:
    problem = problem_that_loga_improves()
    plan = configure(problem)
    assert (plan.solver, plan.requested) == (Solver.ILP, Solver.AUTO)
    assert plan.reason == "the graph has 3 reads, at most 30,000"
    plan = configure(problem, solver=Solver.LAGRANGIAN)
    assert (plan.solver, plan.reason) == (Solver.LAGRANGIAN, "requested")


def test_an_unknown_solver_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidValue, match="there is no solver 'lagrange': did you mean 'lagrang"):
        solver_named("lagrange")
    with pytest.raises(InvalidValue, match="use auto, ilp or lagrangian"):
        solver_named("xyzzy")
