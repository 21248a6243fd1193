"""The hot loops that fill rows: free functions on flat arrays, compiled by Numba, without the GIL.

A *row* is the answer to one question for a batch of items: a bit for each item, 64 to a word. Rows
are the lines of one matrix, and a number stands for a row: atoms first, then derived rows.

    rows[a]      bit i of it: does item i satisfy atom a?

A negation also sets bits beyond the batch's end; walks.py begins with the items that there are.
"""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

NOT, AND, OR = 0, 1, 2

ONE = np.uint64(1)
LOW_BITS = np.uint64(63)
"""Of an item's number, the bits that tell its place in a word."""


@nb.njit(nogil=True, cache=True, inline="always")
def popcount(word: np.uint64) -> np.uint64:  # LLVM knows this shape and makes one instruction of it
    word = word - ((word >> ONE) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@nb.njit(nogil=True, cache=True, inline="always")
def lowest_bit(word):  # type: ignore[no-untyped-def]
    """The place of the lowest bit that is set; in this shape LLVM makes one instruction of it. It
    is unsigned, so that Numba need not ask whether an index made of it is negative."""
    return popcount(~word & (word - ONE)) & LOW_BITS


@nb.njit(nogil=True, cache=True)
def first_not_less(values, start, end, wanted):  # type: ignore[no-untyped-def]
    """The first position in values[start:end], sorted, whose value is not less than wanted."""
    low, length = start, end - start
    while length > 0:
        half = length >> 1
        if values[low + half] < wanted:
            low += half + 1
            length -= half + 1
        else:
            length = half
    return low


@nb.njit(nogil=True, cache=True)
def fill_ordered_rows(  # type: ignore[no-untyped-def]
    columns,  # [group, item]: the values that the groups compare
    valid,  # [group, item]: whether the item has one
    equal_start,  # [group + 1]: where the group's values in equal_values begin
    equal_values,  # sorted within each group
    equal_rows_start,  # [value + 1]: where the rows of a value begin
    equal_rows,  # the rows of atoms that are true of items with just this value
    cut_start,  # [group + 1]: where the group's values in cut_values begin
    cut_values,  # sorted within each group
    range_start,  # [group + 1]: where the group's ranges begin
    range_rows,  # the row that a range adds to
    range_low,  # a range is the items above this cut …
    range_high,  # … and not above this one
    table_start,  # [group + 1]: where the group's tables begin; they are empty for wide values
    table_low,  # [group]: the value that the tables begin with, below all constants
    equal_table,  # for each value from there on: its place in equal_values, or −1
    region_table,  # … and its region: 2 for each cut value below it, 1 if it is one itself
    prefix,  # scratch: [cut + 2, word]
    rows,
):
    """The rows of all atoms that compare ordered values, one pass over each column.

    A value v makes two cuts, one just below and one just above it. The items below cut c are
    prefix[c + 1]; prefix[0] is empty, and the last one has all items with a value.
        x < v: below the lower cut       x = v: between the two       x > v: above the upper one
    """
    for group in range(columns.shape[0]):
        cuts = cut_values[cut_start[group] : cut_start[group + 1]]
        cut_count = 2 * cuts.shape[0]
        prefix[: cut_count + 2] = 0
        column, known = columns[group], valid[group]
        equal = equal_rows_start, equal_rows, rows
        table, table_end = table_start[group], table_start[group + 1]
        if table < table_end:
            tables = equal_table[table:table_end], region_table[table:table_end]
            _look_up(column, known, table_low[group], *tables, *equal, prefix)
        else:
            first, last = equal_start[group], equal_start[group + 1]
            _search(column, known, equal_values, first, last, cuts, *equal, prefix)
        for cut in range(1, cut_count + 2):
            for word in range(rows.shape[1]):
                prefix[cut, word] |= prefix[cut - 1, word]
        for each in range(range_start[group], range_start[group + 1]):
            row, low, high = range_rows[each], range_low[each], range_high[each]
            for word in range(rows.shape[1]):
                rows[row, word] |= prefix[high, word] & ~prefix[low, word]


@nb.njit(nogil=True, cache=True)
def _look_up(  # type: ignore[no-untyped-def]
    column, known, least, equal_table, region_table, equal_rows_start, equal_rows, rows, prefix
):
    """Set the bits of a column whose values are in tables; values beyond them count as the first or
    the last one there. Two short loops take half of the time of one that does both."""
    most = least + equal_table.shape[0] - 1
    for item in range(column.shape[0]):
        if known[item]:
            place = np.uint64(min(max(column[item], least), most) - least)
            region = np.uint64(region_table[place] + 1)
            prefix[region, item >> 6] |= ONE << (np.uint64(item) & LOW_BITS)
    for item in range(column.shape[0]):
        equal = equal_table[np.uint64(min(max(column[item], least), most) - least)]
        if equal >= 0 and known[item]:
            for each in range(equal_rows_start[equal], equal_rows_start[equal + 1]):
                rows[equal_rows[each], item >> 6] |= ONE << (np.uint64(item) & LOW_BITS)


@nb.njit(nogil=True, cache=True)
def _search(  # type: ignore[no-untyped-def]
    column, known, equal_values, first, last, cuts, equal_rows_start, equal_rows, rows, prefix
):
    """Set the bits of a column by two binary searches for each item."""
    for item in range(column.shape[0]):
        if not known[item]:
            continue
        value, word, bit = column[item], item >> 6, ONE << (np.uint64(item) & LOW_BITS)
        equal = first_not_less(equal_values, first, last, value)
        if equal < last and equal_values[equal] == value:
            for each in range(equal_rows_start[equal], equal_rows_start[equal + 1]):
                rows[equal_rows[each], word] |= bit
        cut = first_not_less(cuts, 0, cuts.shape[0], value)
        is_cut = cut < cuts.shape[0] and cuts[cut] == value
        prefix[2 * cut + is_cut + 1, word] |= bit


@nb.njit(nogil=True, cache=True)
def measure_spans(equal_start, equal_values, cut_start, cut_values, most, far, lows, sizes):  # type: ignore[no-untyped-def]
    """For each group the value below its least constant, and how many values there are from it to
    the one above the greatest; 0 where they are more than `most`."""
    for group in range(sizes.shape[0]):
        low, high, any_value = 0, 0, False
        for values, start in ((equal_values, equal_start), (cut_values, cut_start)):
            if start[group] < start[group + 1]:
                first, last = values[start[group]], values[start[group + 1] - 1]
                low = min(low, first) if any_value else first
                high = max(high, last) if any_value else last
                any_value = True
        if any_value and low > -far and high < far and high - low + 3 <= most:
            lows[group], sizes[group] = low - 1, high - low + 3


@nb.njit(nogil=True, cache=True)
def fill_tables(  # type: ignore[no-untyped-def]
    equal_start,
    equal_values,
    cut_start,
    cut_values,
    table_start,
    table_low,
    equal_table,
    region_table,
):
    """The tables of `fill_ordered_rows`: constants and values are walked side by side."""
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


@nb.njit(nogil=True, cache=True)
def fill_derived_rows(first, operators, operand_start, operands, rows):  # type: ignore[no-untyped-def]
    """The rows that are made of others, in order: each only of those before it."""
    for at in range(operators.shape[0]):
        row, start, end = first + at, operand_start[at], operand_start[at + 1]
        for word in range(rows.shape[1]):
            value = rows[operands[start], word]
            if operators[at] == NOT:
                value = ~value
            for each in range(start + 1, end):
                if operators[at] == AND:
                    value &= rows[operands[each], word]
                else:
                    value |= rows[operands[each], word]
            rows[row, word] = value
