"""The hot loops over the tree of subscriptions: building it, and asking it.

A subscription is one point with a coordinate for each bound of each of its ranges: all lower bounds
first, then all upper bounds. Every question of this room is then the same one: is there a point
with `least[m] ≤ coordinate m ≤ most[m]` for all m, and which of them has the greatest or the least
coordinate? A range contains v if its lower bound is at most v and its upper bound at least v; it
lies within (v, w) if its lower bound is greater than v and its upper bound less than w.

    tier       points[start : start + size], in the order of a tree of halves; lines of `tiers`
    node n     half of its parent's points; its children are 2n + 1 and 2n + 2, its bounding box
               lines `node + n` of `box_least` and `box_most`
    leaf       at most LEAF points

A point that was removed has coordinates NaN: no comparison holds for it, so no loop asks for it.
`excluded` are points of one table's space: a subscription that has one of them in its ranges on
that table is left out.
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
    """What the kernels see of the tree."""

    points: Floats  # [point, 2 · dimensions]
    subscription: Longs  # [point]
    box_least: Floats  # [node, 2 · dimensions]
    box_most: Floats
    tiers: Longs  # [tier, 3]: first point, number of points, first node


class Excluded(NamedTuple):
    """Points that a subscription must not contain, in the dimensions from `first` on."""

    points: Floats  # [point, dimensions of the table]
    first: int


def node_count(size: int) -> int:
    """How many places a tree of so many points needs."""
    levels = 0
    while -(-size >> levels) > LEAF:
        levels += 1
    return (2 << levels) - 1


@nb.njit(nogil=True, cache=True)
def swap(points, subscription, one, other):  # type: ignore[no-untyped-def]
    for m in range(points.shape[1]):
        points[one, m], points[other, m] = points[other, m], points[one, m]
    subscription[one], subscription[other] = subscription[other], subscription[one]


@nb.njit(nogil=True, cache=True)
def put_smaller_first(points, subscription, begin, end, middle, m):  # type: ignore[no-untyped-def]
    """Hoare's selection: afterwards nothing before `middle` is greater than anything behind it."""
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
def build(points, subscription, box_least, box_most, start, size, node, turns):  # type: ignore[no-untyped-def]
    """Order the points of one tier (none of them removed) and bound its nodes."""
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
        # Coordinates in turn: ranges may be open, so that widths say nothing.
        m = turns[level % turns.shape[0]]
        for _ in range(turns.shape[0]):
            if box_least[node + number, m] < box_most[node + number, m]:
                break
            level += 1
            m = turns[level % turns.shape[0]]
        middle = (begin + end) >> 1
        put_smaller_first(points, subscription, begin, end, middle, m)
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
def has_excluded(points, point, excluded):  # type: ignore[no-untyped-def]
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
def may_hold(tree, node, least, most):  # type: ignore[no-untyped-def]
    for m in range(least.shape[0]):
        if tree.box_most[node, m] < least[m] or tree.box_least[node, m] > most[m]:
            return False
    return True


@nb.njit(nogil=True, cache=True)
def most_below(tree, node, m, sign):  # type: ignore[no-untyped-def]
    """No sign · coordinate m below the node is greater."""
    return tree.box_most[node, m] if sign > 0 else -tree.box_least[node, m]


@nb.njit(nogil=True, cache=True)
def greatest(tree, least, most, excluded, m, sign, enough, stack):  # type: ignore[no-untyped-def]
    """Whether a point is within, and the greatest sign · coordinate m of those that are.

    The search ends as soon as it has `enough`.
    """
    found, best = False, -np.inf
    for tier in range(tree.tiers.shape[0]):
        start, size, root = tree.tiers[tier]
        top = 0
        if may_hold(tree, root, least, most):
            stack[0, 0], stack[0, 1], stack[0, 2] = 0, start, start + size
            top = 1
        while top > 0:
            top -= 1
            number, begin, end = stack[top]
            if found and most_below(tree, root + number, m, sign) <= best:
                continue
            if end - begin > LEAF:
                middle, left = (begin + end) >> 1, 2 * number + 1
                # What is pushed last is looked at first: the child that may have more.
                last = most_below(tree, root + left, m, sign) < most_below(
                    tree, root + left + 1, m, sign
                )
                for child in (1 - last, 0 + last):
                    if may_hold(tree, root + left + child, least, most):
                        stack[top, 0] = left + child
                        stack[top, 1] = begin if child == 0 else middle
                        stack[top, 2] = middle if child == 0 else end
                        top += 1
                continue
            for point in range(begin, end):
                if not is_within(tree.points, point, least, most):
                    continue
                value = sign * tree.points[point, m]
                if (found and value <= best) or has_excluded(tree.points, point, excluded):
                    continue
                found, best = True, value
                if best >= enough:
                    return True, best
    return found, best


@nb.njit(nogil=True, cache=True)
def push_children(stack, top, number, begin, end):  # type: ignore[no-untyped-def]
    """Both children of a node are still to be looked at; the new top of the stack."""
    middle = (begin + end) >> 1
    for child in range(2):
        stack[top, 0] = 2 * number + 1 + child
        stack[top, 1] = begin if child == 0 else middle
        stack[top, 2] = middle if child == 0 else end
        top += 1
    return top


@nb.njit(nogil=True, cache=True)
def is_one_there(tree, least, most, excluded, stack):  # type: ignore[no-untyped-def]
    """Whether a point is within."""
    for tier in range(tree.tiers.shape[0]):
        start, size, root = tree.tiers[tier]
        stack[0, 0], stack[0, 1], stack[0, 2] = 0, start, start + size
        top = 1
        while top > 0:
            top -= 1
            number, begin, end = stack[top]
            if not may_hold(tree, root + number, least, most):
                continue
            if end - begin > LEAF:
                top = push_children(stack, top, number, begin, end)
                continue
            for point in range(begin, end):
                if is_within(tree.points, point, least, most) and not has_excluded(
                    tree.points, point, excluded
                ):
                    return True
    return False


@nb.njit(nogil=True, cache=True)
def collect(tree, least, most, excluded, stack, out):  # type: ignore[no-untyped-def]
    """The places of all points within, written to `out`; how many they are.

    `out` has room for all points.
    """
    used = 0
    for tier in range(tree.tiers.shape[0]):
        start, size, root = tree.tiers[tier]
        stack[0, 0], stack[0, 1], stack[0, 2] = 0, start, start + size
        top = 1
        while top > 0:
            top -= 1
            number, begin, end = stack[top]
            if not may_hold(tree, root + number, least, most):
                continue
            if end - begin > LEAF:
                top = push_children(stack, top, number, begin, end)
                continue
            for point in range(begin, end):
                if is_within(tree.points, point, least, most) and not has_excluded(
                    tree.points, point, excluded
                ):
                    out[used] = point
                    used += 1
    return used
