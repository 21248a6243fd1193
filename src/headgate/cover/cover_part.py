"""A part of the routing table: the forest of its cubes, walked with a batch of new ones.

    rows     one for each restriction that occurs, in the order of places (attribute_order.py)
    forest   the cubes as paths of rows: that of match/forest.py, walked in both directions

Matching gives the forest, for each row, the items that satisfy it. Covering gives it the new
filters whose restriction lies within the row's (they go down the paths that cover them), or within
whose restriction the row lies (they go down the paths that they cover).

Cost of a check: a word operation for each row and each node that is reached, for 64 new filters
together. Building sorts, in NumPy. A part does not change but for entries that die.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headgate.cover.attribute_order import Order, rank_rows
from headgate.cover.cover_cubes import CubeList, Lines
from headgate.cover.cover_kernels import (
    fill_covered_rows,
    fill_covering_rows,
    fill_gap_table,
    fill_masks,
    keep_rows,
    walk_covered,
    walk_covering,
)
from headgate.cover.cover_walk_kernels import (
    groups_on_paths,
    walk_one_covered,
    walk_one_covering,
)
from headgate.match.forest import build_forest
from headgate.match.kernels import Longs, Words
from headgate.match.program import words_for

PATH_MAX = 48
"""Longer cubes are not put into a forest: one of them would widen the matrix of all."""
JUDGED_MAX = 256
"""For so many entries a new filter is left to the judge, in each direction. It bounds what filters
can cost that say little which places know of, such as `not title contains 'rock'`."""

Pairs = list[tuple[int, int]]


class NewCubes:
    """A batch of new cubes: their distinct restrictions by place, and who has them."""

    def __init__(self, cubes: CubeList, lines: Lines) -> None:
        place, first, last, lows, highs = lines
        self.count, self.exact = len(cubes), cubes.exact
        self.lines = lines
        numbers, position = np.unique(cubes.flat, return_inverse=True)
        by_place = np.argsort(place[numbers], kind="stable")
        self.restrictions = numbers[by_place]
        rank = np.empty(numbers.size, np.int64)
        rank[by_place] = np.arange(numbers.size)
        self.start, self.rows = cubes.start, rank[position]
        """The rows of cube c, among the restrictions: rows[start[c] : start[c + 1]]."""
        self.masks = np.zeros((numbers.size, words_for(self.count)), np.uint64)
        fill_masks(self.start, self.rows, self.masks)
        own_places = place[self.restrictions]
        self.places, self.place_first = np.unique(own_places, return_index=True)
        self.place_last = np.append(self.place_first[1:], numbers.size)
        low, high = lows[first[self.restrictions]], highs[last[self.restrictions] - 1]
        self.by_low = np.lexsort((-low, own_places))
        self.by_high = np.lexsort((high, own_places))

    def everyone(self) -> Words:
        """A row with a bit for each of them."""
        row = np.full(words_for(self.count), ~np.uint64(0), np.uint64)
        if self.count % 64:
            row[-1] = (np.uint64(1) << np.uint64(self.count % 64)) - np.uint64(1)
        return row

    def within(self) -> Words:
        """For each cube a bit for each that lies within it: at all of its places."""
        own = np.append(self.place_first, self.restrictions.size), self.restrictions
        places = self.place_first, self.place_last, self.restrictions
        sweeps, rows = (self.by_low, self.by_high), np.zeros_like(self.masks)
        fill_covering_rows(*own, *sweeps, *places, *sweeps, self.masks, self.lines, rows)
        found = np.empty((self.count, rows.shape[1]), np.uint64)
        found[:] = self.everyone()
        keep_rows(self.start, self.rows, rows, found)
        return found

    def ranges(self, places: Longs) -> tuple[Longs, Longs]:
        """For each place where the new restrictions at it begin and end."""
        if not self.places.size:
            return np.zeros(places.size, np.int64), np.zeros(places.size, np.int64)
        at = np.searchsorted(self.places, places)
        at[at == self.places.size] = 0
        there = self.places[at] == places
        first, last = self.place_first[at], self.place_last[at]
        return np.where(there, first, 0), np.where(there, last, 0)


class Part:
    """Entries, known by their numbers, in one forest."""

    def __init__(self, numbers: Sequence[int], cubes: CubeList, lines: Lines, order: Order) -> None:
        place, first, last, lows, highs = lines
        self.numbers = np.array([*numbers, -1], np.int64)  # the last one answers for entry −1
        self.cubes = cubes
        self.alive = np.ones(len(cubes), bool)
        self.live_count = len(cubes)
        lengths = np.diff(cubes.start)
        used, position = np.unique(cubes.flat, return_inverse=True)
        used_places, row_place = np.unique(place[used], return_inverse=True)
        owners = np.repeat(np.arange(len(cubes)), lengths)
        place_rank = order(owners, row_place[position], position)
        rank = rank_rows(place_rank, row_place)
        row_of = rank.astype(np.int64)  # rows are numbered in their common order
        self.row_restriction = np.empty(used.size, np.int64)
        self.row_restriction[row_of] = used
        self.row_group = np.empty(used.size, np.int64)
        self.row_group[row_of] = place_rank[row_place]
        self.places, self.place_group = used_places, place_rank
        self.group_place = used_places[np.argsort(place_rank)]
        self.group_start = np.searchsorted(self.row_group, np.arange(used_places.size + 1))
        low = lows[first[self.row_restriction]]
        high = highs[last[self.row_restriction] - 1]
        self.by_low = np.lexsort((-low, self.row_group))
        self.by_high = np.lexsort((high, self.row_group))
        self.forest = build_forest(
            lengths.astype(np.int32),
            rank[position],
            np.arange(len(cubes), dtype=np.int32),
            np.arange(used.size, dtype=np.int32),
        )
        nodes = self.forest.node_row, self.forest.node_depth
        self.node_groups = groups_on_paths(*nodes, self.row_group)

    def bury(self, entry: int) -> None:
        self.alive[entry] = False
        self.live_count -= 1

    def live(self) -> tuple[list[int], CubeList]:
        """The entries that are alive, with their cubes."""
        alive = np.nonzero(self.alive)[0]
        return self.numbers[alive].tolist(), self.cubes.take(alive)

    def covering(self, new: NewCubes, judged: Longs) -> tuple[Longs, Pairs]:
        """For each new cube the number of an entry that covers it, or −1; and pairs of a new cube
        and the number of an entry that is not exact, for the judge."""
        new_first, new_last = new.ranges(self.group_place)
        rows = np.zeros((self.row_restriction.size, new.masks.shape[1]), np.uint64)
        self._fill(fill_covering_rows, new, new_first, new_last, rows)
        coverer = np.full(new.count, -1, np.int64)
        forest, room = self.forest, int(judged.sum())
        stack = np.zeros((forest.depth + 1, rows.shape[1]), np.uint64)
        stack[0] = new.everyone()
        news, entries = np.empty(room, np.int64), np.empty(room, np.int64)
        used = walk_covering(
            *forest.nodes,
            forest.end_start,
            forest.subscriptions,
            self.alive,
            self.cubes.exact,
            rows,
            stack,
            coverer,
            judged,
            news,
            entries,
        )
        return self.numbers[coverer], self._pairs(news[:used], entries[:used])

    def covered(self, new: NewCubes, judged: Longs) -> Pairs:
        """Pairs of a new cube and the number of an entry that lies within it; only one for an entry
        that lies within an exact one."""
        new_first, new_last = new.ranges(self.group_place)
        rows = np.zeros((self.row_restriction.size, new.masks.shape[1]), np.uint64)
        self._fill(fill_covered_rows, new, new_first, new_last, rows)
        there = new_first < new_last
        places_before = np.zeros(there.size + 1, np.int64)
        np.cumsum(there, out=places_before[1:])
        place_count = int(places_before[-1])
        table = np.zeros((max(1, place_count.bit_length()), place_count, rows.shape[1]), np.uint64)
        fill_gap_table(new_first[there], new_last[there], new.masks, table)
        forest, room = self.forest, self.alive.size + int(judged.sum())
        stack = np.zeros((forest.depth + 2, rows.shape[1]), np.uint64)
        stack[0] = new.everyone() & ~self._strangers(new)
        news, entries = np.empty(room, np.int64), np.empty(room, np.int64)
        used = walk_covered(
            *forest.nodes,
            forest.end_start,
            forest.subscriptions,
            self.alive,
            self.row_group,
            places_before,
            table,
            rows,
            stack,
            new.exact,
            judged,
            news,
            entries,
        )
        return self._pairs(news[:used], entries[:used])

    def covering_one(self, cube: Longs, lines: Lines) -> tuple[int, list[int]]:
        """As `covering`, for a single cube: an entry or −1, and those that are for the judge."""
        forest, entries = self.forest, np.empty(JUDGED_MAX, np.int64)
        found, used = walk_one_covering(
            cube,
            self.places,
            self.place_group,
            forest.node_row,
            forest.node_skip,
            forest.node_end,
            forest.end_start,
            forest.subscriptions,
            self.alive,
            self.cubes.exact,
            self.row_group,
            self.row_restriction,
            lines,
            entries,
        )
        return int(self.numbers[found]), self.numbers[entries[:used]].tolist()

    def covered_one(self, cube: Longs, lines: Lines, *, exact: bool) -> list[int]:
        """As `covered`, for a single cube."""
        room = self.alive.size if exact else JUDGED_MAX
        forest, entries = self.forest, np.empty(room, np.int64)
        used = walk_one_covered(
            cube,
            self.places,
            self.place_group,
            *forest.nodes,
            forest.end_start,
            forest.subscriptions,
            self.alive,
            self.node_groups,
            self.row_group,
            self.row_restriction,
            forest.depth,
            lines,
            entries,
        )
        found: list[int] = self.numbers[entries[:used]].tolist()
        return found

    def _fill(self, fill, new: NewCubes, new_first: Longs, new_last: Longs, rows: Words) -> None:  # type: ignore[no-untyped-def]
        fill(
            self.group_start,
            self.row_restriction,
            self.by_low,
            self.by_high,
            new_first,
            new_last,
            new.restrictions,
            new.by_low,
            new.by_high,
            new.masks,
            new.lines,
            rows,
        )

    def _strangers(self, new: NewCubes) -> Words:
        """The new cubes that speak about a place which no entry speaks about."""
        strange = ~np.isin(new.places, self.group_place)
        found = np.zeros(new.masks.shape[1], np.uint64)
        for first, last in zip(new.place_first[strange], new.place_last[strange], strict=True):
            found |= np.bitwise_or.reduce(new.masks[first:last], axis=0)
        return found

    def _pairs(self, news: Longs, entries: Longs) -> Pairs:
        return list(zip(news.tolist(), self.numbers[entries].tolist(), strict=True))
