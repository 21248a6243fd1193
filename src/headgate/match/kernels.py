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
        table_size = table_start[group + 1] - table_start[group]
        prefix[: cut_count + 2] = 0
        for item in range(item_count):
            if not valid[group, item]:
                continue
            value = columns[group, item]
            word, bit = item >> 6, _ONE << (np.uint64(item) & _63)
            if table_low[group] <= value < table_low[group] + table_size:
                place = table_start[group] + np.int64(value - table_low[group])
                equal, region = equal_table[place], region_table[place]
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
def hash_of(data, start, end):  # type: ignore[no-untyped-def]
    """A hash of the bytes data[start:end] (FNV-1a, its high bits mixed into the low ones)."""
    mixed = np.uint64(0xCBF29CE484222325)
    for at in range(start, end):
        mixed = (mixed ^ np.uint64(data[at])) * np.uint64(0x100000001B3)
    return mixed ^ (mixed >> np.uint64(32))


@nb.njit(nogil=True, cache=True)
def fill_word_rows(text_start, data, slots, word_start, word_bytes, word_rows, rows):  # type: ignore[no-untyped-def]
    """Set the bits of the words that occur in each text: item i has data[text_start[i] : …[i + 1]].

    A word is a run of ASCII letters and digits, compared in lower case. Texts with other bytes are
    left to the caller: they are true in the answer.
    """
    item_count, mask = text_start.shape[0] - 1, slots.shape[0] - 1
    foreign = np.zeros(item_count, np.bool_)
    lower = np.empty(256, np.uint8)
    for item in range(item_count):
        at, end = text_start[item], text_start[item + 1]
        for each in range(at, end):
            if data[each] >= 128:
                foreign[item] = True
                break
        if foreign[item]:
            continue
        while at < end:
            length, mixed = 0, np.uint64(0xCBF29CE484222325)
            while at < end:
                byte = data[at]
                if 65 <= byte <= 90:
                    byte += np.uint8(32)
                if not (97 <= byte <= 122 or 48 <= byte <= 57):
                    break
                if length < 256:
                    lower[length] = byte
                mixed = (mixed ^ np.uint64(byte)) * np.uint64(0x100000001B3)
                length += 1
                at += 1
            at += 1
            if 0 < length <= 256:
                slot = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))
                while slots[slot] >= 0:
                    word = slots[slot]
                    if _is_word(lower, length, word_bytes, word_start[word], word_start[word + 1]):
                        rows[word_rows[word], item >> 6] |= _ONE << (np.uint64(item) & _63)
                        break
                    slot = (slot + 1) & mask
            elif length > 256:
                foreign[item] = True
    return foreign


