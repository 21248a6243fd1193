"""Zones of a content-addressable network: the space of subscriptions, cut into boxes (Appendix A).

                     low ≥ 40                    Each overlay node owns one zone, and all
    ┌───────────┬─────────┐  high               subscriptions whose points lie in it. A new node
    │ 0         │ 2       │   ▲                  takes half of a zone: half of its subscriptions,
    │           ├─────────┤   │                  not of its space, so loads are balanced.
    ├───────────┤ 3       │   └──► low           Coordinates are cut in turn, as in CAN, or as
    │ 1         │         │                      the zone's messages suggest.
    └───────────┴─────────┘

Invariant: zones are closed boxes of floats that do not overlap and leave no gaps: where the right
side begins at v, the left one ends at the float before v. So a point is in exactly one zone, even
if its bounds are ±∞, and two zones are neighbours if one float step leads from one into the other.

The choice of the coordinate decides how many zones a message meets. A zone that is split knows
which messages it has handled (the paper names "the number of events handled by the zone" as a
criterion) and takes the cut at which fewest of them would go to both halves. On the paper's
workload a message of Ref-SJ-Clu+ then meets a ninth of the zones that it meets with cuts in turn,
and one of Rel-Sel two thirds.

Of two halves the old owner keeps that of the wider ranges. The server is the first node, so it ends
in the corner (−∞, ∞) of all tables, which is in every region that excludes nothing: its messages
start in their region. Rejected: a torus, as in CAN, since ranges do not wrap around; a random
corner, which adds a path to each message.

Cost: finding a point's zone takes a step for each cut above it, about log₂ of the zones. Neighbours
are found by comparing all pairs, 30 ms for a thousand zones, after zones were split.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.model.errors import InvalidValue
from headgate.simulate.regions import Regions, meets
from headgate.tables.box_tree_kernels import Floats, Longs

LEAF = -1


class Zones:
    def __init__(self, coordinates: int) -> None:
        self.coordinates = coordinates
        self._least: Floats = np.full((1, coordinates), -np.inf)
        self._most: Floats = np.full((1, coordinates), np.inf)
        self._cuts = np.zeros(1, np.int64)
        """How often each zone was cut; its next cut is by this coordinate, in turn."""
        self._cut_coordinate: Longs = np.full(1, LEAF, np.int64)
        self._cut_value: Floats = np.zeros(1)
        self._below: Longs = np.zeros(1, np.int64)
        self._leaf: Longs = np.zeros(1, np.int64)
        self._arrays: ZoneArrays | None = None

    def __len__(self) -> int:
        return len(self._least)

    @property
    def cuts(self) -> Cuts:
        """The tree of cuts, by which a point's zone is found."""
        return Cuts(self._cut_coordinate, self._cut_value, self._below)

    @property
    def arrays(self) -> ZoneArrays:
        """The arrays for the kernels; valid until the next split."""
        if self._arrays is None:
            links = count_neighbours(self._least, self._most)
            start: Longs = np.concatenate([np.zeros(1, np.int64), np.cumsum(links)])
            to = np.empty(start[-1], np.int64)
            write_neighbours(self._least, self._most, start, to)
            self._arrays = ZoneArrays(self._least, self._most, self.cuts, start, to)
        return self._arrays

    def cut_for(
        self, zone: int, points: Floats, handled: Regions | None = None
    ) -> tuple[int, float] | None:
        """A coordinate and a value that halve these points of a zone; None if they are all equal.

        The upper side begins at the value. The coordinate is the one for which fewest of the
        handled messages go to both sides; ties go to the next coordinate in turn.
        """
        cuts: list[tuple[int, int, int, float]] = []
        for turn in range(self.coordinates):
            coordinate = int(self._cuts[zone] + turn) % self.coordinates
            value = _halving(points[:, coordinate])
            if value is not None:
                both = 0 if handled is None else self._on_both(zone, coordinate, value, handled)
                cuts.append((both, turn, coordinate, value))
                if handled is None:
                    break
        return min(cuts)[2:] if cuts else None

    def _on_both(self, zone: int, coordinate: int, value: float, handled: Regions) -> int:
        least, most = self._least[[zone, zone]], self._most[[zone, zone]]
        most[0, coordinate], least[1, coordinate] = math.nextafter(value, -math.inf), value
        return int(count_on_both(handled, least, most))

    def middle_cut(self, zone: int) -> tuple[int, float] | None:
        """A cut in the middle of the zone's space; None if the zone is a single point."""
        for turn in range(self.coordinates):
            coordinate = int(self._cuts[zone] + turn) % self.coordinates
            least, most = self._least[zone, coordinate], self._most[zone, coordinate]
            if least < most:
                return coordinate, _between(float(least), float(most))
        return None

    def is_above(self, zone: int, coordinate: int, value: float) -> bool:
        """Whether a zone lies on the upper side of a cut."""
        return bool(self._least[zone, coordinate] >= value)

    def split(self, zone: int, coordinate: int, value: float) -> int:
        """Cut a zone in two; returns the number of the new zone, which has the narrower ranges."""
        least, most = self._least[zone, coordinate], self._most[zone, coordinate]
        if not least < value <= most:
            raise InvalidValue(
                f"zone {zone} cannot be cut at {value}: it lies from {least} to {most}"
            )
        new, is_low = len(self), coordinate < self.coordinates // 2
        self._least = np.vstack([self._least, self._least[zone]])
        self._most = np.vstack([self._most, self._most[zone]])
        lower, upper = (zone, new) if is_low else (new, zone)
        self._most[lower, coordinate] = math.nextafter(value, -math.inf)
        self._least[upper, coordinate] = value
        self._cuts[zone] += 1
        self._cuts = np.append(self._cuts, self._cuts[zone])
        self._cut(zone, new, coordinate, value, lower_is_new=not is_low)
        self._arrays = None
        return new

    def _cut(
        self, zone: int, new: int, coordinate: int, value: float, *, lower_is_new: bool
    ) -> None:
        place, sides = self._leaf[zone], len(self._below)
        self._cut_coordinate[place], self._cut_value[place] = coordinate, value
        self._below[place] = sides
        leaves = [new, zone] if lower_is_new else [zone, new]
        self._cut_coordinate = np.append(self._cut_coordinate, [LEAF, LEAF])
        self._cut_value = np.append(self._cut_value, [0.0, 0.0])
        self._below = np.append(self._below, leaves)
        self._leaf = np.append(self._leaf, 0)
        self._leaf[leaves] = [sides, sides + 1]


