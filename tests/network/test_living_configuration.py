"""After any history of additions, removals and failures there is a configuration within limits."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.network.configuration_problems import problem_of, problems
from tests.network.configure_brute import configure_brute

from headgate.model.errors import InvalidValue, PlanError
from headgate.network.configuration import SOURCE, check_configuration
from headgate.network.configuration_problem import UNLIMITED, Problem
from headgate.network.configure import configure
from headgate.network.feed_state import NewView
from headgate.network.living_configuration import LivingConfiguration


def new_view(rewritings: list[list[int]], *, limit: int = UNLIMITED, seed: int = 0) -> NewView:
    chance = np.random.default_rng(seed)
    count = len(rewritings)
    costs = chance.integers(1, 20, count).astype(np.float64), chance.integers(1, 9, count) / 8
    return NewView(rewritings, *costs, 30.0, 0.5, limit)


def living(problem: Problem) -> LivingConfiguration | None:
    try:
        return LivingConfiguration(configure(problem))
    except PlanError:
        return None


def drawn_view(draw: random.Random, there: list[int]) -> NewView:
    ways = []
    for _ in range(draw.randint(0, 3) if there else 0):
        ways.append(sorted(draw.sample(there, draw.randint(1, min(2, len(there))))))
    return new_view(ways, limit=draw.choice([0, 1, 2, UNLIMITED]), seed=draw.randint(0, 999))


@given(problems(), st.lists(st.sampled_from("aaarfp"), max_size=14), st.integers(0, 9999))
@settings(max_examples=100, deadline=None)
def test_any_history_leaves_a_valid_configuration(
    problem: Problem, history: list[str], seed: int
) -> None:
    result, draw = living(problem), random.Random(seed)
    if result is None:
        return
    present = set(range(problem.rewritings.view_count))
    for change in history:
        before, _ = result.configuration()
        try:
            if change == "a":
                present.add(result.add(drawn_view(draw, sorted(present))))
            elif change == "p":
                result.replan()
            elif present:
                count = 1 if change == "r" else draw.randint(1, len(present))
                removed = draw.sample(sorted(present), count)
                result.remove(removed)
                present -= set(removed)
        except PlanError:
            assert result.configuration()[0].choice.tolist() == before.choice.tolist()
        configuration, views = result.configuration()
        assert views.tolist() == sorted(present)
        check_configuration(configuration)
        expected = configuration.latencies_s()
        assert result.latencies_s()[views].tolist() == pytest.approx(expected.tolist())


def test_a_new_view_takes_the_cheapest_that_fits() -> None:
    result = living(problem_of([[], []], limit=[2, 0], source=3))
    assert result is not None
    new = NewView([[0], [1]], np.array([5.0, 1.0]), np.array([0.1, 0.1]), 30.0, 0.5, 1)
    view = result.add(new)
    configuration, views = result.configuration()
    position = int(np.searchsorted(views, view))
    members = configuration.problem.rewritings.member_start[configuration.choice[position]]
    assert configuration.problem.rewritings.members[members] == 0  # view 1 may feed nobody


def test_readers_of_a_failed_site_are_placed_again() -> None:
    result = living(problem_of([[], [(0,)], [(1,)], [(1,), (0,)]], seed=3))
    assert result is not None
    readers = result.remove([1])
    configuration, views = result.configuration()
    assert views.tolist() == [0, 2, 3]
    check_configuration(configuration)
    assert 2 in readers
    assert configuration.choice[1] == SOURCE  # view 2 could read nothing but view 1


def test_a_full_source_causes_planning_or_an_error() -> None:
    result = living(problem_of([[], []], source=2))
    assert result is not None
    with pytest.raises(PlanError, match="raise the limit"):
        result.add(new_view([]))
    assert result.views().tolist() == [0, 1]
    assert result.add(new_view([[0]])) == 2
    check_configuration(result.configuration()[0])


def test_planning_is_due_after_many_changes() -> None:
    result = LivingConfiguration(configure(problem_of([[], [(0,)]])), replan_after=3)
    for _ in range(3):
        assert not result.is_due
        result.add(new_view([[0]]))
    assert result.is_due
    result.replan()
    assert not result.is_due
    assert result.plannings == 1


def test_absent_views_cannot_be_removed_or_read() -> None:
    result = living(problem_of([[], [(0,)]]))
    assert result is not None
    with pytest.raises(InvalidValue, match="no view 7"):
        result.remove([7])
    with pytest.raises(InvalidValue, match="no view 2"):
        result.add(new_view([[0, 2]]))
    with pytest.raises(InvalidValue, match="views in order"):
        result.add(new_view([[1, 0]]))
    assert configure_brute(result.configuration()[0].problem) is not None
