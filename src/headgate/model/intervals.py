"""Sets of values of one kind, as unions of disjoint intervals with open or closed ends.

An end is a cut: a place in the order of values, just before a value or just after it. With cuts
there are no cases for open and closed ends, and touching intervals have equal cuts:

    [3, 9)     from before 3 to before 9        {5}       from before 5 to after 5
    (3, …      from after 3 to HIGHEST          3 | (3, … meet in the cut after 3

The order is taken as dense: between two cuts of different values lies a value. Where it is not (no
float lies between 1.0 and its successor), an empty set may count as not empty. Conclusions from
emptiness are therefore sound.

Cost: intersection and complement are linear, union sorts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headgate.model.values import Comparable


@dataclass(frozen=True, slots=True)
class Cut:
    """Just before or just after the value; without a value, before or after all of them."""

    value: Comparable | None
    after: bool

    def __lt__(self, other: Cut) -> bool:
        if self.value is None or other.value is None:
            return self._rank() < other._rank()
        if self.value == other.value:
            return self.after < other.after
        return self.value < other.value  # type: ignore[operator]  # both are of one kind

    def _rank(self) -> int:
        if self.value is not None:
            return 0
        return 1 if self.after else -1


LOWEST, HIGHEST = Cut(None, False), Cut(None, True)
Interval = tuple[Cut, Cut]


@dataclass(frozen=True, slots=True)
class IntervalSet:
    """Intervals in order, none of them empty, no two of them touching. Made by `interval_set`."""

    intervals: tuple[Interval, ...]

    def __bool__(self) -> bool:
        return bool(self.intervals)

    def union(self, other: IntervalSet) -> IntervalSet:
        return interval_set(self.intervals + other.intervals)

    def intersection(self, other: IntervalSet) -> IntervalSet:
        """A merge of both lists: the interval that ends first overlaps nothing that follows."""
        left, right, common = self.intervals, other.intervals, []
        i = j = 0
        while i < len(left) and j < len(right):
            low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
            if low < high:
                common.append((low, high))
            if left[i][1] < right[j][1]:
                i += 1
            else:
                j += 1
        return IntervalSet(tuple(common))

    def complement(self) -> IntervalSet:
        """All gaps, from LOWEST to HIGHEST."""
        gaps, low = [], LOWEST
        for start, end in self.intervals:
            gaps.append((low, start))
            low = end
        gaps.append((low, HIGHEST))
        return IntervalSet(tuple(gap for gap in gaps if gap[0] < gap[1]))

    def is_subset(self, other: IntervalSet) -> bool:
        return not self.intersection(other.complement())

    def points(self) -> tuple[Comparable, ...] | None:
        """The values of a finite set, or None where an interval holds more than one.

        >>> values_in([3, 1]).points(), between(1, 3).points()
        ((1, 3), None)
        """
        values = [
            low.value
            for low, high in self.intervals
            if low.value is not None and low.value == high.value
        ]
        return tuple(values) if len(values) == len(self.intervals) else None


NOTHING = IntervalSet(())
EVERYTHING = IntervalSet(((LOWEST, HIGHEST),))


def interval_set(intervals: Iterable[Interval]) -> IntervalSet:
    """The union of any intervals, overlapping, touching and empty ones too."""
    merged: list[Interval] = []
    for low, high in sorted(each for each in intervals if each[0] < each[1]):
        if merged and not merged[-1][1] < low:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return IntervalSet(tuple(merged))


def values_in(values: Iterable[Comparable]) -> IntervalSet:
    return interval_set((Cut(value, False), Cut(value, True)) for value in values)


def below(value: Comparable, *, included: bool) -> IntervalSet:
    return interval_set([(LOWEST, Cut(value, included))])


def above(value: Comparable, *, included: bool) -> IntervalSet:
    return interval_set([(Cut(value, not included), HIGHEST)])


def between(low: Comparable, high: Comparable) -> IntervalSet:
    """Both ends included."""
    return interval_set([(Cut(low, False), Cut(high, True))])


def with_prefix(prefix: str) -> IntervalSet:
    """All texts that begin with the prefix: they lie side by side in the order of texts.

    >>> low, high = with_prefix("ab").intervals[0]
    >>> low.value, high.value
    ('ab', 'ac')
    """
    stem = prefix.rstrip(chr(0x10FFFF))
    end = Cut(stem[:-1] + chr(ord(stem[-1]) + 1), False) if stem else HIGHEST
    return interval_set([(Cut(prefix, False), end)])
