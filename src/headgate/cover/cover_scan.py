"""A list of cubes that is looked through from one end to the other, by a compiled loop.

It is the whole table of the two-pass baseline, and the recent part of the forest's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headgate.cover.cover_cubes import CubeList, Growing, Lines
from headgate.cover.cover_part import Pairs
from headgate.cover.cover_scan_kernels import scan_covered, scan_covering
from headgate.match.kernels import Longs


class ScannedCubes:
    """Entries, known by their numbers."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.live_count = 0
        self._entry_of: dict[int, int] = {}
        self._start, self._flat = Growing(), Growing()
        self._start.extend([0])
        self._alive, self._exact = Growing(), Growing()

    def add(self, numbers: Sequence[int], cubes: CubeList) -> None:
        count = len(self.numbers)
        self._entry_of.update(zip(numbers, range(count, count + len(numbers)), strict=True))
        self.numbers += numbers
        self._start.extend(cubes.start[1:] + len(self._flat))
        self._flat.extend(cubes.flat)
        self._alive.extend(np.ones(len(cubes), np.int64))
        self._exact.extend(cubes.exact.astype(np.int64))
        self.live_count += len(cubes)

    def bury(self, number: int) -> None:
        self._alive.array[self._entry_of.pop(number)] = 0
        self.live_count -= 1

    def __contains__(self, number: int) -> bool:
        return number in self._entry_of

    def live(self) -> tuple[list[int], CubeList]:
        """The entries that are alive, with their cubes."""
        exact = self._exact.array.astype(bool)
        cubes = CubeList(self._start.array, self._flat.array, exact)
        return list(self._entry_of), cubes.take(np.nonzero(self._alive.array)[0])

    def arrays(self) -> tuple[Longs, Longs, Longs]:
        """Where each cube begins, their restrictions, and 1 for each that is alive."""
        return self._start.array, self._flat.array, self._alive.array

    def covering(self, cubes: CubeList, lines: Lines, coverer: Longs, judged: Longs) -> Pairs:
        """Write the numbers of entries that cover the cubes which have no coverer yet; pairs of a
        cube's position and the number of an entry are for the judge, while `judged` is left."""
        if not self.live_count:
            return []
        places, room = np.where(coverer >= 0, 0, -1), int(judged.sum())
        news, entries = np.empty(room, np.int64), np.empty(room, np.int64)
        table = *self.arrays(), self._exact.array
        used = scan_covering(cubes.start, cubes.flat, *table, lines, places, judged, news, entries)
        found = np.nonzero((coverer < 0) & (places >= 0))[0]
        coverer[found] = [self.numbers[at] for at in places[found].tolist()]
        return self._pairs(news[:used], entries[:used])

    def covered(self, cubes: CubeList, lines: Lines, judged: Longs) -> Pairs:
        """Pairs of a cube's position and the number of an entry that lies within it; only one for
        an entry that lies within an exact one."""
        if not self.live_count:
            return []
        room = len(self.numbers) + int(judged.sum())
        news, entries = np.empty(room, np.int64), np.empty(room, np.int64)
        new = cubes.start, cubes.flat, cubes.exact
        used = scan_covered(*new, *self.arrays(), lines, judged, news, entries)
        return self._pairs(news[:used], entries[:used])

    def _pairs(self, news: Longs, entries: Longs) -> Pairs:
        numbers = self.numbers
        return [(new, numbers[at]) for new, at in zip(news.tolist(), entries.tolist(), strict=True)]
