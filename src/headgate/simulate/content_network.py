"""A content-driven network: subscriptions at its nodes, messages to all that their regions hold.

    ZoneNetwork      zones of the space of subscriptions (a content-addressable network, CAN); a
                     subscription lives where its ranges lie
    FilterNetwork    a tree of nodes, each link with filters (a content-based network, CBN); a
                     subscription lives where its subscriber is

[Select-Joins §2.1 and Appendix A]. Both have the same interface, which knows regions and bounds,
and no joins:

    regions ──► route ──► Arrivals ──► counts or deliveries     which subscriptions get which
                              └──────► CnStar.carry             what it costs, and the payloads

Law: whatever has happened to subscriptions and zones, each message is delivered once to each
subscription in its region, and to no other.

It is a simulation: all nodes live in one process, and a message's whole way is found at once. Each
step uses only what its node would know.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from headgate.model.errors import InvalidValue
from headgate.simulate.arrivals import Arrivals, traced
from headgate.simulate.cn_star import Links
from headgate.simulate.node_subscriptions import NodeSubscriptions
from headgate.simulate.region_kernels import Regions
from headgate.simulate.region_routing import route_regions
from headgate.simulate.zone_kernels import zones_of
from headgate.simulate.zones import Zones
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
        """Zones whose subscriptions are known to be all alike."""

    def __len__(self) -> int:
        return len(self.zones)

    @property
    def links(self) -> Links:
        arrays = self.zones.arrays
        return Links(arrays.start, arrays.to)

    def subscribe(self, boxes: Boxes) -> None:
        points = np.hstack([boxes.low, boxes.high])
        self.subscriptions.refuse_unfit(boxes.numbers, points)
        owners = np.empty(len(points), np.int64)
        zones_of(self.zones.cuts, points, owners)
        self.subscriptions.add(owners, boxes.numbers, points)
        self._alike.difference_update(np.unique(owners).tolist())

    def unsubscribe(self, numbers: Longs) -> None:
        self.subscriptions.remove(numbers)

    def join(self, count: int = 1, *, handled: Regions | None = None) -> None:
        """Let nodes join, each of which takes half of the most loaded zone's subscriptions.

        With some of the messages that were handled before, zones are cut so that few messages need
        to go to both sides.
        """
        for _ in range(count):
            order = np.argsort(-self.subscriptions.sizes, kind="stable").tolist()
            if not any(self._halve(zone, handled) for zone in order):
                # No cut would balance loads: let the space be cut where there is least to move.
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
            lambda at, out, used: route_regions(at, regions, zones, SERVER, out, used),
            messages=len(regions.own),
            lines_min=2 * len(self),
        )

    def _halve(self, zone: int, handled: Regions | None) -> bool:
        """Cut a zone's subscriptions in two halves; False if they are all alike."""
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
