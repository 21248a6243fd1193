"""Kernels between columns and encoded rows (`row_format.py`), one attribute at a time.

A value is a tag (uint8) and its bytes; tag 0 is a missing value without bytes. `cursor` (int64,
[row]) is where the next value of each row is written or read; each kernel advances it. The `get`
kernels read bytes that may come from a file: they return False if a value would extend beyond its
row's end."""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.tables.key_bytes import MISSING

HASH_START = np.uint64(0xCBF29CE484222325)


@nb.njit(nogil=True, cache=True)
def put_words(tags, words, cursor, out):  # type: ignore[no-untyped-def]
    """Eight bytes for each value, the low ones first."""
    for row in range(tags.shape[0]):
        position = cursor[row]
        out[position] = tags[row]
        position += 1
        if tags[row] != MISSING:
            word = words[row]
            for _ in range(8):
                out[position] = np.uint8(word & np.uint64(255))
                word >>= np.uint64(8)
                position += 1
        cursor[row] = position


@nb.njit(nogil=True, cache=True)
def put_flags(tags, flags, cursor, out):  # type: ignore[no-untyped-def]
    for row in range(tags.shape[0]):
        position = cursor[row]
        out[position] = tags[row]
        position += 1
        if tags[row] != MISSING:
            out[position] = flags[row]
            position += 1
        cursor[row] = position


@nb.njit(nogil=True, cache=True)
def put_texts(tags, start, data, cursor, out):  # type: ignore[no-untyped-def]
    """The length, in four bytes, and then the bytes."""
    for row in range(tags.shape[0]):
        position = cursor[row]
        out[position] = tags[row]
        position += 1
        if tags[row] != MISSING:
            length = start[row + 1] - start[row]
            rest = length
            for _ in range(4):
                out[position] = np.uint8(rest & 255)
                rest >>= 8
                position += 1
            for place in range(start[row], start[row + 1]):
                out[position] = data[place]
                position += 1
        cursor[row] = position


@nb.njit(nogil=True, cache=True)
def get_words(data, ends, cursor, tags, words):  # type: ignore[no-untyped-def]
    for row in range(tags.shape[0]):
        position = cursor[row]
        if position >= ends[row]:
            return False
        tags[row], words[row] = data[position], np.uint64(0)
        position += 1
        if tags[row] != MISSING:
            if position + 8 > ends[row]:
                return False
            for place in range(8):
                words[row] |= np.uint64(data[position + place]) << np.uint64(8 * place)
            position += 8
        cursor[row] = position
    return True


@nb.njit(nogil=True, cache=True)
def get_flags(data, ends, cursor, tags, flags):  # type: ignore[no-untyped-def]
    for row in range(tags.shape[0]):
        position = cursor[row]
        if position + (2 if position < ends[row] and data[position] != MISSING else 1) > ends[row]:
            return False
        tags[row], flags[row] = data[position], False
        position += 1
        if tags[row] != MISSING:
            flags[row] = data[position] == 1
            position += 1
        cursor[row] = position
    return True


@nb.njit(nogil=True, cache=True)
def get_texts(data, ends, cursor, tags, begin, lengths):  # type: ignore[no-untyped-def]
    """Where each text lies, and how long it is."""
    for row in range(tags.shape[0]):
        position = cursor[row]
        if position >= ends[row]:
            return False
        tags[row], begin[row], lengths[row] = data[position], position + 1, 0
        position += 1
        if tags[row] != MISSING:
            if position + 4 > ends[row]:
                return False
            length = np.int64(0)
            for place in range(4):
                length |= np.int64(data[position + place]) << (8 * place)
            position += 4
            if length > ends[row] - position:
                return False
            begin[row], lengths[row] = position, length
            position += length
        cursor[row] = position
    return True


@nb.njit(nogil=True, cache=True)
def hash_rows(start, data, mix, out):  # type: ignore[no-untyped-def]
    """A hash of each row that is the same in every process."""
    for row in range(start.shape[0] - 1):
        mixed = mix
        for position in range(start[row], start[row + 1]):
            mixed = (mixed ^ np.uint64(data[position])) * np.uint64(0x100000001B3)
        out[row] = mixed ^ (mixed >> np.uint64(32))
