"""Atoms on ordered values: comparisons, `between`, `in` and `is present`, on every type.

All atoms on one attribute are answered by one pass over its column (mbd.txt §3.1; the loop is in
kernels.py): each is a union of ranges between the cuts that the constants make (ranges.py).

Texts, links, bytes and XML are compared through *codes*: of the constants on an attribute, sorted,
the i-th has code 2i + 1, and a value between two of them has the code between theirs. Coding takes
a binary search for each item; from there on they are integers.

Equality has a table of its own (`equal`): a value that no item has costs nothing but a zero row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.match.batch import ORDERED_TYPES, Batch, Codes, Key
from headgate.match.kernels import Ints, Words, fill_ordered_rows
from headgate.match.ranges import BOTTOM, TOP, Cut, Number, Range, constants_of, ranges_of
from headgate.model.atoms import (
    Atom,
    Between,
    Comparison,
    In,
    IsPresent,
    WindowAttribute,
)
from headgate.model.values import (
    Type,
    comparable,
    kind_of,
    kind_of_type,
)

Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]

TABLE_MAX = 65_536
"""How many values a look-up table may have, for each attribute."""
_EMPTY = np.zeros(0, np.int64)
_FAR = 2**62


def is_ordered(atom: Atom, types: Mapping[str, Type]) -> bool:
    """Whether the atom compares ordered values, so that this file can answer it."""
    match atom:
        case Comparison(attribute, _, value):
            return not isinstance(value, WindowAttribute) and attribute in types
        case Between(attribute) | In(attribute) | IsPresent(attribute):
            return attribute in types
    return False


@dataclass(frozen=True, slots=True, eq=False)
class OrderedAtoms:
    """All ordered atoms on columns of one array type, as the arrays of `fill_ordered_rows`."""

    keys: tuple[Key, ...]
    codes: tuple[Codes | None, ...]
    """For each key the constants that its values are coded by; nothing where they are numbers."""
    is_float: bool
    equal_start: Ints
    equal_values: Numbers
    equal_rows_start: Ints
    equal_rows: Ints
    cut_start: Ints
    cut_values: Numbers
    range_start: Ints
    range_rows: Ints
    range_low: Ints
    range_high: Ints
    table_start: Ints
    table_low: Numbers
    equal_table: Ints
    region_table: Ints

    def fill(self, batch: Batch, rows: Words) -> None:
        """Set the bits of these atoms in rows that are zero."""
        if not self.keys:
            return
        array_type = np.float64 if self.is_float else np.int64
        columns = np.zeros((len(self.keys), batch.size), array_type)
        valid = np.zeros((len(self.keys), batch.size), bool)
        for at, key in enumerate(self.keys):
            codes = self.codes[at]
            column = batch.column(key) if codes is None else batch.coded_column(key[0], codes)
            if column is not None:
                columns[at], valid[at] = column
        widest = 2 * int(np.diff(self.cut_start).max()) + 2
        prefix = np.zeros((widest, rows.shape[1]), np.uint64)
        fill_ordered_rows(
            columns,
            valid,
            self.equal_start,
            self.equal_values,
            self.equal_rows_start,
            self.equal_rows,
            self.cut_start,
            self.cut_values,
            self.range_start,
            self.range_rows,
            self.range_low,
            self.range_high,
            self.table_start,
            self.table_low,
            self.equal_table,
            self.region_table,
            prefix,
            rows,
        )


def compile_ordered(
    atoms: Iterable[tuple[Atom, int]], types: Mapping[str, Type]
) -> list[OrderedAtoms]:
    """The atoms, each with its row, in two sets: those on integers and those on floats."""
    by_key: dict[Key, list[tuple[Atom, int]]] = defaultdict(list)
    for atom, row in atoms:
        by_key[_key(atom)].append((atom, row))
    codes = {key: _codes(found, types[key[0]]) for key, found in by_key.items()}
    groups = {
        key: [
            (row, each)
            for atom, row in found
            for each in ranges_of(atom, types[key[0]], codes[key])
        ]
        for key, found in by_key.items()
    }
    floats = [key for key in groups if types[key[0]] is Type.FLOAT]
    whole = [key for key in groups if types[key[0]] is not Type.FLOAT]
    return [
        _compile({key: groups[key] for key in keys}, codes, is_float=is_float)
        for keys, is_float in ((whole, False), (floats, True))
    ]


def _codes(atoms: list[tuple[Atom, int]], type_: Type) -> Codes | None:
    """The constants on an attribute in order, or nothing where the column has numbers."""
    if type_ in ORDERED_TYPES:
        return None
    kind = kind_of_type(type_)
    constants = (value for atom, _ in atoms for value in constants_of(atom))
    return Codes(kind, sorted({comparable(each) for each in constants if kind_of(each) is kind}))


def _key(atom: Atom) -> Key:
    attribute = getattr(atom, "attribute", None)
    assert isinstance(attribute, str)
    return str(attribute), getattr(atom, "part", None)


def _compile(
    groups: dict[Key, list[tuple[int, Range]]],
    codes: Mapping[Key, Codes | None],
    *,
    is_float: bool,
) -> OrderedAtoms:
    equal_start, equal_values, equal_rows_start, equal_rows = [0], [], [0], []
    cut_start, cut_values = [0], []
    range_start, ranges = [0], []
    for found in groups.values():
        equal: dict[Number, list[int]] = defaultdict(list)
        wide: list[tuple[int, Range]] = []
        for row, (low, high) in found:
            if low[0] == high[0] and (low[1], high[1]) == (0, 1):
                equal[low[0]].append(row)
            elif low < high:
                wide.append((row, (low, high)))
        for value in sorted(equal):
            equal_values.append(value)
            equal_rows += equal[value]
            equal_rows_start.append(len(equal_rows))
        equal_start.append(len(equal_values))
        values = sorted(
            {cut[0] for _, range_ in wide for cut in range_ if cut not in (BOTTOM, TOP)}
        )
        at = {value: position for position, value in enumerate(values)}
        ranges += [
            (row, _prefix(low, at, len(values)), _prefix(high, at, len(values)))
            for row, (low, high) in wide
        ]
        cut_values += values
        cut_start.append(len(cut_values))
        range_start.append(len(ranges))
    as_ranges = np.array(ranges, np.int32).reshape(-1, 3).T
    equals, cuts = _array(equal_values, is_float=is_float), _array(cut_values, is_float=is_float)
    table_start, table_low, equal_table, region_table = _tables(
        equals, equal_start, cuts, cut_start
    )
    range_rows, range_low, range_high = map(np.ascontiguousarray, as_ranges)
    return OrderedAtoms(
        tuple(groups),
        tuple(codes[key] for key in groups),
        is_float,
        np.array(equal_start, np.int32),
        equals,
        np.array(equal_rows_start, np.int32),
        np.array(equal_rows, np.int32),
        np.array(cut_start, np.int32),
        cuts,
        np.array(range_start, np.int32),
        range_rows,
        range_low,
        range_high,
        table_start,
        table_low,
        equal_table,
        region_table,
    )


def _tables(
    equals: Numbers, equal_start: list[int], cuts: Numbers, cut_start: list[int]
) -> tuple[Ints, Numbers, Ints, Ints]:
    """For narrow groups of integers, the answer for each value between the least and the greatest
    constant, so that a look-up takes the place of two binary searches."""
    starts, equal_parts, region_parts = [0], [], []
    lows: list[Number] = []
    for at in range(len(equal_start) - 1):
        own = equals[equal_start[at] : equal_start[at + 1]]
        own_cuts = cuts[cut_start[at] : cut_start[at + 1]]
        span = _narrow_span(np.concatenate([own, own_cuts]))
        place = np.searchsorted(own, span)
        is_equal = np.isin(span, own)
        equal_parts.append(np.where(is_equal, place + equal_start[at], -1))
        region_parts.append(2 * np.searchsorted(own_cuts, span) + np.isin(span, own_cuts))
        starts.append(starts[-1] + span.size)
        lows.append(int(span[0]) if span.size else 0)
    return (
        np.array(starts, np.int32),
        _array(lows, is_float=equals.dtype == np.float64),
        np.concatenate([*equal_parts, _EMPTY]).astype(np.int32),
        np.concatenate([*region_parts, _EMPTY]).astype(np.int32),
    )


def _narrow_span(values: Numbers) -> npt.NDArray[np.int64]:
    """All integers from the least to the greatest value, or none if they are too many."""
    if values.dtype != np.int64 or not values.size:
        return _EMPTY
    low, high = int(values.min()), int(values.max())
    # Far from the ends of 64 bits, so that no sum of a value and a table's size leaves them.
    near = low > -_FAR and high < _FAR
    return np.arange(low, high + 1) if near and high - low < TABLE_MAX else _EMPTY


def _array(values: list[Number], *, is_float: bool) -> Numbers:
    return np.array(values, np.float64) if is_float else np.array(values, np.int64)


def _prefix(cut: Cut, at: Mapping[Number, int], value_count: int) -> int:
    """Which prefix row holds the items below the cut."""
    if cut == BOTTOM:
        return 0
    if cut == TOP:
        return 2 * value_count + 1
    return 2 * at[cut[0]] + cut[1] + 1
