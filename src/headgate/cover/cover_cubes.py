"""Filters as cubes: rows of integers that kernels can compare ([MBD §3.1], the predicate index).

    price > 3 and title contains 'rock'
        ──►  { price: (3, …) → 17,   title: a text → 4,   word rock in title → 9,   … }  ──►  4 9 17

A *restriction* is a set of values at a place; each distinct one has a number. Whatever the place
holds, its values lie on one line: missing, then kind after kind, each in its own order. So a
restriction is a list of intervals between labels (cover_labels.py), and one restriction lies within
another exactly if each of its intervals lies within one of the other's:

    missing | numbers ………………… | bools | texts ………… | instants … | links … | bytes … | xml …
              (3, …)  ████████                                                   x > 3
              ████████████████████████████████████████████████████████████       x is present

A *cube* is the numbers of a filter's restrictions, in the order of their places. A form that is
there or not (a word, a host) is a place with one restriction only.

Cost: an atom that was met before costs a look-up; one more binary search for each new constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.cover.cover_knowledge import describe
from headgate.cover.cover_labels import Cut, OrderLabels
from headgate.cover.cover_values import Place
from headgate.match.kernels import Longs
from headgate.model.filters import Filter, conjuncts
from headgate.model.implies_values import PRESENT, ValueSet
from headgate.model.intervals import Cut as ModelCut
from headgate.model.values import Kind

_KINDS = tuple(Kind)
_MISSING: tuple[Cut, Cut] = ((-1,), (0,))
_REMEMBERED_MAX = 1 << 16
_PLACE_SHIFT = 32
_NUMBER_MASK = (1 << _PLACE_SHIFT) - 1


class Cube(NamedTuple):
    """Restrictions by number, sorted by place.

    `is_exact`: the filter says no more than these. `is_never`: no item satisfies it.
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
    exact: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return self.exact.size

    def take(self, chosen: Longs) -> CubeList:
        """The chosen ones, in their order."""
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


class Growing:
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

    def __setitem__(self, at: int, value: int) -> None:
        self._room[at] = value

    @property
    def array(self) -> Longs:
        return self._room[: self._size]


Lines = tuple[Longs, Longs, Longs, Longs, Longs]
"""Of restriction r the place, and where its intervals begin and end among all lows and highs."""


class Cubes:
    """The vocabulary: every distinct restriction that was met, with its number."""

    def __init__(self) -> None:
        self._places: dict[Place, int] = {}
        self._labels: list[OrderLabels] = []
        self._uses: list[dict[Cut, list[tuple[Growing, int]]]] = []
        """For each place where the label of a cut is written down."""
        self._numbers: dict[tuple[int, tuple[tuple[Cut, Cut], ...]], int] = {}
        self._place, self._first, self._last = Growing(), Growing(), Growing()
        self._lows, self._highs = Growing(), Growing()
        self._place_of: list[int] = []
        self._remembered: dict[int, tuple[Filter, list[int] | None]] = {}
        self._by_value: dict[Filter, tuple[Filter, list[int] | None]] = {}

    def __len__(self) -> int:
        return len(self._place)

    @property
    def lines(self) -> Lines:
        return (
            self._place.array,
            self._first.array,
            self._last.array,
            self._lows.array,
            self._highs.array,
        )

    def cube(self, filter_: Filter) -> Cube:
        """The cube of a filter. Conjuncts at places of their own are simply put together."""
        remembered, keys = self._remembered, list[int]()
        for part in conjuncts(filter_):
            found = remembered.get(id(part)) or self._remember(part)
            if found[1] is None:
                return self._described(filter_)
            keys += found[1]
        keys.sort()
        if len({key >> _PLACE_SHIFT for key in keys}) < len(keys):
            keys = sorted(set(keys))  # the same word, or `is present`, was said twice
            if len({key >> _PLACE_SHIFT for key in keys}) < len(keys):
                return self._described(filter_)
        return Cube(tuple([key & _NUMBER_MASK for key in keys]))

    def _remember(self, part: Filter) -> tuple[Filter, list[int] | None]:
        """The restrictions of a conjunct, with their places in the high bits; None if they are not
        all that it says.

        Looked up first as an object (what is remembered is held, so that no other object gets its
        address), then as a value, since hashing an atom takes longer than all the rest.
        """
        if len(self._remembered) >= _REMEMBERED_MAX:
            self._remembered.clear()
        found = self._by_value.get(part)
        if found is None:
            if len(self._by_value) >= _REMEMBERED_MAX:
                self._by_value.clear()
            cube = self._described(part)
            simple = cube.is_exact and not cube.is_never
            keys = [(self._place_of[each] << _PLACE_SHIFT) | each for each in cube.restrictions]
            found = self._by_value[part] = part, (keys if simple else None)
        self._remembered[id(part)] = part, found[1]
        return self._remembered[id(part)]

    def _described(self, filter_: Filter) -> Cube:
        known = describe(filter_)
        if known.places is None:
            return NEVER
        numbers = [self._number(place, values) for place, values in known.places.items()]
        numbers.sort(key=self._place_of.__getitem__)
        return Cube(tuple(numbers), is_exact=known.is_exact)

    def _number(self, place: Place, values: ValueSet) -> int:
        at = self._places.setdefault(place, len(self._places))
        if at == len(self._labels):
            self._labels.append(OrderLabels())
            self._uses.append({})
        intervals = tuple(_joined(_on_the_line(values)))
        number = self._numbers.setdefault((at, intervals), len(self._place))
        if number == len(self._place):
            self._add(at, intervals)
        return number

    def _add(self, place: int, intervals: tuple[tuple[Cut, Cut], ...]) -> None:
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
            for written, at in uses.get(cut, ()):
                written[at] = label
        labels.moved.clear()


def _on_the_line(values: ValueSet) -> Iterator[tuple[Cut, Cut]]:
    """The intervals of all kinds on one line; the end of a kind is the beginning of the next."""
    if values.missing:
        yield _MISSING
    for at, kind in enumerate(_KINDS):
        whole = PRESENT.of(kind).intervals
        lowest, highest = whole[0][0], whole[-1][1]
        for low, high in values.of(kind).intervals:
            yield _cut(at, low, lowest, at), _cut(at, high, highest, at + 1)


def _cut(kind: int, cut: ModelCut, end: ModelCut, at_end: int) -> Cut:
    return (at_end,) if cut == end else (kind, cut.value, cut.after)


def _joined(intervals: Iterator[tuple[Cut, Cut]]) -> Iterator[tuple[Cut, Cut]]:
    """Without a gap between those that touch."""
    last: tuple[Cut, Cut] | None = None
    for low, high in intervals:
        if last is not None and last[1] == low:
            last = last[0], high
            continue
        if last is not None:
            yield last
        last = low, high
    if last is not None:
        yield last
