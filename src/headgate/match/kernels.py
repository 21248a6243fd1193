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
    table_low,  # [group]: the value that the tables begin with
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
    group_count, item_count = columns.shape
    for group in range(group_count):
        low_value, high_value = cut_start[group], cut_start[group + 1]
        cut_count = 2 * (high_value - low_value)
        table, table_size = table_start[group], table_start[group + 1] - table_start[group]
        least, most = table_low[group], table_low[group] + table_size
        prefix[: cut_count + 2] = 0
        for item in range(item_count):
            if not valid[group, item]:
                continue
            value = columns[group, item]
            word, bit = item >> 6, ONE << (np.uint64(item) & LOW_BITS)
            if least <= value < most:
                place = table + np.int64(value - least)
                equal, region = equal_table[place], region_table[place]
            elif table_size > 0:  # beyond all constants
                equal, region = -1, (0 if value < least else cut_count)
            else:
                equal = first_not_less(
                    equal_values, equal_start[group], equal_start[group + 1], value
                )
                if equal == equal_start[group + 1] or equal_values[equal] != value:
                    equal = -1
                cut = first_not_less(cut_values, low_value, high_value, value)
                region = 2 * (cut - low_value)
                if cut < high_value and cut_values[cut] == value:
                    region += 1
            if equal >= 0:
                for each in range(equal_rows_start[equal], equal_rows_start[equal + 1]):
                    rows[equal_rows[each], word] |= bit
            prefix[region + 1, word] |= bit
        for cut in range(1, cut_count + 2):
            for word in range(rows.shape[1]):
                prefix[cut, word] |= prefix[cut - 1, word]
        for each in range(range_start[group], range_start[group + 1]):
            row, low, high = range_rows[each], range_low[each], range_high[each]
            for word in range(rows.shape[1]):
                rows[row, word] |= prefix[high, word] & ~prefix[low, word]


@nb.njit(nogil=True, cache=True)
def measure_spans(equal_start, equal_values, cut_start, cut_values, most, far, lows, sizes):  # type: ignore[no-untyped-def]
    """For each group its least constant, and how many values there are from it to the greatest; 0
    where they are more than `most`."""
    for group in range(sizes.shape[0]):
        low, high, any_value = 0, 0, False
        for values, start in ((equal_values, equal_start), (cut_values, cut_start)):
            if start[group] < start[group + 1]:
                first, last = values[start[group]], values[start[group + 1] - 1]
                low = min(low, first) if any_value else first
                high = max(high, last) if any_value else last
                any_value = True
        if any_value and low > -far and high < far and high - low < most:
            lows[group], sizes[group] = low, high - low + 1


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
