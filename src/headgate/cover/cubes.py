"""Filters as cubes: sorted rows of integers that kernels can compare ([MBD §3.1]).

    price > 3 and title contains 'rock'
        ──►  { price: (3, …) → 17,   title: a text → 4,   word rock in title → 9 }  ──►  4 9 17

A *restriction* is a set of values at a place (an attribute, or a part of it); each distinct one has
a number. All possible values of a place lie on one line: missing, then kind after kind, each in its
own order. So a restriction is a list of intervals on that line, and one restriction lies within
another exactly if each of its intervals lies within one of the other's:

    missing | numbers ………………… | bools | texts ………… | instants … | links … | bytes … | xml …
              (3, …)  ████████                                                   x > 3
              ████████████████████████████████████████████████████████████       x is present

A *cube* is the restrictions of a filter, sorted by place. A property that an item has or has not
(a word, a host) is a place with a single restriction.

The ends of intervals are *cuts*, and kernels compare them by integer labels:

    cuts      5⁻        7⁺        9⁻            a new cut between two others gets the label half-way
    labels    −2³²      0         2³²           between theirs; at the ends it is a step further

If two neighbouring labels leave no room, the smallest range of labels around them that has room is
spread evenly. The order of labels never changes, so arrays that were sorted by label stay sorted.

Cost: an atom that was met before costs a look-up, a new constant a binary search. A spread of n
labels leaves room for many insertions, so cuts that always come to the same place move O(log n)
labels each. Rejected as labels: the position (each new cut would move all behind it), respreading
all labels (the same, every 32nd time), and the values themselves (integers beyond 2⁵³ and texts are
no floats).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.cover.describe_filter import describe
from headgate.cover.describe_values import DescriptionPlace
from headgate.match.bit_rows import Longs
from headgate.model.filters import Filter, conjuncts
from headgate.model.implies_values import PRESENT, ValueSet
from headgate.model.intervals import Cut
from headgate.model.values import Kind

LabelledCut = tuple[object, ...]
"""A cut as a tuple; the order of tuples is the order of cuts at one place."""

STEP = 1 << 32
ROOM = 1 << 16
"""The smallest gap between labels after a spread."""
LABEL_MAX = 1 << 62


class OrderLabels:
    """The cuts of one order, sorted, each with its label."""

    __slots__ = ("_cuts", "_labels", "moved")

    def __init__(self) -> None:
        self._cuts: list[LabelledCut] = []
        self._labels: list[int] = []
        self.moved: dict[LabelledCut, int] = {}
        """The cuts whose labels have changed; the encoder writes them again and clears this."""

    def label(self, cut: LabelledCut) -> int:
        """The label of a cut. A new cut is inserted."""
        position = bisect_left(self._cuts, cut)
        if position < len(self._cuts) and self._cuts[position] == cut:
            return self._labels[position]
        label = self._between(position)
        if label is None:
            self._spread_around(position)
            label = self._between(position)
            assert label is not None, "spread labels leave room"
        self._cuts.insert(position, cut)
        self._labels.insert(position, label)
        return label

    def _between(self, position: int) -> int | None:
        """A free label for a cut to be inserted at this position; None if there is no room."""
        labels = self._labels
        if not labels:
            return 0
        if position == len(labels):
            return labels[-1] + STEP if labels[-1] + STEP < LABEL_MAX else None
        if position == 0:
            return labels[0] - STEP if labels[0] - STEP > -LABEL_MAX else None
        middle = (labels[position - 1] + labels[position]) // 2
        return middle if middle > labels[position - 1] else None

    def _spread_around(self, position: int) -> None:
        """Spread the smallest range of labels around the position that has room for it."""
        labels, width = self._labels, 8
        while True:
            first, last = max(position - width, 0), min(position + width, len(labels))
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


Bools = npt.NDArray[np.bool_]

_KINDS = tuple(Kind)
_MISSING: tuple[LabelledCut, LabelledCut] = ((-1,), (0,))
_REMEMBERED_MAX = 1 << 16
_PLACE_SHIFT = 32
_NUMBER_MASK = (1 << _PLACE_SHIFT) - 1


class Cube(NamedTuple):
    """The numbers of restrictions, sorted by place.

    `is_exact`: the filter is equivalent to its restrictions. `is_never`: no item satisfies it.
    """

    restrictions: tuple[int, ...]
    is_exact: bool = True
    is_never: bool = False


NEVER = Cube((), is_never=True)


@dataclass(frozen=True, slots=True, eq=False)
class CubeList:
    """Cube c is flat[start[c] : start[c + 1]]."""

    start: Longs
    flat: Longs
    exact: Bools

    def __len__(self) -> int:
        return self.exact.size

    def take(self, chosen: Longs) -> CubeList:
        """The chosen cubes, in the order of `chosen`."""
        lengths = np.diff(self.start)[chosen]
        start = np.zeros(chosen.size + 1, np.int64)
        np.cumsum(lengths, out=start[1:])
        places = np.arange(start[-1]) + np.repeat(self.start[chosen] - start[:-1], lengths)
        return CubeList(start, self.flat[places], self.exact[chosen])

    def __add__(self, other: CubeList) -> CubeList:
        return CubeList(
            np.append(self.start, self.start[-1] + other.start[1:]),
            np.append(self.flat, other.flat),
            np.append(self.exact, other.exact),
        )


def cube_list(cubes: Sequence[Cube]) -> CubeList:
    restrictions = [cube.restrictions for cube in cubes]
    start = np.zeros(len(cubes) + 1, np.int64)
    np.cumsum([*map(len, restrictions)], out=start[1:])
    flat = np.fromiter(chain.from_iterable(restrictions), np.int64, int(start[-1]))
    return CubeList(start, flat, np.array([cube.is_exact for cube in cubes], bool))


class GrowingIntegers:
    """An array of integers with room at its end."""

    __slots__ = ("_room", "_size")

    def __init__(self) -> None:
        self._room = np.zeros(64, np.int64)
        self._size = 0

    def extend(self, values: Sequence[int] | Longs) -> None:
        end = self._size + len(values)
        if end > self._room.size:
            self._room = np.concatenate([self._room, np.zeros(max(end, 64), np.int64)])
        self._room[self._size : end] = values
        self._size = end

    def __len__(self) -> int:
        return self._size

    def __setitem__(self, position: int, value: int) -> None:
        self._room[position] = value

    @property
    def array(self) -> Longs:
        return self._room[: self._size]


class RestrictionTable(NamedTuple):
    """All restrictions: restriction r has the intervals first[r] … last[r] − 1 at place[r]."""

    place: Longs  # [restriction]
    first: Longs  # [restriction]
    last: Longs  # [restriction]
    lows: Longs  # [interval]: the label where it begins …
    highs: Longs  # [interval]: … and where it ends

    def lowest(self, restrictions: Longs) -> Longs:
        return self.lows[self.first[restrictions]]

    def highest(self, restrictions: Longs) -> Longs:
        return self.highs[self.last[restrictions] - 1]


class CubeEncoder:
    """Turns filters into cubes; numbers every distinct restriction that it has met."""

    def __init__(self) -> None:
        self._places: dict[DescriptionPlace, int] = {}
        self._labels: list[OrderLabels] = []
        self._uses: list[dict[LabelledCut, list[tuple[GrowingIntegers, int]]]] = []
        """For each place, the arrays and positions that hold the label of a cut."""
        self._numbers: dict[tuple[int, tuple[tuple[LabelledCut, LabelledCut], ...]], int] = {}
        self._place, self._first, self._last = (
            GrowingIntegers(),
            GrowingIntegers(),
            GrowingIntegers(),
        )
        self._lows, self._highs = GrowingIntegers(), GrowingIntegers()
        self._place_of: list[int] = []
        self._remembered: dict[int, tuple[Filter, list[int] | None]] = {}
        self._by_value: dict[Filter, tuple[Filter, list[int] | None]] = {}

    def __len__(self) -> int:
        return len(self._place)

    @property
    def table(self) -> RestrictionTable:
        return RestrictionTable(
            self._place.array,
            self._first.array,
            self._last.array,
            self._lows.array,
            self._highs.array,
        )

    def cube(self, filter_: Filter) -> Cube:
        """The cube of a filter. The cubes of conjuncts at different places are concatenated."""
        remembered, keys = self._remembered, list[int]()
        for part in conjuncts(filter_):
            entry = remembered.get(id(part)) or self._remember(part)
            if entry[1] is None:
                return self._described(filter_)
            keys += entry[1]
        keys.sort()
        if len({key >> _PLACE_SHIFT for key in keys}) < len(keys):
            keys = sorted(set(keys))  # the same word, or `is present`, occurs twice
            if len({key >> _PLACE_SHIFT for key in keys}) < len(keys):
                return self._described(filter_)
        return Cube(tuple([key & _NUMBER_MASK for key in keys]))

    def _remember(self, part: Filter) -> tuple[Filter, list[int] | None]:
        """The restrictions of a conjunct, with their places in the high bits; None if the
        description of the conjunct is not exact.

        It is looked up by identity first, because hashing an atom takes longer than all the rest.
        The table holds the object, so that no other object gets its address.
        """
        if len(self._remembered) >= _REMEMBERED_MAX:
            self._remembered.clear()
        entry = self._by_value.get(part)
        if entry is None:
            if len(self._by_value) >= _REMEMBERED_MAX:
                self._by_value.clear()
            cube = self._described(part)
            simple = cube.is_exact and not cube.is_never
            keys = [(self._place_of[each] << _PLACE_SHIFT) | each for each in cube.restrictions]
            entry = self._by_value[part] = part, (keys if simple else None)
        self._remembered[id(part)] = part, entry[1]
        return self._remembered[id(part)]

    def _described(self, filter_: Filter) -> Cube:
        description = describe(filter_)
        if description.places is None:
            return NEVER
        numbers = [self._number(place, values) for place, values in description.places.items()]
        numbers.sort(key=self._place_of.__getitem__)
        return Cube(tuple(numbers), is_exact=description.is_exact)

    def _number(self, place: DescriptionPlace, values: ValueSet) -> int:
        place_number = self._places.setdefault(place, len(self._places))
        if place_number == len(self._labels):
            self._labels.append(OrderLabels())
            self._uses.append({})
        intervals = tuple(_joined(_intervals_on_line(values)))
        number = self._numbers.setdefault((place_number, intervals), len(self._place))
        if number == len(self._place):
            self._add(place_number, intervals)
        return number

    def _add(self, place: int, intervals: tuple[tuple[LabelledCut, LabelledCut], ...]) -> None:
        self._place.extend([place])
        self._place_of.append(place)
        self._first.extend([len(self._lows)])
        labels, uses = self._labels[place], self._uses[place]
        for interval in intervals:
            for cut, written in zip(interval, (self._lows, self._highs), strict=True):
                uses.setdefault(cut, []).append((written, len(written)))
                written.extend([labels.label(cut)])
        self._last.extend([len(self._lows)])
        for cut, label in labels.moved.items():
            for written, position in uses.get(cut, ()):
                written[position] = label
        labels.moved.clear()


def _intervals_on_line(values: ValueSet) -> Iterator[tuple[LabelledCut, LabelledCut]]:
    """The intervals of all kinds on one line; the end of a kind is the beginning of the next."""
    if values.missing:
        yield _MISSING
    for kind_number, kind in enumerate(_KINDS):
        whole = PRESENT.of(kind).intervals
        lowest, highest = whole[0][0], whole[-1][1]
        for low, high in values.of(kind).intervals:
            yield (
                _place_cut(kind_number, low, lowest, kind_number),
                _place_cut(kind_number, high, highest, kind_number + 1),
            )


def _place_cut(kind: int, cut: Cut, end: Cut, at_end: int) -> LabelledCut:
    return (at_end,) if cut == end else (kind, cut.value, cut.after)


def _joined(
    intervals: Iterator[tuple[LabelledCut, LabelledCut]],
) -> Iterator[tuple[LabelledCut, LabelledCut]]:
    """The intervals with those that touch joined into one."""
    last: tuple[LabelledCut, LabelledCut] | None = None
    for low, high in intervals:
        if last is not None and last[1] == low:
            last = last[0], high
            continue
        if last is not None:
            yield last
        last = low, high
    if last is not None:
        yield last
