"""Atoms on ordered values: comparisons, `between`, `in` and `is present`, on every type.

All atoms on one attribute are answered by one pass over its column ([MBD §3.1]; the loop is in
ordered_kernels.py). Each atom is a union of ranges between the cuts that the constants make
(ranges.py).

Texts, links, bytes and XML are compared through *codes*: of the sorted constants on an attribute,
the i-th has code 2i + 1, and a value between two of them has the code between theirs. Values and
constants are bytes that compare as the values do (texts.py); a kernel codes a column by a binary
search for each item, and from there on they are integers.

Equality has a table of its own (`equal`): a constant that no item has costs nothing but a zero row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from headgate.match.batch import ORDERED_TYPES, Batch, Column, Key
from headgate.match.bit_rows import Ints, Words
from headgate.match.bounds import check_indices, check_length, check_starts, refuse_unless
from headgate.match.ordered_kernels import (
    Constants,
    Numbers,
    OrderedIndex,
    fill_ordered_rows,
    fill_tables,
    measure_spans,
)
from headgate.match.ranges import (
    BOTTOM,
    TOP,
    Codes,
    Cut,
    Number,
    OrderedAtom,
    Range,
    codes_of,
    number_ranges,
    ranges_of,
)
from headgate.match.text_kernels import code_texts
from headgate.match.texts import Texts
from headgate.model.values import Type

TABLE_MAX = 65_536
"""How many values a look-up table may have, for each attribute."""
_index_of = attrgetter(*OrderedIndex._fields)
"""The arrays of `fill_ordered_rows` as a plain tuple (walks.py says why)."""
_FAR = 2**62
"""Constants beyond it have no table, so that no sum of a value and a table's size overflows."""


@dataclass(frozen=True, slots=True, eq=False)
class OrderedAtoms:
    """All ordered atoms on columns of one array type, as the arrays of `fill_ordered_rows`."""

    keys: tuple[Key, ...]
    constants: tuple[Texts | None, ...]
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
        array_type = np.float64 if self.is_float else np.int64
        columns = np.empty((len(self.keys), batch.size), array_type)
        valid = np.zeros((len(self.keys), batch.size), bool)
        for group, key in enumerate(self.keys):
            constants = self.constants[group]
            column = (
                batch.column(key) if constants is None else _coded_column(batch, key[0], constants)
            )
            if column is not None:
                columns[group], valid[group] = column
        widest = 2 * int(np.diff(self.cut_start).max()) + 2
        prefix = np.zeros((widest, rows.shape[1]), np.uint64)
        fill_ordered_rows(columns, valid, _index_of(self), prefix, rows)

    def check(self, row_count: int) -> None:
        """Raise `SnapshotError` where a stored place is out of its bounds."""
        keys = len(self.keys)
        refuse_unless(len(self.constants) == keys, "constants", f"it is not for {keys} columns")
        for constants in self.constants:
            if constants is not None:
                refuse_unless(not self.is_float, "constants", "codes are no floats")
                constants.check("constants")
        numbers = np.float64 if self.is_float else np.int64
        for name in ("equal_values", "cut_values", "table_low"):
            dtype = getattr(self, name).dtype
            refuse_unless(dtype == numbers, name, f"it holds {dtype}")
        check_length("table_low", self.table_low, keys)
        check_starts("equal_start", self.equal_start, self.equal_values.size, parts=keys)
        equals = self.equal_values.size
        check_starts("equal_rows_start", self.equal_rows_start, self.equal_rows.size, parts=equals)
        check_indices("equal_rows", self.equal_rows, row_count)
        check_starts("cut_start", self.cut_start, self.cut_values.size, parts=keys)
        check_starts("range_start", self.range_start, self.range_rows.size, parts=keys)
        check_indices("range_rows", self.range_rows, row_count)
        tables = 0 if self.is_float else self.equal_table.size
        check_starts("table_start", self.table_start, tables, parts=keys)
        check_indices("equal_table", self.equal_table, equals, least=-1, length=tables)
        check_length("region_table", self.region_table, tables)
        self._check_cuts()

    def _check_cuts(self) -> None:
        """A range or region may only name a cut of its own column: the others have no rows yet."""
        cuts = 2 * np.diff(self.cut_start)
        of_ranges = np.repeat(cuts, np.diff(self.range_start))
        of_regions = np.repeat(cuts, np.diff(self.table_start))
        for name, values, limit in (
            ("range_low", self.range_low, of_ranges + 1),
            ("range_high", self.range_high, of_ranges + 1),
            ("region_table", self.region_table, of_regions),
        ):
            check_length(name, values, limit.size)
            within = (values >= 0) & (values <= limit)
            refuse_unless(bool(within.all()), name, "it names a cut that is not there")