def _halving(values: Floats) -> float | None:
    """The value at which the upper half begins, as nearly as equal values allow.

    >>> _halving(np.array([1.0, 1.0, 1.0, 5.0])), _halving(np.array([2.0, 2.0]))
    (5.0, None)
    """
    middle = float(np.partition(values, len(values) // 2)[len(values) // 2])
    if middle > values.min():
        return middle
    above = values[values > middle]
    return float(above.min()) if len(above) else None


def _between(least: float, most: float) -> float:
    """A value above `least` and at most `most`, somewhere in the middle.

    >>> _between(-np.inf, np.inf), _between(2.0, 4.0), _between(3.0, np.inf)
    (0.0, 3.0, 6.0)
    """
    if np.isinf(least) and np.isinf(most):
        return 0.0
    if np.isinf(least):
        value = most - max(1.0, abs(most))
    elif np.isinf(most):
        value = least + max(1.0, abs(least))
    else:
        value = least / 2 + most / 2
    return value if least < value <= most and not np.isinf(value) else most


# Kernels: the zone of a point, neighbours, and the next zone on the way to a goal.


class Cuts(NamedTuple):
    """The tree of cuts; the root is node 0."""

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
    node = 0
    while cuts.coordinate[node] >= 0:
        is_above = point[cuts.coordinate[node]] >= cuts.value[node]
        node = cuts.below[node] + is_above
    return cuts.below[node]


@nb.njit(nogil=True, cache=True)
def zones_of(cuts, points, out):  # type: ignore[no-untyped-def]
    for number in range(points.shape[0]):
        out[number] = zone_of(cuts, points[number])


@nb.njit(nogil=True, cache=True)
def count_on_both(regions, least, most):  # type: ignore[no-untyped-def]
    """How many regions meet both of two boxes."""
    count = 0
    for message in range(regions.own.shape[0]):
        count += meets(regions, message, least, most, 0) and meets(regions, message, least, most, 1)
    return count


@nb.njit(nogil=True, cache=True)
def are_neighbours(least, most, first, second):  # type: ignore[no-untyped-def]
    """Whether the boxes touch in one coordinate and overlap in all others."""
    touching = 0
    for m in range(least.shape[1]):
        if least[first, m] <= most[second, m] and least[second, m] <= most[first, m]:
            continue
        touching += 1
        if touching > 1 or not (
            np.nextafter(most[first, m], np.inf) == least[second, m]
            or np.nextafter(most[second, m], np.inf) == least[first, m]
        ):
            return False
    return touching == 1


@nb.njit(nogil=True, cache=True)
def count_neighbours(least, most):  # type: ignore[no-untyped-def]
    counts = np.zeros(least.shape[0], np.int64)
    for first in range(least.shape[0]):
        for second in range(first):
            if are_neighbours(least, most, first, second):
                counts[first] += 1
                counts[second] += 1
    return counts


@nb.njit(nogil=True, cache=True)
def write_neighbours(least, most, start, to):  # type: ignore[no-untyped-def]
    for zone in range(least.shape[0]):
        link = start[zone]
        for other in range(least.shape[0]):
            if other != zone and are_neighbours(least, most, zone, other):
                to[link] = other
                link += 1


@nb.njit(nogil=True, cache=True)
def next_zone(zones, zone, goal, point):  # type: ignore[no-untyped-def]
    """The neighbour of a zone on the path to the goal; -1 if the goal is in the zone.

    From the zone's point nearest to the goal, one float step leads into the neighbour, in the first
    coordinate in which the goal lies outside. `point` is scratch, float64 [coordinate].
    """
    is_outside = False
    for m in range(goal.shape[0]):
        point[m] = min(max(goal[m], zones.least[zone, m]), zones.most[zone, m])
        if not is_outside and point[m] != goal[m]:
            point[m] = np.nextafter(point[m], goal[m])
            is_outside = True
    return zone_of(zones.cuts, point) if is_outside else -1
