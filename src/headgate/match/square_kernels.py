"""Squares of 64 × 64 bits, mirrored: the items of a subscription become subscriptions of an item.

    rows of subscriptions, a bit for each item        a bit for each subscription, by item
        rock       0 1 0 0 1 …                            item 0    0 1 …    concert
        concert    1 1 0 0 0 …                            item 1    1 1 …    rock, concert

Writing each match where it belongs would touch the lists of thousands of items in turn. Here a list
is touched once for some squares that wait for each other.

Cost: 2.5 ns for a match where an item matches 1.5 % of the subscriptions or more; writing each by
itself took 11 ns. With so few an item has one match in a square, and what is left is a branch that
the processor cannot foresee: where an item's bits end.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.match.kernels import ONE, lowest_bit, popcount

SQUARES = 4
"""How many squares wait for each other. Measured: 1 to 8 squares, and 2 to 6 matches at once; these
two are the fastest or close to it."""
AT_ONCE = np.uint64(2)


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
def write_squares(waiting, owners, used, places, limits, write):  # type: ignore[no-untyped-def]
    """Write the owners of the first `used` waiting rows to the lists of the items that match them:
    that of item i goes on at places[i], which moves on, and ends at limits[i] at the latest."""
    bits = np.zeros((SQUARES, 64), np.uint64)
    for word in range(waiting.shape[1]):
        for square in range(SQUARES):
            for at in range(64):
                line = (square << 6) + at
                bits[square, at] = waiting[line, word] if line < used else np.uint64(0)
            transpose(bits[square])
        for each in range(64):
            item, count = (word << 6) + each, popcount(bits[0, each])
            for square in range(1, SQUARES):
                count += popcount(bits[square, each])
            if count == 0:
                continue
            begin = np.uint64(places[item])
            places[item] += np.int64(count)
            if begin + count + AT_ONCE <= np.uint64(limits[item]):
                _write_fast(bits, each, owners, begin, write)
            else:
                _write_exactly(bits, each, owners, begin, write)


@nb.njit(nogil=True, cache=True, inline="always")
def _write_fast(bits, each, owners, at, write):  # type: ignore[no-untyped-def]
    """Two at a time, whether or not there are so many: what is too much is written over by the
    item's next matches, and a branch that the processor cannot foresee is spared."""
    for square in range(SQUARES):
        left, base = bits[square, each], np.uint64(square << 6)
        next_at = at + popcount(left)
        while True:
            for step in range(AT_ONCE):
                write[at + np.uint64(step)] = owners[base + lowest_bit(left)]
                left &= left - ONE
            if left == 0:
                break
            at += AT_ONCE
        at = next_at


@nb.njit(nogil=True, cache=True, inline="always")
def _write_exactly(bits, each, owners, at, write):  # type: ignore[no-untyped-def]
    for square in range(SQUARES):
        left, base = bits[square, each], np.uint64(square << 6)
        while left != 0:
            write[at] = owners[base + lowest_bit(left)]
            left &= left - ONE
            at += ONE
