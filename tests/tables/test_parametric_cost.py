"""The closed forms of Appendix D are the means that they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from headgate.model.errors import InvalidValue
from headgate.tables.join_graph import Edge, Form
from headgate.tables.parametric_cost import (
    SELECTED_SHARE,
    JoinStatistics,
    affected_share,
    exposed_share,
    parametric_costs,
)

TRIALS = 200_000


def random_ranges(chance: np.random.Generator) -> np.ndarray:
    """Uniform over all ranges: the triangle above the diagonal."""
    return np.sort(chance.random((TRIALS, 2)), axis=1)


@pytest.mark.parametrize("rows", [0, 1, 2, 10])
def test_shares_are_those_of_random_ranges_and_values(rows: int) -> None:
    chance = np.random.default_rng(rows)
    ranges, values, new = (
        random_ranges(chance),
        chance.random((TRIALS, rows)),
        chance.random(TRIALS),
    )
    contained = (values >= ranges[:, :1]) & (values <= ranges[:, 1:])
    is_new = (new >= ranges[:, 0]) & (new <= ranges[:, 1])
    assert is_new.mean() == pytest.approx(SELECTED_SHARE, abs=0.005)
    assert contained.any(axis=1).mean() == pytest.approx(affected_share(rows), abs=0.005)
    exposed = is_new & ~contained.any(axis=1)
    assert exposed.mean() == pytest.approx(exposed_share(rows), abs=0.005)


def test_the_cost_of_a_form() -> None:
    edge = Edge.between("R", "S", "b")
    statistics = JoinStatistics({"R": 0.5, "S": 0.25}, {("R", edge): 4.0, ("S", edge): 2.0})
    costs = parametric_costs([Form("R", edge)], statistics, insertion=3.0, exposure=2.0)
    expected = (3 * 0.5 * 2 / 4 + 2 * 0.25 * 4 * 2 / (4 * 5)) / 3
    assert costs == {Form("R", edge): pytest.approx(expected)}


@pytest.mark.parametrize(
    ("rates", "rows", "why"),
    [({"R": 1.5}, 1.0, "share of changes of 'R' is 1.5"), ({"R": 0.5}, -1.0, "'R' has -1.0 rows")],
)
def test_impossible_statistics_are_refused(rates: dict[str, float], rows: float, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        JoinStatistics(rates, {("R", Edge.between("R", "S", "b")): rows})
