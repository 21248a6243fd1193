"""The hot loops over zones: which one a point is in, who is next to whom, and the way to a goal."""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.simulate.region_kernels import meets
from headgate.tables.box_tree_kernels import Floats, Longs


class Cuts(NamedTuple):
    """The tree of cuts, from its first."""

    coordinate: Longs  # [cut]; -1 for a leaf
    value: Floats
    below: Longs  # of a cut, the first of its two sides; of a leaf, the zone


class ZoneArrays(NamedTuple):
    """Boxes by zone, the tree of cuts, and the neighbours of each zone in order.

    Link l leads to zone `to[l]`; those of zone z are from `start[z]` up to `start[z + 1]`.
    """

    least: Floats  # [zone, coordinate]
    most: Floats
    cuts: Cuts
    start: Longs
    to: Longs


@nb.njit(nogil=True, cache=True)
def zone_of(cuts, point):  # type: ignore[no-untyped-def]
    at = 0
    while cuts.coordinate[at] >= 0:
        is_above = point[cuts.coordinate[at]] >= cuts.value[at]
        at = cuts.below[at] + is_above
    return cuts.below[at]


@nb.njit(nogil=True, cache=True)
def zones_of(cuts, points, out):  # type: ignore[no-untyped-def]
    for at in range(points.shape[0]):
        out[at] = zone_of(cuts, points[at])


@nb.njit(nogil=True, cache=True)
def count_on_both(regions, least, most):  # type: ignore[no-untyped-def]
    """How many regions meet both of two boxes."""
    found = 0
    for at in range(regions.own.shape[0]):
        found += meets(regions, at, least, most, 0) and meets(regions, at, least, most, 1)
    return found


@nb.njit(nogil=True, cache=True)
def are_neighbours(least, most, one, other):  # type: ignore[no-untyped-def]
    """Whether the boxes touch in one coordinate and overlap in all others."""
    touching = 0
    for m in range(least.shape[1]):
        if least[one, m] <= most[other, m] and least[other, m] <= most[one, m]:
            continue
        touching += 1
        if touching > 1 or not (
            np.nextafter(most[one, m], np.inf) == least[other, m]
            or np.nextafter(most[other, m], np.inf) == least[one, m]
        ):
            return False
    return touching == 1


@nb.njit(nogil=True, cache=True)
def count_neighbours(least, most):  # type: ignore[no-untyped-def]
    counts = np.zeros(least.shape[0], np.int64)
    for one in range(least.shape[0]):
        for other in range(one):
            if are_neighbours(least, most, one, other):
                counts[one] += 1
                counts[other] += 1
    return counts


@nb.njit(nogil=True, cache=True)
def write_neighbours(least, most, start, to):  # type: ignore[no-untyped-def]
    for one in range(least.shape[0]):
        at = start[one]
        for other in range(least.shape[0]):
            if other != one and are_neighbours(least, most, one, other):
                to[at] = other
                at += 1


@nb.njit(nogil=True, cache=True)
def next_zone(zones, zone, goal, point):  # type: ignore[no-untyped-def]
    """The neighbour of a zone on its way to the goal; -1 if the goal is in the zone.

    From the zone's point that is nearest to the goal, one float step leads into the neighbour, in
    the first coordinate in which the goal lies outside. `point` is room for it.
    """
    is_outside = False
    for m in range(goal.shape[0]):
        point[m] = min(max(goal[m], zones.least[zone, m]), zones.most[zone, m])
        if not is_outside and point[m] != goal[m]:
            point[m] = np.nextafter(point[m], goal[m])
            is_outside = True
    return zone_of(zones.cuts, point) if is_outside else -1