@nb.njit(nogil=True, cache=True)
def _is_word(found, length, data, start, end):  # type: ignore[no-untyped-def]
    if end - start != length:
        return False
    same = True
    for at in range(length):
        same &= found[at] == data[start + at]
    return same


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
def count_ends(node_row, node_depth, node_skip, node_end, rows, stack, counts):  # type: ignore[no-untyped-def]
    """counts[end]: how many items satisfy the conjunction that ends there.

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
        if node_end[node] >= 0:
            total = np.uint64(0)
            for word in range(word_count):
                total += popcount(stack[depth + 1, word])
            counts[node_end[node]] = total
        node += 1


@nb.njit(nogil=True, cache=True)
def list_matches(  # type: ignore[no-untyped-def]
    node_row, node_depth, node_skip, node_end, end_start, subscriptions, rows, stack, items, owners
):
    """The matches as pairs, in one pass: items[n] matches owners[n]. How many there are, or −1 if
    they are more than there is room for."""
    node, node_count, word_count = 0, node_row.shape[0], rows.shape[1]
    used, room = 0, items.shape[0]
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
        end = node_end[node]
        if end >= 0:
            for word in range(word_count):
                left = stack[depth + 1, word]
                while left != 0:
                    lowest = left & (~left + _ONE)
                    left ^= lowest
                    if used + end_start[end + 1] - end_start[end] > room:
                        return -1
                    for each in range(end_start[end], end_start[end + 1]):
                        items[used] = (word << 6) + np.int64(popcount(lowest - _ONE))
                        owners[used] = subscriptions[each]
                        used += 1
        node += 1
    return used


@nb.njit(nogil=True, cache=True)
def write_pairs(items, owners, used, ends, write):  # type: ignore[no-untyped-def]
    """Pairs in the form of `write_matches`."""
    for at in range(used):
        item = items[at]
        write[ends[item]] = owners[at]
        ends[item] += 1


@nb.njit(nogil=True, cache=True)
def count_matches(  # type: ignore[no-untyped-def]
    node_row, node_depth, node_skip, node_end, end_start, rows, stack, planes, counts
):
    """counts[item]: how many subscriptions the item matches.

    The counters of all items are kept bit by bit: planes[p] has bit p of each. Adding a row to them
    is a few operations on words, however many items it has, as most carries end early.
    """
    node, node_count, word_count = 0, node_row.shape[0], rows.shape[1]
    carry = np.empty(word_count, np.uint64)
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
        end = node_end[node]
        if end >= 0:
            share, plane = end_start[end + 1] - end_start[end], 0
            while share > 0:
                if share & 1:
                    carry[:] = stack[depth + 1]
                    _add(planes, plane, carry)
                share >>= 1
                plane += 1
        node += 1
    for item in range(counts.shape[0]):
        word, bit = item >> 6, np.uint64(item) & _63
        for plane in range(planes.shape[0]):
            counts[item] += np.int64((planes[plane, word] >> bit) & _ONE) << plane


@nb.njit(nogil=True, cache=True)
def _add(planes, plane, carry):  # type: ignore[no-untyped-def]
    """Add 2^plane to the counters of the items in `carry`, which is used up."""
    carried = _ONE
    while carried != 0:
        carried = np.uint64(0)
        for word in range(planes.shape[1]):
            before, added = planes[plane, word], carry[word]
            planes[plane, word] = before ^ added
            carry[word] = before & added
            carried |= before & added
        plane += 1


@nb.njit(nogil=True, cache=True)
def transpose(bits):  # type: ignore[no-untyped-def]
    """A square of 64 × 64 bits, mirrored: bit i of word k becomes bit k of word i."""
    width, mask = 32, np.uint64(0x00000000FFFFFFFF)
    while width > 0:
        shift = np.uint64(width)
        for block in range(0, 64, 2 * width):
            for at in range(block, block + width):
                swapped = ((bits[at] >> shift) ^ bits[at + width]) & mask
                bits[at + width] ^= swapped
                bits[at] ^= swapped << shift
        width >>= 1
        mask ^= mask << np.uint64(width)


@nb.njit(nogil=True, cache=True)
def _write_square(waiting, owners, used, ends, write):  # type: ignore[no-untyped-def]
    """Write up to 64 subscriptions, whose rows are waiting, to the items that match them."""
    bits = np.empty(64, np.uint64)
    for word in range(waiting.shape[1]):
        found = np.uint64(0)
        for at in range(64):
            bits[at] = waiting[at, word] if at < used else np.uint64(0)
            found |= bits[at]
        if found == 0:
            continue
        transpose(bits)
        for each in range(64):
            left, item = bits[each], (word << 6) + each
            if left != 0:
                at = ends[item]
                while left != 0:
                    lowest = left & (~left + _ONE)
                    write[at] = owners[popcount(lowest - _ONE)]
                    left ^= lowest
                    at += 1
                ends[item] = at


@nb.njit(nogil=True, cache=True)
def write_matches(  # type: ignore[no-untyped-def]
    node_row, node_depth, node_skip, node_end, end_start, subscriptions, rows, stack, ends, write
):
    """The subscriptions of each item, one after the other: those of item i begin at ends[i] in
    `write`, and ends[i] moves to where they end.

    The forest yields items by subscription; wanted are subscriptions by item. Writing each match
    where it belongs would touch thousands of places in turn. So the rows of 64 subscriptions wait
    until they fill squares of 64 × 64 bits, which are transposed and written item by item.
    """
    node, node_count, word_count = 0, node_row.shape[0], rows.shape[1]
    waiting, owners, used = np.empty((64, word_count), np.uint64), np.empty(64, np.int32), 0
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
        end = node_end[node]
        if end >= 0:
            for each in range(end_start[end], end_start[end + 1]):
                waiting[used] = stack[depth + 1]
                owners[used] = subscriptions[each]
                used += 1
                if used == 64:
                    _write_square(waiting, owners, used, ends, write)
                    used = 0
        node += 1
    _write_square(waiting, owners, used, ends, write)


@nb.njit(nogil=True, cache=True)
def write_bitmaps(node_row, node_depth, node_skip, node_end, rows, stack, bitmaps):  # type: ignore[no-untyped-def]
    """bitmaps[end]: the items that satisfy the conjunction that ends there."""
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
        if node_end[node] >= 0:
            bitmaps[node_end[node]] = stack[depth + 1]
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
