"""Covering in batches on the forest, in both directions ([MBD §4.2, §4.3]; DESIGN.md §5.4).

Law: after `insert`, a filter is a root exactly if no root covers it, where G covers F if
P(G) ⊇ P(F) as far as model/implies.py can tell. Inserting a batch gives the roots that inserting
one after the other gives; equal filters are covered by the first.

    new filters ──► what covers them? ──► the few that nothing does ──► what do they cover?
                    all parts, 64         packed into fewer words       all parts again
                    filters to a word

    parts    forests of roots, each at least 3 times as large as the next (cover_part.py)
    recent   the latest roots, looked through one by one (cover_scan.py); when it is full it becomes
             a part, and parts that have grown alike become one

Covering is matching with a symbolic item: where an item has a value, a new filter has the set of
values that it allows (cover_knowledge.py). The pair [v_l, v_r] of the paper is a pair of bit rows
here. Its two early stops are kept: a filter that is found to be covered is taken off the walk, and
only filters that nothing covers are asked what they cover. The paper does both in one walk. Here
they are two walks over one forest, as the few filters that are left for the second are packed into
fewer words. What the new filters of a batch cover among themselves is the AND of their
own restrictions' rows; looking at all pairs took a sixth of the check.

Where a filter says more than its cube (it is not exact), `implies_filter` judges the pairs that the
walk has found, up to `JUDGED_MAX` for each new filter and direction. Whatever it does not find
costs a forwarded filter, never a match.

Cost: for a batch, one word operation per row and node of the parts for 64 new filters. A root is
moved into a larger part O(log n) times. Rejected: one forest that is changed in place, as each
insertion would move all nodes behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headgate.cover.attribute_order import ORDERS
from headgate.cover.cover_cubes import Cube, CubeList, Cubes, cube_list
from headgate.cover.cover_part import JUDGED_MAX, PATH_MAX, NewCubes, Pairs, Part
from headgate.cover.cover_roots import CubeCover
from headgate.cover.cover_scan import ScannedCubes
from headgate.match.kernels import Longs
from headgate.model.filters import Filter
from headgate.model.implies import implies_filter

BATCH = 4_096
FEW = 8
"""So many new filters walk one after the other: filling rows for them would take longer."""
RECENT_MAX = 128
RATIO = 3
"""A part has at least this many times the entries of the next."""
VOCABULARY_MIN = 1 << 16
"""So many restrictions are kept before it is asked how many are still in use."""


class ForestCover(CubeCover):
    """The roots in forests. One writer at a time; nothing may read while it writes."""

    def __init__(self, *, order: str = "frequency") -> None:
        super().__init__()
        self._order = ORDERS[order]
        self._parts: list[Part] = []
        self._recent = ScannedCubes()
        self._apart = ScannedCubes()
        """Cubes that are too long for a path, or empty."""
        self._part_of: dict[int, Part] = {}
        self._entry_of: dict[int, int] = {}
        self._vocabulary_max = VOCABULARY_MIN

    def _insert_possible(
        self, numbers: Sequence[int], filters: Sequence[Filter], cubes: Sequence[Cube]
    ) -> dict[int, int]:
        covered: dict[int, int] = {}
        for at in range(0, len(numbers), BATCH):
            part = slice(at, at + BATCH)
            batch = cube_list(cubes[part])
            covered |= self._insert_batch(numbers[part], filters[part], batch)
        self._renew_vocabulary()
        return covered

    def _insert_batch(
        self, numbers: Sequence[int], filters: Sequence[Filter], cubes: CubeList
    ) -> dict[int, int]:
        coverer = self._covering(filters, cubes)
        is_covered = np.nonzero(coverer >= 0)[0]
        by_root = zip(is_covered.tolist(), coverer[is_covered].tolist(), strict=True)
        covered = {numbers[at]: root for at, root in by_root}
        left = np.nonzero(coverer < 0)[0]
        if not left.size:
            return covered
        open_ = left.tolist()
        new = _New([numbers[at] for at in open_], [filters[at] for at in open_], cubes.take(left))
        covered |= self._insert_uncovered(new)
        if self._recent.live_count > RECENT_MAX:
            recent, self._recent = self._recent.live(), ScannedCubes()
            self._make_part(*recent)
        return covered

    def _insert_uncovered(self, new: _New) -> dict[int, int]:
        """Insert filters that no root covers."""
        ever_roots, parents = self._among(new)
        covered = {new.numbers[at]: new.numbers[by] for at, by in enumerate(parents) if by >= 0}
        covered |= self._withdraw(new.take(ever_roots))
        self._add(new.take([at for at in ever_roots if parents[at] < 0]))
        return covered

    def _covering(self, filters: Sequence[Filter], cubes: CubeList) -> Longs:
        """For each new filter a root that covers it, or −1."""
        lines = self._cubes.lines
        coverer = np.full(len(cubes), -1, np.int64)
        judged = np.full(len(cubes), JUDGED_MAX, np.int64)
        pairs: Pairs = []
        if len(cubes) <= FEW:
            for at in range(len(cubes)):
                own = cubes.flat[cubes.start[at] : cubes.start[at + 1]]
                for part in self._parts:
                    if coverer[at] < 0:
                        coverer[at], doubtful = part.covering_one(own, lines)
                        pairs += [(at, number) for number in doubtful]
        elif self._parts:
            new = NewCubes(cubes, lines)
            for part in self._parts:
                found, more = part.covering(new, judged)
                coverer = np.where(coverer >= 0, coverer, found)
                pairs += more
        for scanned in (self._recent, self._apart):
            pairs += scanned.covering(cubes, lines, coverer, judged)
        for at, number in pairs:
            if coverer[at] < 0 and implies_filter(filters[at], self._filters[number]):
                coverer[at] = number
        return coverer

    def _among(self, new: _New) -> tuple[list[int], list[int]]:
        """Of new filters that no root covers: which become roots when they are inserted one after
        the other, be it for a while, and by which of them each is covered (−1: by none)."""
        within = self._within(new)
        parents, ever_roots, roots, covered = [-1] * len(within), [], 0, 0
        for at, own_within in enumerate(within):
            own = 1 << at
            if covered & own:
                continue
            if own_within != own:
                for each in _bits(own_within & roots):
                    parents[each] = at
                for each in _bits(own_within & ~covered & -(own << 1)):
                    parents[each] = at
                roots &= ~own_within
            roots |= own
            covered |= own_within
            ever_roots.append(at)
        return ever_roots, parents

    def _within(self, new: _New) -> list[int]:
        """For each new filter a bit for each that it covers."""
        if len(new.numbers) == 1:
            return [1]
        bits = NewCubes(new.cubes, self._cubes.lines).within()
        found = [int.from_bytes(row.tobytes(), "little") for row in bits]
        for at in np.nonzero(~new.cubes.exact)[0].tolist():
            for count, each in enumerate(_bits(found[at] & ~(1 << at))):
                general, specific = new.filters[at], new.filters[each]
                if count >= JUDGED_MAX or not implies_filter(specific, general):
                    found[at] ^= 1 << each
        return found

    def _withdraw(self, new: _New) -> dict[int, int]:
        """Take out the roots that new filters cover."""
        lines, exact, pairs = self._cubes.lines, new.cubes.exact, Pairs()
        judged = np.where(exact, 0, JUDGED_MAX)
        if len(new.numbers) <= FEW:
            start, flat = new.cubes.start, new.cubes.flat
            for at in range(len(new.numbers)):
                for part in self._parts:
                    own = flat[start[at] : start[at + 1]]
                    within = part.covered_one(own, lines, exact=bool(exact[at]))
                    pairs += [(at, number) for number in within]
        elif self._parts:
            cubes = NewCubes(new.cubes, lines)
            for part in self._parts:
                pairs += part.covered(cubes, judged)
        for scanned in (self._recent, self._apart):
            pairs += scanned.covered(new.cubes, lines, judged)
        covered: dict[int, int] = {}
        for at, root in sorted(pairs):
            certain = exact[at] or root in covered
            if certain or implies_filter(self._filters[root], new.filters[at]):
                covered.setdefault(root, new.numbers[at])
        for root in covered:
            self.remove(root)
        return covered

    def _add(self, new: _New) -> None:
        self._filters.update(zip(new.numbers, new.filters, strict=True))
        lengths = np.diff(new.cubes.start)
        fits = (lengths > 0) & (lengths <= PATH_MAX)
        for scanned, chosen in ((self._recent, fits), (self._apart, ~fits)):
            some = new.take(np.nonzero(chosen)[0].tolist())
            scanned.add(some.numbers, some.cubes)

    def _remove_possible(self, number: int) -> None:
        if number in self._recent:
            self._recent.bury(number)
        elif number in self._apart:
            self._apart.bury(number)
            if 2 * self._apart.live_count < len(self._apart.numbers):
                living, self._apart = self._apart.live(), ScannedCubes()
                self._apart.add(*living)
        else:
            part = self._part_of.pop(number)
            part.bury(self._entry_of.pop(number))
            if 2 * part.live_count < part.alive.size:
                self._parts.remove(part)
                self._make_part(*part.live())

    def _make_part(self, numbers: list[int], cubes: CubeList) -> None:
        """A part of these roots, and of the smaller parts that have grown alike."""
        while self._parts and self._parts[-1].live_count < RATIO * len(numbers):
            more, their_cubes = self._parts.pop().live()
            numbers, cubes = more + numbers, their_cubes + cubes
        if not numbers:
            return
        part = Part(numbers, cubes, self._cubes.lines, self._order)
        self._entry_of.update(zip(numbers, range(len(numbers)), strict=True))
        self._part_of.update(dict.fromkeys(numbers, part))
        self._parts.append(part)

    def _renew_vocabulary(self) -> None:
        """Forget restrictions that no root has any more, once they are the greater half."""
        if len(self._cubes) <= self._vocabulary_max:
            return
        self._cubes = Cubes()
        numbers, filters = list(self._filters), list(self._filters.values())
        cubes = cube_list(self.cubes_of(filters))
        self._vocabulary_max = max(VOCABULARY_MIN, 2 * len(self._cubes))
        self._parts, self._entry_of, self._part_of = [], {}, {}
        self._recent, self._apart = ScannedCubes(), ScannedCubes()
        self._add(_New(numbers, filters, cubes))
        recent, self._recent = self._recent.live(), ScannedCubes()
        self._make_part(*recent)


@dataclass(frozen=True, slots=True)
class _New:
    """New filters, with their numbers and cubes."""

    numbers: list[int]
    filters: list[Filter]
    cubes: CubeList

    def take(self, chosen: list[int]) -> _New:
        if len(chosen) == len(self.numbers):
            return self
        return _New(
            [self.numbers[at] for at in chosen],
            [self.filters[at] for at in chosen],
            self.cubes.take(np.array(chosen, np.int64)),
        )


def _bits(mask: int) -> Iterator[int]:
    """The positions of the bits that are set."""
    while mask:
        lowest = mask & -mask
        mask ^= lowest
        yield lowest.bit_length() - 1
