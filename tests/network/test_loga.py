"""LOGA equals Algorithm 2 as printed, and its configurations are valid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.network.configuration_problems import problem_of, problems

from headgate.model.errors import PlanError
from headgate.network.configuration import (
    SOURCE,
    Configuration,
    check_configuration,
)
from headgate.network.configuration_problem import Longs, Problem
from headgate.network.configure import configured, solve
from headgate.network.loga import LogaRound, loga


def as_printed(problem: Problem, choice: Longs) -> Longs:
    """Algorithm 2, line by line; all latencies are recomputed each time."""
    start = problem.rewritings.view_start
    choice = choice.copy()
    while True:
        before = _latency(problem, choice)
        assert before is not None
        impact = Configuration.of(problem, choice).latencies_s() * _reach(problem, choice)
        order = [view for view in np.argsort(-impact, kind="stable") if choice[view] != SOURCE]
        for view in order:
            least, now, best = _latency(problem, choice), choice[view], None
            assert least is not None
            for other in range(start[view], start[view + 1]):
                choice[view] = other
                reached = _latency(problem, choice)
                if reached is not None and reached < least:
                    least, best = reached, other
            choice[view] = now if best is None else best
        if _latency(problem, choice) == before:
            return choice


def _latency(problem: Problem, choice: Longs) -> float | None:
    """λ(cfg); None where it is no configuration within the limits."""
    result = Configuration.of(problem, choice)
    try:
        check_configuration(result)
    except PlanError:
        return None
    return float(sum(result.latencies_s().tolist()))


def _reach(problem: Problem, choice: Longs) -> Longs:
    rewritings = problem.rewritings
    below: list[set[int]] = [set() for _ in choice]
    for view in reversed(Configuration.of(problem, choice).order.tolist()):
        if choice[view] != SOURCE:
            members = slice(*rewritings.member_start[choice[view] : choice[view] + 2].tolist())
            for member in rewritings.members[members].tolist():
                below[member] |= below[view] | {view}
    return np.array([len(each) for each in below])


def planned(problem: Problem) -> Configuration | None:
    try:
        return configured(problem, solve(problem).result)[0]
    except PlanError:
        return None


@given(problems(views_max=9, ways_max=5))
@settings(max_examples=120, deadline=None)
def test_loga_equals_algorithm_2_as_printed(problem: Problem) -> None:
    cheap = planned(problem)
    if cheap is None:
        return
    relaxed = replace(problem, limits=problem.limits.relaxed(1.5))
    result = loga(cheap)
    check_configuration(result)
    assert result.choice.tolist() == as_printed(relaxed, cheap.choice).tolist()


@given(problems(views_max=9, ways_max=5))
@settings(max_examples=60, deadline=None)
def test_utilisation_rises_no_more_than_allowed(problem: Problem) -> None:
    cheap = planned(problem)
    if cheap is None:
        return
    rounds: list[LogaRound] = []
    result = loga(cheap, rise_max=0.2, on_round=rounds.append)
    check_configuration(result)
    assert result.latency_s <= cheap.latency_s + 1e-9
    assert result.utilization <= cheap.utilization * 1.2 + 1e-9
    assert rounds[-1].latency_s == pytest.approx(result.latency_s)
    assert rounds[-1].utilization == pytest.approx(result.utilization)


@given(problems(views_max=9, ways_max=5), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_no_view_gets_more_readers_than_allowed(problem: Problem, most: int) -> None:
    cheap = planned(problem)
    if cheap is None:
        return
    result = loga(cheap, readers_max=most)
    check_configuration(result)
    assert result.latency_s <= cheap.latency_s + 1e-9
    assert (result.loads[:-1] <= np.maximum(cheap.loads[:-1], most)).all()


def test_loga_never_chooses_the_source() -> None:
    problem = problem_of([[], [(0,)], [(1,), (0,)], [(2,), (0,)]], limit=2, seed=5)
    cheap = configured(problem, solve(problem).result)[0]
    result = loga(cheap)
    assert result.loads[-1] <= cheap.loads[-1]
    assert result.latency_s <= cheap.latency_s
