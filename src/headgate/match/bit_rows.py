"""Rows of bits: how a batch of items is evaluated, 64 items at a time, by Numba without the GIL.

    rows[r]      uint64 [words]: bit i of the row says whether item i satisfies condition r
    rows         uint64 [rows, words]: the atoms first, then derived rows (`or`, `not`, `and`)

This file has the operations on words and rows that all kernels share, in four parts:

    popcount, lowest_bit, first_not_less     single words, and a binary search
    fill_derived_rows                        rows that are computed from other rows
    add_eight, read_counters                 counts: how many rows have the bit of each item
    transpose, write_squares                 lists: which rows have the bit of each item

A negation also sets bits beyond the batch's end; a walk (walks.py) starts from the items that
exist.
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
"""Mask for an item's number: its place within a word."""


@nb.njit(nogil=True, cache=True, inline="always")
def popcount(word: np.uint64) -> np.uint64:  # LLVM makes one instruction of this form
    word = word - ((word >> ONE) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@nb.njit(nogil=True, cache=True, inline="always")
def lowest_bit(word):  # type: ignore[no-untyped-def]
    """The place of the lowest bit that is set; LLVM makes one instruction of this form. The result
    is unsigned, so that Numba does not test whether an index made of it is negative."""
    return popcount(~word & (word - ONE)) & LOW_BITS


@nb.njit(nogil=True, cache=True)
def first_not_less(values, start, end, value):  # type: ignore[no-untyped-def]
    """The first position in values[start:end], which is sorted, whose value is at least `value`."""
    low, length = start, end - start
    while length > 0:
        half = length >> 1
        if values[low + half] < value:
            low += half + 1
            length -= half + 1
        else:
            length = half
    return low


@nb.njit(nogil=True, cache=True)
def fill_derived_rows(first, operators, operand_start, operands, rows):  # type: ignore[no-untyped-def]
    """Out: rows first, first + 1, …, each computed from rows before it.

    In: operators int32 [derived], operand_start int32 [derived + 1], operands int32, rows uint64
    [rows, words].
    """
    for derived in range(operators.shape[0]):
        row, start, end = first + derived, operand_start[derived], operand_start[derived + 1]
        for word in range(rows.shape[1]):
            value = rows[operands[start], word]
            if operators[derived] == NOT:
                value = ~value
            for operand in range(start + 1, end):
                if operators[derived] == AND:
                    value &= rows[operands[operand], word]
                else:
                    value |= rows[operands[operand], word]
            rows[row, word] = value


# Counters for all items of a batch at once, kept bit by bit: planes[p] has bit p of each counter.
#
#     planes[0]   1 0 1 1 …        item 0 was counted 5 times, item 1 twice, …
#     planes[1]   0 1 1 0 …
#     planes[2]   1 0 0 1 …
#
# Eight rows are added together by carry-save adders, 64 items at a time: three words become a sum
# and a carry in five operations. Only the carry of all eight runs through the higher planes, as far
# as it goes. Cost: 40 ns for a row of 4,096 items. Adding row by row, each of which runs as far as
# any of its items carries, took 120 to 280 ns.

PLANES = 32
"""A program has fewer than 2³¹ subscriptions."""


@nb.njit(nogil=True, cache=True, inline="always")
def _add(first, second, third):  # type: ignore[no-untyped-def]
    """The sum and the carry of three bits, for 64 of each at once."""
    both = first ^ second
    return both ^ third, (first & second) | (both & third)


@nb.njit(nogil=True, cache=True)
def add_eight(added, planes):  # type: ignore[no-untyped-def]
    """Add eight rows (uint64 [8, words], overwritten) to the counters (planes uint64 [PLANES,
    words])."""
    carried = np.uint64(0)
    for word in range(planes.shape[1]):
        ones, two_a = _add(planes[0, word], added[0, word], added[1, word])
        ones, two_b = _add(ones, added[2, word], added[3, word])
        twos, four_a = _add(planes[1, word], two_a, two_b)
        ones, two_a = _add(ones, added[4, word], added[5, word])
        ones, two_b = _add(ones, added[6, word], added[7, word])
        twos, four_b = _add(twos, two_a, two_b)
        fours, eight = _add(planes[2, word], four_a, four_b)
        planes[0, word], planes[1, word], planes[2, word] = ones, twos, fours
        added[0, word] = eight
        carried |= eight
    plane = 3
    while carried != 0:
        carried = np.uint64(0)
        for word in range(planes.shape[1]):
            before, carry = planes[plane, word], added[0, word]
            planes[plane, word] = before ^ carry
            added[0, word] = before & carry
            carried |= before & carry
        plane += 1


@nb.njit(nogil=True, cache=True)
def read_counters(planes, counts):  # type: ignore[no-untyped-def]
    """Add the counter of each item to counts (int64 [items])."""
    for item in range(counts.shape[0]):
        word, bit = item >> 6, np.uint64(item) & LOW_BITS
        for plane in range(planes.shape[0]):
            counts[item] += np.int64((planes[plane, word] >> bit) & ONE) << plane


# Squares of 64 × 64 bits, transposed: the items of a subscription become subscriptions of an item.
#
#     rows of subscriptions, a bit for each item        a bit for each subscription, by item
#         rock       0 1 0 0 1 …                            item 0    0 1 …    concert
#         concert    1 1 0 0 0 …                            item 1    1 1 …    rock, concert
#
# Writing each match where it belongs would touch the lists of thousands of items in turn. Here each
# list is touched once for SQUARES squares. Cost: 2.5 ns for a match where an item matches 1.5 % of
# the subscriptions or more; writing each match by itself took 11 ns. With fewer matches an item has
# one match in a square, and the remaining cost is a branch that the processor cannot predict: where
# the bits of an item end.

SQUARES = 4
"""How many squares are written together. Of 1 to 8 squares and 2 to 6 matches at once, these two
were the fastest or close to it."""
AT_ONCE = np.uint64(2)


@nb.njit(nogil=True, cache=True)
def transpose(bits):  # type: ignore[no-untyped-def]
    """Transpose a square in place (uint64 [64]): bit i of word k becomes bit k of word i."""
    width, mask = 32, np.uint64(0x00000000FFFFFFFF)
    while width > 0:
        shift = np.uint64(width)
        for block in range(0, 64, 2 * width):
            for line in range(block, block + width):
                swapped = ((bits[line] >> shift) ^ bits[line + width]) & mask
                bits[line + width] ^= swapped
                bits[line] ^= swapped << shift
        width >>= 1
        mask ^= mask << np.uint64(width)


@nb.njit(nogil=True, cache=True)
def write_squares(waiting, names, places, limits, write):  # type: ignore[no-untyped-def]
    """Write the names of rows to the lists of the items that they match.

    waiting   uint64 [rows, words], at most 64 × SQUARES rows
    names     int32 [rows], the subscription of each row
    places    int64 [items], where the list of an item goes on; moves on behind what is written
    limits    int64 [items], where the list of an item ends at the latest
    write     int32, out: all lists
    """
    bits = np.zeros((SQUARES, 64), np.uint64)
    for word in range(waiting.shape[1]):
        for square in range(SQUARES):
            for column in range(64):
                line = (square << 6) + column
                is_used = line < names.shape[0]
                bits[square, column] = waiting[line, word] if is_used else np.uint64(0)
            transpose(bits[square])
        for bit in range(64):
            item, count = (word << 6) + bit, popcount(bits[0, bit])
            for square in range(1, SQUARES):
                count += popcount(bits[square, bit])
            if count == 0:
                continue
            begin = np.uint64(places[item])
            places[item] += np.int64(count)
            if begin + count + AT_ONCE <= np.uint64(limits[item]):
                _write_fast(bits, bit, names, begin, write)
            else:
                _write_exactly(bits, bit, names, begin, write)


@nb.njit(nogil=True, cache=True, inline="always")
def _write_fast(bits, line, names, place, write):  # type: ignore[no-untyped-def]
    """Write the names of one item two at a time, even if only one is left: the surplus is
    overwritten by the item's next matches, and an unpredictable branch is avoided."""
    for square in range(SQUARES):
        remaining, base = bits[square, line], np.uint64(square << 6)
        next_place = place + popcount(remaining)
        while True:
            for step in range(AT_ONCE):
                write[place + np.uint64(step)] = names[base + lowest_bit(remaining)]
                remaining &= remaining - ONE
            if remaining == 0:
                break
            place += AT_ONCE
        place = next_place


@nb.njit(nogil=True, cache=True, inline="always")
def _write_exactly(bits, line, names, place, write):  # type: ignore[no-untyped-def]
    for square in range(SQUARES):
        remaining, base = bits[square, line], np.uint64(square << 6)
        while remaining != 0:
            write[place] = names[base + lowest_bit(remaining)]
            remaining &= remaining - ONE
            place += ONE
