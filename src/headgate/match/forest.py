"""The forest: conjunctions as paths, so that a common beginning is evaluated once ([MBD §3]).

    a b c   a b d   a e        a                depth-first:  a  b  c  d  e
                              / \\               depth:        0  1  2  2  1
                             b   e              skip:         5  4  3  4  5
                            / \\
                           c   d                where a row is all zero, go on at skip

A conjunction is a set of rows (bit_rows.py), sorted by a common order of rows. Sorting the
conjunctions then makes those with a common beginning adjacent, and a node is created wherever one
differs from the one before. The default order puts rarely true rows first, as everything below
a false node is skipped, and among those the rows that are used most. The factoriser (factor/) gives
each conjunction an order of its own (`build_path_forest`): the path from the root of its tree to a
conjunction is an order of rows, and equal beginnings are the shared nodes of the tree.

Cost: sorting, O(n log n) in NumPy; no loop over conjunctions in Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from headgate.match.bit_rows import Ints
from headgate.match.bounds import check_indices, check_starts, refuse_unless
from headgate.match.walks import ForestNodes, skip_pointers

DEPTH_MAX = 64
"""How deep a stored forest may be: the stack of a walk has a row for each level."""

Answers = TypeVar("Answers", npt.NDArray[np.int64], npt.NDArray[np.uint64])


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Nodes in depth-first order, and the *ends*: the distinct conjunctions.

    Conjunction e ends at the node with node_end[node] = e (−1 where none does), and belongs to
    subscriptions[end_start[e] : end_start[e + 1]].
    """

    node_row: Ints
    node_depth: Ints
    node_skip: Ints
    node_end: Ints
    end_start: Ints
    subscriptions: Ints
    depth: int

    @property
    def nodes(self) -> ForestNodes:
        """The nodes as the kernels take them (walks.py)."""
        return ForestNodes(self.node_row, self.node_depth, self.node_skip, self.node_end)

    def check(self, row_count: int, subscription_count: int) -> None:
        """Raise `SnapshotError` unless walks over these nodes end and stay within all arrays."""
        count, ends = self.node_row.size, self.end_start.size - 1
        refuse_unless(0 <= self.depth <= DEPTH_MAX, "depth", f"it is {self.depth}")
        check_indices("node_row", self.node_row, row_count)
        check_indices("node_depth", self.node_depth, self.depth, length=count)
        # A node's parent has just been visited: its depth is at most one below the one before.
        deeper = np.diff(self.node_depth, prepend=np.int32(-1))
        refuse_unless(bool((deeper <= 1).all()), "node_depth", "a node has no parent")
        # A second walk skips other trees, but must write exactly what the first has counted.
        skip = skip_pointers(self.node_depth)
        refuse_unless(np.array_equal(self.node_skip, skip), "node_skip", "it leads elsewhere")
        check_indices("node_end", self.node_end, ends, least=-1, length=count)
        # The output has room for each end once.
        ascending = bool((np.diff(self.node_end[self.node_end >= 0]) > 0).all())
        refuse_unless(ascending, "node_end", "the ends do not ascend")
        check_starts("end_start", self.end_start, self.subscriptions.size)
        check_indices("subscriptions", self.subscriptions, subscription_count)

    def by_subscription(self, by_end: Answers, subscription_count: int) -> Answers:
        """From values by end to values by subscription; zero for subscriptions that have no end."""
        answers = np.zeros((subscription_count, *by_end.shape[1:]), by_end.dtype)
        answers[self.subscriptions] = np.repeat(by_end, np.diff(self.end_start), axis=0)
        return answers


def build_forest(lengths: Ints, flat: Ints, owners: Ints, rank: Ints) -> Forest:
    """The forest of conjunctions: conjunction i has lengths[i] rows, one after the other in `flat`.

    owners[i] is its subscription; rank[row] is the row's place in the common order.
    """
    row_at = np.argsort(rank).astype(np.int32)
    return _forest_of_sorted_paths(_sorted_matrix(lengths, flat, rank), lengths, owners, row_at)


def build_path_forest(lengths: Ints, flat: Ints, owners: Ints) -> Forest:
    """The forest of conjunctions that keep the order of their rows.

    No row may occur twice in a conjunction. Equal beginnings share their nodes.
    """
    width = int(lengths.max(initial=1))
    matrix = np.full((lengths.size, width), -1, np.int32)
    matrix[np.arange(width) < lengths[:, None]] = flat
    return _forest_of_sorted_paths(
        matrix, lengths, owners, np.arange(flat.max(initial=-1) + 1, dtype=np.int32)
    )


def _forest_of_sorted_paths(matrix: Ints, lengths: Ints, owners: Ints, row_at: Ints) -> Forest:
    """A line of the matrix is a conjunction, and a number in it stands for the row row_at[number];
    −1 fills it up."""
    order = np.lexsort(matrix.T[::-1])
    matrix, lengths, owners = matrix[order], lengths[order], owners[order]
    shared = _shared_beginnings(matrix, lengths)
    is_new = (np.arange(matrix.shape[1]) >= shared[:, None]) & (matrix >= 0)
    made_by, depth = np.nonzero(is_new)
    node_row = row_at[matrix[made_by, depth]]
    # A conjunction ends at the last node that it made; one that made none equals the one before it.
    made_count = is_new.sum(axis=1)
    first = np.nonzero(made_count)[0]
    node_end = np.full(node_row.size, -1, np.int32)
    node_end[made_count.cumsum()[first] - 1] = np.arange(first.size, dtype=np.int32)
    end_start = np.append(first, owners.size).astype(np.int32)
    node_depth = depth.astype(np.int32)
    skip, height = skip_pointers(node_depth), int(node_depth.max(initial=-1)) + 1
    return Forest(node_row, node_depth, skip, node_end, end_start, owners, height)


def _sorted_matrix(lengths: Ints, flat: Ints, rank: Ints) -> Ints:
    """One line for each conjunction: the ranks of its rows, ascending, filled up with −1."""
    width = int(lengths.max(initial=1))
    matrix = np.full((lengths.size, width), np.iinfo(np.int32).max, np.int32)
    is_used = np.arange(width) < lengths[:, None]
    matrix[is_used] = rank[flat]
    matrix.sort(axis=1)
    matrix[~is_used] = -1
    return matrix


def _shared_beginnings(matrix: Ints, lengths: Ints) -> npt.NDArray[np.int64]:
    """How many rows each conjunction has in common with the beginning of the one before it."""
    same = np.zeros(matrix.shape, bool)
    same[1:] = matrix[1:] == matrix[:-1]
    shared: npt.NDArray[np.int64] = np.minimum(np.cumprod(same, axis=1).sum(axis=1), lengths)
    return shared
