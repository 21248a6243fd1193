"""Covering in batches on forests, in both directions ([MBD §4.2, §4.3]).

The input is filters with ids; the output says which of them, and which earlier ones, are covered
now, and by which filter. *Roots* are the filters that no other filter covers. Only roots are kept
here, and only roots are forwarded.

Invariant: after `insert`, a filter is a root exactly if no root covers it, where G covers F if
every item of F is an item of G as far as model/implies.py can tell. Inserting a batch gives the
roots that inserting one by one gives; equal filters are covered by the first.

    new filters ──► which roots     ──► the few that      ──► which roots
                    cover them?         none covers           do they cover?
                    all indexes,        packed into           all indexes again
                    64 to a word        fewer words

The roots are organised like the levels of an LSM tree:

    recent      the latest roots, scanned one by one (scan_index.py); becomes a level when full
    levels      forests of roots (forest_index.py), each at least 3 times as large as the next;
                levels that have grown to a similar size are merged
    oversized   cubes that are empty or too long for a path, scanned

Covering is matching with a symbolic item: where an item has a value, a new filter has the set of
values that it allows (describe_filter.py). The pair [v_l, v_r] of the paper is a pair of bit rows
here. Its two early stops are kept: a filter that is found to be covered leaves the walk, and only
filters that no root covers are compared with what they cover. The paper does both in one walk; here
they are two walks over one forest, because the few filters left for the second one fit in fewer
words. Covering among the new filters of a batch is the AND of the rows of their restrictions;
comparing all pairs took a sixth of the time of a check.

Where the description of a filter is not exact, `implies_filter` checks the pairs that the walk has
found, up to INEXACT_CHECKS_MAX for each new filter and direction. A pair that is missed costs a
forwarded filter, never a match.

Cost: for a batch, one word operation per row and node of the levels for 64 new filters. A root
moves to a larger level O(log n) times. Rejected: one forest that is changed in place, because each
insertion would move all nodes behind it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from headgate.cover.cubes import Cube, CubeEncoder, CubeList, cube_list
from headgate.cover.forest_index import (
    INEXACT_CHECKS_MAX,
    PATH_MAX,
    AttributeOrder,
    ForestIndex,
    NewCubeBatch,
    by_frequency,
)
from headgate.cover.scan_index import IdPairs, ScanIndex
from headgate.match.bit_rows import Longs
from headgate.model.filters import Filter
from headgate.model.implies import implies_filter

BATCH = 4_096
FEW = 8
"""Up to this many new filters are searched one by one: filling rows for them would take longer."""
RECENT_MAX = 128
LEVEL_RATIO = 3
"""A level has at least this many times the entries of the next."""
RESTRICTIONS_MIN = 1 << 16
"""Unused restrictions are dropped only if there are more restrictions than this."""


class Cover(Protocol):
    """The covering that a routing table needs.

    A coverer in the result of `insert` may itself be covered by the same insertion; then the
    result has an entry for it too.
    """

    def insert(self, ids: Sequence[int], filters: Sequence[Filter]) -> dict[int, int]:
        """Insert filters in this order. Returns those that are no roots now, with their coverer.

        Ids are new and not negative.
        """

    def remove(self, id_: int) -> None:
        """Remove a root. The caller inserts again what it covered."""


class CubeCover(ABC):
    """Covering by cubes: filters are described once, and only roots are kept.

    A filter that no item satisfies is covered by every other. It is a root only if it is alone.
    """

    def __init__(self) -> None:
        self._encoder = CubeEncoder()
        self._filters: dict[int, Filter] = {}
        """The roots that items can satisfy."""
        self._never: int | None = None
        """The root that no item satisfies: only if there is no other."""

    def insert(self, ids: Sequence[int], filters: Sequence[Filter]) -> dict[int, int]:
        return self.insert_cubes(ids, filters, self.cubes_of(filters))

    def cubes_of(self, filters: Sequence[Filter]) -> list[Cube]:
        return [self._encoder.cube(filter_) for filter_ in filters]

    def insert_cubes(
        self, ids: Sequence[int], filters: Sequence[Filter], cubes: Sequence[Cube]
    ) -> dict[int, int]:
        """As `insert`, with the cubes of the filters, so that both steps can be measured."""
        if not any(cube.is_never for cube in cubes):
            covered = self._insert_possible(ids, filters, cubes)
            return covered | self._cover_never([])
        possible = [at for at, cube in enumerate(cubes) if not cube.is_never]
        covered = self._insert_possible(
            [ids[at] for at in possible],
            [filters[at] for at in possible],
            [cubes[at] for at in possible],
        )
        never = [id_ for id_, cube in zip(ids, cubes, strict=True) if cube.is_never]
        return covered | self._cover_never(never)

    def remove(self, id_: int) -> None:
        if id_ == self._never:
            self._never = None
            return
        del self._filters[id_]
        self._remove_possible(id_)

    def _cover_never(self, ids: list[int]) -> dict[int, int]:
        """Insert filters that no item satisfies, after the others."""
        if self._never is not None:
            ids = [self._never, *ids]
        if not ids:
            return {}
        root = next(iter(self._filters), None)
        self._never = ids[0] if root is None else None
        if root is None:
            root, *ids = ids
        return dict.fromkeys(ids, root)

    @abstractmethod
    def _insert_possible(
        self, ids: Sequence[int], filters: Sequence[Filter], cubes: Sequence[Cube]
    ) -> dict[int, int]:
        """Insert filters that items can satisfy."""

    @abstractmethod
    def _remove_possible(self, id_: int) -> None:
        """Remove a root that items can satisfy."""


class ForestCover(CubeCover):
    """The roots in forests. One writer at a time; nothing may read while it writes."""

    def __init__(self, *, order: AttributeOrder = by_frequency) -> None:
        super().__init__()
        self._order = order
        self._levels: list[ForestIndex] = []
        self._recent = ScanIndex()
        self._oversized = ScanIndex()
        self._level_of: dict[int, ForestIndex] = {}
        self._entry_of: dict[int, int] = {}
        self._restrictions_max = RESTRICTIONS_MIN

    def _insert_possible(
        self, ids: Sequence[int], filters: Sequence[Filter], cubes: Sequence[Cube]
    ) -> dict[int, int]:
        covered: dict[int, int] = {}
        for begin in range(0, len(ids), BATCH):
            part = slice(begin, begin + BATCH)
            covered |= self._insert_batch(ids[part], filters[part], cube_list(cubes[part]))
        self._drop_unused_restrictions()
        return covered

    def _insert_batch(
        self, ids: Sequence[int], filters: Sequence[Filter], cubes: CubeList
    ) -> dict[int, int]:
        coverer = self._find_coverers(filters, cubes)
        is_covered = np.nonzero(coverer >= 0)[0]
        by_root = zip(is_covered.tolist(), coverer[is_covered].tolist(), strict=True)
        covered = {ids[at]: root for at, root in by_root}
        left = np.nonzero(coverer < 0)[0]
        if not left.size:
            return covered
        new = _NewFilters(
            [ids[at] for at in left.tolist()],
            [filters[at] for at in left.tolist()],
            cubes.take(left),
        )
        covered |= self._insert_uncovered(new)
        if self._recent.live_count > RECENT_MAX:
            recent, self._recent = self._recent.live(), ScanIndex()
            self._add_level(*recent)
        return covered

    def _insert_uncovered(self, new: _NewFilters) -> dict[int, int]:
        """Insert filters that no root covers."""
        ever_roots, parents = self._cover_among(new)
        covered = {new.ids[at]: new.ids[by] for at, by in enumerate(parents) if by >= 0}
        covered |= self._remove_covered_roots(new.take(ever_roots))
        self._add(new.take([at for at in ever_roots if parents[at] < 0]))
        return covered

    def _find_coverers(self, filters: Sequence[Filter], cubes: CubeList) -> Longs:
        """For each new filter the id of a root that covers it, or -1."""
        table = self._encoder.table
        coverer = np.full(len(cubes), -1, np.int64)
        checks_left = np.full(len(cubes), INEXACT_CHECKS_MAX, np.int64)
        to_check: IdPairs = []
        if len(cubes) <= FEW:
            for position in range(len(cubes)):
                cube = cubes.flat[cubes.start[position] : cubes.start[position + 1]]
                for level in self._levels:
                    if coverer[position] < 0:
                        coverer[position], inexact = level.covering_one(cube, table)
                        to_check += [(position, root) for root in inexact]
        elif self._levels:
            new = NewCubeBatch(cubes, table)
            for level in self._levels:
                ids, inexact_pairs = level.covering(new, checks_left)
                coverer = np.where(coverer >= 0, coverer, ids)
                to_check += inexact_pairs
        for scanned in (self._recent, self._oversized):
            to_check += scanned.covering(cubes, table, coverer, checks_left)
        for position, root in to_check:
            if coverer[position] < 0 and implies_filter(filters[position], self._filters[root]):
                coverer[position] = root
        return coverer

    def _cover_among(self, new: _NewFilters) -> tuple[list[int], list[int]]:
        """Covering among new filters that no root covers, as if they were inserted one by one.

        Returns the positions of those that become roots, even if a later one covers them, and for
        each new filter the position of its coverer, or -1.
        """
        within = self._within(new)
        parents, ever_roots, roots, covered = [-1] * len(within), [], 0, 0
        for position, own_within in enumerate(within):
            bit = 1 << position
            if covered & bit:
                continue
            if own_within != bit:
                for earlier in _bits(own_within & roots):
                    parents[earlier] = position
                for later in _bits(own_within & ~covered & -(bit << 1)):
                    parents[later] = position
                roots &= ~own_within
            roots |= bit
            covered |= own_within
            ever_roots.append(position)
        return ever_roots, parents

    def _within(self, new: _NewFilters) -> list[int]:
        """For each new filter an integer with a bit for each new filter that it covers."""
        if len(new.ids) == 1:
            return [1]
        bits = NewCubeBatch(new.cubes, self._encoder.table).within()
        within = [int.from_bytes(row.tobytes(), "little") for row in bits]
        for position in np.nonzero(~new.cubes.exact)[0].tolist():
            for count, other in enumerate(_bits(within[position] & ~(1 << position))):
                general, specific = new.filters[position], new.filters[other]
                if count >= INEXACT_CHECKS_MAX or not implies_filter(specific, general):
                    within[position] ^= 1 << other
        return within

    def _remove_covered_roots(self, new: _NewFilters) -> dict[int, int]:
        """Remove the roots that new filters cover; returns them with their coverer."""
        table, exact, pairs = self._encoder.table, new.cubes.exact, IdPairs()
        checks_left = np.where(exact, 0, INEXACT_CHECKS_MAX)
        if len(new.ids) <= FEW:
            start, flat = new.cubes.start, new.cubes.flat
            for position in range(len(new.ids)):
                cube = flat[start[position] : start[position + 1]]
                for level in self._levels:
                    within = level.covered_one(cube, table, exact=bool(exact[position]))
                    pairs += [(position, root) for root in within]
        elif self._levels:
            cubes = NewCubeBatch(new.cubes, table)
            for level in self._levels:
                pairs += level.covered(cubes, checks_left)
        for scanned in (self._recent, self._oversized):
            pairs += scanned.covered(new.cubes, table, checks_left)
        covered: dict[int, int] = {}
        for position, root in sorted(pairs):
            is_certain = exact[position] or root in covered
            if is_certain or implies_filter(self._filters[root], new.filters[position]):
                covered.setdefault(root, new.ids[position])
        for root in covered:
            self.remove(root)
        return covered

    def _add(self, new: _NewFilters) -> None:
        self._filters.update(zip(new.ids, new.filters, strict=True))
        lengths = np.diff(new.cubes.start)
        fits = (lengths > 0) & (lengths <= PATH_MAX)
        for scanned, chosen in ((self._recent, fits), (self._oversized, ~fits)):
            some = new.take(np.nonzero(chosen)[0].tolist())
            scanned.add(some.ids, some.cubes)

    def _remove_possible(self, id_: int) -> None:
        if id_ in self._recent:
            self._recent.remove(id_)
        elif id_ in self._oversized:
            self._oversized.remove(id_)
            if 2 * self._oversized.live_count < len(self._oversized.ids):
                living, self._oversized = self._oversized.live(), ScanIndex()
                self._oversized.add(*living)
        else:
            level = self._level_of.pop(id_)
            level.remove(self._entry_of.pop(id_))
            if 2 * level.live_count < level.alive.size:
                self._levels.remove(level)
                self._add_level(*level.live())

    def _add_level(self, ids: list[int], cubes: CubeList) -> None:
        """Add a level of these roots, merged with smaller levels of a similar size."""
        while self._levels and self._levels[-1].live_count < LEVEL_RATIO * len(ids):
            their_ids, their_cubes = self._levels.pop().live()
            ids, cubes = their_ids + ids, their_cubes + cubes
        if not ids:
            return
        level = ForestIndex(ids, cubes, self._encoder.table, self._order)
        self._entry_of.update(zip(ids, range(len(ids)), strict=True))
        self._level_of.update(dict.fromkeys(ids, level))
        self._levels.append(level)

    def _drop_unused_restrictions(self) -> None:
        """Encode all roots again if more than half of the restrictions may be unused."""
        if len(self._encoder) <= self._restrictions_max:
            return
        self._encoder = CubeEncoder()
        ids, filters = list(self._filters), list(self._filters.values())
        cubes = cube_list(self.cubes_of(filters))
        self._restrictions_max = max(RESTRICTIONS_MIN, 2 * len(self._encoder))
        self._levels, self._entry_of, self._level_of = [], {}, {}
        self._recent, self._oversized = ScanIndex(), ScanIndex()
        self._add(_NewFilters(ids, filters, cubes))
        recent, self._recent = self._recent.live(), ScanIndex()
        self._add_level(*recent)


@dataclass(frozen=True, slots=True)
class _NewFilters:
    ids: list[int]
    filters: list[Filter]
    cubes: CubeList

    def take(self, chosen: list[int]) -> _NewFilters:
        if len(chosen) == len(self.ids):
            return self
        return _NewFilters(
            [self.ids[at] for at in chosen],
            [self.filters[at] for at in chosen],
            self.cubes.take(np.array(chosen, np.int64)),
        )


def _bits(mask: int) -> Iterator[int]:
    """The positions of the bits that are set."""
    while mask:
        lowest = mask & -mask
        mask ^= lowest
        yield lowest.bit_length() - 1
