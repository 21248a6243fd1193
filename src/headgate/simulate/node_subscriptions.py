"""The subscriptions of each overlay node, and its message dispatcher ([Select-Joins §2.1]).

    blocks    │ node 0         │ node 1 │ free     │ node 2       │      16 places each
    places    │p p p p p – p p │p p p p │          │p p p – – – – │      – is NaN

A node has a range of blocks. Its points are kept in the order of a k-d tree, so the bounding box of
a block is small. A message is compared with the boxes, then with the points of those blocks that
its region meets.

Invariant: a node's dispatcher finds exactly the node's subscriptions in the region. New points are
appended; a removed one leaves a hole. A full range moves and doubles; when half of all blocks are
free, all ranges are packed. A node that is split keeps one part of its range, and the new node gets
the rest. Points are sorted when they are next needed, not at each of a thousand splits.

Cost at 1,000 subscriptions in a node: 63 boxes for each message that arrives there. Rejected: a
tree for each node, since a message that reaches a node meets many of its blocks.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.model.errors import InvalidValue
from headgate.simulate.regions import Regions, meets
from headgate.simulate.routing_trace import DELIVERS, MESSAGE, NODE, Arrivals, Deliveries
from headgate.tables.box_tree_kernels import STACK, Floats, Longs, partition_by_coordinate

REMOVED = -1
Numbers = TypeVar("Numbers", Floats, Longs)


class NodeSubscriptions:
    """Subscriptions by number, each at one node. Numbers should be small: arrays are indexed by
    them."""

    def __init__(self, coordinates: int, *, nodes: int) -> None:
        self._points: Floats = np.empty((0, coordinates))
        self._subscription: Longs = np.empty(0, np.int64)
        self._least: Floats = np.empty((0, coordinates))
        self._most: Floats = np.empty((0, coordinates))
        self._blocks_used = 0
        self._first, self._count, self._used = (np.zeros(nodes, np.int64) for _ in range(3))
        """By node: first block, number of blocks, and how many places were used, holes included."""
        self.sizes: Longs = np.zeros(nodes, np.int64)
        """How many subscriptions each node has."""
        self._place: Longs = np.empty(0, np.int64)
        self._node_of: Longs = np.empty(0, np.int64)
        self._unordered: set[int] = set()

    @property
    def blocks(self) -> Blocks:
        """The arrays for the kernels; valid until the next change."""
        for node in self._unordered:
            numbers, points = self._held(node)
            order_points(points, numbers)
            self._write(node, numbers, points)
            self._bound(np.arange(self._count[node]) + self._first[node])
        self._unordered.clear()
        boxes = self._least, self._most
        return Blocks(self._points, self._subscription, *boxes, self._first, self._count)

    def counts(self, arrivals: Arrivals, regions: Regions) -> Longs:
        """For each arrival, how many subscriptions of its node get the message."""
        matched: Longs = count_matches(arrivals.lines, regions, self.blocks)
        return matched

    def deliveries(self, arrivals: Arrivals, regions: Regions) -> Deliveries:
        """For each arrival, which subscriptions of its node get the message."""
        out = np.empty((int(self.counts(arrivals, regions).sum()), 2), np.int64)
        write_matches(arrivals.lines, regions, self.blocks, out)
        return Deliveries(out)

    def holds(self, numbers: Longs) -> npt.NDArray[np.bool_]:
        """Which of these subscriptions exist."""
        in_range = (numbers >= 0) & (numbers < len(self._place))
        is_held: npt.NDArray[np.bool_] = in_range.copy()
        is_held[in_range] = self._place[numbers[in_range]] != REMOVED
        return is_held

    def points(self, node: int) -> Floats:
        return self._held(node)[1]

    def nodes_of(self, numbers: Longs) -> Longs:
        return self._node_of[numbers]

    def add(self, nodes: Longs, numbers: Longs, points: Floats) -> None:
        """Add new subscriptions to nodes."""
        if len(numbers) == 0:
            return
        if numbers.max() >= len(self._place):
            size = max(int(numbers.max()) + 1, 2 * len(self._place))
            self._place = _grown(self._place, size, REMOVED)
            self._node_of = _grown(self._node_of, size, REMOVED)
        order = np.argsort(nodes, kind="stable")
        edges = np.flatnonzero(np.diff(nodes[order])) + 1
        for some in np.split(order, edges):
            self._give(int(nodes[some[0]]), numbers[some], points[some])

    def check_new(self, numbers: Longs, points: Floats) -> None:
        """Raise InvalidValue if these subscriptions cannot be added."""
        bounds, expected = points.shape[1], self._points.shape[1]
        if bounds != expected:
            raise InvalidValue(f"subscriptions have {bounds // 2} ranges: expected {expected // 2}")
        taken = numbers[self.holds(numbers)]
        if len(taken):
            raise InvalidValue(f"subscription {taken[0]} exists already; remove it first")

    def remove(self, numbers: Longs) -> None:
        """Remove subscriptions."""
        unknown = numbers[~self.holds(numbers)]
        if len(unknown):
            raise InvalidValue(f"there is no subscription {unknown[0]}")
        numbers = np.unique(numbers)
        places = self._place[numbers]
        self._points[places] = np.nan
        self._subscription[places] = REMOVED
        self._place[numbers] = REMOVED
        np.subtract.at(self.sizes, self._node_of[numbers], 1)
        self._bound(np.unique(places // BLOCK))

    def split(self, node: int, leaving: npt.NDArray[np.bool_]) -> int:
        """Move some points of a node to a new node; returns the number of the new node.

        `leaving` is in the order of `points(node)`.
        """
        new = len(self.sizes)
        self._first, self._count, self._used, self.sizes = (
            np.append(array, 0) for array in (self._first, self._count, self._used, self.sizes)
        )
        numbers, points = self._held(node)
        self._write(node, numbers[~leaving], points[~leaving])
        blocks_needed = -(-int(self.sizes[node]) // BLOCK)
        self._first[new] = self._first[node] + blocks_needed
        self._count[new] = self._count[node] - blocks_needed
        self._count[node] = blocks_needed
        self._write(new, numbers[leaving], points[leaving])
        self._unordered |= {node, new}
        return new

    def _held(self, node: int) -> tuple[Longs, Floats]:
        """Copies of the node's subscriptions and their points."""
        begin = int(self._first[node]) * BLOCK
        places = slice(begin, begin + int(self._used[node]))
        is_taken = self._subscription[places] != REMOVED
        return self._subscription[places][is_taken], self._points[places][is_taken]

    def _give(self, node: int, numbers: Longs, points: Floats) -> None:
        used, count = int(self._used[node]), len(numbers)
        if used + count > self._count[node] * BLOCK or count > BLOCK:
            old_numbers, old_points = self._held(node)
            self._write(
                node, np.concatenate([old_numbers, numbers]), np.concatenate([old_points, points])
            )
            self._unordered.add(node)
            return
        begin = int(self._first[node]) * BLOCK + used
        self._put(node, begin, numbers, points)
        self._used[node] += count
        self.sizes[node] += count
        self._bound(np.arange(begin // BLOCK, (begin + count - 1) // BLOCK + 1))

    def _bound(self, blocks: Longs) -> None:
        bound_blocks(self._points, self._least, self._most, blocks)

    def _write(self, node: int, numbers: Longs, points: Floats) -> None:
        """Replace the subscriptions of a node by these, in this order."""
        count = len(numbers)
        if count > self._count[node] * BLOCK:
            self._move(node, 2 * -(-count // BLOCK))
        begin = int(self._first[node]) * BLOCK
        end = begin + int(self._count[node]) * BLOCK
        self._points[begin:end], self._subscription[begin:end] = np.nan, REMOVED
        self._put(node, begin, numbers, points)
        self._used[node] = self.sizes[node] = count

    def _put(self, node: int, begin: int, numbers: Longs, points: Floats) -> None:
        end = begin + len(numbers)
        self._points[begin:end], self._subscription[begin:end] = points, numbers
        self._place[numbers], self._node_of[numbers] = np.arange(begin, end), node

    def _move(self, node: int, blocks: int) -> None:
        """Give the node this many new blocks; its old blocks become free."""
        self._count[node] = self._used[node] = 0
        if 2 * (int(self._count.sum()) + blocks) < self._blocks_used:
            self._pack()
        self._first[node], self._count[node] = self._blocks_used, blocks
        self._blocks_used += blocks
        if self._blocks_used > len(self._least):
            room = max(self._blocks_used, 2 * len(self._least))
            self._least = _grown(self._least, room, np.inf)
            self._most = _grown(self._most, room, -np.inf)
            self._points = _grown(self._points, room * BLOCK, np.nan)
            self._subscription = _grown(self._subscription, room * BLOCK, REMOVED)

    def _pack(self) -> None:
        """Move the ranges of all nodes together, so that no block is free between them."""
        blocks = np.concatenate(
            [np.arange(f, f + n) for f, n in zip(self._first, self._count, strict=True)]
        )
        places = (blocks[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        self._points, self._subscription = self._points[places], self._subscription[places]
        self._least, self._most = self._least[blocks], self._most[blocks]
        self._first = np.cumsum(self._count) - self._count
        taken = np.flatnonzero(self._subscription != REMOVED)
        self._place[self._subscription[taken]] = taken
        self._blocks_used = len(blocks)


def _grown(array: Numbers, size: int, fill: float) -> Numbers:
    grown = np.full((size, *array.shape[1:]), fill, array.dtype)
    grown[: len(array)] = array
    return grown


# Kernels of the dispatcher.

BLOCK = 16


class Blocks(NamedTuple):
    """Block b has the places from b · BLOCK on; node n has length[n] blocks from first[n] on."""

    points: Floats  # [place, coordinate]
    subscription: Longs  # [place]
    least: Floats  # [block, coordinate]
    most: Floats
    first: Longs  # [node]
    length: Longs


@nb.njit(nogil=True, cache=True)
def order_points(points, subscription):  # type: ignore[no-untyped-def]
    """Sort points in the order of a k-d tree whose halves are whole blocks, in place."""
    stack, top = np.empty((STACK, 3), np.int64), 1
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, points.shape[0], 0
    while top > 0:
        top -= 1
        begin, end, level = stack[top]
        blocks = -(-(end - begin) // BLOCK)
        if blocks <= 1:
            continue
        middle = begin + (blocks >> 1) * BLOCK
        partition_by_coordinate(points, subscription, begin, end, middle, level % points.shape[1])
        for child in range(2):
            stack[top, 0] = begin if child == 0 else middle
            stack[top, 1] = middle if child == 0 else end
            stack[top, 2] = level + 1
            top += 1


@nb.njit(nogil=True, cache=True)
def bound_blocks(points, least, most, blocks):  # type: ignore[no-untyped-def]
    """Write the bounding boxes of these blocks; that of an empty block is empty (+∞ to −∞)."""
    for block in blocks:
        least[block], most[block] = np.inf, -np.inf
        for place in range(block * BLOCK, (block + 1) * BLOCK):
            for m in range(points.shape[1]):
                if not np.isnan(points[place, m]):
                    least[block, m] = min(least[block, m], points[place, m])
                    most[block, m] = max(most[block, m], points[place, m])


@nb.njit(nogil=True, cache=True)
def count_matches(arrivals, regions, blocks):  # type: ignore[no-untyped-def]
    """int64 [arrival]: how many subscriptions of its node are in the region of the message."""
    counts = np.zeros(arrivals.shape[0], np.int64)
    for arrival in range(arrivals.shape[0]):
        if not arrivals[arrival, DELIVERS]:
            continue
        message, node = arrivals[arrival, MESSAGE], arrivals[arrival, NODE]
        for block in range(blocks.first[node], blocks.first[node] + blocks.length[node]):
            if meets(regions, message, blocks.least, blocks.most, block):
                for place in range(block * BLOCK, (block + 1) * BLOCK):
                    counts[arrival] += meets(regions, message, blocks.points, blocks.points, place)
    return counts


@nb.njit(nogil=True, cache=True)
def write_matches(arrivals, regions, blocks, out):  # type: ignore[no-untyped-def]
    """Write lines (arrival, subscription) to `out`, which has room for all matches."""
    used = 0
    for arrival in range(arrivals.shape[0]):
        if not arrivals[arrival, DELIVERS]:
            continue
        message, node = arrivals[arrival, MESSAGE], arrivals[arrival, NODE]
        for block in range(blocks.first[node], blocks.first[node] + blocks.length[node]):
            if not meets(regions, message, blocks.least, blocks.most, block):
                continue
            for place in range(block * BLOCK, (block + 1) * BLOCK):
                if meets(regions, message, blocks.points, blocks.points, place):
                    out[used, 0], out[used, 1] = arrival, blocks.subscription[place]
                    used += 1
