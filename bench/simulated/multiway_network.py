"""Multi-way select-joins over simulated networks: one for each group of semijoins.

The subscriptions of a group, or those of a strawman that are served together, are in one network of
1,000 zones. Its first messages, which are not measured, tell how its zones are cut, as for two-way
joins (`simulate/join_simulation.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bench.workloads.physical_network import OVERLAY_NODES
from headgate.simulate.content_network import ZoneNetwork
from headgate.simulate.regions import Regions, regions_of
from headgate.simulate.routing_trace import FROM, MESSAGE
from headgate.tables.boxes import Boxes
from headgate.tables.messages import MessageBatch

HANDLED_MOST = 1_000


class GroupNetwork:
    def __init__(self, boxes: Boxes, handled: Regions | None) -> None:
        self._network = ZoneNetwork(boxes.low.shape[1])
        self._network.subscribe(boxes)
        self._network.join(OVERLAY_NODES - 1, handled=None if handled is None else _some(handled))

    @classmethod
    def spread(cls, boxes: Boxes, handled: MessageBatch | None) -> GroupNetwork:
        """As `simulated_costs` wants it."""
        return cls(boxes, None if handled is None else regions_of(handled))

    def links(self, messages: MessageBatch) -> np.ndarray:
        return self.links_of(regions_of(messages))

    def links_of(self, regions: Regions) -> np.ndarray:
        lines = self._network.route(regions).lines
        return np.bincount(lines[lines[:, FROM] >= 0, MESSAGE], minlength=len(regions.own))


def _some(regions: Regions) -> Regions:
    """At most a thousand of the messages, evenly."""
    count = len(regions.own)
    kept = np.linspace(0, count - 1, min(count, HANDLED_MOST)).astype(int)
    own, start, excluded, pairs = (each[kept] for each in regions[:4])
    return Regions(own, start, excluded, pairs, regions.numbers, regions.widths)


@dataclass(slots=True)
class Sent:
    """Messages for all who select a point, and not another one: what strawmen send."""

    events: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    points: list[np.ndarray] = field(default_factory=list)
    unless: list[np.ndarray | None] = field(default_factory=list)

    def send(
        self, event: int, size: int, point: np.ndarray, unless: np.ndarray | None = None
    ) -> None:
        self.events.append(event)
        self.sizes.append(size)
        self.points.append(point)
        self.unless.append(unless)

    def traffic(self, low: np.ndarray, high: np.ndarray, *, warming: int) -> int:
        """Bytes × links of all events from `warming` on, among subscriptions with these ranges."""
        if not self.events:
            return 0
        first = int(np.searchsorted(self.events, warming))
        open_ = np.full((len(low), 1), np.inf)
        boxes = Boxes(np.arange(len(low)), np.hstack([low, -open_]), np.hstack([high, open_]))
        network = GroupNetwork(boxes, self._regions(slice(0, first)) if first else None)
        links = network.links_of(self._regions(slice(first, None)))
        return int((np.array(self.sizes[first:], np.int64) * links).sum())

    def _regions(self, which: slice) -> Regions:
        """A second table without ranges takes the place of what is joined with."""
        points, unless = self.points[which], self.unless[which]
        everyone = np.array([np.inf, -np.inf])
        parts = [
            np.concatenate([point, *([] if other is None else [other]), everyone])
            for point, other in zip(points, unless, strict=True)
        ]
        lengths = np.array([len(each) for each in parts], np.int64)
        return Regions(
            np.zeros(len(parts), np.int64),
            np.cumsum(lengths) - lengths,
            np.array([each is not None for each in unless], np.int64),
            np.ones(len(parts), np.int64),
            np.concatenate([*parts, np.empty(0)]),
            np.array([len(self.points[0]), 1], np.int64),
        )
