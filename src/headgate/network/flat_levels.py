"""Run a configuration of flat feeds over batches of items, level by level ([Delta §4.4]).

    level 1   all feeds that the source serves, as one program (match/)
    level n   a feed has the items that all feeds it reads have and that satisfy its remaining
              conditions; the conditions of one level are one program, too

A feed's answer is a row of bits, one for each item of the batch, so a join on the item's id is an
AND. Rows are shared: feeds with the same remaining conditions over the same rows have one row, and
a feed that reads one other and has nothing left to test has that feed's row.

Invariant: a row has the items that the feed itself has (tests/network/test_flat_levels.py).
views/flat_graph.py ensures that remaining conditions can be tested with the attributes that the
others return. Feeds that call operators are left out by the planner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.match.batch import Batch
from headgate.match.bounds import check_indices, check_starts
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import Program, compile_program, words_for
from headgate.model.errors import SnapshotError
from headgate.model.filters import And, Filter
from headgate.model.schema import Schema
from headgate.views.flat_feeds import FlatFeed, residual_conditions
from headgate.views.level_program import Reads, view_levels

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]
NO_FILTER = -1

Row = tuple[int, tuple[int, ...]]
"""The number of the remaining filter in the program of the level, or NO_FILTER, and the rows that
are read."""


@dataclass(frozen=True, slots=True, eq=False)
class FlatLevels:
    """A compiled configuration of flat feeds. Immutable; match/dataclass_codec.py writes it."""

    programs: tuple[Program, ...]
    """For each level, the program of the conditions that remain to be tested."""
    row_start: Ints
    """Where the rows of level 1, 2, … begin, and the end of the last."""
    filter: Ints  # [row]
    member_start: Ints  # [row + 1]
    members: Ints
    view_row: Ints  # [view]
    view_level: Ints  # [view]

    def check(self) -> None:
        rows, levels = self.filter.size, len(self.programs)
        check_starts("row_start", self.row_start, rows, parts=levels)
        check_starts("member_start", self.member_start, self.members.size, parts=rows)
        check_indices("view_row", self.view_row, rows)
        check_indices("view_level", self.view_level, levels + 1, least=1)
        for level, program in enumerate(self.programs):
            program.check()
            filters = self.filter[self.row_start[level] : self.row_start[level + 1]]
            check_indices("filter", filters, program.subscription_count, least=NO_FILTER)
        level_of = np.repeat(np.arange(levels), np.diff(self.row_start))
        reader = np.repeat(np.arange(rows), np.diff(self.member_start))
        check_indices("members", self.members, rows)
        if (level_of[self.members] >= level_of[reader]).any():
            raise SnapshotError("'members' of a configuration is damaged: write it again")

    def run_level(self, level: int, batch: Batch, rows: Words) -> None:
        """Fill the rows of one level, counted from 0, from the rows of lower levels."""
        first, end = self.row_start[level : level + 2].tolist()
        bitmaps = ProgramMatcher(self.programs[level]).bitmaps(batch)
        arrays = self.filter, self.member_start, self.members
        and_members(first, end, *arrays, bitmaps, rows)


def empty_rows(levels: FlatLevels, batch: Batch) -> Words:
    return np.zeros((levels.filter.size, words_for(batch.size)), np.uint64)


def run_flat_levels(levels: FlatLevels, batch: Batch) -> Words:
    """uint64 [row, word]: the bits of the items of each row; `view_row` has the row of a view."""
    rows = empty_rows(levels, batch)
    for level in range(len(levels.programs)):
        levels.run_level(level, batch, rows)
    return rows


def compile_flat_levels(
    feeds: Sequence[FlatFeed], reads: Reads | None, schema: Schema
) -> FlatLevels:
    """Compile feeds of one source; `reads` has the feeds that each reads. Without it, all feeds are
    on level 1."""
    reads = [()] * len(feeds) if reads is None else reads
    return _Compiling(feeds, reads, view_levels(reads)).levels(schema)


class _Compiling:
    def __init__(self, feeds: Sequence[FlatFeed], reads: Reads, level: Sequence[int]) -> None:
        self.feeds, self.reads, self.level = feeds, reads, level
        self.rows: list[Row] = []
        self.view_row = [0] * len(feeds)

    def levels(self, schema: Schema) -> FlatLevels:
        programs, row_start = [], [0]
        for level in range(1, max(self.level, default=1) + 1):
            views = [view for view, each in enumerate(self.level) if each == level]
            programs.append(compile_program(self._rows_of(views), schema))
            row_start.append(len(self.rows))
        return FlatLevels(
            tuple(programs),
            np.array(row_start, np.int32),
            np.array([number for number, _ in self.rows], np.int32),
            np.cumsum([0, *(len(members) for _, members in self.rows)], dtype=np.int32),
            np.array([each for _, members in self.rows for each in members], np.int32),
            np.array(self.view_row, np.int32),
            np.array(self.level, np.int32),
        )

    def _rows_of(self, views: Sequence[int]) -> list[Filter]:
        """Assign rows to the views of one level; returns the filters that remain to be tested."""
        filters: dict[Filter, int] = {}
        row_numbers: dict[Row, int] = {}
        for view in views:
            conditions = self._remaining_conditions(view)
            number = NO_FILTER
            if conditions or not self.reads[view]:
                number = filters.setdefault(And(conditions), len(filters))
            members = tuple(sorted({self.view_row[each] for each in self.reads[view]}))
            if number == NO_FILTER and len(members) == 1:
                self.view_row[view] = members[0]
                continue
            row = number, members
            if row not in row_numbers:
                row_numbers[row] = len(self.rows)
                self.rows.append(row)
            self.view_row[view] = row_numbers[row]
        return list(filters)

    def _remaining_conditions(self, view: int) -> tuple[Filter, ...]:
        feed = self.feeds[view]
        if not self.reads[view]:
            return feed.conditions
        return residual_conditions(feed, (self.feeds[each] for each in self.reads[view]))


# Kernel.


@nb.njit(nogil=True, cache=True)
def and_members(first, end, filter_, member_start, members, bitmaps, rows):  # type: ignore[no-untyped-def]
    """Fill rows first … end − 1: the AND of the rows of their members and of their filters' bits.

    filter_, member_start, members  as in FlatLevels
    bitmaps                         uint64 [filter, word]: the items that satisfy each filter
    rows                            uint64 [row, word], in and out
    """
    for row in range(first, end):
        low, high = member_start[row], member_start[row + 1]
        for word in range(rows.shape[1]):
            bits = bitmaps[filter_[row], word] if filter_[row] >= 0 else rows[members[low], word]
            for slot in range(low, high):
                bits &= rows[members[slot], word]
            rows[row, word] = bits
