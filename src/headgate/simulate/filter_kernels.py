"""The hot loops of filters: merging boxes, letting them grow, and routing along a tree by them."""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.simulate.arrivals import DEPTH, NODE, put_arrival
from headgate.simulate.region_kernels import meets
from headgate.tables.box_tree_kernels import STACK, Floats, Longs, put_smaller_first


class Filters(NamedTuple):
    """For each node boxes that hold the points of all subscriptions in its subtree.

    Those of node n are `size[n]` lines from n · (lines / nodes) on.
    """

    least: Floats  # [line, coordinate]
    most: Floats
    size: Longs  # [node]


class Tree(NamedTuple):
    """A tree of nodes. Links lead to children: those of node n to `to[start[n]:start[n + 1]]`."""

    parent: Longs  # [node]; of the root, -1
    order: Longs  # all nodes, parents first
    start: Longs
    to: Longs


@nb.njit(nogil=True, cache=True)
def merge_boxes(boxes, used, parts, least, most, first):  # type: ignore[no-untyped-def]
    """Write bounding boxes of at most `parts` groups of near boxes from line `first` on; how many.

    A box is a line of `boxes`: all least coordinates, then all greatest ones. Groups are made by
    halves, by one coordinate after the other. The order of `boxes` changes.
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
        put_smaller_first(boxes, number, begin, end, middle, level % boxes.shape[1])
        for child in range(2):
            stack[top, 0] = begin if child == 0 else middle
            stack[top, 1] = middle if child == 0 else end
            stack[top, 2] = groups >> 1 if child == 0 else groups - (groups >> 1)
            stack[top, 3] = level + 1
            top += 1
    return written


@nb.njit(nogil=True, cache=True)
def tighten(tree, blocks, filters):  # type: ignore[no-untyped-def]
    """Make all filters from the subscriptions that are there, from the leaves of the tree up."""
    nodes, coordinates = tree.parent.shape[0], blocks.least.shape[1]
    parts = filters.least.shape[0] // nodes
    for at in range(nodes - 1, -1, -1):
        node = tree.order[at]
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
    """Let the filters on the way to each new point hold it: the box with fewest sides to move."""
    parts = filters.least.shape[0] // tree.parent.shape[0]
    for at in range(points.shape[0]):
        node = nodes[at]
        while node >= 0:
            best, fewest = -1, points.shape[1] + 1
            for line in range(node * parts, node * parts + filters.size[node]):
                sides = 0
                for m in range(points.shape[1]):
                    value = points[at, m]
                    sides += not filters.least[line, m] <= value <= filters.most[line, m]
                if sides < fewest:
                    best, fewest = line, sides
            if fewest > 0 and filters.size[node] < parts:
                best = node * parts + filters.size[node]
                filters.size[node] += 1
                filters.least[best], filters.most[best] = points[at], points[at]
            for m in range(points.shape[1]):
                filters.least[best, m] = min(filters.least[best, m], points[at, m])
                filters.most[best, m] = max(filters.most[best, m], points[at, m])
            node = tree.parent[node]


@nb.njit(nogil=True, cache=True)
def meets_filter(regions, message, filters, node, parts):  # type: ignore[no-untyped-def]
    for line in range(node * parts, node * parts + filters.size[node]):
        if meets(regions, message, filters.least, filters.most, line):
            return True
    return False


@nb.njit(nogil=True, cache=True)
def route_filters(first, regions, tree, filters, out, used):  # type: ignore[no-untyped-def]
    """Write the arrivals of messages from `first` on; which did not fit, and lines used."""
    nodes = tree.parent.shape[0]
    parts, root = filters.least.shape[0] // nodes, tree.order[0]
    for message in range(first, regions.own.shape[0]):
        if used + nodes > out.shape[0]:
            return message, used
        at = used
        used = put_arrival(out, used, message, root, -1, -1, 0, 1)
        while at < used:
            node, depth = out[at, NODE], out[at, DEPTH] + 1
            for link in range(tree.start[node], tree.start[node + 1]):
                child = tree.to[link]
                if meets_filter(regions, message, filters, child, parts):
                    used = put_arrival(out, used, message, child, at, link, depth, 1)
            at += 1
    return regions.own.shape[0], used
