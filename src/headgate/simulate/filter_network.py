"""A content-based network: a tree of nodes with filters on its links ([Select-Joins Appendix A]).

            server                A link's filter covers the subtree behind it: boxes that contain
         f₁ /    \\ f₂             the points of all subscriptions in that subtree. A message takes
           1      2               the links whose filter its region meets.
       f₃ / \\ f₄
         3   4

Invariant: a filter contains every subscription behind it, so no message misses one. It may contain
more, so a message may reach a node without a matching subscription. A filter has at most `parts`
boxes: routing tables stay small whatever the number of subscriptions (imperfect merging, [MBD §5]).
Filters are computed from the bounding boxes of the nodes' blocks of subscriptions.

A new subscription widens the filters on its path. A removed one leaves them as they are, until as
many were removed as are left; then all filters are computed again, from the leaves up.

A subscription is at the node of its subscriber. On the paper's workload this is expensive: similar
subscriptions are all over the tree, so nearly every message goes to nearly every node.
`headgate bench joins-network` compares this with zones.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.model.errors import InvalidValue
from headgate.simulate.cn_star import Links
from headgate.simulate.node_subscriptions import NodeSubscriptions
from headgate.simulate.regions import Regions, meets
from headgate.simulate.routing_trace import DEPTH, NODE, Arrivals, put_arrival, traced
from headgate.tables.box_tree_kernels import STACK, Floats, Longs, partition_by_coordinate
from headgate.tables.boxes import Boxes

PARTS = 64


class FilterNetwork:
    """A tree of nodes with filters. parents[n] is the parent of node n; the first node is the
    server's and has the parent -1."""

    def __init__(self, dimensions: int, parents: Longs, *, parts: int = PARTS) -> None:
        if parts < 1:
            raise InvalidValue(f"a filter has one part or more, not {parts}")
        self._tree = tree_of(parents)
        coordinates = 2 * dimensions
        self.subscriptions = NodeSubscriptions(coordinates, nodes=len(parents))
        least, most = (np.empty((len(parents) * parts, coordinates)) for _ in range(2))
        self._filters = Filters(least, most, np.zeros(len(parents), np.int64))
        self._removed_count = 0

    @property
    def links(self) -> Links:
        return Links(self._tree.start, self._tree.to)

    def subscribe(self, boxes: Boxes, nodes: Longs) -> None:
        """Add subscriptions, each at the given node."""
        points = np.hstack([boxes.low, boxes.high])
        if ((nodes < 0) | (nodes >= len(self._tree.parent))).any() or len(nodes) != len(points):
            raise InvalidValue(
                f"a subscription needs one node among 0 … {len(self._tree.parent) - 1}"
            )
        self.subscriptions.check_new(boxes.numbers, points)
        self.subscriptions.add(nodes, boxes.numbers, points)
        if 2 * len(points) < self.subscriptions.sizes.sum():
            widen(self._tree, self._filters, nodes, points)
        else:
            self.tighten()

    def unsubscribe(self, numbers: Longs) -> None:
        self.subscriptions.remove(numbers)
        self._removed_count += len(numbers)
        if self._removed_count > self.subscriptions.sizes.sum():
            self.tighten()

    def tighten(self) -> None:
        """Compute all filters again from the present subscriptions."""
        tighten(self._tree, self.subscriptions.blocks, self._filters)
        self._removed_count = 0

    def route(self, regions: Regions) -> Arrivals:
        """Which nodes get which messages."""
        tree, filters = self._tree, self._filters
        return traced(
            lambda first, out, used: route_filters(first, regions, tree, filters, out, used),
            messages=len(regions.own),
            lines_min=len(tree.parent),
        )


def tree_of(parents: Longs) -> NodeTree:
    """The tree with the first node as its root; InvalidValue if it is not a tree."""
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
    return NodeTree(parents, np.array(order, np.int64), start, children.astype(np.int64))


# Kernels: merging and widening boxes, and routing along the tree.


class Filters(NamedTuple):
    """For each node, boxes that contain the points of all subscriptions in its subtree.

    Node n has size[n] boxes, from line n · parts on.
    """

    least: Floats  # [line, coordinate]
    most: Floats
    size: Longs  # [node]


class NodeTree(NamedTuple):
    """A tree of nodes. Links lead to children: those of node n to `to[start[n]:start[n + 1]]`."""

    parent: Longs  # [node]; of the root, -1
    order: Longs  # all nodes, parents first
    start: Longs
    to: Longs


