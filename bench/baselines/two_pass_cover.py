"""Covering by two separate passes over the routing table, as REBECA does it ([MBD §2, §4.3]).

    pass 1   is the new filter covered by some entry?            stops at the first that covers it
    pass 2   which entries are covered by the new filter?        only if pass 1 found none

This is the baseline of covering on the forest (headgate.cover.forest_cover), and it is meant to be
a good one: it has the same cubes, its loops are compiled, a comparison of two filters ends at the
first place that decides it, and Python code runs once for a whole batch.

Cost: each pass compares the new filter with every root, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba as nb
import numpy as np

from headgate.cover.cubes import Cube, cube_list
from headgate.cover.forest_cover import CubeCover
from headgate.cover.forest_index import INEXACT_CHECKS_MAX
from headgate.cover.scan_index import ScanIndex, is_covered
from headgate.model.filters import Filter
from headgate.model.implies import implies_filter

FEW = 8
"""So many new filters are inserted one by one: more are worth an array of the whole table."""


class TwoPassCover(CubeCover):
    """The roots in one list. One writer at a time; nothing may read while it writes."""

    def __init__(self) -> None:
        super().__init__()
        self._table = ScanIndex()
        self._cube_of: dict[int, Cube] = {}
        self._inexact_count = 0

    def _insert_possible(
        self, numbers: Sequence[int], filters: Sequence[Filter], cubes: Sequence[Cube]
    ) -> dict[int, int]:
        is_exact = self._inexact_count == 0 and all(cube.is_exact for cube in cubes)
        if is_exact and len(cubes) > FEW:
            return self._insert_exact(numbers, filters, cubes)
        covered: dict[int, int] = {}
        for number, filter_, cube in zip(numbers, filters, cubes, strict=True):
            covered |= self._insert_one(number, filter_, cube)
        return covered

    def _insert_exact(
        self, numbers: Sequence[int], filters: Sequence[Filter], cubes: Sequence[Cube]
    ) -> dict[int, int]:
        """All of them in one compiled loop: no pair must be checked with `implies_filter`."""
        start, flat, _, alive = self._table.arrays()
        new, before = cube_list(cubes), alive.size
        everyone = [*self._table.ids, *numbers]
        coverer = np.where(np.append(alive, np.zeros(len(cubes), np.int64)) == 1, -1, 0)
        starts, flats = np.append(start, start[-1] + new.start[1:]), np.append(flat, new.flat)
        two_passes(starts, flats, before, self._encoder.table, coverer)
        changed = np.nonzero(coverer >= 0)[0]
        covered = {
            everyone[at]: everyone[by]
            for at, by in zip(changed.tolist(), coverer[changed].tolist(), strict=True)
            if at >= before or alive[at]
        }
        for number in [each for each in covered if each in self._filters]:
            self.remove(number)
        for number, filter_, cube in zip(numbers, filters, cubes, strict=True):
            if number not in covered:
                self._add(number, filter_, cube)
        return covered

    def _insert_one(self, number: int, filter_: Filter, cube: Cube) -> dict[int, int]:
        table, coverer = self._encoder.table, np.full(1, -1, np.int64)
        new, limit = cube_list([cube]), np.full(1, INEXACT_CHECKS_MAX, np.int64)
        doubtful = self._table.covering(new, table, coverer, limit.copy())
        if coverer[0] >= 0:
            return {number: int(coverer[0])}
        for _, root in doubtful:
            if implies_filter(filter_, self._filters[root]):
                return {number: root}
        covered = {
            root: number
            for _, root in self._table.covered(new, table, limit)
            if cube.is_exact or implies_filter(self._filters[root], filter_)
        }
        for root in covered:
            self.remove(root)
        self._add(number, filter_, cube)
        return covered

    def _add(self, number: int, filter_: Filter, cube: Cube) -> None:
        self._filters[number], self._cube_of[number] = filter_, cube
        self._inexact_count += not cube.is_exact
        self._table.add([number], cube_list([cube]))

    def _remove_possible(self, number: int) -> None:
        self._inexact_count -= not self._cube_of.pop(number).is_exact
        self._table.remove(number)
        if 2 * self._table.live_count < len(self._table.ids):
            living, self._table = self._table.live(), ScanIndex()
            self._table.add(*living)


@nb.njit(nogil=True, cache=True)
def two_passes(start, flat, before, table, coverer):  # type: ignore[no-untyped-def]
    """Insert the exact cubes from `before` on, one after the other, behind those that are there.

    coverer[e] is -1 for a root, and for any other entry one that covers it, or that did.
    """
    count = start.shape[0] - 1
    roots, root_count = np.empty(count, np.int64), 0
    for entry in range(before):
        if coverer[entry] < 0:
            roots[root_count] = entry
            root_count += 1
    for new in range(before, count):
        own = (start[new], start[new + 1])
        coverer[new] = -1
        for at in range(root_count):
            root = roots[at]
            if is_covered(flat, own, flat, (start[root], start[root + 1]), table):
                coverer[new] = root
                break
        if coverer[new] >= 0:
            continue
        kept = 0
        for at in range(root_count):
            root = roots[at]
            if is_covered(flat, (start[root], start[root + 1]), flat, own, table):
                coverer[root] = new
            else:
                roots[kept] = root
                kept += 1
        roots[kept] = new
        root_count = kept + 1
