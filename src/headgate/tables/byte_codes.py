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
    for place in range(begin, end):
        mixed = hash_byte(mixed, data[place])
    return hash_end(mixed)


@nb.njit(nogil=True, cache=True)
def are_equal(left, first, last, right, begin, end):  # type: ignore[no-untyped-def]
    """Whether left[first:last] and right[begin:end] have the same bytes."""
    if last - first != end - begin:
        return False
    for place in range(last - first):  # noqa: SIM110 - Numba compiles loops, generators slowly
        if left[first + place] != right[begin + place]:
            return False
    return True


@nb.njit(nogil=True, cache=True)
def intern(codes, data, begin, end):  # type: ignore[no-untyped-def]
    """The code of a string; a new string gets the next code. The caller has reserved space."""
    mask = codes.slots.shape[0] - 1
    slot = np.int64(hash_of(data, begin, end, codes.mix) & np.uint64(mask))
    while codes.slots[slot] >= 0:
        code = codes.slots[slot]
        if are_equal(codes.data, codes.start[code], codes.start[code + 1], data, begin, end):
            return code
        slot = (slot + 1) & mask
    code = codes.used[0]
    first = codes.start[code]
    for place in range(end - begin):
        codes.data[first + place] = data[begin + place]
    codes.start[code + 1] = first + end - begin
    codes.slots[slot] = code
    codes.used[0] += 1
    return code


@nb.njit(nogil=True, cache=True)
def intern_all(codes, start, data, out):  # type: ignore[no-untyped-def]
    for row in range(start.shape[0] - 1):
        out[row] = intern(codes, data, start[row], start[row + 1])


@nb.njit(nogil=True, cache=True)
def fill(codes):  # type: ignore[no-untyped-def]
    """Insert all codes into empty slots."""
    mask = codes.slots.shape[0] - 1
    for code in range(codes.used[0]):
        hashed = hash_of(codes.data, codes.start[code], codes.start[code + 1], codes.mix)
        slot = np.int64(hashed & np.uint64(mask))
        while codes.slots[slot] >= 0:
            slot = (slot + 1) & mask
        codes.slots[slot] = code


@nb.njit(nogil=True, cache=True)
def copy_pieces(begin, data, start, out):  # type: ignore[no-untyped-def]
    """Copy each piece p of `data`, which begins at begin[p], to out[start[p] : start[p + 1]]."""
    for piece in range(begin.shape[0]):
        first, size = begin[piece], start[piece + 1] - start[piece]
        for place in range(size):
            out[start[piece] + place] = data[first + place]


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
        """Reserve space for all of these strings, whether new or not."""
        count = len(self)
        capacity = count + len(texts)
        if capacity + 1 > len(self._start):
            self._start = np.concatenate([self._start, np.zeros(capacity, np.int64)])
        byte_count = int(self._start[count] + texts.start[-1] - texts.start[0])
        if byte_count > len(self._data):
            self._data = np.concatenate([self._data, np.zeros(byte_count, np.uint8)])
        if 2 * capacity > len(self._slots):
            self._slots = np.full(1 << (2 * capacity).bit_length(), -1, np.int64)
            fill(self.arrays)

    def codes_of(self, texts: Texts) -> Longs:
        """The code of each string; new strings get new codes."""
        self.reserve(texts)
        out = np.empty(len(texts), np.int64)
        intern_all(self.arrays, texts.start, texts.data, out)
        return out
