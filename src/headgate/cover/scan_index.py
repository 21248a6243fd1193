"""An index of cubes that is scanned from one end to the other by a compiled loop.

It holds the latest roots of a `ForestCover`, and cubes that are too long for a forest. The kernels
below define what covering means for cubes ([MBD §2]):

    restriction r    place[r], intervals lows[i] … highs[i] for i in first[r] … last[r] − 1
    cube c           flat[start[c] : start[c + 1]], restrictions sorted by place

A cube lies within another one if, at each place of the other, it has a restriction that lies within
the other's.

Cost: linear in the number of entries, for each new cube.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.cover.cubes import Bools, CubeList, GrowingIntegers, RestrictionTable
from headgate.match.bit_rows import Longs

IdPairs = list[tuple[int, int]]
"""Pairs of the position of a new cube in its batch and the id of an entry."""


class CubeArrays(NamedTuple):
    """Cubes as the kernels take them."""

    start: Longs  # [cube + 1]
    flat: Longs  # restrictions
    exact: Bools | Longs  # [cube]: whether the description is exact
    alive: Bools | Longs  # [cube]: false if it was removed


class CandidatePairs(NamedTuple):
    """Output of a search: pairs of a new cube and an entry."""

    checks_left: Longs  # [new cube]: how many inexact pairs may still be listed for it
    new_cubes: Longs  # [pair]
    entries: Longs  # [pair]


def new_candidate_pairs(room: int, checks_left: Longs) -> CandidatePairs:
    return CandidatePairs(checks_left, np.empty(room, np.int64), np.empty(room, np.int64))


class ScanIndex:
    """Entries, known by their filter ids."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.live_count = 0
        self._entry_of: dict[int, int] = {}
        self._start, self._flat = GrowingIntegers(), GrowingIntegers()
        self._start.extend([0])
        self._alive, self._exact = GrowingIntegers(), GrowingIntegers()

    def add(self, ids: Sequence[int], cubes: CubeList) -> None:
        count = len(self.ids)
        self._entry_of.update(zip(ids, range(count, count + len(ids)), strict=True))
        self.ids += ids
        self._start.extend(cubes.start[1:] + len(self._flat))
        self._flat.extend(cubes.flat)
        self._alive.extend(np.ones(len(cubes), np.int64))
        self._exact.extend(cubes.exact.astype(np.int64))
        self.live_count += len(cubes)

    def remove(self, id_: int) -> None:
        self._alive.array[self._entry_of.pop(id_)] = 0
        self.live_count -= 1

    def __contains__(self, id_: int) -> bool:
        return id_ in self._entry_of

    def live(self) -> tuple[list[int], CubeList]:
        """The ids and cubes of the entries that are not removed."""
        exact = self._exact.array.astype(bool)
        cubes = CubeList(self._start.array, self._flat.array, exact)
        return list(self._entry_of), cubes.take(np.nonzero(self._alive.array)[0])

    def arrays(self) -> CubeArrays:
        return CubeArrays(self._start.array, self._flat.array, self._exact.array, self._alive.array)

    def covering(
        self, cubes: CubeList, table: RestrictionTable, coverer: Longs, checks_left: Longs
    ) -> IdPairs:
        """Write to `coverer` the ids of entries that cover the cubes which have none yet.

        Returns the pairs with inexact entries that must be checked, at most checks_left[cube] each.
        """
        if not self.live_count:
            return []
        covering_entry = np.where(coverer >= 0, 0, -1)
        pairs = new_candidate_pairs(int(checks_left.sum()), checks_left)
        used = scan_covering(_all_alive(cubes), self.arrays(), table, covering_entry, pairs)
        newly_covered = np.nonzero((coverer < 0) & (covering_entry >= 0))[0]
        coverer[newly_covered] = [
            self.ids[entry] for entry in covering_entry[newly_covered].tolist()
        ]
        return self._id_pairs(pairs, used)

    def covered(self, cubes: CubeList, table: RestrictionTable, checks_left: Longs) -> IdPairs:
        """Pairs of a cube and an entry that lies within it; one pair for an entry that lies within
        an exact cube. Pairs with inexact cubes must be checked."""
        if not self.live_count:
            return []
        pairs = new_candidate_pairs(len(self.ids) + int(checks_left.sum()), checks_left)
        used = scan_covered(_all_alive(cubes), self.arrays(), table, pairs)
        return self._id_pairs(pairs, used)

    def _id_pairs(self, pairs: CandidatePairs, count: int) -> IdPairs:
        ids = [self.ids[entry] for entry in pairs.entries[:count].tolist()]
        return list(zip(pairs.new_cubes[:count].tolist(), ids, strict=True))


