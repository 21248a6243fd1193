"""Order labels: numbers for the cuts of an order that grows, so that kernels compare integers.

    cuts      5⁻        7⁺        9⁻            a new cut between two others gets the label half-way
    labels    −2³²      0         2³²           between theirs; at the ends it is a step further

A label never changes the order that it stands for, so what was sorted once stays sorted. Where two
neighbours leave no room, the labels around them are spread anew: as many as it takes until each
has room again.

Cost: a binary search for each new cut. A spread of n labels leaves room for many insertions around
each, so that cuts which always come to the same place move O(log n) labels each, all in all.
Rejected: the position as label (each new cut would move all behind it), all labels at once (the
same, every 32nd time), and the values themselves (integers beyond 2⁵³ and texts are no floats).
"""

from __future__ import annotations

from bisect import bisect_left

Cut = tuple[object, ...]
"""Cuts of one order compare as tuples do."""

STEP = 1 << 32
ROOM = 1 << 16
"""Between labels that were spread there is at least this much."""
LABEL_MAX = 1 << 62


class OrderLabels:
    """The cuts of one order, sorted, each with its label."""

    __slots__ = ("_cuts", "_labels", "moved")

    def __init__(self) -> None:
        self._cuts: list[Cut] = []
        self._labels: list[int] = []
        self.moved: dict[Cut, int] = {}
        """The cuts whose labels have changed; whoever keeps labels writes them again and clears."""

    def label(self, cut: Cut) -> int:
        """The label of a cut, which is taken in if it is new."""
        at = bisect_left(self._cuts, cut)
        if at < len(self._cuts) and self._cuts[at] == cut:
            return self._labels[at]
        found = self._between(at)
        if found is None:
            self._spread_around(at)
            found = self._between(at)
            assert found is not None, "spread labels leave room"
        self._cuts.insert(at, cut)
        self._labels.insert(at, found)
        return found

    def _between(self, at: int) -> int | None:
        """A free label for a cut that goes to this position."""
        labels = self._labels
        if not labels:
            return 0
        if at == len(labels):
            return labels[-1] + STEP if labels[-1] + STEP < LABEL_MAX else None
        if at == 0:
            return labels[0] - STEP if labels[0] - STEP > -LABEL_MAX else None
        middle = (labels[at - 1] + labels[at]) // 2
        return middle if middle > labels[at - 1] else None

    def _spread_around(self, at: int) -> None:
        """Spread the fewest labels that have room, between those beside them or towards an end."""
        labels, width = self._labels, 8
        while True:
            first, last = max(at - width, 0), min(at + width, len(labels))
            count, gap = last - first, STEP
            if count == len(labels):
                self._move(first, last, -(count // 2) * gap, gap)
                return
            if first == 0:
                start = labels[last] - count * gap
            else:
                start = labels[first - 1] + gap
                if last < len(labels):
                    gap = (labels[last] - labels[first - 1]) // (count + 1)
                    start = labels[first - 1] + gap
            if gap >= ROOM and start > -LABEL_MAX and start + count * gap < LABEL_MAX:
                self._move(first, last, start, gap)
                return
            width *= 2

    def _move(self, first: int, last: int, label: int, gap: int) -> None:
        """Give the cuts first … last − 1 labels from this one on."""
        labels = range(label, label + (last - first) * gap, gap)
        self._labels[first:last] = labels
        self.moved.update(zip(self._cuts[first:last], labels, strict=True))
