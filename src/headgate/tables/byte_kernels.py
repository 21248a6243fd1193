"""The hot loops over byte strings: hashing, comparing, and giving them codes (`byte_codes.py`)."""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.match.text_kernels import hash_byte, hash_end
from headgate.match.texts import Bytes
from headgate.tables.box_tree_kernels import Longs


class Codes(NamedTuple):
    """Strings that have a code, and the slots in which they are looked up."""

    slots: Longs
    start: Longs
    data: Bytes
    used: Longs  # [1]: how many have a code
    mix: np.uint64


@nb.njit(nogil=True, cache=True)
def hash_of(data, begin, end, mix):  # type: ignore[no-untyped-def]
    mixed = mix
    for at in range(begin, end):
        mixed = hash_byte(mixed, data[at])
    return hash_end(mixed)


@nb.njit(nogil=True, cache=True)
def are_equal(one, first, last, other, begin, end):  # type: ignore[no-untyped-def]
    """Whether one[first:last] and other[begin:end] have the same bytes."""
    if last - first != end - begin:
        return False
    for at in range(last - first):  # noqa: SIM110 - Numba compiles loops, generators slowly
        if one[first + at] != other[begin + at]:
            return False
    return True


@nb.njit(nogil=True, cache=True)
def intern(codes, data, begin, end):  # type: ignore[no-untyped-def]
    """The code of one string; there is room for a new one."""
    mask = codes.slots.shape[0] - 1
    slot = np.int64(hash_of(data, begin, end, codes.mix) & np.uint64(mask))
    while codes.slots[slot] >= 0:
        code = codes.slots[slot]
        if are_equal(codes.data, codes.start[code], codes.start[code + 1], data, begin, end):
            return code
        slot = (slot + 1) & mask
    code = codes.used[0]
    first = codes.start[code]
    for at in range(end - begin):
        codes.data[first + at] = data[begin + at]
    codes.start[code + 1] = first + end - begin
    codes.slots[slot] = code
    codes.used[0] += 1
    return code


@nb.njit(nogil=True, cache=True)
def intern_all(codes, start, data, out):  # type: ignore[no-untyped-def]
    for at in range(start.shape[0] - 1):
        out[at] = intern(codes, data, start[at], start[at + 1])


@nb.njit(nogil=True, cache=True)
def fill(codes):  # type: ignore[no-untyped-def]
    """Put all codes into slots that are free."""
    mask = codes.slots.shape[0] - 1
    for code in range(codes.used[0]):
        hashed = hash_of(codes.data, codes.start[code], codes.start[code + 1], codes.mix)
        slot = np.int64(hashed & np.uint64(mask))
        while codes.slots[slot] >= 0:
            slot = (slot + 1) & mask
        codes.slots[slot] = code


@nb.njit(nogil=True, cache=True)
def copy_pieces(begin, data, start, out):  # type: ignore[no-untyped-def]
    """Put pieces of `data` one behind the other: each begins at `begin`, and ends up at `start`."""
    for at in range(begin.shape[0]):
        first, size = begin[at], start[at + 1] - start[at]
        for place in range(size):
            out[start[at] + place] = data[first + place]
