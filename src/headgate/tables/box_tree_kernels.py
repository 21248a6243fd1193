"""Kernels of the tree of subscriptions: building it, and range queries.

A subscription is one point with two coordinates per range: all lower bounds first, then all upper
bounds. Every query is then a box query: is there a point with `least[m] ≤ coordinate m ≤ most[m]`
for all m, which points are there, and which has the greatest or least coordinate? A range contains
v if its lower bound is at most v and its upper bound at least v; it lies within (v, w) if its lower
bound is greater than v and its upper bound less than w.

    tier       points[start : start + size], in the order of a k-d tree; one row of `tiers`
    node n     half of its parent's points; its children are 2n + 1 and 2n + 2, its bounding box
               rows `node + n` of `box_least` and `box_most`
    leaf       at most LEAF points

A removed point has coordinates NaN: every comparison is false, so no query finds it. `excluded` are
points in the space of one table: subscriptions whose ranges on that table contain one of them are
left out.

A `BoxQuery` is a query with its working memory. It is built in steps: `clear_query`, then
`require_containing` for the tuple that must be selected, then `require_range` for ranges on the
other table.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

LEAF = 16
STACK = 128
"""More than two entries for each level of a tree of 2⁶⁰ points."""


class Tree(NamedTuple):
    """The arrays of a tree."""

    points: Floats  # [point, 2 · dimensions]
    subscription: Longs  # [point]
    box_least: Floats  # [node, 2 · dimensions]
    box_most: Floats
    tiers: Longs  # [tier, 3]: first point, number of points, first node


class Excluded(NamedTuple):
    """Points that a subscription must not contain, in the dimensions from `first` on."""

    points: Floats  # [point, dimensions of the table]
    first: int


class BoxQuery(NamedTuple):
    """A query, with its working memory."""

    least: Floats  # [2 · dimensions]
    most: Floats
    no_exclusions: Excluded
    stack: Longs  # [STACK, 3]
    hits: Longs  # [point]: what `collect` finds
    other_first: int  # the first dimension of the other table


def node_count(size: int) -> int:
    """The number of nodes of a tree with so many points."""
    levels = 0
    while -(-size >> levels) > LEAF:
        levels += 1
    return (2 << levels) - 1


@nb.njit(nogil=True, cache=True)
def swap(points, subscription, left, right):  # type: ignore[no-untyped-def]
    for m in range(points.shape[1]):
        points[left, m], points[right, m] = points[right, m], points[left, m]
    subscription[left], subscription[right] = subscription[right], subscription[left]


@nb.njit(nogil=True, cache=True)
def partition_by_coordinate(points, subscription, begin, end, middle, m):  # type: ignore[no-untyped-def]
    """Hoare's selection by coordinate m: points before `middle` are at most those after it."""
    low, high = begin, end - 1
    while low < high:
        pivot = points[(low + high) >> 1, m]
        left, right = low, high
        while left <= right:
            while points[left, m] < pivot:
                left += 1
            while points[right, m] > pivot:
                right -= 1
            if left <= right:
                swap(points, subscription, left, right)
                left += 1
                right -= 1
        if middle <= right:
            high = right
        elif middle >= left:
            low = left
        else:
            return


