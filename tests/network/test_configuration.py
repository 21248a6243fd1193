"""Levels, loads and costs of the paper's small examples; invalid configurations are rejected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.network.configuration_problems import problem_of, rewritings_of

from headgate.model.errors import InvalidValue, PlanError
from headgate.network.configuration import SOURCE, Configuration, check_configuration
from headgate.network.configuration_problem import Limits, Problem, check_rewritings
from headgate.views.rewrite_cgr import Rewritings


def figure_3() -> Problem:
    """v1 from v2 and v3 or from D; v4 from v2 and v3, from v1, or from D. Views count from 0."""
    return problem_of([[(1, 2)], [], [], [(1, 2), (0,)]], limit=2, source=4)


def test_levels_loads_and_latencies_of_figure_3() -> None:
    problem = figure_3()
    result = Configuration.of(problem, np.array([0, SOURCE, SOURCE, 2]))
    check_configuration(result)
    assert result.level.tolist() == [2, 1, 1, 3]
    assert result.loads.tolist() == [1, 1, 1, 0, 2]
    assert result.views_by_level().tolist() == [2, 1, 1]
    assert result.reads() == [[1, 2], [], [], [0]]
    local, source = problem.costs.latency_s, problem.costs.source_latency_s
    first = max(source[1], source[2]) + local[0]
    expected = [first, source[1], source[2], first + local[2]]
    assert result.latencies_s().tolist() == pytest.approx(expected)
    assert result.latency_s == pytest.approx(sum(expected))
    used = problem.costs.utilization[[0, 2]].sum() + problem.costs.source_utilization[1:3].sum()
    assert result.utilization == pytest.approx(used)
    assert result.cost(alpha=2, beta=3) == pytest.approx(2 * used + 3 * sum(expected))
    assert result.rewritten_share == 0.5
    assert result.views_per_rewriting == 1.5


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ([0, SOURCE, SOURCE], "3 choices for 4 views"),
        ([1, SOURCE, SOURCE, 2], "view 0 has a rewriting that is not its own"),
    ],
)
def test_invalid_choices_are_rejected(choice: list[int], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        check_configuration(
            Configuration(figure_3(), np.array(choice), *(np.zeros(0, np.int64),) * 3)
        )


def test_a_cycle_is_refused() -> None:
    problem = problem_of([[(1,)], [(0,)], []])
    with pytest.raises(PlanError, match="view 0 is not fed from the source: there is a cycle"):
        check_configuration(Configuration.of(problem, np.array([0, 1, SOURCE])))


def test_limits_are_kept() -> None:
    problem = figure_3()
    result = Configuration.of(problem, np.array([0, SOURCE, SOURCE, 1]))
    tight = Limits(np.array([2, 1, 2, 2]), 4)
    with pytest.raises(PlanError, match="view 1 feeds 2 views, more than 1"):
        check_configuration(replace(result, problem=replace(problem, limits=tight)))
    limits = replace(problem.limits, source=1)
    with pytest.raises(PlanError, match="the source feeds 2 views, more than 1"):
        check_configuration(replace(result, problem=replace(problem, limits=limits)))


def test_limits_are_relaxed_downward() -> None:
    assert Limits(np.array([5, 10, 30]), 7).relaxed(1.5).views.tolist() == [7, 15, 45]


@pytest.mark.parametrize(
    ("rewritings", "message"),
    [
        (rewritings_of([[(0,)]]), "view 0 has a rewriting that reads itself"),
        (rewritings_of([[()], []]), "rewriting 0 reads no view"),
        (rewritings_of([[(5,)], []]), "is not among 0 … 1"),
        (rewritings_of([[(2, 1)], [], []]), "rewriting 0 reads views that are not in order"),
        (
            Rewritings(2, np.array([0, 1]), np.array([0]), np.zeros(0, np.int32)),
            "view_start: expected 3 values",
        ),
        (
            Rewritings(2, np.array([0, 1, 0]), np.array([0]), np.zeros(0, np.int32)),
            "view_start falls at 1",
        ),
    ],
)
def test_inconsistent_rewritings_are_rejected(rewritings: Rewritings, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        check_rewritings(rewritings)


def test_costs_of_wrong_size_or_sign_are_rejected() -> None:
    problem = figure_3()
    with pytest.raises(InvalidValue, match="latency_s: 2 values, expected 3"):
        replace(problem, costs=replace(problem.costs, latency_s=np.ones(2)))
    with pytest.raises(InvalidValue, match=r"latency_s\[1\] is 0.0: expected a number above zero"):
        replace(problem, costs=replace(problem.costs, latency_s=np.array([1.0, 0.0, 1.0])))
    with pytest.raises(InvalidValue, match="3 limits for 4 views"):
        replace(problem, limits=Limits.uniform(3))
    with pytest.raises(InvalidValue, match="a limit is below zero"):
        replace(problem, limits=Limits.uniform(4, source=-1))