def _all_alive(cubes: CubeList) -> CubeArrays:
    return CubeArrays(cubes.start, cubes.flat, cubes.exact, cubes.exact)


@nb.njit(nogil=True, cache=True)
def lies_within(narrow, wide, table):  # type: ignore[no-untyped-def]
    """Whether restriction `narrow` lies within restriction `wide`, at the same place."""
    if narrow == wide:
        return True
    _, first, last, lows, highs = table
    interval, end = first[wide], last[wide]
    for inner in range(first[narrow], last[narrow]):
        while interval < end and highs[interval] < highs[inner]:
            interval += 1
        if interval == end or lows[interval] > lows[inner]:
            return False
    return True


@nb.njit(nogil=True, cache=True)
def is_covered(narrow_flat, narrow, wide_flat, wide, table):  # type: ignore[no-untyped-def]
    """Whether one cube lies within another; `narrow` and `wide` are (begin, end) of each."""
    place = table.place
    position, end = narrow
    if end - position < wide[1] - wide[0]:
        return False
    for wide_position in range(wide[0], wide[1]):
        wide_place = place[wide_flat[wide_position]]
        while position < end and place[narrow_flat[position]] < wide_place:
            position += 1
        if position == end or place[narrow_flat[position]] != wide_place:
            return False
        if not lies_within(narrow_flat[position], wide_flat[wide_position], table):
            return False
    return True


@nb.njit(nogil=True, cache=True)
def scan_covering(new_cubes, cubes, table, coverer, pairs):  # type: ignore[no-untyped-def]
    """Which entries cover the new cubes that have no coverer yet? Returns the number of pairs.

    new_cubes, cubes  CubeArrays
    coverer           int64 [new cube]  in and out: an exact entry that covers it, or -1
    pairs             CandidatePairs    out: inexact entries before that one, which must be checked
    """
    new_start, new_flat, _, _ = new_cubes
    start, flat, exact, alive = cubes
    checks_left, news, entries = pairs
    used = 0
    for new in range(new_start.shape[0] - 1):
        if coverer[new] >= 0:
            continue
        new_range = (new_start[new], new_start[new + 1])
        for entry in range(start.shape[0] - 1):
            if alive[entry] and is_covered(
                new_flat, new_range, flat, (start[entry], start[entry + 1]), table
            ):
                if exact[entry]:
                    coverer[new] = entry
                    break
                if checks_left[new] > 0:
                    checks_left[new] -= 1
                    news[used], entries[used] = new, entry
                    used += 1
    return used


@nb.njit(nogil=True, cache=True)
def scan_covered(new_cubes, cubes, table, pairs):  # type: ignore[no-untyped-def]
    """Which entries lie within new cubes? Returns the number of pairs.

    An entry has one pair with an exact new cube; pairs with inexact ones must be checked.
    """
    new_start, new_flat, new_exact, _ = new_cubes
    start, flat, _, alive = cubes
    checks_left, news, entries = pairs
    used = 0
    is_taken = np.zeros(start.shape[0], np.bool_)
    for new in range(new_start.shape[0] - 1):
        new_range = (new_start[new], new_start[new + 1])
        for entry in range(start.shape[0] - 1):
            if not alive[entry] or is_taken[entry]:
                continue
            if not new_exact[new] and checks_left[new] == 0:
                continue
            if is_covered(flat, (start[entry], start[entry + 1]), new_flat, new_range, table):
                if new_exact[new]:
                    is_taken[entry] = True
                else:
                    checks_left[new] -= 1
                news[used], entries[used] = new, entry
                used += 1
    return used
