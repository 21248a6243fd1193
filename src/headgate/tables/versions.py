"""Versions of rows by some of their join values: found again without looking at all rows.

    base   all versions, sorted by key     found by bisection
    tail   those that came since           sorted again for each batch; few

When the tail has grown to a quarter of the base, both are made one anew, without what is gone. An
entry is of one version of a row: it counts as long as its slot has its number.

A key is a hash of the join values' codes; whoever asks compares the codes of what was found.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headgate.tables.box_tree_kernels import Longs

TAIL_MIN = 4_096
Hashes = npt.NDArray[np.uint64]
_PRIME = np.uint64(0x9E3779B97F4A7C15)


def mixed(codes: Longs) -> Hashes:
    """A hash of each line of codes."""
    found: Hashes = np.zeros(len(codes), np.uint64)
    for column in codes.T:
        found = (found ^ column.astype(np.uint64)) * _PRIME
        found ^= found >> np.uint64(29)
    return found


@dataclass(slots=True)
class _Sorted:
    keys: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    slots: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    numbers: Longs = field(default_factory=lambda: np.empty(0, np.int64))

    @classmethod
    def of(cls, keys: Hashes, slots: Longs, numbers: Longs) -> _Sorted:
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], slots[order], numbers[order])

    def __len__(self) -> int:
        return self.keys.size

    def runs(self, keys: Hashes) -> tuple[Longs, Longs]:
        """For each key where its entries begin, and how many there are."""
        first = np.searchsorted(self.keys, keys, "left")
        return first, np.searchsorted(self.keys, keys, "right") - first


@dataclass(slots=True)
class Versions:
    _base: _Sorted = field(default_factory=_Sorted)
    _tail: _Sorted = field(default_factory=_Sorted)

    def add(self, codes: Longs, slots: Longs, numbers: Longs, *, number_of: Longs) -> None:
        """New versions, with the codes of what they are found by; `number_of` is by slot."""
        self._tail = self._together(self._tail, _Sorted(mixed(codes), slots, numbers), number_of)
        if len(self._tail) > max(TAIL_MIN, len(self._base) // 4):
            self._base = self._together(self._base, self._tail, number_of)
            self._tail = _Sorted()

    @staticmethod
    def _together(one: _Sorted, other: _Sorted, number_of: Longs) -> _Sorted:
        """Both, without what is gone."""
        keys = np.concatenate([one.keys, other.keys])
        slots = np.concatenate([one.slots, other.slots])
        numbers = np.concatenate([one.numbers, other.numbers])
        there = number_of[slots] == numbers
        return _Sorted.of(keys[there], slots[there], numbers[there])

    def count(self, codes: Longs) -> int:
        """At most so many are found."""
        keys = mixed(codes)
        return int(sum(each.runs(keys)[1].sum() for each in (self._base, self._tail)))

    def find(self, codes: Longs, *, number_of: Longs) -> tuple[Longs, Longs]:
        """Pairs of a line of codes and a slot that may have them."""
        keys, lines, found = mixed(codes), [], []
        for entries in (self._base, self._tail):
            first, counts = entries.runs(keys)
            line = np.repeat(np.arange(keys.size), counts)
            place = np.arange(line.size) + np.repeat(first - np.cumsum(counts) + counts, counts)
            there = number_of[entries.slots[place]] == entries.numbers[place]
            lines.append(line[there])
            found.append(entries.slots[place][there])
        return np.concatenate(lines), np.concatenate(found)
