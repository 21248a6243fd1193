"""All subscriptions as points in one k-d tree (in place of the R-trees of [Select-Joins §3.1.1]).

    added:   1  2  3 … 64 000 | 64 001 … 80 000 | … 82 000 | 82 007         tiers, each a tree

Invariant: a query sees exactly the subscriptions that were added and not removed. The paper has one
R-tree per cluster, so that an event queries at least τ trees. Here one tree serves all clusters: a
query visits the few tiers and prunes by bounding box. It costs about the number of points near the
border of the query box; existence queries stop at the first hit.

There are two such trees, one for changes of either table. A new tuple of R queries one value of A
and many small gaps between values of C, so nodes are split by bounds on C four times as often
as by bounds on A (`near`). With a million subscriptions (§6) a query then takes 2 to 7 µs; with
equal turns 2 to 60 µs; with splits by C only 1 to 4 µs, but 160 µs where a narrow range of A
decides.

Adding n subscriptions one by one costs n log² n in total: a new tier absorbs all earlier tiers that
are no larger than itself, so that sizes halve from tier to tier. Removing a subscription leaves a
hole; when half of all points are holes, the tree is rebuilt.

Rejected: R-trees (pointers, and splits that depend on the order of arrival); one tree per cluster
(a thousand lookups per event with a million subscriptions); step functions "least upper bound of
the ranges that contain a" per cluster, which answer in log n but cannot exclude points."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from headgate.tables.box_tree_kernels import Floats, Longs, Tree, build, node_count

GONE = -1
Numbers = TypeVar("Numbers", Floats, Longs)
AnyArray = TypeVar("AnyArray", bound=npt.NDArray[np.generic])


class BoxTree:
    """Subscriptions are small numbers; each is in the tree at most once."""

    def __init__(self, dimensions: int, *, near: slice) -> None:
        self._split_order = split_order(dimensions, near)
        self.dimensions = dimensions
        self._points: Floats = np.empty((0, 2 * dimensions))
        self._subscription: Longs = np.empty(0, np.int64)
        self._place: Longs = np.empty(0, np.int64)
        self._count = 0
        self._tiers: list[tuple[int, int, int]] = []
        self._box_least: Floats = np.empty((0, 2 * dimensions))
        self._box_most: Floats = np.empty((0, 2 * dimensions))
        self._used = 0

    def __len__(self) -> int:
        return self._count

    @property
    def arrays(self) -> Tree:
        """The arrays for kernels; valid until the next change."""
        tiers = np.array(self._tiers, np.int64).reshape(-1, 3)
        return Tree(
            frozen_view(self._points),
            frozen_view(self._subscription),
            frozen_view(self._box_least),
            frozen_view(self._box_most),
            frozen_view(tiers),
        )

    def add(self, numbers: Longs, low: Floats, high: Floats) -> None:
        """Add subscriptions with their bounds, [subscription, dimension]."""
        start, size = self._used, len(numbers)
        if size == 0:
            return
        self._reserve(start + size)
        self._points[start : start + size] = np.hstack([low, high])
        self._subscription[start : start + size] = numbers
        self._used += size
        self._count += size
        while self._tiers and self._tiers[-1][1] <= size:
            start, tier_size, _ = self._tiers.pop()
            size += tier_size
        self._build(start, size)

    def remove(self, numbers: Longs) -> None:
        """Remove subscriptions; all of them are in the tree."""
        places = self._place[numbers]
        self._points[places] = np.nan
        self._subscription[places] = GONE
        self._place[numbers] = GONE
        self._count -= len(numbers)
        if 2 * len(self) < self._used:
            self._tiers = []
            self._build(0, self._used)

    def holds(self, numbers: Longs) -> npt.NDArray[np.bool_]:
        """Which of these subscriptions are in the tree."""
        in_range = (numbers >= 0) & (numbers < len(self._place))
        is_held: npt.NDArray[np.bool_] = in_range.copy()
        is_held[in_range] = self._place[numbers[in_range]] != GONE
        return is_held

    def bounds(self, numbers: Longs) -> tuple[Floats, Floats]:
        """The lower and upper bounds of subscriptions that are in the tree."""
        rows = self._points[self._place[numbers]]
        return rows[:, : self.dimensions], rows[:, self.dimensions :]

    def numbers(self) -> Longs:
        """All subscriptions that are in the tree, in the order of their numbers."""
        numbers = self._subscription[: self._used]
        return np.sort(numbers[numbers != GONE])

    def _build(self, start: int, size: int) -> None:
        """Make the last `size` points from `start` on one tier, without holes."""
        end = start + size
        is_kept = self._subscription[start:end] != GONE
        size = int(is_kept.sum())
        self._points[start : start + size] = self._points[start:end][is_kept]
        self._subscription[start : start + size] = self._subscription[start:end][is_kept]
        self._used = start + size
        node = self._tiers[-1][2] + node_count(self._tiers[-1][1]) if self._tiers else 0
        self._reserve_nodes(node + node_count(size))
        tiers = np.empty((0, 3), np.int64)
        arrays = self._points, self._subscription, self._box_least, self._box_most, tiers
        build(Tree(*arrays), start, size, node, self._split_order)
        if size:
            self._tiers.append((start, size, node))
        numbers = self._subscription[start : start + size]
        if size and numbers.max() >= len(self._place):
            self._place = _grown(self._place, int(numbers.max()) + 1)
        self._place[numbers] = np.arange(start, start + size)

    def _reserve(self, count: int) -> None:
        if count > len(self._points):
            self._points = _grown(self._points, count)
            self._subscription = _grown(self._subscription, count)

    def _reserve_nodes(self, count: int) -> None:
        if count > len(self._box_least):
            self._box_least = _grown(self._box_least, count)
            self._box_most = _grown(self._box_most, count)


def frozen_view(array: AnyArray) -> AnyArray:
    """The same array, read-only like arrays of files and of Arrow: Numba compiles a kernel for
    read-only and for writable arrays separately."""
    view = array.view()
    view.setflags(write=False)
    return view


def split_order(dimensions: int, near: slice) -> Longs:
    """The coordinates by which nodes are split, in turn; those of `near` come most often.

    >>> split_order(2, slice(1, 2)).tolist()
    [0, 1, 3, 1, 3, 2, 1, 3, 1, 3]
    """
    every = np.arange(dimensions)
    often = np.concatenate([every[near], every[near] + dimensions])
    rest = np.delete(every, near)
    return np.concatenate([rest, often, often, rest + dimensions, often, often])


def _grown(array: Numbers, count: int) -> Numbers:
    grown = np.full((max(count, 2 * len(array)), *array.shape[1:]), GONE, array.dtype)
    grown[: len(array)] = array
    return grown
