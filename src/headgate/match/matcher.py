"""Matching a batch of items against a program: counts, lists per item, bitmaps per subscription.

Thread-safe: each call has its own rows and stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.match.batch import Batch
from headgate.match.bit_rows import Ints, Longs, Words
from headgate.match.program import NO_ROWS, Program, words_for
from headgate.match.walks import (
    BitRows,
    EndNames,
    Listed,
    count_ends,
    count_listed,
    list_matches,
    write_bitmaps,
    write_listed,
    write_many,
)

LISTED_PER_ITEM, LISTED_LEAST = 64, 16_384
"""How many pairs the first walk has room for: for each item, and at least."""
BATCH_ROWS, LARGE_BATCH_ROWS = 4_096, 16_384
FEW_MATCHES = 100
"""Up to so many matches an item, large batches are faster."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchMatches:
    """The matches of a batch: item i matches subscriptions[starts[i] : starts[i + 1]], in any
    order."""

    starts: Longs
    subscriptions: Ints

    @classmethod
    def of_rows(cls, size: int, rows: Longs | Ints, subscriptions: Ints) -> BatchMatches:
        """The matches of `size` items, from pairs of an item and a subscription, sorted by item."""
        starts = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=size), out=starts[1:])
        return cls(starts, subscriptions)

    def rows(self, first: int = 0) -> Longs:
        """The item of each entry of `subscriptions`; the batch's items count from `first` on."""
        return np.repeat(np.arange(first, first + self.starts.size - 1), np.diff(self.starts))

    def of(self, item: int) -> Ints:
        return self.subscriptions[self.starts[item] : self.starts[item + 1]]


class BatchSize:
    """How many rows to match at once, from what the last batch matched.

    A large batch passes through the forest once where small ones pass several times; but where
    items have many matches, writing them dominates, and wants their places in the cache. With
    200,000 conjunctions and 13 matches an item, 16,384 rows take 0.7 times the CPU of 4,096; with
    9,000 matches an item 1.2 times.
    """

    def __init__(self) -> None:
        self.rows = BATCH_ROWS

    def learn(self, matches: BatchMatches) -> None:
        few = matches.subscriptions.size <= FEW_MATCHES * (matches.starts.size - 1)
        self.rows = LARGE_BATCH_ROWS if few else BATCH_ROWS


@dataclass(frozen=True, slots=True, eq=False)
class LabelledProgram:
    """A program, and the names by which the answer calls its subscriptions.

    dead[s] says whether subscription s has been removed. `at_ends` has a name for each entry of
    forest.subscriptions, negative where it has been removed. `always` has the names of the
    subscriptions that every item matches, without removed ones.
    """

    program: Program
    dead: npt.NDArray[np.bool_]
    at_ends: Ints
    always: Ints
    muted: frozenset[int] = NO_ROWS
    """Rows that are not evaluated (row_users.py)."""


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """counts[n] items match ends[n], for the ends (distinct conjunctions) that some item matches.
    Subscriptions with equal conjunctions share an end."""

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
        ends, counts = np.empty((2, forest.end_start.size - 1), np.int32)
        bits = _bit_rows(self.program, batch)
        used = count_ends(tuple(forest.nodes), tuple(bits), ends, counts)
        return Counts(self.program, ends[:used], counts[:used], batch.size)

    def match(self, batch: Batch, muted: frozenset[int] = NO_ROWS) -> BatchMatches:
        """For each item, the subscriptions that it matches. Those that need a muted row may be
        missing or too many: the caller leaves them out (row_users.py)."""
        program, nobody = self.program, np.zeros(0, bool)
        names = program.forest.subscriptions
        labelled = LabelledProgram(program, nobody, names, program.always, muted)
        return match_programs([labelled], batch)

    def bitmaps(self, batch: Batch) -> Words:
        """For each subscription, a row with the bits of the items that match it."""
        program, forest = self.program, self.program.forest
        bits = _bit_rows(self.program, batch)
        by_end = np.zeros((forest.end_start.size - 1, bits.rows.shape[1]), np.uint64)
        write_bitmaps(tuple(forest.nodes), tuple(bits), by_end)
        bitmaps = forest.by_subscription(by_end, program.subscription_count)
        bitmaps[program.always] = bits.stack[0]
        return bitmaps


def match_programs(programs: Sequence[LabelledProgram], batch: Batch) -> BatchMatches:
    """For each item, the names of the subscriptions that it matches, in any of the programs."""
    passes = [_Pass(labelled, batch) for labelled in programs]
    always = np.concatenate([labelled.always for labelled in programs])
    starts = np.zeros(batch.size + 1, np.int64)
    np.cumsum(sum(one.per_item for one in passes) + always.size, out=starts[1:])
    subscriptions = np.empty(int(starts[-1]), np.int32)
    for offset, name in enumerate(always):
        subscriptions[starts[:-1] + offset] = name
    places = starts[:-1] + always.size
    for one in passes:
        one.write(places, starts[1:], subscriptions)
    return BatchMatches(starts, subscriptions)


class _Pass:
    """One batch through one program: first how many matches each item has, then which.

    Ends that few items match are listed by the first walk; those that many match are written by a
    second walk.
    """

    def __init__(self, labelled: LabelledProgram, batch: Batch) -> None:
        forest = labelled.program.forest
        self._nodes, self._bits = (
            tuple(forest.nodes),
            tuple(_bit_rows(labelled.program, batch, labelled.muted)),
        )
        self._names = tuple(EndNames(forest.end_start, labelled.at_ends))
        room = max(LISTED_PER_ITEM * batch.size, LISTED_LEAST)
        self.per_item = np.zeros(batch.size, np.int64)
        listed = Listed(
            np.empty(room, np.int32),
            np.empty(room, np.int32),
            np.empty(forest.end_start.size - 1, np.int32),
            self.per_item,
        )
        used, many_count = list_matches(self._nodes, self._names, self._bits, tuple(listed))
        self._items, self._ends = listed.item[:used], listed.end[:used]
        self._many = listed.many[:many_count]
        count_listed(self._items, self._ends, self._names, self.per_item)

    def write(self, places: Longs, limits: Longs, subscriptions: Ints) -> None:
        """Write each item's matches at its place, which moves on behind them."""
        write_listed(self._items, self._ends, self._names, places, subscriptions)
        if self._many.size:
            forest = self._nodes, self._names, self._bits
            write_many(*forest, self._many, places, limits, subscriptions)


def _bit_rows(program: Program, batch: Batch, muted: frozenset[int] = NO_ROWS) -> BitRows:
    """The rows of the batch, and a stack whose bottom has a bit for each item."""
    rows = program.rows(batch, muted)
    stack = np.zeros((program.forest.depth + 1, words_for(batch.size)), np.uint64)
    whole, rest = divmod(batch.size, 64)
    stack[0, :whole] = ~np.uint64(0)
    if rest:
        stack[0, whole] = (np.uint64(1) << np.uint64(rest)) - np.uint64(1)
    return BitRows(rows, stack)
