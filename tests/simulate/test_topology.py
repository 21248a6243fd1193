"""Physical networks are connected, have few large nodes and many small ones; distances are hops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.errors import InvalidValue
from headgate.simulate.filter_network import tree_of
from headgate.simulate.topology import overlay_tree, power_law_topology


@given(nodes=st.integers(2, 60), seed=st.integers(0, 99))
def test_the_network_is_connected_and_simple(nodes: int, seed: int) -> None:
    topology = power_law_topology(nodes, seed=seed)
    assert len(topology) == nodes
    for node in range(nodes):
        near = topology.to[topology.start[node] : topology.start[node + 1]]
        assert node not in near
        assert (np.diff(near) > 0).all()
        for other in near:
            back = topology.to[topology.start[other] : topology.start[other + 1]]
            assert node in back
    assert (topology.distances(np.arange(nodes)) >= 0).all()


@given(nodes=st.integers(2, 25), seed=st.integers(0, 99))
def test_distances_are_shortest_ways(nodes: int, seed: int) -> None:
    topology = power_law_topology(nodes, seed=seed)
    known = np.full((nodes, nodes), nodes)
    np.fill_diagonal(known, 0)
    for node in range(nodes):
        known[node, topology.to[topology.start[node] : topology.start[node + 1]]] = 1
    for between in range(nodes):
        known = np.minimum(known, known[:, [between]] + known[[between]])
    some = np.arange(nodes)[::-2]
    assert (topology.distances(some) == known[np.ix_(some, some)]).all()


def test_degrees_follow_a_power_law() -> None:
    degrees = np.diff(power_law_topology(20_000).start)
    share = np.bincount(degrees) / len(degrees)
    # A chance of d^-2.2: four times fewer at twice the degree, and more. Joining ends at random
    # loses a few links.
    assert 0.6 < share[1] < 0.75
    assert 3.5 < share[1] / share[2] < 6
    assert degrees.max() > 500
    assert (np.diff(power_law_topology(20_000).start) == degrees).all()


@given(nodes=st.integers(2, 60), fan_out=st.integers(1, 4))
def test_the_overlay_tree_respects_the_fan_out(nodes: int, fan_out: int) -> None:
    distances = power_law_topology(nodes).distances(np.arange(nodes))
    parents = overlay_tree(distances, fan_out=fan_out)
    assert len(tree_of(parents).order) == nodes
    assert np.bincount(parents[1:]).max() <= fan_out


def test_a_network_needs_two_nodes() -> None:
    with pytest.raises(InvalidValue, match="two nodes or more, not 1"):
        power_law_topology(1)
