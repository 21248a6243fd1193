"""Matching a batch of items against a program: counts, lists per item, bitmaps per subscription.

All methods may be called by many threads at once: a call has its own rows and stack.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.match.batch import Batch
from headgate.match.kernels import Longs, Words
from headgate.match.program import Program, words_for
from headgate.match.walks import (
    count_ends,
    count_matches,
    list_matches,
    write_bitmaps,
    write_matches,
    write_pairs,
)

FEW_PER_ITEM = 64
_PLANES = 32
"""Bits of the counters of matches per item: a program has fewer than 2³¹ subscriptions."""


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Who matches what: item i matches subscriptions[starts[i]:starts[i + 1]], in no order."""

    starts: Longs
    subscriptions: npt.NDArray[np.int32]

    def of(self, item: int) -> npt.NDArray[np.int32]:
        return self.subscriptions[self.starts[item] : self.starts[item + 1]]


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """How many items match each distinct conjunction; subscriptions with equal ones share it."""

    program: Program
    by_end: Longs
    item_count: int

    def by_subscription(self) -> Longs:
        program = self.program
        counts = program.forest.by_subscription(self.by_end, program.subscription_count)
        counts[program.always] = self.item_count
        return counts


@dataclass(frozen=True, slots=True)
class Matcher:
    program: Program

    def count(self, batch: Batch) -> Counts:
        """How many items of the batch match each subscription."""
        forest = self.program.forest
        rows, stack = self._prepare(batch)
        by_end = np.zeros(forest.end_start.size - 1, np.int64)
        count_ends(*forest.nodes, rows, stack, by_end)
        return Counts(self.program, by_end, batch.size)

    def match(self, batch: Batch) -> Matches:
        """For each item, the subscriptions that it matches.

        Few matches are listed in one pass over the forest; many are counted first and then written
        64 subscriptions at a time.
        """
        forest = self.program.forest
        rows, stack = self._prepare(batch)
        room = FEW_PER_ITEM * batch.size
        items, owners = np.empty(room, np.int32), np.empty(room, np.int32)
        ends = forest.end_start, forest.subscriptions
        used = list_matches(*forest.nodes, *ends, rows, stack, items, owners)
        if used >= 0:
            per_item = np.bincount(items[:used], minlength=batch.size)
        else:
            per_item = np.zeros(batch.size, np.int64)
            planes = np.zeros((_PLANES, rows.shape[1]), np.uint64)
            count_matches(*forest.nodes, forest.end_start, rows, stack, planes, per_item)
        starts, found = self._room_for(per_item)
        begin = starts[:-1] + self.program.always.size
        if used >= 0:
            write_pairs(items, owners, used, begin, found)
        else:
            write_matches(*forest.nodes, *ends, rows, stack, begin, starts[1:], found)
        return Matches(starts, found)

    def _room_for(self, per_item: Longs) -> tuple[Longs, npt.NDArray[np.int32]]:
        """Where each item's matches begin, and room for them; those of all items are in place."""
        always = self.program.always
        starts = np.zeros(per_item.size + 1, np.int64)
        np.cumsum(per_item + always.size, out=starts[1:])
        found = np.empty(int(starts[-1]), np.int32)
        for at in range(always.size):
            found[starts[:-1] + at] = always[at]
        return starts, found

    def bitmaps(self, batch: Batch) -> Words:
        """For each subscription, a row with the bits of the items that match it."""
        program, forest = self.program, self.program.forest
        rows, stack = self._prepare(batch)
        by_end = np.zeros((forest.end_start.size - 1, rows.shape[1]), np.uint64)
        write_bitmaps(*forest.nodes, rows, stack, by_end)
        bitmaps = forest.by_subscription(by_end, program.subscription_count)
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
