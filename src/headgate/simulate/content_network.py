"""A content-driven network: subscriptions at nodes, messages to all subscriptions in their regions.

    ZoneNetwork      zones of the space of subscriptions (a content-addressable network, CAN); a
                     subscription is at the node of the zone that contains its ranges
    FilterNetwork    a tree of nodes with filters on links (filter_network.py); a subscription is at
                     the node of its subscriber

[Select-Joins §2.1 and Appendix A]. Both have the same interface, with regions and without joins:

    regions ──► route ──► Arrivals ──► counts or deliveries     which subscriptions get which
                              └──────► CnStar.carry             bytes, hops, and the payloads

Invariant: whatever happened to subscriptions and zones, each message is delivered once to each
subscription in its region, and to no other. All nodes are simulated in one process, and the whole
route of a message is computed at once, but each step uses only what its node would know.

Routing over zones ([Select-Joins Appendix A, Fig. 16]):

    server's zone ──► … ──► goal's zone ──► a tree over the zones that the region meets

The goal is the point of the region's core nearest to the server's zone (`core` in regions.py).
From there each zone of the region has one parent: the neighbour on its own path to the goal. A node
forwards to the neighbours that the region meets and whose path to the goal leads through it. It
needs its neighbours' zones, the server's zone and the message's region, but no memory of messages.

Invariant of routing: every zone that the region meets gets the message once, from its parent, and
no other zone does except on the path to the goal. Let r be a point of the region in the zone. The
zone's point nearest to the goal lies between r and the goal in each coordinate, and so does the
float step from there to the goal; the region contains both, because the goal is in its core. So the
parent meets the region too, and it is nearer to the goal.

Cost: one arrival for each zone that a message meets, plus the path to the goal, which is empty if
nothing is excluded. Rejected: flooding with a memory of seen messages, since a zone of 1,000 has 17
neighbours on average; a separate path to each zone.
"""

from __future__ import annotations

from typing import Protocol

import numba as nb
import numpy as np

from headgate.match.bit_rows import first_not_less
from headgate.model.errors import InvalidValue
from headgate.simulate.cn_star import Links
from headgate.simulate.node_subscriptions import NodeSubscriptions
from headgate.simulate.regions import Regions, core, meets
from headgate.simulate.routing_trace import DEPTH, Arrivals, put_arrival, traced
from headgate.simulate.zones import Zones, next_zone, zones_of
from headgate.tables.box_tree_kernels import Longs
from headgate.tables.boxes import Boxes

SERVER = 0
"""The server is at the first node."""


class ContentNetwork(Protocol):
    subscriptions: NodeSubscriptions

    @property
    def links(self) -> Links: ...

    def route(self, regions: Regions) -> Arrivals:
        """Which nodes get which messages."""
        ...


class ZoneNetwork:
    """`dimensions` are the attributes of both tables together."""

    def __init__(self, dimensions: int) -> None:
        self.zones = Zones(2 * dimensions)
        self.subscriptions = NodeSubscriptions(2 * dimensions, nodes=1)
        self._alike: set[int] = set()
        """Zones whose subscriptions are all equal, so that they cannot be halved."""

    def __len__(self) -> int:
        return len(self.zones)

    @property
    def links(self) -> Links:
        arrays = self.zones.arrays
        return Links(arrays.start, arrays.to)

    def subscribe(self, boxes: Boxes) -> None:
        points = np.hstack([boxes.low, boxes.high])
        self.subscriptions.check_new(boxes.numbers, points)
        owners = np.empty(len(points), np.int64)
        zones_of(self.zones.cuts, points, owners)
        self.subscriptions.add(owners, boxes.numbers, points)
        self._alike.difference_update(np.unique(owners).tolist())

    def unsubscribe(self, numbers: Longs) -> None:
        self.subscriptions.remove(numbers)

    def join(self, count: int = 1, *, handled: Regions | None = None) -> None:
        """Add nodes, each of which takes half of the subscriptions of the most loaded zone.

        `handled` is a sample of earlier messages: zones are cut so that few of them go to both
        sides.
        """
        for _ in range(count):
            order = np.argsort(-self.subscriptions.sizes, kind="stable").tolist()
            if not any(self._halve(zone, handled) for zone in order):
                # No cut would balance loads: cut the space of the zone with fewest subscriptions.
                order.reverse()
                self.split(next(zone for zone in order if self.zones.middle_cut(zone) is not None))

    def split(self, zone: int) -> None:
        """Cut a zone in the middle of its space."""
        cut = self.zones.middle_cut(zone)
        if cut is None:
            raise InvalidValue(f"zone {zone} is a single point, which cannot be split")
        self._cut(zone, *cut)

    def route(self, regions: Regions) -> Arrivals:
        """Which nodes get which messages."""
        zones = self.zones.arrays
        return traced(
            lambda first, out, used: route_regions(first, regions, zones, SERVER, out, used),
            messages=len(regions.own),
            lines_min=2 * len(self),
        )

    def _halve(self, zone: int, handled: Regions | None) -> bool:
        """Cut a zone's subscriptions in two halves; False if they are all equal."""
        if zone in self._alike or self.subscriptions.sizes[zone] < 2:
            return False
        cut = self.zones.cut_for(zone, self.subscriptions.points(zone), handled)
        if cut is None:
            self._alike.add(zone)
            return False
        self._cut(zone, *cut)
        return True

    def _cut(self, zone: int, coordinate: int, value: float) -> None:
        points = self.subscriptions.points(zone)
        new = self.zones.split(zone, coordinate, value)
        is_upper = self.zones.is_above(new, coordinate, value)
        given = self.subscriptions.split(zone, (points[:, coordinate] >= value) == is_upper)
        assert given == new, "zones and their subscriptions have the same numbers"


