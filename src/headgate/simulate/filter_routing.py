"""A content-based network: a tree of nodes with filters on its links (Appendix A, Fig. 15).

            server                A link's filter says what lies behind it: boxes that hold the
         f₁ /    \\ f₂             points of all subscriptions in that subtree. A message takes the
           1      2               links whose filter its region meets.
       f₃ / \\ f₄
         3   4

Law: a filter holds every subscription behind it, so no message misses one; that of a link may hold
more, so a message may come to a node in vain, where the dispatcher finds nobody. A filter has at
most `parts` boxes: forwarding tables stay small whatever the number of subscriptions (imperfect
merging, [MBD §5]). They are made from the bounding boxes of nodes' blocks of subscriptions.

A new subscription widens the filters on its way; one that goes leaves them as they are, until so
many have gone that all are made anew, from the leaves up.

Where a subscription lives is not for the network to say: it is where its subscriber is. On the
paper's workload that costs much: neighbours in interest are all over the tree, so nearly every
message goes nearly everywhere. `headgate bench joins-network` shows both.
"""

from __future__ import annotations

import numpy as np

from headgate.model.errors import InvalidValue
from headgate.simulate.arrivals import Arrivals, traced
from headgate.simulate.cn_star import Links
from headgate.simulate.filter_kernels import Filters, Tree, route_filters, tighten, widen
from headgate.simulate.node_subscriptions import NodeSubscriptions
from headgate.simulate.region_kernels import Regions
from headgate.tables.box_tree_kernels import Longs
from headgate.tables.boxes import Boxes

PARTS = 64


class FilterNetwork:
    """`parents` says who is above each node in the tree; the first node is the server's, and above
    it is -1."""

    def __init__(self, dimensions: int, parents: Longs, *, parts: int = PARTS) -> None:
        if parts < 1:
            raise InvalidValue(f"a filter has one part or more, not {parts}")
        self._tree = tree_of(parents)
        coordinates = 2 * dimensions
        self.subscriptions = NodeSubscriptions(coordinates, nodes=len(parents))
        least, most = (np.empty((len(parents) * parts, coordinates)) for _ in range(2))
        self._filters = Filters(least, most, np.zeros(len(parents), np.int64))
        self._gone = 0

    @property
    def links(self) -> Links:
        return Links(self._tree.start, self._tree.to)

    def subscribe(self, boxes: Boxes, nodes: Longs) -> None:
        """Let subscriptions live at these nodes."""
        points = np.hstack([boxes.low, boxes.high])
        if ((nodes < 0) | (nodes >= len(self._tree.parent))).any() or len(nodes) != len(points):
            raise InvalidValue(f"a subscription lives at one of {len(self._tree.parent)} nodes")
        self.subscriptions.refuse_unfit(boxes.numbers, points)
        self.subscriptions.add(nodes, boxes.numbers, points)
        if 2 * len(points) < self.subscriptions.sizes.sum():
            widen(self._tree, self._filters, nodes, points)
        else:
            self.tighten()

    def unsubscribe(self, numbers: Longs) -> None:
        self.subscriptions.remove(numbers)
        self._gone += len(numbers)
        if self._gone > self.subscriptions.sizes.sum():
            self.tighten()

    def tighten(self) -> None:
        """Make all filters anew."""
        tighten(self._tree, self.subscriptions.blocks, self._filters)
        self._gone = 0

    def route(self, regions: Regions) -> Arrivals:
        """Which nodes get which messages."""
        tree, filters = self._tree, self._filters
        return traced(
            lambda at, out, used: route_filters(at, regions, tree, filters, out, used),
            messages=len(regions.own),
            lines_min=len(tree.parent),
        )


def tree_of(parents: Longs) -> Tree:
    """The tree with the first node as its root; refused if it is none."""
    nodes = len(parents)
    if nodes == 0 or parents[0] != -1 or ((parents[1:] < 0) | (parents[1:] >= nodes)).any():
        raise InvalidValue("the first node is the root of the tree, all others have a parent")
    children = np.argsort(parents[1:], kind="stable") + 1
    start: Longs = np.searchsorted(parents[children], np.arange(nodes + 1)).astype(np.int64)
    order = [0]
    for node in order:
        order += children[start[node] : start[node + 1]].tolist()
    if len(order) < nodes:
        raise InvalidValue(f"{nodes - len(order)} nodes are not below the root")
    return Tree(parents, np.array(order, np.int64), start, children.astype(np.int64))
