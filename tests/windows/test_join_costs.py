"""Who pays for window joins: every feed that uses a family or a node, and nobody else."""

from __future__ import annotations

from random import Random

import pytest
from tests.windows.strategies import SCHEMAS
from tests.windows.test_family_joins import above_leaves
from tests.windows.worlds import draw_join_of_leaves, draw_plans

from headgate.match.row_users import COST_US_MIN, shared_costs
from headgate.plan.algebra import Join, Source, bottom_up
from headgate.windows.graph import branches_above_leaves, build_graph
from headgate.windows.join_costs import feeds_above_nodes, feeds_of_families
from headgate.windows.join_families import FamilyIds
from headgate.windows.join_plan_file import plan_joins


@pytest.mark.parametrize("seed", range(20))
def test_families_and_nodes_belong_to_the_feeds_that_use_them(seed: int) -> None:
    chance = Random(seed)
    drawn = [*draw_plans(chance).values(), *draw_join_of_leaves(chance)]
    numbered = dict(enumerate(map(above_leaves, drawn), start=10))
    planned = plan_joins(numbered, SCHEMAS, now_us=0, before=None).plans
    general = set(planned.general_plans())
    ids = FamilyIds()
    expected: dict[str, set[int]] = {each.id: set() for each in planned.families}
    for number, plan in numbered.items():
        if number in planned.numbers and number not in general:
            for branch in branches_above_leaves(ids.with_family_ids(plan)):
                assert isinstance(branch, Join)
                expected[branch.id].add(number)
    found = dict(
        zip((each.id for each in planned.families), feeds_of_families(planned), strict=True)
    )
    assert {family: set(feeds) for family, feeds in found.items()} == expected

    graph = build_graph({str(n): plan for n, plan in planned.general_plans().items()})
    for node, feeds in zip(graph.nodes, feeds_above_nodes(graph), strict=True):
        if isinstance(node, Source):
            continue  # it is also below each filter on it, which is a leaf of its own
        users = {
            int(feed)
            for number, names in graph.feeds.items()
            if node in bottom_up([graph.nodes[number]])
            for feed in names
        }
        assert set(feeds) == users


def test_a_cost_is_shared_equally() -> None:
    assert shared_costs([([1, 2], 4_000_000), ([2], 1_000_000), ([], 9_000_000)]) == {
        "1": 2_000,
        "2": 3_000,
    }


def test_small_costs_are_not_reported() -> None:
    assert shared_costs([([1], 1_000 * COST_US_MIN - 1)]) == {}
