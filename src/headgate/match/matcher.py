"""Matching a batch of items against a program: counts, lists per item, bitmaps per subscription.

All methods may be called by many threads at once: a call has its own rows and stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.match.batch import Batch
from headgate.match.kernels import Ints, Longs, Words
from headgate.match.program import Program, words_for
from headgate.match.walks import (
    count_ends,
    count_listed,
    list_matches,
    write_bitmaps,
    write_listed,
    write_many,
)

LISTED_PER_ITEM, LISTED_LEAST = 64, 16_384
"""There is room for so many pairs in the first walk: for each item, and whatever the batch."""


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Who matches what: item i matches subscriptions[starts[i]:starts[i + 1]], in no order."""

    starts: Longs
    subscriptions: Ints

    @classmethod
    def of_rows(cls, size: int, rows: Longs | Ints, subscriptions: Ints) -> Matches:
        """Of so many items, from pairs of an item and who matches it, sorted by item."""
        starts = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=size), out=starts[1:])
        return cls(starts, subscriptions)

    @property
    def rows(self) -> Longs:
        """The item that each entry of `subscriptions` stands for."""
        return np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts))

    def of(self, item: int) -> Ints:
        return self.subscriptions[self.starts[item] : self.starts[item + 1]]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A program, and what its subscriptions are called in the answer.

    `dead` is the bitmap of the dead, by position. `at_ends` has a name for each of
    forest.subscriptions, negative where it is dead; `always` has the
    names of the living ones that every item matches.
    """

    program: Program
    dead: npt.NDArray[np.bool_]
    at_ends: Ints
    always: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """How many items match the distinct conjunctions that some item matches: counts[n] items match
    ends[n]. Subscriptions with equal conjunctions share an end."""

    program: Program
    ends: Ints
    counts: Ints
    item_count: int

    def by_subscription(self) -> Longs:
        program = self.program
        by_end = np.zeros(program.forest.end_start.size - 1, np.int64)
        by_end[self.ends] = self.counts
        counts = program.forest.by_subscription(by_end, program.subscription_count)
        counts[program.always] = self.item_count
        return counts


@dataclass(frozen=True, slots=True)
class ProgramMatcher:
    program: Program

    def count(self, batch: Batch) -> Counts:
        """How many items of the batch match each subscription."""
        forest = self.program.forest
        rows, stack = _prepare(self.program, batch)
        ends, counts = np.empty((2, forest.end_start.size - 1), np.int32)
        used = count_ends(*forest.nodes, rows, stack, ends, counts)
        return Counts(self.program, ends[:used], counts[:used], batch.size)

    def match(self, batch: Batch) -> Matches:
        """For each item, the subscriptions that it matches."""
        program, nobody = self.program, np.zeros(0, bool)
        part = Part(program, nobody, program.forest.subscriptions, program.always)
        return match_parts([part], batch)

    def bitmaps(self, batch: Batch) -> Words:
        """For each subscription, a row with the bits of the items that match it."""
        program, forest = self.program, self.program.forest
        rows, stack = _prepare(self.program, batch)
        by_end = np.zeros((forest.end_start.size - 1, rows.shape[1]), np.uint64)
        write_bitmaps(*forest.nodes, rows, stack, by_end)
        bitmaps = forest.by_subscription(by_end, program.subscription_count)
        bitmaps[program.always] = stack[0]
        return bitmaps


def match_parts(parts: Sequence[Part], batch: Batch) -> Matches:
    """For each item, the names of the subscriptions that it matches, in any of the programs."""
    passes = [_Pass(part, batch) for part in parts]
    always = np.concatenate([part.always for part in parts])
    starts = np.zeros(batch.size + 1, np.int64)
    np.cumsum(sum(each.per_item for each in passes) + always.size, out=starts[1:])
    found = np.empty(int(starts[-1]), np.int32)
    for at, name in enumerate(always):
        found[starts[:-1] + at] = name
    places = starts[:-1] + always.size
    for each in passes:
        each.write(places, starts[1:], found)
    return Matches(starts, found)


class _Pass:
    """One batch through one program: first how many matches each item has, then which.

    What few items match is listed by the first walk, and what many match is written by a second.
    """

    def __init__(self, part: Part, batch: Batch) -> None:
        forest = part.program.forest
        rows, stack = _prepare(part.program, batch)
        self._names = forest.end_start, part.at_ends
        self._forest = *forest.nodes, *self._names, rows, stack
        room = max(LISTED_PER_ITEM * batch.size, LISTED_LEAST)
        self._items, self._ends = np.empty(room, np.int32), np.empty(room, np.int32)
        many = np.empty(forest.end_start.size - 1, np.int32)
        self.per_item = np.zeros(batch.size, np.int64)
        listed = self._items, self._ends, many, self.per_item
        self._used, many_count = list_matches(*self._forest, *listed)
        self._many = many[:many_count]
        count_listed(self._items, self._ends, self._used, *self._names, self.per_item)

    def write(self, places: Longs, limits: Longs, found: Ints) -> None:
        """Each item's matches at its place, which moves on behind them."""
        write_listed(self._items, self._ends, self._used, *self._names, places, found)
        if self._many.size:
            write_many(*self._forest, self._many, places, limits, found)


def _prepare(program: Program, batch: Batch) -> tuple[Words, Words]:
    """The rows, and a stack whose bottom has a bit for each item."""
    rows = program.rows(batch)
    stack = np.zeros((program.forest.depth + 1, words_for(batch.size)), np.uint64)
    whole, rest = divmod(batch.size, 64)
    stack[0, :whole] = ~np.uint64(0)
    if rest:
        stack[0, whole] = (np.uint64(1) << np.uint64(rest)) - np.uint64(1)
    return rows, stack
