"""Expensive atoms are charged to the feeds that use them, and muted when these are suspended."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.catalog.catalog import Catalog
from headgate.language.parse import parse_script
from headgate.match.item_columns import items_to_arrow
from headgate.model.items import Item
from headgate.pipeline.feed_costs import FeedCosts, costs_of_plans, feeds_of_row, muted_rows
from headgate.pipeline.match_stage import MatchConfig, match_batch
from headgate.pipeline.planner import Planner
from headgate.pipeline.snapshot import OpenSnapshot, open_snapshot
from headgate.pipeline.source_plan import opened_source_plan
from headgate.store.data_folder import DataFolder

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
SCRIPT = """
register stream S from post (t text, n int);
register operator odd(x int) from 'city:odd';
create feed Slow from S where t matches '[a-h][^u-z]{90}z';
create feed Twin from S as $s where $s[n > 3 and t matches '[a-h][^u-z]{90}z'];
create feed Other from S where t matches 'x.*[0-9]' or n > 5;
create feed Near from S where t similar(0.1) 'a b c d e f g';
create feed Plain from S where n > 1;
create feed Joined from S as $s join last 1 hour on S with $s[n = window.n]
  where $s[t matches 'joined.?z'];
"""


@pytest.fixture
def planner(tmp_path: Path):
    with Catalog.open("sqlite://") as catalog:
        catalog.apply(parse_script(SCRIPT))
        yield Planner(catalog, DataFolder(tmp_path).make()), catalog


def opened_plans(planner: Planner) -> OpenSnapshot:
    current = planner.update()
    return open_snapshot(DataFolder(current.path.parents[1]), current.path.name)


def match(planner: Planner, opened: OpenSnapshot, *, count: int = 64) -> list[set[str]]:
    rng = random.Random(1)
    items = [
        Item(str(n), "S", NOON, {"t": "".join(rng.choices("abcdefghijklm ", k=2_000)), "n": n})
        for n in range(count)
    ]
    current = planner.current
    config = MatchConfig(opened.plans, opened.dropped, every=True, muted=opened.muted)
    batch = items_to_arrow(items, current.schemas["S"])
    return [
        {current.names[feed] for feed in row["@feeds"]}
        for part in match_batch(batch, config)
        for row in part.to_pylist()
    ]


def taken_costs(opened: OpenSnapshot) -> FeedCosts:
    return costs_of_plans(opened.plans["S"], opened.dropped)


def test_each_row_belongs_to_the_feeds_that_name_it(planner: tuple[Planner, Catalog]) -> None:
    opened = opened_plans(planner[0])
    (path,) = opened.plans["S"]
    plan = opened_source_plan(path)
    names = planner[0].current.names
    users = {
        frozenset(names[feed] for feed in feeds_of_row(plan, row).tolist())
        for row in plan.program.metered_rows
    }
    expected = [{"Slow", "Twin"}, {"Other"}, {"Near"}, {"Joined"}]
    assert users == set(map(frozenset, expected))


def test_the_slow_pattern_is_charged_to_both_and_muted_when_both_are_suspended(
    planner: tuple[Planner, Catalog],
) -> None:
    opened = opened_plans(planner[0])
    names = planner[0].current.names
    before = match(planner[0], opened)
    taken_costs(opened)  # until they are searched alone, patterns share the cost
    match(planner[0], opened)
    costs = {names[int(feed)]: us for feed, us in taken_costs(opened).items()}
    assert costs["Slow"] == costs["Twin"] > 10 * costs.get("Other", 0)
    assert "Plain" not in costs

    planner[1].suspend("Slow", "too dear")
    opened = opened_plans(planner[0])
    (path,) = opened.plans["S"]
    plan = opened_source_plan(path)
    assert muted_rows(path, plan, opened.dropped, {}) == frozenset()  # Twin needs it
    assert match(planner[0], opened) == [each - {"Slow"} for each in before]

    planner[1].suspend("Twin", "too dear")
    opened = opened_plans(planner[0])
    assert len(muted_rows(path, plan, opened.dropped, {})) == 1
    taken_costs(opened)
    assert match(planner[0], opened) == [each - {"Slow", "Twin"} for each in before]
    assert sum(taken_costs(opened).values()) < costs["Slow"] / 4

    planner[1].resume("Slow")
    planner[1].resume("Twin")
    assert match(planner[0], opened_plans(planner[0])) == before


def test_a_resumed_join_is_planned_again(planner: tuple[Planner, Catalog]) -> None:
    current = planner[0].update()
    assert [*current.join_plans] == ["Joined"]
    planner[1].suspend("Joined", "too dear")
    current = planner[0].update()
    assert current.join_plans == {}
    assert current.suspended == {"Joined": "too dear"}
    planner[1].resume("Joined")
    assert [*planner[0].update().join_plans] == ["Joined"]


def test_a_join_that_is_resumed_while_no_run_is_there_is_planned_again(
    planner: tuple[Planner, Catalog], tmp_path: Path
) -> None:
    planner[0].update()
    planner[1].suspend("Joined", "too dear")
    planner[0].update()
    planner[1].resume("Joined")
    restarted = Planner(planner[1], DataFolder(tmp_path))
    assert [*restarted.update().join_plans] == ["Joined"]
