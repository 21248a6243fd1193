"""The kernels of ordered_atoms.py: all atoms that compare numbers, one pass over each column.

A *group* is all atoms on one column. A constant v makes two cuts, one just below and one just above
it. An atom that is true of single values is found through `equal`; every other atom is a range
between two cuts:

    x < v: below the lower cut       x = v: between the two       x > v: above the upper one

prefix[c + 1] is the row of the items below cut c; prefix[0] is empty, and the last one has all
items with a value. A range is then prefix[high] & ~prefix[low].
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.match.bit_rows import LOW_BITS, ONE, Ints, first_not_less

Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]


class OrderedIndex(NamedTuple):
    """The constants of all groups. Values are int64 or float64, everything else is int32.

    equal_start       [groups + 1] where the group's values in equal_values begin
    equal_values      sorted within each group
    equal_rows_start  [values + 1] where the rows of a value begin
    equal_rows        the rows of atoms that are true of items with just this value
    cut_start         [groups + 1] where the group's values in cut_values begin
    cut_values        sorted within each group
    range_start       [groups + 1] where the group's ranges begin
    range_rows        the row that a range adds to
    range_low         a range is the items above this cut …
    range_high        … and not above this one
    table_start       [groups + 1] where the group's tables begin; empty if its values are far apart
    table_low         [groups] the value that the tables begin with, below all constants
    equal_table       for each value from there on: its place in equal_values, or −1
    region_table      … and its region: 2 for each cut value below it, plus 1 if it is a cut value
    """

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


@nb.njit(nogil=True, cache=True)
def fill_ordered_rows(columns, valid, index, prefix, rows):  # type: ignore[no-untyped-def]
    """Out: rows uint64 [rows, words], zero before.

    In: columns [groups, items], the values that the groups compare; valid bool [groups, items],
    whether the item has a value; index OrderedIndex; prefix uint64 [cuts + 2, words], scratch.
    """
    index = OrderedIndex(*index)
    for group in range(columns.shape[0]):
        cuts = index.cut_values[index.cut_start[group] : index.cut_start[group + 1]]
        cut_count = 2 * cuts.shape[0]
        prefix[: cut_count + 2] = 0
        if index.table_start[group] < index.table_start[group + 1]:
            _look_up(columns[group], valid[group], group, index, prefix, rows)
        else:
            _search(columns[group], valid[group], group, index, prefix, rows)
        for cut in range(1, cut_count + 2):
            for word in range(rows.shape[1]):
                prefix[cut, word] |= prefix[cut - 1, word]
        for range_ in range(index.range_start[group], index.range_start[group + 1]):
            row, low, high = (
                index.range_rows[range_],
                index.range_low[range_],
                index.range_high[range_],
            )
            for word in range(rows.shape[1]):
                rows[row, word] |= prefix[high, word] & ~prefix[low, word]


@nb.njit(nogil=True, cache=True)
def _look_up(column, valid, group, index, prefix, rows):  # type: ignore[no-untyped-def]
    """Set the bits of a column whose values are in tables. Values beyond the tables count as the
    first or the last one there. Two short loops take half the time of one that does both."""
    table, table_end = index.table_start[group], index.table_start[group + 1]
    equal_table = index.equal_table[table:table_end]
    region_table = index.region_table[table:table_end]
    equal_rows_start, equal_rows = index.equal_rows_start, index.equal_rows
    least = index.table_low[group]
    greatest = least + equal_table.shape[0] - 1
    for item in range(column.shape[0]):
        if valid[item]:
            place = np.uint64(min(max(column[item], least), greatest) - least)
            region = np.uint64(region_table[place] + 1)
            prefix[region, item >> 6] |= ONE << (np.uint64(item) & LOW_BITS)
    for item in range(column.shape[0]):
        equal = equal_table[np.uint64(min(max(column[item], least), greatest) - least)]
        if equal >= 0 and valid[item]:
            for place_of_row in range(equal_rows_start[equal], equal_rows_start[equal + 1]):
                rows[equal_rows[place_of_row], item >> 6] |= ONE << (np.uint64(item) & LOW_BITS)


@nb.njit(nogil=True, cache=True)
def _search(column, valid, group, index, prefix, rows):  # type: ignore[no-untyped-def]
    """Set the bits of a column by two binary searches for each item."""
    cuts = index.cut_values[index.cut_start[group] : index.cut_start[group + 1]]
    first, last = index.equal_start[group], index.equal_start[group + 1]
    equal_values, equal_rows_start = index.equal_values, index.equal_rows_start
    for item in range(column.shape[0]):
        if not valid[item]:
            continue
        value, word, bit = column[item], item >> 6, ONE << (np.uint64(item) & LOW_BITS)
        equal = first_not_less(equal_values, first, last, value)
        if equal < last and equal_values[equal] == value:
            for place in range(equal_rows_start[equal], equal_rows_start[equal + 1]):
                rows[index.equal_rows[place], word] |= bit
        cut = first_not_less(cuts, 0, cuts.shape[0], value)
        is_cut = cut < cuts.shape[0] and cuts[cut] == value
        prefix[2 * cut + is_cut + 1, word] |= bit


class Constants(NamedTuple):
    """The sorted constants of each group, as in OrderedIndex."""

    equal_start: Ints
    equal_values: Numbers
    cut_start: Ints
    cut_values: Numbers


@nb.njit(nogil=True, cache=True)
def measure_spans(constants, size_max, far, lows, sizes):  # type: ignore[no-untyped-def]
    """Out: lows int64 [groups], the value below the least constant of each group; sizes int32
    [groups], how many values there are from it to the one above the greatest constant, 0 where they
    are more than `size_max` or a constant is beyond ±`far`. In: constants Constants."""
    for group in range(sizes.shape[0]):
        low, high, any_value = 0, 0, False
        for values, start in (
            (constants.equal_values, constants.equal_start),
            (constants.cut_values, constants.cut_start),
        ):
            if start[group] < start[group + 1]:
                first, last = values[start[group]], values[start[group + 1] - 1]
                low = min(low, first) if any_value else first
                high = max(high, last) if any_value else last
                any_value = True
        if any_value and low > -far and high < far and high - low + 3 <= size_max:
            lows[group], sizes[group] = low - 1, high - low + 3


@nb.njit(nogil=True, cache=True)
def fill_tables(constants, table_start, table_low, equal_table, region_table):  # type: ignore[no-untyped-def]
    """Out: equal_table and region_table, as in OrderedIndex. In: constants Constants, table_start
    int32 [groups + 1], table_low int64 [groups]. Constants and values are walked side by side."""
    equal_start, equal_values, cut_start, cut_values = constants
    for group in range(table_start.shape[0] - 1):
        equal, cut = equal_start[group], cut_start[group]
        for place in range(table_start[group], table_start[group + 1]):
            value = table_low[group] + place - table_start[group]
            while equal < equal_start[group + 1] and equal_values[equal] < value:
                equal += 1
            while cut < cut_start[group + 1] and cut_values[cut] < value:
                cut += 1
            is_equal = equal < equal_start[group + 1] and equal_values[equal] == value
            is_cut = cut < cut_start[group + 1] and cut_values[cut] == value
            equal_table[place] = equal if is_equal else -1
            region_table[place] = 2 * (cut - cut_start[group]) + is_cut
