"""The hot loops, on flat arrays: free functions, compiled by Numba, without the GIL.

A *row* is the answer to one question for a batch of items: a bit for each item, 64 to a word. Rows
are the lines of one matrix, and a number stands for a row: atoms first, then derived rows.

    rows[a]      bit i of it: does item i satisfy atom a?
    stack[d]     while walking the forest: the items that satisfy the path down to depth d

Items beyond the batch's end are never set in `stack[0]`, so what a negation sets there is lost.
"""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

NOT, AND, OR = 0, 1, 2

_ONE = np.uint64(1)
_63 = np.uint64(63)


@nb.njit(nogil=True, cache=True, inline="always")
def popcount(word: np.uint64) -> np.uint64:  # LLVM knows this shape and makes one instruction of it
    word = word - ((word >> _ONE) & np.uint64(0x5555555555555555))
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
        prefix[: cut_count + 2] = 0
        for item in range(item_count):
            if not valid[group, item]:
                continue
            value = columns[group, item]
            word, bit = item >> 6, _ONE << (np.uint64(item) & _63)
            at = first_not_less(equal_values, equal_start[group], equal_start[group + 1], value)
            if at < equal_start[group + 1] and equal_values[at] == value:
                for each in range(equal_rows_start[at], equal_rows_start[at + 1]):
                    rows[equal_rows[each], word] |= bit
            at = first_not_less(cut_values, low_value, high_value, value)
            region = 2 * (at - low_value)
            if at < high_value and cut_values[at] == value:
                region += 1
            prefix[region + 1, word] |= bit
        for cut in range(1, cut_count + 2):
            for word in range(rows.shape[1]):
                prefix[cut, word] |= prefix[cut - 1, word]
        for each in range(range_start[group], range_start[group + 1]):
            row, low, high = range_rows[each], range_low[each], range_high[each]
            for word in range(rows.shape[1]):
                rows[row, word] |= prefix[high, word] & ~prefix[low, word]


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


@nb.njit(nogil=True, cache=True)
def count_nodes(node_row, node_depth, node_skip, is_end, rows, stack, counts):  # type: ignore[no-untyped-def]
    """counts[node]: how many items satisfy a conjunction that ends at the node.

    Nodes lie in depth-first order. Where no item is left, the whole subtree is skipped.
    """
    node, node_count, word_count = 0, node_row.shape[0], rows.shape[1]
    while node < node_count:
        depth, row = node_depth[node], node_row[node]
        found = np.uint64(0)
        for word in range(word_count):
            value = stack[depth, word] & rows[row, word]
            stack[depth + 1, word] = value
            found |= value
        if found == 0:
            node = node_skip[node]
            continue
        if is_end[node]:
            total = np.uint64(0)
            for word in range(word_count):
                total += popcount(stack[depth + 1, word])
            counts[node] = total
        node += 1


@nb.njit(nogil=True, cache=True)
def visit_ends(  # type: ignore[no-untyped-def]
    node_row, node_depth, node_skip, subscription_start, subscriptions, rows, stack, ends, write
):
    """For each item the subscriptions that it matches, in two passes over the forest.

    In the first pass `write` is empty, and ends[item] counts the item's matches. In the second it
    is where the item's matches begin in `write`, and moves to where they end.
    """
    node, node_count, word_count = 0, node_row.shape[0], rows.shape[1]
    writes = write.shape[0] > 0
    while node < node_count:
        depth, row = node_depth[node], node_row[node]
        found = np.uint64(0)
        for word in range(word_count):
            value = stack[depth, word] & rows[row, word]
            stack[depth + 1, word] = value
            found |= value
        if found == 0:
            node = node_skip[node]
            continue
        start, end = subscription_start[node], subscription_start[node + 1]
        if start < end:
            for word in range(word_count):
                left = stack[depth + 1, word]
                while left != 0:
                    lowest = left & (~left + _ONE)
                    item = (word << 6) + np.int64(popcount(lowest - _ONE))
                    left ^= lowest
                    at = ends[item]
                    if writes:
                        for each in range(start, end):
                            write[at] = subscriptions[each]
                            at += 1
                    else:
                        at += end - start
                    ends[item] = at
        node += 1


@nb.njit(nogil=True, cache=True)
def write_bitmaps(node_row, node_depth, node_skip, end_at, rows, stack, bitmaps):  # type: ignore[no-untyped-def]
    """bitmaps[end_at[node]]: the items that satisfy a conjunction that ends at the node."""
    node, node_count, word_count = 0, node_row.shape[0], rows.shape[1]
    while node < node_count:
        depth, row = node_depth[node], node_row[node]
        found = np.uint64(0)
        for word in range(word_count):
            value = stack[depth, word] & rows[row, word]
            stack[depth + 1, word] = value
            found |= value
        if found == 0:
            node = node_skip[node]
            continue
        if end_at[node] >= 0:
            bitmaps[end_at[node]] = stack[depth + 1]
        node += 1


@nb.njit(nogil=True, cache=True)
def skip_pointers(node_depth):  # type: ignore[no-untyped-def]
    """For each node the next one that is not below it."""
    count = node_depth.shape[0]
    skip = np.empty(count, np.int32)
    nearest = np.full(node_depth.max() + 2 if count else 1, count, np.int32)
    for node in range(count - 1, -1, -1):
        depth = node_depth[node]
        # Of the nodes behind, the nearest at this depth or above; deeper ones are below this node.
        skip[node] = nearest[depth]
        nearest[depth] = node
        for deeper in range(depth + 1, nearest.shape[0]):
            nearest[deeper] = node
    return skip
