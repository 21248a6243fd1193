"""The cheapest plan of a rewriting is the cheapest of all its utilisation matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.network.configuration_problems import problems, rewritings_of
from tests.network.wide_areas import area_of

from headgate.model.errors import InvalidValue
from headgate.network.configuration_problem import Problem
from headgate.network.physical_plans import AT_VIEW, price_rewritings, utilization_matrix
from headgate.network.wide_area import PROCESSING, SENDING, uniform_area


@given(problems(), st.integers(0, 999), st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_a_rewriting_costs_what_its_cheapest_plan_costs(
    problem: Problem, seed: int, sites: int
) -> None:
    rewritings = problem.rewritings
    area = area_of(rewritings.view_count, sites=sites, seed=seed)
    priced = price_rewritings(rewritings, area)
    for view in range(rewritings.view_count):
        for r in range(*rewritings.view_start[view : view + 2].tolist()):
            own = slice(*rewritings.member_start[r : r + 2].tolist())
            members = rewritings.members[own].astype(np.int64)
            plans = {
                position: float(
                    (utilization_matrix(area, view, members, join_at=position) * area.prices).sum()
                )
                for position in (AT_VIEW, *range(len(members)))
            }
            assert priced.costs.utilization[r] == pytest.approx(min(plans.values()))
            assert plans[int(priced.join_at[r])] == pytest.approx(min(plans.values()))
    assert (priced.costs.latency_s > 0).all()
    assert (priced.costs.source_latency_s > 0).all()


def test_a_large_view_is_not_sent_where_a_small_result_can_be() -> None:
    """View 1 is a tenth of view 0: the filter runs at view 0's site."""
    area = uniform_area(np.array([1000.0, 100.0]), document_bytes=5000.0)
    priced = price_rewritings(rewritings_of([[], [(0,)]]), area)
    assert priced.join_at.tolist() == [0]
    assert priced.costs.utilization[0] == 1000 + 1000 + 2 * 100  # read, processed, sent, received
    matrix = utilization_matrix(area, 1, np.array([0]), join_at=0)
    assert matrix[0, PROCESSING] == 1000
    assert matrix[0, SENDING] == 100
    assert priced.costs.source_utilization[1] > priced.costs.utilization[0]


def test_views_at_one_site_send_nothing() -> None:
    area = uniform_area(np.array([1000.0, 100.0]), document_bytes=5000.0, sites=1)
    priced = price_rewritings(rewritings_of([[], [(0,)]]), area)
    assert priced.costs.utilization[0] == 2000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"view_site": np.array([0, 9], np.int32)}, "at a site that is not among"),
        ({"view_bytes": np.array([1.0, np.nan])}, "view_bytes: expected numbers"),
        ({"view_bytes": np.array([1.0])}, "2 views have sites, 1 have sizes"),
        ({"start_s": 0.0}, "expected a number above zero"),
        ({"prices": np.ones((1, 4))}, "four for each of 3 sites"),
        ({"region": np.array([0, 0, 99], np.int32)}, "in a region that is not among"),
    ],
)
def test_an_inconsistent_network_is_rejected(change: dict[str, object], message: str) -> None:
    area = uniform_area(np.array([1000.0, 100.0]), document_bytes=5000.0)
    with pytest.raises(InvalidValue, match=message):
        replace(area, **change)  # type: ignore[arg-type]
