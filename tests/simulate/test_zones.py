"""Zones: every point is in exactly one, and one float step leads to a neighbour."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.errors import InvalidValue
from headgate.simulate.content_network import ZoneNetwork
from headgate.simulate.zones import Zones, next_zone, zone_of
from headgate.tables.boxes import LEAST, Boxes

VALUES = [-math.inf, LEAST, -1.0, 0.0, 5e-324, 1.0, 2.5, -LEAST, math.inf]
CUTS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3), st.sampled_from(VALUES)))


def cut(zones: Zones, some: list[tuple[int, int, float]]) -> Zones:
    for zone, coordinate, value in some:
        arrays = zones.arrays
        position = zone % len(zones)
        if arrays.least[position, coordinate] < value <= arrays.most[position, coordinate]:
            zones.split(position, coordinate, value)
    return zones


def holding(zones: Zones, point: np.ndarray) -> list[int]:
    arrays = zones.arrays
    inside = (arrays.least <= point).all(axis=1) & (point <= arrays.most).all(axis=1)
    result: list[int] = np.flatnonzero(inside).tolist()
    return result


@given(some=CUTS)
def test_every_point_is_in_one_zone(some: list[tuple[int, int, float]]) -> None:
    zones = cut(Zones(4), some)
    for point in map(np.array, product(VALUES[::2], repeat=4)):
        assert holding(zones, point) == [zone_of(zones.cuts, point)]


@given(some=CUTS)
def test_neighbours_differ_by_one_float_step(some: list[tuple[int, int, float]]) -> None:
    zones = cut(Zones(2), [(zone, m % 2, value) for zone, m, value in some])
    arrays = zones.arrays
    stepped: set[tuple[int, int]] = set()
    # A step from each corner and each cut on a side, in each direction.
    places = [np.concatenate([arrays.least[:, m], arrays.most[:, m]]) for m in range(2)]
    for point in map(np.array, product(*map(np.unique, places))):
        for m, way in product(range(2), (-math.inf, math.inf)):
            next_ = point.copy()
            next_[m] = math.nextafter(point[m], way)
            if zone_of(arrays.cuts, next_) != zone_of(arrays.cuts, point):
                stepped.add((zone_of(arrays.cuts, point), zone_of(arrays.cuts, next_)))
    linked = {
        (zone, int(other))
        for zone in range(len(zones))
        for other in arrays.to[arrays.start[zone] : arrays.start[zone + 1]]
    }
    assert linked == stepped


@given(some=CUTS, goal=st.tuples(*[st.sampled_from(VALUES)] * 4))
def test_the_goal_is_reached_from_every_zone_by_neighbours(
    some: list[tuple[int, int, float]], goal: tuple[float, ...]
) -> None:
    zones = cut(Zones(4), some)
    arrays = zones.arrays
    for first in range(len(zones)):
        zone, seen = first, {first}
        while (following := next_zone(arrays, zone, np.array(goal), np.empty(4))) >= 0:
            assert following in arrays.to[arrays.start[zone] : arrays.start[zone + 1]]
            assert following not in seen
            seen.add(following)
            zone = following
        assert zone == zone_of(arrays.cuts, np.array(goal))


def test_a_cut_outside_of_its_zone_is_refused() -> None:
    zones = Zones(2)
    zones.split(0, 0, 5.0)
    with pytest.raises(
        InvalidValue, match=r"zone 1 cannot be cut at 4\.0: it lies from 5\.0 to inf"
    ):
        zones.split(1, 0, 4.0)


def test_a_zone_of_one_point_cannot_be_split() -> None:
    network = ZoneNetwork(1)
    network.subscribe(Boxes(np.arange(1), np.zeros((1, 1)), np.zeros((1, 1))))
    for coordinate in range(2):
        for value in (0.0, math.nextafter(0.0, 1.0)):
            point = np.zeros(2)
            network._cut(zone_of(network.zones.cuts, point), coordinate, value)
    point_zone = zone_of(network.zones.cuts, np.zeros(2))
    with pytest.raises(InvalidValue, match="is a single point"):
        network.split(point_zone)
    network.join(2)
    assert len(network) == 7
