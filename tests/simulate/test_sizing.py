"""The estimates of `headgate simulate` agree with the papers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.model.errors import InvalidValue
from headgate.network.configure import Solver
from headgate.simulate.sizing import (
    FILTERS,
    ZONES,
    JoinNetworkSize,
    WanSize,
    content_traffic,
    repository_costs,
    wan_latencies,
)
from headgate.tables.schemes import JoinScheme

SMALL = JoinNetworkSize(nodes=12, subscriptions=300, events=60, warming=20, r_rows=200, s_rows=100)
CLU_PLUS = JoinScheme.REF_SJ_CLU_PLUS


def silent(text: str) -> None:
    assert text


@pytest.mark.parametrize("network", [ZONES, FILTERS])
def test_reformulated_semijoins_cost_less_than_sending_every_row(network: str) -> None:
    schemes = [JoinScheme.ENUM_SJ, JoinScheme.REL_SEL, CLU_PLUS]
    costs = {
        cost.name: cost
        for cost in content_traffic(SMALL, schemes, network=network, progress=silent)
    }
    assert list(costs) == ["Enum-SJ", "Rel-Sel", "Ref-SJ-Clu+"]
    assert 0 < costs["Ref-SJ-Clu+"].traffic_bytes < costs["Rel-Sel"].traffic_bytes
    # Without an overlay the server sends everything itself.
    assert costs["Enum-SJ"].server_bytes == costs["Enum-SJ"].traffic_bytes
    assert all(cost.requests == 0 for cost in costs.values())


def test_the_same_seed_gives_the_same_results() -> None:
    first, second = (
        list(content_traffic(SMALL, [CLU_PLUS], network=ZONES, progress=silent)) for _ in range(2)
    )
    other = list(
        content_traffic(replace(SMALL, seed=7), [CLU_PLUS], network=ZONES, progress=silent)
    )
    assert first == second != other


def test_repositories_save_traffic_and_requests() -> None:
    size = JoinNetworkSize(
        nodes=20, subscriptions=2_000, events=200, r_rows=200, s_rows=1_000, payload_bytes=1_000
    )
    plain, none, many = repository_costs(size, JoinScheme.REF_J_PLUS, [0, 1_000], progress=silent)
    assert (plain.name, none.name, many.name) == ("no CN*", "0", "1,000")
    assert many.traffic_bytes < 0.6 * plain.traffic_bytes
    assert plain.requests == 0
    assert many.requests == 0 < none.requests


def test_schemes_without_an_overlay_have_no_repositories() -> None:
    with pytest.raises(InvalidValue, match="Enum-SJ addresses each subscription individually"):
        repository_costs(SMALL, JoinScheme.ENUM_SJ, [10], progress=silent)


def test_loga_lowers_levels_and_latency() -> None:
    size = WanSize(views=120, sites=10, documents=20, rate_per_s=5.0)
    result = wan_latencies(size, solver=Solver.AUTO, time_s=10.0, progress=silent)
    for levels, configuration in (
        (result.cheap, result.plan.cheap),
        (result.fast, result.plan.fast),
    ):
        assert [each.level for each in levels] == list(range(1, len(levels) + 1))
        assert [each.views for each in levels] == configuration.views_by_level().tolist()
        assert all(0 < each.mean_ms <= each.max_ms for each in levels)
    assert result.plan.has_run_loga
    assert len(result.fast) < len(result.cheap)
    assert result.plan.fast.latency_s < result.plan.cheap.latency_s
    assert result.fast[-1].mean_ms < result.cheap[-1].mean_ms