def _coded_column(batch: Batch, name: str, constants: Texts) -> Column | None:
    column = batch.texts.get(name)
    if column is None:
        return None
    codes = np.zeros(batch.size, np.int64)
    if len(constants):  # without constants, only `is present` is tested
        code_texts(column.compared.arrays, constants.arrays, codes)
    return codes, column.valid


def compile_ordered(
    atoms: Iterable[tuple[OrderedAtom, int]], types: Mapping[str, Type]
) -> list[OrderedAtoms]:
    """The atoms, each with its row, in two sets: those on integers and those on floats."""
    by_key: dict[Key, list[tuple[OrderedAtom, int]]] = defaultdict(list)
    for atom, row in atoms:
        by_key[str(atom.attribute), getattr(atom, "part", None)].append((atom, row))
    codes: dict[Key, Codes | None] = {}
    groups: dict[Key, list[tuple[int, Range]]] = {}
    for key, pairs in by_key.items():
        type_ = types[key[0]]
        if type_ in ORDERED_TYPES:
            codes[key] = None
            groups[key] = [
                (row, each) for atom, row in pairs for each in number_ranges(atom, type_)
            ]
        else:
            key_codes = codes[key] = codes_of((atom for atom, _ in pairs), type_)
            groups[key] = [
                (row, each) for atom, row in pairs for each in ranges_of(atom, type_, key_codes)
            ]
    floats = [key for key in groups if types[key[0]] is Type.FLOAT]
    integers = [key for key in groups if types[key[0]] is not Type.FLOAT]
    return [
        _compile({key: groups[key] for key in keys}, codes, is_float=is_float)
        for keys, is_float in ((integers, False), (floats, True))
        if keys
    ]


def _compile(
    groups: dict[Key, list[tuple[int, Range]]],
    codes: Mapping[Key, Codes | None],
    *,
    is_float: bool,
) -> OrderedAtoms:
    equal_start, equal_values, equal_rows_start, equal_rows = [0], [], [0], []
    cut_start, cut_values = [0], []
    range_start, ranges = [0], []
    for row_ranges in groups.values():
        equal: dict[Number, list[int]] = defaultdict(list)
        wide: list[tuple[int, Range]] = []
        for row, (low, high) in row_ranges:
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
        position_of = {value: position for position, value in enumerate(values)}
        ranges += [
            (row, _prefix(low, position_of, len(values)), _prefix(high, position_of, len(values)))
            for row, (low, high) in wide
        ]
        cut_values += values
        cut_start.append(len(cut_values))
        range_start.append(len(ranges))
    as_ranges = np.array(ranges, np.int32).reshape(-1, 3).T
    equals, cuts = _array(equal_values, is_float=is_float), _array(cut_values, is_float=is_float)
    equal_starts, cut_starts = np.array(equal_start, np.int32), np.array(cut_start, np.int32)
    tables = _tables(Constants(equal_starts, equals, cut_starts, cuts))
    range_rows, range_low, range_high = map(np.ascontiguousarray, as_ranges)
    return OrderedAtoms(
        tuple(groups),
        tuple(None if each is None else each.texts for each in map(codes.get, groups)),
        is_float,
        equal_starts,
        equals,
        np.array(equal_rows_start, np.int32),
        np.array(equal_rows, np.int32),
        cut_starts,
        cuts,
        np.array(range_start, np.int32),
        range_rows,
        range_low,
        range_high,
        *tables,
    )


def _tables(constants: Constants) -> tuple[Ints, Numbers, Ints, Ints]:
    """For groups of integers that are close together, the answer for each value from just below the
    least constant to just above the greatest: a look-up replaces two binary searches."""
    equal_start, equals = constants.equal_start, constants.equal_values
    sizes, lows = np.zeros(equal_start.size - 1, np.int32), np.zeros(equal_start.size - 1, np.int64)
    if equals.dtype == np.int64:
        measure_spans(constants, TABLE_MAX, _FAR, lows, sizes)
    starts = np.zeros(sizes.size + 1, np.int32)
    np.cumsum(sizes, out=starts[1:])
    equal_table, region_table = np.empty((2, starts[-1]), np.int32)
    if starts[-1]:
        fill_tables(constants, starts, lows, equal_table, region_table)
    is_whole = equals.dtype == np.int64
    return starts, lows if is_whole else lows.astype(np.float64), equal_table, region_table


def _array(values: list[Number], *, is_float: bool) -> Numbers:
    return np.array(values, np.float64) if is_float else np.array(values, np.int64)


def _prefix(cut: Cut, position_of: Mapping[Number, int], value_count: int) -> int:
    """Which prefix row holds the items below the cut."""
    if cut == BOTTOM:
        return 0
    if cut == TOP:
        return 2 * value_count + 1
    return 2 * position_of[cut[0]] + cut[1] + 1
