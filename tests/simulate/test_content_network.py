"""Exactly the subscriptions in a region get its message, once: with zones and with filters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulate.region_worlds import Step, World, flat, histories, regions

from headgate.model.errors import InvalidValue
from headgate.simulate.content_network import SERVER, ZoneNetwork, choose_goal
from headgate.simulate.filter_network import FilterNetwork
from headgate.simulate.regions import meets
from headgate.simulate.routing_trace import DELIVERS, DEPTH, FROM, LINK, MESSAGE, NODE
from headgate.simulate.zones import next_zone, zone_of
from headgate.tables.boxes import Boxes
from headgate.tables.messages import JoinSide, Region

PARENTS = np.array([-1, 0, 0, 1, 1, 2, 5, 5, 3, 0])


def network(kind: str, dimensions: tuple[int, int]) -> ZoneNetwork | FilterNetwork:
    if kind == "zones":
        return ZoneNetwork(sum(dimensions))
    return FilterNetwork(sum(dimensions), PARENTS, parts=3)


@pytest.mark.parametrize("kind", ["zones", "filters"])
@pytest.mark.parametrize("dimensions", [(1, 1), (2, 1)])
@given(data=st.data())
def test_messages_reach_exactly_the_subscriptions_in_their_region(
    kind: str, dimensions: tuple[int, int], data: st.DataObject
) -> None:
    world = World(dimensions, network(kind, dimensions))
    steps: list[Step] = data.draw(histories(dimensions))
    for step in steps:
        world.take(step)
    world.publish(data.draw(st.lists(regions(dimensions), min_size=1, max_size=5)))


@given(steps=histories((1, 1)), some=st.lists(regions((1, 1)), min_size=1, max_size=4))
def test_a_zone_gets_a_message_once_by_an_existing_link(
    steps: list[Step], some: list[Region]
) -> None:
    world = World((1, 1), ZoneNetwork(2))
    for step in [*steps, ("join", 9)]:
        world.take(step)
    lines, links = world.publish(some).lines, world.network.links
    delivering = lines[lines[:, DELIVERS] == 1]
    assert len(np.unique(delivering[:, [MESSAGE, NODE]], axis=0)) == len(delivering)
    for position, line in enumerate(lines):
        if line[FROM] < 0:
            assert (line[NODE], line[DEPTH], line[LINK]) == (SERVER, 0, -1)
            continue
        origin = lines[line[FROM]]
        assert line[FROM] < position
        assert line[DEPTH] == origin[DEPTH] + 1
        assert links.start[origin[NODE]] <= line[LINK] < links.start[origin[NODE] + 1]
        assert links.to[line[LINK]] == line[NODE]


def many(count: int, *, seed: int = 1) -> Boxes:
    chance = np.random.default_rng(seed)
    low = np.round(chance.normal(50, 20, (count, 2)))
    return Boxes(np.arange(count), low, low + np.round(chance.gamma(2, 5, (count, 2))))


def test_loads_are_balanced() -> None:
    network = ZoneNetwork(2)
    network.subscribe(many(10_000))
    network.join(63)
    assert network.subscriptions.sizes.sum() == 10_000
    assert network.subscriptions.sizes.max() <= 4 * network.subscriptions.sizes.min()


def test_the_server_keeps_the_widest_ranges() -> None:
    network = ZoneNetwork(2)
    network.subscribe(many(1_000))
    network.join(99)
    arrays = network.zones.arrays
    assert arrays.least[SERVER, :2].tolist() == [-np.inf, -np.inf]
    assert arrays.most[SERVER, 2:].tolist() == [np.inf, np.inf]


def test_cuts_by_handled_messages_reduce_arrivals() -> None:
    chance = np.random.default_rng(5)
    some = [
        Region(JoinSide.LEFT, (float(a),), (), (((float(c),), (float(c),)),))
        for a, c in zip(chance.integers(0, 99, 60), chance.integers(90, 99, 60), strict=True)
    ]
    result = []
    for handled in (None, some[:30]):
        world = World((1, 1), ZoneNetwork(2))
        all_ = many(2_000)
        for number in all_.numbers.tolist():
            world.bounds[number] = tuple(all_.low[number]), tuple(all_.high[number])
        world.network.subscribe(all_)
        world.last = handled or []
        world.take(("join", 99 if handled else 100))
        result.append(len(world.publish(some[30:])))
    assert result[1] < result[0] / 2


def test_nodes_can_join_without_subscriptions() -> None:
    network = ZoneNetwork(1)
    network.subscribe(Boxes(np.arange(3), np.zeros((3, 1)), np.zeros((3, 1))))
    network.join(20)
    assert len(network) == 21
    assert sorted(network.subscriptions.sizes.tolist())[-1] == 3


@pytest.mark.parametrize("kind", ["zones", "filters"])
def test_invalid_subscriptions_are_rejected(kind: str) -> None:
    world = World((1, 1), network(kind, (1, 1)))
    world.take(("subscribe", 3, ((0.0, 0.0), (1.0, 1.0))))
    with pytest.raises(InvalidValue, match="subscription 3 exists already"):
        world._subscribe(3, ((0.0, 0.0), (1.0, 1.0)))
    with pytest.raises(InvalidValue, match="have 1 ranges: expected 2"):
        world._subscribe(4, ((0.0,), (1.0,)))
    with pytest.raises(InvalidValue, match="no subscription 4"):
        world.network.unsubscribe(np.array([3, 4]))
    world.publish([Region(JoinSide.LEFT, (0.5,), (), (((0.5,), (0.5,)),))])


@pytest.mark.parametrize(
    "parents", [[], [0], [-1, 5], [-1, -1], [-1, 2, 1]], ids=["none", "root", "far", "two", "loop"]
)
def test_parents_that_are_no_tree_are_rejected(parents: list[int]) -> None:
    with pytest.raises(InvalidValue, match="root"):
        FilterNetwork(1, np.array(parents, np.int64))


def test_a_filter_without_parts_is_refused() -> None:
    with pytest.raises(InvalidValue, match="one part or more, not 0"):
        FilterNetwork(1, PARENTS, parts=0)


def test_an_unknown_node_is_rejected() -> None:
    network = FilterNetwork(2, PARENTS)
    with pytest.raises(InvalidValue, match="one node among 0 … 9"):
        network.subscribe(many(1), np.array([10]))


def test_filters_keep_messages_away_from_nodes_without_matches() -> None:
    network = FilterNetwork(2, PARENTS)
    all_ = many(1_000)
    network.subscribe(all_, np.where(all_.low[:, 0] < 50, 3, 6))
    world = World((1, 1), network)
    for number in all_.numbers.tolist():
        world.bounds[number] = tuple(all_.low[number]), tuple(all_.high[number])
    everyone = ((np.inf,), (-np.inf,))
    reached = world.publish([Region(JoinSide.LEFT, (10.0,), (), (everyone,))]).lines[:, NODE]
    assert reached.tolist() == [0, 1, 3]
    removed = all_.numbers[all_.low[:, 0] < 50]
    world.network.unsubscribe(removed)
    for number in removed.tolist():
        del world.bounds[number]
    network.tighten()
    for low, nodes in ((10.0, [0]), (60.0, [0, 2, 5, 6])):
        reached = world.publish([Region(JoinSide.LEFT, (low,), (), (everyone,))]).lines[:, NODE]
        assert reached.tolist() == nodes


# The tree over a region's zones can be computed by each node from local information.


@given(steps=histories((1, 1)), region=regions((1, 1)))
def test_each_node_forwards_by_local_information(steps: list[Step], region: Region) -> None:
    """A node forwards to neighbours that the region meets and whose path to the goal is by it."""
    world = World((1, 1), ZoneNetwork(2))
    for step in [*steps, ("join", 15)]:
        world.take(step)
    lines, zones = world.publish([region]).lines, world.network.zones.arrays
    flat_regions, goal = flat([region], (1, 1)), np.empty(4)
    if not choose_goal(flat_regions, 0, zones, SERVER, goal, np.empty((2, 4))):
        assert len(lines) == 0
        return
    forwarded, reached = set(), [zone_of(zones.cuts, goal)]
    for zone in reached:
        for other in zones.to[zones.start[zone] : zones.start[zone + 1]].tolist():
            is_met = meets(flat_regions, 0, zones.least, zones.most, other)
            if is_met and next_zone(zones, other, goal, np.empty(4)) == zone:
                forwarded.add((zone, other))
                reached.append(other)
    from_trace = {
        (int(lines[line[FROM], NODE]), int(line[NODE]))
        for line in lines
        if line[DELIVERS] and line[NODE] != reached[0]
    }
    assert from_trace == forwarded
    every = {
        zone for zone in range(len(zones.least)) if meets(flat_regions, 0, *_boxes(zones), zone)
    }
    assert set(reached) == every


def _boxes(zones: object) -> tuple[np.ndarray, np.ndarray]:
    return zones.least, zones.most  # type: ignore[attr-defined]


@given(some=st.lists(regions((1, 1)), min_size=1, max_size=5))
def test_a_region_without_exclusions_contains_the_server_zone(some: list[Region]) -> None:
    plain = [Region(each.own, each.selected, (), each.pairs) for each in some]
    world = World((1, 1), ZoneNetwork(2))
    world.take(("join", 31))
    lines = world.publish(plain).lines
    assert lines[:, DELIVERS].all()
    assert (lines[lines[:, FROM] < 0, NODE] == SERVER).all()