# Kernels of routing over zones.


@nb.njit(nogil=True, cache=True)
def link_between(start, to, from_zone, to_zone):  # type: ignore[no-untyped-def]
    """The number of the link from one zone to its neighbour."""
    return first_not_less(to, start[from_zone], start[from_zone + 1], to_zone)


@nb.njit(nogil=True, cache=True)
def choose_goal(regions, message, zones, server, goal, room):  # type: ignore[no-untyped-def]
    """The point of the region's core nearest to the server's zone; False for an empty region."""
    least, most = room[0], room[1]
    if not core(regions, message, least, most):
        return False
    for m in range(goal.shape[0]):
        goal[m] = min(max(least[m], zones.least[server, m]), most[m])
    return True


@nb.njit(nogil=True, cache=True)
def put_tree(zones, message, way, tree, hit, out, used):  # type: ignore[no-untyped-def]
    """Write the arrivals in the zones of `hit`, parents first; returns the number of lines.

    way   (goal, point), float64 [coordinate] each; point is scratch
    tree  (parents, depths, arrival), int64 [zone] each, scratch; arrival of the goal's zone is set
    hit   int64: the zones that the region meets
    """
    goal, point = way
    parents, depths, arrival = tree
    count = hit.shape[0]
    for i in range(count):
        parents[hit[i]] = next_zone(zones, hit[i], goal, point)
        depths[hit[i]] = -1
    deepest = 0
    for i in range(count):
        zone, above = hit[i], 0
        while parents[zone] >= 0 and depths[zone] < 0:
            zone, above = parents[zone], above + 1
        depth = (0 if parents[zone] < 0 else depths[zone]) + above
        deepest, zone = max(deepest, depth), hit[i]
        while depths[zone] < 0:
            depths[zone] = depth
            depth -= 1
            if parents[zone] >= 0:
                zone = parents[zone]
    first = out[used - 1, DEPTH]
    for depth in range(1, deepest + 1):
        for i in range(count):
            zone = hit[i]
            if depths[zone] == depth:
                parent = parents[zone]
                link = link_between(zones.start, zones.to, parent, zone)
                arrival[zone] = used
                used = put_arrival(
                    out, used, message, zone, arrival[parent], link, first + depth, 1
                )
    return used


@nb.njit(nogil=True, cache=True)
def route_regions(first, regions, zones, server, out, used):  # type: ignore[no-untyped-def]
    """Write the arrivals of messages from `first` on, as `traced` requires: returns the message
    that did not fit, or the number of messages, and the lines used.

    A message with an empty region has no arrivals.
    """
    size, coordinates = zones.least.shape
    hit, parents, depths, arrival = (
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )
    goal, point, room = np.empty(coordinates), np.empty(coordinates), np.empty((2, coordinates))
    for message in range(first, regions.own.shape[0]):
        if used + 2 * size > out.shape[0]:
            return message, used
        if not choose_goal(regions, message, zones, server, goal, room):
            continue
        zone, depth, parent, link = server, 0, -1, -1
        while True:
            following = next_zone(zones, zone, goal, point)
            used = put_arrival(out, used, message, zone, parent, link, depth, following < 0)
            if following < 0:
                break
            link = link_between(zones.start, zones.to, zone, following)
            zone, depth, parent = following, depth + 1, used - 1
        arrival[zone] = used - 1
        count = 0
        for box in range(size):
            if meets(regions, message, zones.least, zones.most, box):
                hit[count] = box
                count += 1
        tree = parents, depths, arrival
        used = put_tree(zones, message, (goal, point), tree, hit[:count], out, used)
    return regions.own.shape[0], used
