"""Matching a batch of items against a program: counts, lists per item, bitmaps per subscription.

All methods may be called by many threads at once: a call has its own rows and stack.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.match.batch import Batch
from headgate.match.kernels import Longs, Words, count_nodes, visit_ends, write_bitmaps
from headgate.match.program import Program, words_for

_NOTHING = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Who matches what: item i matches subscriptions[starts[i]:starts[i + 1]], in no order."""

    starts: Longs
    subscriptions: npt.NDArray[np.int32]

    def of(self, item: int) -> npt.NDArray[np.int32]:
        return self.subscriptions[self.starts[item] : self.starts[item + 1]]


@dataclass(frozen=True, slots=True)
class Matcher:
    program: Program

    def count(self, batch: Batch) -> Longs:
        """For each subscription, how many items of the batch match it."""
        program, forest = self.program, self.program.forest
        rows, stack = self._prepare(batch)
        is_end = np.diff(forest.subscription_start) > 0
        by_node = np.zeros(forest.node_row.size, np.int64)
        count_nodes(
            forest.node_row, forest.node_depth, forest.node_skip, is_end, rows, stack, by_node
        )
        counts = np.zeros(program.subscription_count, np.int64)
        counts[forest.subscriptions] = np.repeat(by_node, np.diff(forest.subscription_start))
        counts[program.always] = batch.size
        return counts

    def match(self, batch: Batch) -> Matches:
        """For each item, the subscriptions that it matches."""
        always = self.program.always
        rows, stack = self._prepare(batch)
        ends = np.zeros(stack.shape[1] * 64, np.int64)
        self._visit(rows, stack, ends, _NOTHING)
        per_item = ends[: batch.size] + always.size
        starts = np.zeros(batch.size + 1, np.int64)
        np.cumsum(per_item, out=starts[1:])
        found = np.empty(int(starts[-1]), np.int32)
        for at in range(always.size):
            found[starts[:-1] + at] = always[at]
        ends[: batch.size] = starts[:-1] + always.size
        if found.size:
            self._visit(rows, stack, ends, found)
        return Matches(starts, found)

    def bitmaps(self, batch: Batch) -> Words:
        """For each subscription, a row with the bits of the items that match it."""
        program, forest = self.program, self.program.forest
        rows, stack = self._prepare(batch)
        ends = np.nonzero(np.diff(forest.subscription_start))[0]
        end_at = np.full(forest.node_row.size, -1, np.int32)
        end_at[ends] = np.arange(ends.size)
        by_end = np.zeros((ends.size, rows.shape[1]), np.uint64)
        write_bitmaps(
            forest.node_row, forest.node_depth, forest.node_skip, end_at, rows, stack, by_end
        )
        bitmaps = np.zeros((program.subscription_count, rows.shape[1]), np.uint64)
        shares = np.diff(forest.subscription_start)[ends]
        bitmaps[forest.subscriptions] = np.repeat(by_end, shares, axis=0)
        bitmaps[program.always] = stack[0]
        return bitmaps

    def _prepare(self, batch: Batch) -> tuple[Words, Words]:
        """The rows, and a stack whose bottom has a bit for each item."""
        rows = self.program.rows(batch)
        stack = np.zeros((self.program.forest.depth + 1, words_for(batch.size)), np.uint64)
        whole, rest = divmod(batch.size, 64)
        stack[0, :whole] = ~np.uint64(0)
        if rest:
            stack[0, whole] = (np.uint64(1) << np.uint64(rest)) - np.uint64(1)
        return rows, stack

    def _visit(self, rows: Words, stack: Words, ends: Longs, write: npt.NDArray[np.int32]) -> None:
        forest = self.program.forest
        visit_ends(
            forest.node_row,
            forest.node_depth,
            forest.node_skip,
            forest.subscription_start,
            forest.subscriptions,
            rows,
            stack,
            ends,
            write,
        )
