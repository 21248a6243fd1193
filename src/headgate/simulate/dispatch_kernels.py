"""The hot loops of message dispatchers: a node's subscriptions in blocks, and who gets what."""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.simulate.arrivals import DELIVERS, MESSAGE, NODE
from headgate.simulate.region_kernels import meets
from headgate.tables.box_tree_kernels import STACK, Floats, Longs, put_smaller_first

BLOCK = 16


class Blocks(NamedTuple):
    """Block b has the places from b · BLOCK on; those of node n are from `first[n]` on."""

    points: Floats  # [place, coordinate]
    subscription: Longs  # [place]
    least: Floats  # [block, coordinate]
    most: Floats
    first: Longs  # [node]
    length: Longs


@nb.njit(nogil=True, cache=True)
def order_points(points, subscription):  # type: ignore[no-untyped-def]
    """Put points in the order of a tree of halves; halves are whole blocks."""
    stack, top = np.empty((STACK, 3), np.int64), 1
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, points.shape[0], 0
    while top > 0:
        top -= 1
        begin, end, level = stack[top]
        blocks = -(-(end - begin) // BLOCK)
        if blocks <= 1:
            continue
        middle = begin + (blocks >> 1) * BLOCK
        put_smaller_first(points, subscription, begin, end, middle, level % points.shape[1])
        for child in range(2):
            stack[top, 0] = begin if child == 0 else middle
            stack[top, 1] = middle if child == 0 else end
            stack[top, 2] = level + 1
            top += 1


@nb.njit(nogil=True, cache=True)
def bound_blocks(points, least, most, blocks):  # type: ignore[no-untyped-def]
    """The bounding boxes of these blocks; an empty one's is empty too."""
    for block in blocks:
        least[block], most[block] = np.inf, -np.inf
        for place in range(block * BLOCK, (block + 1) * BLOCK):
            for m in range(points.shape[1]):
                if not np.isnan(points[place, m]):
                    least[block, m] = min(least[block, m], points[place, m])
                    most[block, m] = max(most[block, m], points[place, m])


@nb.njit(nogil=True, cache=True)
def count_matches(arrivals, regions, blocks):  # type: ignore[no-untyped-def]
    """For each arrival, how many subscriptions of its node get the message."""
    found = np.zeros(arrivals.shape[0], np.int64)
    for at in range(arrivals.shape[0]):
        if not arrivals[at, DELIVERS]:
            continue
        message, node = arrivals[at, MESSAGE], arrivals[at, NODE]
        for block in range(blocks.first[node], blocks.first[node] + blocks.length[node]):
            if meets(regions, message, blocks.least, blocks.most, block):
                for place in range(block * BLOCK, (block + 1) * BLOCK):
                    found[at] += meets(regions, message, blocks.points, blocks.points, place)
    return found


@nb.njit(nogil=True, cache=True)
def write_matches(arrivals, regions, blocks, out):  # type: ignore[no-untyped-def]
    """Lines (arrival, subscription); `out` has room for all that were counted."""
    used = 0
    for at in range(arrivals.shape[0]):
        if not arrivals[at, DELIVERS]:
            continue
        message, node = arrivals[at, MESSAGE], arrivals[at, NODE]
        for block in range(blocks.first[node], blocks.first[node] + blocks.length[node]):
            if not meets(regions, message, blocks.least, blocks.most, block):
                continue
            for place in range(block * BLOCK, (block + 1) * BLOCK):
                if meets(regions, message, blocks.points, blocks.points, place):
                    out[used, 0], out[used, 1] = at, blocks.subscription[place]
                    used += 1