@nb.njit(nogil=True, cache=True)
def build(tree, start, size, node, split_order):  # type: ignore[no-untyped-def]
    """Order the points of one tier, none of them removed, and compute the boxes of its nodes.

    `tree` is a Tree with writable arrays; nodes are split by the coordinates `split_order` in turn.
    """
    points, box_least, box_most = tree.points, tree.box_least, tree.box_most
    dimensions = points.shape[1]
    stack = np.empty((STACK, 4), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, start, start + size, 0
    top = 1
    while top > 0:
        top -= 1
        number, begin, end, level = stack[top]
        for m in range(dimensions):
            box_least[node + number, m], box_most[node + number, m] = np.inf, -np.inf
            for point in range(begin, end):
                box_least[node + number, m] = min(box_least[node + number, m], points[point, m])
                box_most[node + number, m] = max(box_most[node + number, m], points[point, m])
        if end - begin <= LEAF:
            continue
        # Coordinates in turn: ranges may be unbounded, so the widest one says nothing.
        m = split_order[level % split_order.shape[0]]
        for _ in range(split_order.shape[0]):
            if box_least[node + number, m] < box_most[node + number, m]:
                break
            level += 1
            m = split_order[level % split_order.shape[0]]
        middle = (begin + end) >> 1
        partition_by_coordinate(points, tree.subscription, begin, end, middle, m)
        for child in range(2):
            stack[top, 0], stack[top, 3] = 2 * number + 1 + child, level + 1
            stack[top, 1] = begin if child == 0 else middle
            stack[top, 2] = middle if child == 0 else end
            top += 1


@nb.njit(nogil=True, cache=True)
def is_within(points, point, least, most):  # type: ignore[no-untyped-def]
    for m in range(least.shape[0]):  # noqa: SIM110 - Numba compiles loops, generators slowly
        if not least[m] <= points[point, m] <= most[m]:
            return False
    return True


@nb.njit(nogil=True, cache=True)
def contains_excluded(points, point, excluded):  # type: ignore[no-untyped-def]
    half = points.shape[1] // 2
    for e in range(excluded.points.shape[0]):
        inside = True
        for d in range(excluded.points.shape[1]):
            m = excluded.first + d
            if not points[point, m] <= excluded.points[e, d] <= points[point, half + m]:
                inside = False
                break
        if inside:
            return True
    return False


@nb.njit(nogil=True, cache=True)
def may_contain(tree, node, least, most):  # type: ignore[no-untyped-def]
    for m in range(least.shape[0]):
        if tree.box_most[node, m] < least[m] or tree.box_least[node, m] > most[m]:
            return False
    return True


@nb.njit(nogil=True, cache=True)
def most_below(tree, node, m, sign):  # type: ignore[no-untyped-def]
    """An upper bound of sign · coordinate m of all points below the node."""
    return tree.box_most[node, m] if sign > 0 else -tree.box_least[node, m]


@nb.njit(nogil=True, cache=True)
def greatest(tree, query, excluded, m, sign, enough):  # type: ignore[no-untyped-def]
    """Whether a point is within the query, and the greatest sign · coordinate m of such points.

    The search ends at the first point with at least `enough`.
    """
    least, most, stack = query.least, query.most, query.stack
    is_found, best = False, -np.inf
    for tier in range(tree.tiers.shape[0]):
        start, size, root = tree.tiers[tier]
        top = 0
        if may_contain(tree, root, least, most):
            stack[0, 0], stack[0, 1], stack[0, 2] = 0, start, start + size
            top = 1
        while top > 0:
            top -= 1
            number, begin, end = stack[top]
            if is_found and most_below(tree, root + number, m, sign) <= best:
                continue
            if end - begin > LEAF:
                middle, left = (begin + end) >> 1, 2 * number + 1
                # The last one pushed is visited first: the child with the greater bound.
                last = most_below(tree, root + left, m, sign) < most_below(
                    tree, root + left + 1, m, sign
                )
                for child in (1 - last, 0 + last):
                    if may_contain(tree, root + left + child, least, most):
                        stack[top, 0] = left + child
                        stack[top, 1] = begin if child == 0 else middle
                        stack[top, 2] = middle if child == 0 else end
                        top += 1
                continue
            for point in range(begin, end):
                if not is_within(tree.points, point, least, most):
                    continue
                value = sign * tree.points[point, m]
                if (is_found and value <= best) or contains_excluded(tree.points, point, excluded):
                    continue
                is_found, best = True, value
                if best >= enough:
                    return True, best
    return is_found, best


@nb.njit(nogil=True, cache=True)
def push_children(stack, top, number, begin, end):  # type: ignore[no-untyped-def]
    """Push both children of a node; return the new top of the stack."""
    middle = (begin + end) >> 1
    for child in range(2):
        stack[top, 0] = 2 * number + 1 + child
        stack[top, 1] = begin if child == 0 else middle
        stack[top, 2] = middle if child == 0 else end
        top += 1
    return top


@nb.njit(nogil=True, cache=True)
def any_match(tree, query, excluded):  # type: ignore[no-untyped-def]
    """Whether a point is within the query."""
    least, most, stack = query.least, query.most, query.stack
    for tier in range(tree.tiers.shape[0]):
        start, size, root = tree.tiers[tier]
        stack[0, 0], stack[0, 1], stack[0, 2] = 0, start, start + size
        top = 1
        while top > 0:
            top -= 1
            number, begin, end = stack[top]
            if not may_contain(tree, root + number, least, most):
                continue
            if end - begin > LEAF:
                top = push_children(stack, top, number, begin, end)
                continue
            for point in range(begin, end):
                if is_within(tree.points, point, least, most) and not contains_excluded(
                    tree.points, point, excluded
                ):
                    return True
    return False


@nb.njit(nogil=True, cache=True)
def collect(tree, query, excluded):  # type: ignore[no-untyped-def]
    """Write the positions of all points within the query to `query.hits`; return how many."""
    least, most, stack, out = query.least, query.most, query.stack, query.hits
    used = 0
    for tier in range(tree.tiers.shape[0]):
        start, size, root = tree.tiers[tier]
        stack[0, 0], stack[0, 1], stack[0, 2] = 0, start, start + size
        top = 1
        while top > 0:
            top -= 1
            number, begin, end = stack[top]
            if not may_contain(tree, root + number, least, most):
                continue
            if end - begin > LEAF:
                top = push_children(stack, top, number, begin, end)
                continue
            for point in range(begin, end):
                if is_within(tree.points, point, least, most) and not contains_excluded(
                    tree.points, point, excluded
                ):
                    out[used] = point
                    used += 1
    return used


@nb.njit(nogil=True, cache=True)
def clear_query(query):  # type: ignore[no-untyped-def]
    """Remove all conditions."""
    query.least[:] = -np.inf
    query.most[:] = np.inf


@nb.njit(nogil=True, cache=True)
def require_containing(query, first, values):  # type: ignore[no-untyped-def]
    """Require ranges that contain the values (float64, [d]), from dimension `first` on."""
    half = query.least.shape[0] // 2
    for d in range(values.shape[0]):
        query.most[first + d] = values[d]
        query.least[half + first + d] = values[d]


@nb.njit(nogil=True, cache=True)
def require_range(query, low_least, low_most, high_least, high_most):  # type: ignore[no-untyped-def]
    """Require such bounds of the range on the other table's first attribute."""
    low, high = query.other_first, query.least.shape[0] // 2 + query.other_first
    query.least[low], query.most[low] = low_least, low_most
    query.least[high], query.most[high] = high_least, high_most