@nb.njit(nogil=True, cache=True)
def merge_boxes(boxes, used, parts, least, most, first):  # type: ignore[no-untyped-def]
    """Merge boxes into at most `parts` bounding boxes, written to least and most from line `first`
    on. Returns their number.

    boxes  float64 [box, 2 · coordinates]: least coordinates, then greatest ones; gets reordered
    used   the number of boxes

    Groups of near boxes are found by halving, by one coordinate after the other.
    """
    half, written = boxes.shape[1] // 2, 0
    number, stack = np.arange(used), np.empty((STACK, 4), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, used, parts, 0
    top = 1 if used > 0 else 0
    while top > 0:
        top -= 1
        begin, end, groups, level = stack[top]
        if groups == 1 or end - begin == 1:
            for m in range(half):
                least[first + written, m] = boxes[begin:end, m].min()
                most[first + written, m] = boxes[begin:end, half + m].max()
            written += 1
            continue
        middle = (begin + end) >> 1
        partition_by_coordinate(boxes, number, begin, end, middle, level % boxes.shape[1])
        for child in range(2):
            stack[top, 0] = begin if child == 0 else middle
            stack[top, 1] = middle if child == 0 else end
            stack[top, 2] = groups >> 1 if child == 0 else groups - (groups >> 1)
            stack[top, 3] = level + 1
            top += 1
    return written


@nb.njit(nogil=True, cache=True)
def tighten(tree, blocks, filters):  # type: ignore[no-untyped-def]
    """Compute all filters from the present subscriptions, from the leaves of the tree up."""
    nodes, coordinates = tree.parent.shape[0], blocks.least.shape[1]
    parts = filters.least.shape[0] // nodes
    for position in range(nodes - 1, -1, -1):
        node = tree.order[position]
        room = blocks.length[node]
        for link in range(tree.start[node], tree.start[node + 1]):
            room += filters.size[tree.to[link]]
        boxes, used = np.empty((room, 2 * coordinates)), 0
        for block in range(blocks.first[node], blocks.first[node] + blocks.length[node]):
            if blocks.least[block, 0] <= blocks.most[block, 0]:
                boxes[used, :coordinates] = blocks.least[block]
                boxes[used, coordinates:] = blocks.most[block]
                used += 1
        for link in range(tree.start[node], tree.start[node + 1]):
            child = tree.to[link]
            for line in range(child * parts, child * parts + filters.size[child]):
                boxes[used, :coordinates] = filters.least[line]
                boxes[used, coordinates:] = filters.most[line]
                used += 1
        filters.size[node] = merge_boxes(
            boxes, used, parts, filters.least, filters.most, node * parts
        )


@nb.njit(nogil=True, cache=True)
def widen(tree, filters, nodes, points):  # type: ignore[no-untyped-def]
    """Widen the filters on the path to each new point, so that they contain it.

    A filter with fewer than `parts` boxes gets a new box; else the box with fewest sides to move
    is widened.
    """
    parts = filters.least.shape[0] // tree.parent.shape[0]
    for number in range(points.shape[0]):
        node = nodes[number]
        while node >= 0:
            best, fewest = -1, points.shape[1] + 1
            for line in range(node * parts, node * parts + filters.size[node]):
                sides = 0
                for m in range(points.shape[1]):
                    value = points[number, m]
                    sides += not filters.least[line, m] <= value <= filters.most[line, m]
                if sides < fewest:
                    best, fewest = line, sides
            if fewest > 0 and filters.size[node] < parts:
                best = node * parts + filters.size[node]
                filters.size[node] += 1
                filters.least[best], filters.most[best] = points[number], points[number]
            for m in range(points.shape[1]):
                filters.least[best, m] = min(filters.least[best, m], points[number, m])
                filters.most[best, m] = max(filters.most[best, m], points[number, m])
            node = tree.parent[node]


@nb.njit(nogil=True, cache=True)
def meets_filter(regions, message, filters, node, parts):  # type: ignore[no-untyped-def]
    for line in range(node * parts, node * parts + filters.size[node]):
        if meets(regions, message, filters.least, filters.most, line):
            return True
    return False


@nb.njit(nogil=True, cache=True)
def route_filters(first, regions, tree, filters, out, used):  # type: ignore[no-untyped-def]
    """Write the arrivals of messages from `first` on, as `traced` requires: returns the message
    that did not fit, or the number of messages, and the lines used."""
    nodes = tree.parent.shape[0]
    parts, root = filters.least.shape[0] // nodes, tree.order[0]
    for message in range(first, regions.own.shape[0]):
        if used + nodes > out.shape[0]:
            return message, used
        arrival = used
        used = put_arrival(out, used, message, root, -1, -1, 0, 1)
        while arrival < used:
            node, depth = out[arrival, NODE], out[arrival, DEPTH] + 1
            for link in range(tree.start[node], tree.start[node + 1]):
                child = tree.to[link]
                if meets_filter(regions, message, filters, child, parts):
                    used = put_arrival(out, used, message, child, arrival, link, depth, 1)
            arrival += 1
    return regions.own.shape[0], used
