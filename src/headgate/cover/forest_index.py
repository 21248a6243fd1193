"""An index of cubes as a forest, searched with a batch of new cubes or with a single one.

    rows     one for each distinct restriction, sorted by place
    forest   the cubes as paths of rows: the forest of match/forest.py, walked in both directions

Matching gives the forest, for each row, the items that satisfy it. Covering gives it, for each row,
the new filters whose restriction lies within the row's (they follow the paths that cover them), or
those whose restriction contains the row's (they follow the paths that they cover).

All paths follow one order of places ([MBD §3.2]). The paper puts shared nodes at the bottom of its
diagram; the forest is read from the other end, so a path begins with what it shares with others:

    [MBD]        S1  S2                  here     time ── destination ── price = 150   S1
                   \\ /                                                 └─ price < 150   S2
                 destination
                     │
                    time      bottom                time comes first

Places that many filters restrict come first (`by_frequency`); bench/baselines/attribute_orders.py
has the alternatives.

Cost of a search: a word operation for each row and each node reached, for 64 new filters together.
Building sorts in NumPy. An index does not change, except that entries can be marked as removed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from headgate.cover.cubes import CubeList, RestrictionTable
from headgate.cover.forest_batch_kernels import (
    IndexForest,
    NewRestrictions,
    SortedRows,
    fill_covered_rows,
    fill_covering_rows,
    fill_gap_table,
    fill_masks,
    keep_rows,
    walk_covered,
    walk_covering,
)
from headgate.cover.forest_single_kernels import (
    PlaceGroups,
    groups_on_paths,
    walk_one_covered,
    walk_one_covering,
)
from headgate.cover.scan_index import CandidatePairs, IdPairs, new_candidate_pairs
from headgate.match.bit_rows import Ints, Longs, Words
from headgate.match.forest import build_forest
from headgate.match.program import words_for

PATH_MAX = 48
"""Longer cubes are not put into a forest: one of them would widen the matrix of all."""
INEXACT_CHECKS_MAX = 256
"""For a new filter, at most this many pairs with an inexact description are checked with
`implies_filter` in each direction. It bounds the cost of filters with an empty description, such
as `not title contains 'rock'`."""

AttributeOrder = Callable[[Longs, Longs, Longs], Longs]
"""From the owner, place and restriction of every use, all numbered from 0, to the rank of every
place: 0 for the first on the paths."""


def by_frequency(owners: Longs, places: Longs, restrictions: Longs) -> Longs:
    """The place that most filters restrict comes first."""
    del owners, restrictions
    return rank_places(-np.bincount(places))


def rank_places(keys: Longs | npt.NDArray[np.float64]) -> Longs:
    rank = np.empty(keys.size, np.int64)
    rank[np.argsort(keys, kind="stable")] = np.arange(keys.size)
    return rank


def rank_rows(place_rank: Longs, row_place: Longs) -> Ints:
    """The rank of each row: by the rank of its place, then by its number."""
    order = np.lexsort((np.arange(row_place.size), place_rank[row_place]))
    rank = np.empty(row_place.size, np.int32)
    rank[order] = np.arange(row_place.size, dtype=np.int32)
    return rank


class NewCubeBatch:
    """A batch of new cubes: their distinct restrictions by place, and which cubes have them."""

    def __init__(self, cubes: CubeList, table: RestrictionTable) -> None:
        self.count, self.exact, self.table = len(cubes), cubes.exact, table
        numbers, position = np.unique(cubes.flat, return_inverse=True)
        by_place = np.argsort(table.place[numbers], kind="stable")
        self.restrictions = numbers[by_place]
        rank = np.empty(numbers.size, np.int64)
        rank[by_place] = np.arange(numbers.size)
        self.start, self.rows = cubes.start, rank[position]
        """The rows of cube c, among the restrictions: rows[start[c] : start[c + 1]]."""
        self.masks = np.zeros((numbers.size, words_for(self.count)), np.uint64)
        fill_masks(self.start, self.rows, self.masks)
        own_places = table.place[self.restrictions]
        self.places, self.place_first = np.unique(own_places, return_index=True)
        self.place_last = np.append(self.place_first[1:], numbers.size)
        self.by_low = np.lexsort((-table.lowest(self.restrictions), own_places))
        self.by_high = np.lexsort((table.highest(self.restrictions), own_places))

    def everyone(self) -> Words:
        """A row with a bit for each cube of the batch."""
        row = np.full(words_for(self.count), ~np.uint64(0), np.uint64)
        if self.count % 64:
            row[-1] = (np.uint64(1) << np.uint64(self.count % 64)) - np.uint64(1)
        return row

    def within(self) -> Words:
        """[cube, word]: for each cube a bit for each cube of the batch that lies within it."""
        starts = np.append(self.place_first, self.restrictions.size)
        sorted_rows = SortedRows(starts, self.restrictions, self.by_low, self.by_high)
        rows = np.zeros_like(self.masks)
        new = self._new_restrictions(self.place_first, self.place_last)
        fill_covering_rows(sorted_rows, new, self.table, rows)
        within = np.empty((self.count, rows.shape[1]), np.uint64)
        within[:] = self.everyone()
        keep_rows(self.start, self.rows, rows, within)
        return within

    def at_places(self, places: Longs) -> NewRestrictions:
        """The new restrictions at each of these places."""
        if not self.places.size:
            none = np.zeros(places.size, np.int64)
            return self._new_restrictions(none, none)
        position = np.searchsorted(self.places, places)
        position[position == self.places.size] = 0
        is_present = self.places[position] == places
        first, last = self.place_first[position], self.place_last[position]
        return self._new_restrictions(np.where(is_present, first, 0), np.where(is_present, last, 0))

    def restricting_other_places(self, places: Longs) -> Words:
        """A row of the cubes that restrict a place which is not one of these."""
        row = np.zeros(self.masks.shape[1], np.uint64)
        other = ~np.isin(self.places, places)
        for first, last in zip(self.place_first[other], self.place_last[other], strict=True):
            row |= np.bitwise_or.reduce(self.masks[first:last], axis=0)
        return row

    def _new_restrictions(self, first: Longs, last: Longs) -> NewRestrictions:
        return NewRestrictions(
            first, last, self.restrictions, self.by_low, self.by_high, self.masks
        )


class ForestIndex:
    """Entries, known by their filter ids, in one forest."""

    def __init__(
        self, ids: Sequence[int], cubes: CubeList, table: RestrictionTable, order: AttributeOrder
    ) -> None:
        self.ids = np.array([*ids, -1], np.int64)  # the last one is the id of entry -1
        self.cubes = cubes
        self.alive = np.ones(len(cubes), bool)
        self.live_count = len(cubes)
        lengths = np.diff(cubes.start)
        used, position = np.unique(cubes.flat, return_inverse=True)
        used_places, row_place = np.unique(table.place[used], return_inverse=True)
        owners = np.repeat(np.arange(len(cubes)), lengths)
        place_rank = order(owners, row_place[position], position)
        rank = rank_rows(place_rank, row_place)
        row_of = rank.astype(np.int64)  # rows are numbered by rank
        row_restriction = np.empty(used.size, np.int64)
        row_restriction[row_of] = used
        row_group = np.empty(used.size, np.int64)
        row_group[row_of] = place_rank[row_place]
        self.place_groups = PlaceGroups(used_places, place_rank)
        self.group_place = used_places[np.argsort(place_rank)]
        self.sorted_rows = SortedRows(
            np.searchsorted(row_group, np.arange(used_places.size + 1)),
            row_restriction,
            np.lexsort((-table.lowest(row_restriction), row_group)),
            np.lexsort((table.highest(row_restriction), row_group)),
        )
        built = build_forest(
            lengths.astype(np.int32),
            rank[position],
            np.arange(len(cubes), dtype=np.int32),
            np.arange(used.size, dtype=np.int32),
        )
        self.depth = built.depth
        self.forest = IndexForest(
            built.node_row,
            built.node_depth,
            built.node_skip,
            built.node_end,
            built.end_start,
            built.subscriptions,
            row_group,
            row_restriction,
            self.alive,
        )
        self.node_groups = groups_on_paths(self.forest)

    def remove(self, entry: int) -> None:
        self.alive[entry] = False
        self.live_count -= 1

    def live(self) -> tuple[list[int], CubeList]:
        """The ids and cubes of the entries that are not removed."""
        alive = np.nonzero(self.alive)[0]
        return self.ids[alive].tolist(), self.cubes.take(alive)

    def covering(self, new: NewCubeBatch, checks_left: Longs) -> tuple[Longs, IdPairs]:
        """For each new cube the id of an entry that covers it, or -1; and the pairs with inexact
        entries that must be checked, at most checks_left[cube] for a cube."""
        rows = np.zeros((self.sorted_rows.restriction.size, new.masks.shape[1]), np.uint64)
        fill_covering_rows(self.sorted_rows, new.at_places(self.group_place), new.table, rows)
        coverer = np.full(new.count, -1, np.int64)
        pairs = new_candidate_pairs(int(checks_left.sum()), checks_left)
        stack = np.zeros((self.depth + 1, rows.shape[1]), np.uint64)
        stack[0] = new.everyone()
        used = walk_covering(self.forest, self.cubes.exact, rows, stack, coverer, pairs)
        return self.ids[coverer], self._id_pairs(pairs, used)

    def covered(self, new: NewCubeBatch, checks_left: Longs) -> IdPairs:
        """Pairs of a new cube and an entry that lies within it; one pair for an entry that lies
        within an exact cube. Pairs with inexact cubes must be checked."""
        new_restrictions = new.at_places(self.group_place)
        rows = np.zeros((self.sorted_rows.restriction.size, new.masks.shape[1]), np.uint64)
        fill_covered_rows(self.sorted_rows, new_restrictions, new.table, rows)
        is_used = new_restrictions.first < new_restrictions.last
        places_before = np.zeros(is_used.size + 1, np.int64)
        np.cumsum(is_used, out=places_before[1:])
        place_count = int(places_before[-1])
        shape = max(1, place_count.bit_length()), place_count, rows.shape[1]
        gap_table = np.zeros(shape, np.uint64)
        fill_gap_table(
            new_restrictions.first[is_used], new_restrictions.last[is_used], new.masks, gap_table
        )
        stack = np.zeros((self.depth + 2, rows.shape[1]), np.uint64)
        stack[0] = new.everyone() & ~new.restricting_other_places(self.group_place)
        pairs = new_candidate_pairs(self.alive.size + int(checks_left.sum()), checks_left)
        used = walk_covered(self.forest, (places_before, gap_table), rows, stack, new.exact, pairs)
        return self._id_pairs(pairs, used)

    def covering_one(self, cube: Longs, table: RestrictionTable) -> tuple[int, list[int]]:
        """As `covering`, for a single cube: an id or -1, and the ids that must be checked."""
        entries = np.empty(INEXACT_CHECKS_MAX, np.int64)
        entry, used = walk_one_covering(
            cube, self.place_groups, self.forest, self.cubes.exact, table, entries
        )
        return int(self.ids[entry]), self.ids[entries[:used]].tolist()

    def covered_one(self, cube: Longs, table: RestrictionTable, *, exact: bool) -> list[int]:
        """As `covered`, for a single cube."""
        entries = np.empty(self.alive.size if exact else INEXACT_CHECKS_MAX, np.int64)
        search = self.node_groups, self.depth
        used = walk_one_covered(cube, self.place_groups, self.forest, search, table, entries)
        ids: list[int] = self.ids[entries[:used]].tolist()
        return ids

    def _id_pairs(self, pairs: CandidatePairs, count: int) -> IdPairs:
        ids = self.ids[pairs.entries[:count]].tolist()
        return list(zip(pairs.new_cubes[:count].tolist(), ids, strict=True))
