"""The tree over a region's zones is the one that nodes make by what they know themselves."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.simulate.region_worlds import Step, World, flat, histories, regions

from headgate.simulate.arrivals import DELIVERS, FROM, NODE
from headgate.simulate.content_network import SERVER, ZoneNetwork
from headgate.simulate.region_kernels import meets
from headgate.simulate.region_routing import choose_goal
from headgate.simulate.zone_kernels import next_zone, zone_of
from headgate.tables.messages import Region


@given(steps=histories((1, 1)), region=regions((1, 1)))
def test_each_node_forwards_by_its_own_knowledge(steps: list[Step], region: Region) -> None:
    """To neighbours that the region meets, and whose way to the goal leads through it."""
    world = World((1, 1), ZoneNetwork(2))
    for step in [*steps, ("join", 15)]:
        world.take(step)
    lines, zones = world.publish([region]).lines, world.network.zones.arrays
    asked, goal = flat([region], (1, 1)), np.empty(4)
    if not choose_goal(asked, 0, zones, SERVER, goal, np.empty((2, 4))):
        assert len(lines) == 0
        return
    forwarded, reached = set(), [zone_of(zones.cuts, goal)]
    for zone in reached:
        for other in zones.to[zones.start[zone] : zones.start[zone + 1]].tolist():
            is_met = meets(asked, 0, zones.least, zones.most, other)
            if is_met and next_zone(zones, other, goal, np.empty(4)) == zone:
                forwarded.add((zone, other))
                reached.append(other)
    told = {
        (int(lines[line[FROM], NODE]), int(line[NODE]))
        for line in lines
        if line[DELIVERS] and line[NODE] != reached[0]
    }
    assert told == forwarded
    every = {zone for zone in range(len(zones.least)) if meets(asked, 0, *_boxes(zones), zone)}
    assert set(reached) == every


def _boxes(zones: object) -> tuple[np.ndarray, np.ndarray]:
    return zones.least, zones.most  # type: ignore[attr-defined]


@given(some=st.lists(regions((1, 1)), min_size=1, max_size=5))
def test_what_excludes_nothing_begins_at_the_server(some: list[Region]) -> None:
    plain = [Region(each.own, each.selected, (), each.pairs) for each in some]
    world = World((1, 1), ZoneNetwork(2))
    world.take(("join", 31))
    lines = world.publish(plain).lines
    assert lines[:, DELIVERS].all()
    assert (lines[lines[:, FROM] < 0, NODE] == SERVER).all()
