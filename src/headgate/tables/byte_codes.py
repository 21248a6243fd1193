"""Small integer codes for byte strings: keys of rows, and join values.

    b"ACME" → 0    b"GOOG" → 1    b"IBM" → 2        code c is data[start[c] : start[c + 1]]
    slots  [−1, 1, −1, 0, 2, …]                     open addressing, at most half full

Invariant: equal strings have one code, different strings have different codes, and a code never
changes. Strings are compared byte by byte, so hash collisions do no harm. Publishers choose the
keys, so the hash is seeded by a secret of the process (match/vocabulary.py); codes and slots are
never written to a file.

Cost: about 30 ns for a short string, without a Python object. A string is never forgotten: the user
of the codes rebuilds them when most are no longer needed (`table_rows.py`).

Rejected: a Python dictionary, which needs an object per string and is filled one by one whenever a
state is restored.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.match.text_kernels import PROCESS_MIX, hash_byte, hash_end
from headgate.match.texts import Bytes, Texts
from headgate.tables.box_tree_kernels import Longs


class CodeTable(NamedTuple):
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


SLOTS_MIN = 64


class ByteCodes:
    def __init__(self) -> None:
        self._slots: Longs = np.full(SLOTS_MIN, -1, np.int64)
        self._start: Longs = np.zeros(SLOTS_MIN, np.int64)
        self._data: Bytes = np.zeros(SLOTS_MIN, np.uint8)
        self._count: Longs = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return int(self._count[0])

    @property
    def arrays(self) -> CodeTable:
        """Valid until the next `reserve`."""
        return CodeTable(self._slots, self._start, self._data, self._count, PROCESS_MIX)

    @property
    def texts(self) -> Texts:
        """All strings, by code."""
        count = len(self)
        return Texts(self._start[: count + 1], self._data[: self._start[count]])

    def reserve(self, texts: Texts) -> None:
        """Have room for all of these, new or not."""
        count = len(self)
        more = count + len(texts)
        if more + 1 > len(self._start):
            self._start = np.concatenate([self._start, np.zeros(more, np.int64)])
        bytes_ = int(self._start[count] + texts.start[-1] - texts.start[0])
        if bytes_ > len(self._data):
            self._data = np.concatenate([self._data, np.zeros(bytes_, np.uint8)])
        if 2 * more > len(self._slots):
            self._slots = np.full(1 << (2 * more).bit_length(), -1, np.int64)
            fill(self.arrays)

    def codes_of(self, texts: Texts) -> Longs:
        """The code of each string; those that have none get one."""
        self.reserve(texts)
        out = np.empty(len(texts), np.int64)
        intern_all(self.arrays, texts.start, texts.data, out)
        return out
