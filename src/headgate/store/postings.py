"""Postings: for each key the rows of a file that have it. The index of a segment (segment.py).

    keys    int64 [k], ascending         3          17                 250
    start   int64 [k + 1]                0          2                  3            6
    data    uint8 [bytes]                5 · 1      0                  128 1 · 2 …
                                         rows 5, 6  row 0              rows 128, 130 …

The rows of a key are ascending. The first is stored as it is, each further one as the difference
to the one before it, in base 128 with the lowest digits first (LEB128): one byte for a difference
below 128. With 12,000 of 200,000 feeds for each item a posting takes one byte; with 13 feeds for
each item it takes one to three, and a key 16 more.

`build_postings` takes pairs that are ordered by row, as matching gives them. Where keys are dense,
it sorts them by counting, in three passes over the pairs; else it sorts codes of key and row.

`merge_postings` appends the rows of several files: only the first difference of a list changes,
all other bytes are copied.

Rejected: bitmaps (Roaring) need 8 kB for a feed with rows in one block of 65,536 or a container for
a handful of rows; lists of 32-bit numbers take four times the space; a skip list within a key's
rows saves decoding, which takes about a nanosecond a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.match.bit_rows import Longs

Bytes = npt.NDArray[np.uint8]

DENSE_SHARE = 16
"""Keys are sorted by counting if there are at least so many pairs per 100 possible keys."""


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    keys: Longs
    start: Longs
    data: Bytes

    def __len__(self) -> int:
        return self.keys.size

    def rows(self, key: int, *, first: int = 0) -> Longs:
        """The rows of a key, ascending, from row `first` on."""
        rows: Longs = decode(self._list(key))
        return rows[int(np.searchsorted(rows, first)) :]

    def count(self, key: int) -> int:
        """How many rows a key has. Only the last digit of a number is below 128."""
        return int(np.count_nonzero(self._list(key) < 128))

    def _list(self, key: int) -> Bytes:
        place = int(np.searchsorted(self.keys, key))
        if place == self.keys.size or self.keys[place] != key:
            return np.zeros(0, np.uint8)
        return self.data[self.start[place] : self.start[place + 1]]

    def keys_of(self, row: int) -> Longs:
        """The keys that have a row, ascending. It reads all postings."""
        has_row = np.zeros(self.keys.size, np.bool_)
        find_row(self.start, self.data, row, has_row)
        return self.keys[has_row]

    def counts(self) -> Longs:
        """How many rows each key has."""
        counts = np.zeros(self.keys.size, np.int64)
        count_rows(self.start, self.data, counts)
        return counts

    def counts_from(self, first: int, row_count: int) -> tuple[Longs, Longs]:
        """How many rows from `first` on each key has, and how many keys each of these rows has. It
        reads all postings once."""
        by_key = np.zeros(self.keys.size, np.int64)
        by_row = np.zeros(row_count - first, np.int64)
        count_pairs(self.start, self.data, first, by_key, by_row)
        return by_key, by_row

    def pairs(self) -> tuple[Longs, Longs]:
        """All keys and rows, ordered by key, then by row."""
        return np.repeat(self.keys, self.counts()), decode_all(self.start, self.data)


def no_postings() -> Postings:
    return Postings(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.uint8))


def build_postings(keys: npt.NDArray[np.integer], rows: npt.NDArray[np.integer]) -> Postings:
    """The postings of pairs (keys[n], rows[n]), which are ordered by row; a pair occurs once."""
    if not keys.size:
        return no_postings()
    highest = int(keys.max())
    if int(keys.min()) >= 0 and highest < 100 * keys.size // DENSE_SHARE:
        return _by_counting(keys, rows, highest + 1)
    order = np.argsort(keys, kind="stable")
    distinct, first = np.unique(keys[order], return_index=True)
    bounds = np.append(first, keys.size).astype(np.int64)
    sorted_rows = rows[order].astype(np.int64)
    start = np.zeros(bounds.size, np.int64)
    measure_sorted(bounds, sorted_rows, start)
    data = np.empty(int(start[-1]), np.uint8)
    write_sorted(bounds, sorted_rows, start, data)
    return Postings(distinct.astype(np.int64), start, data)


def _by_counting(
    keys: npt.NDArray[np.integer], rows: npt.NDArray[np.integer], key_count: int
) -> Postings:
    size, last = np.zeros(key_count, np.int32), np.full(key_count, -1, np.int32)
    measure_pairs(keys, rows, size, last)
    present = np.flatnonzero(size)
    start = np.zeros(present.size + 1, np.int64)
    np.cumsum(size[present], out=start[1:])
    place = np.zeros(key_count, np.int64)
    place[present] = start[:-1]
    data = np.empty(int(start[-1]), np.uint8)
    last[:] = -1
    write_pairs(keys, rows, place, last, data)
    return Postings(present.astype(np.int64), start, data)


def merge_postings(parts: Sequence[Postings], offsets: Sequence[int]) -> Postings:
    """The postings of files that are put one behind the other: the rows of parts[n] begin at
    offsets[n], and those of part n + 1 lie behind those of part n."""
    if not parts:
        return no_postings()
    keys = np.concatenate([part.keys for part in parts])
    part_of = np.repeat(np.arange(len(parts)), [part.keys.size for part in parts])
    begins = np.concatenate([part.start[:-1] for part in parts])
    ends = np.concatenate([part.start[1:] for part in parts])
    shift = np.cumsum([0, *(part.data.size for part in parts[:-1])])[part_of]
    data = np.concatenate([part.data for part in parts])
    order = np.argsort(keys, kind="stable")  # the parts of a key stay in their order
    begin, end = (begins + shift)[order], (ends + shift)[order]
    offset = np.asarray(offsets, np.int64)[part_of[order]]
    distinct, first = np.unique(keys[order], return_index=True)
    bounds = np.append(first, keys.size).astype(np.int64)
    start = np.zeros(bounds.size, np.int64)
    # Each list grows by at most the digits of its first difference.
    merged = np.empty(data.size + 5 * keys.size, np.uint8)
    used = append_lists(bounds, begin, end, offset, data, start, merged)
    return Postings(distinct.astype(np.int64), start, merged[:used].copy())


# --- kernels --------------------------------------------------------------------------------------


@nb.njit(nogil=True, cache=True, inline="always")
def _length(value):  # type: ignore[no-untyped-def]
    """The number of base-128 digits of a value from 0 on."""
    length = 1
    while value > 127:
        value >>= 7
        length += 1
    return length


@nb.njit(nogil=True, cache=True, inline="always")
def _put(value, place, data):  # type: ignore[no-untyped-def]
    """Write the digits of a value at a place; the place behind them."""
    while value > 127:
        data[place] = (value & 127) | 128
        value >>= 7
        place += 1
    data[place] = value
    return place + 1


@nb.njit(nogil=True, cache=True, inline="always")
def next_number(data, place):  # type: ignore[no-untyped-def]
    """The number whose digits begin at a place, and the place behind them."""
    value, shift = np.int64(0), 0
    while data[place] > 127:
        value |= np.int64(data[place] & 127) << shift
        shift += 7
        place += 1
    return value | np.int64(data[place]) << shift, place + 1


@nb.njit(nogil=True, cache=True)
def measure_pairs(keys, rows, size, last):  # type: ignore[no-untyped-def]
    """Out: size int32 [keys], the bytes of each key's list; last int32 [keys], −1 before.
    In: keys and rows [pairs], ordered by row."""
    for pair in range(keys.shape[0]):
        key, row = keys[pair], rows[pair]
        before = last[key]
        size[key] += _length(row - before if before >= 0 else row)
        last[key] = row


@nb.njit(nogil=True, cache=True)
def write_pairs(keys, rows, place, last, data):  # type: ignore[no-untyped-def]
    """Out: data uint8. In: pairs as above; place int64 [keys], where each key's list begins, and
    last int32 [keys], −1; both are changed."""
    for pair in range(keys.shape[0]):
        key, row = keys[pair], rows[pair]
        before = last[key]
        place[key] = _put(row - before if before >= 0 else row, place[key], data)
        last[key] = row


@nb.njit(nogil=True, cache=True)
def measure_sorted(bounds, rows, start):  # type: ignore[no-untyped-def]
    """Out: start int64 [k + 1]. In: key n has rows[bounds[n] : bounds[n + 1]]."""
    for key in range(bounds.shape[0] - 1):
        size, before = 0, 0
        for place in range(bounds[key], bounds[key + 1]):
            size += _length(rows[place] - before)
            before = rows[place]
        start[key + 1] = start[key] + size


@nb.njit(nogil=True, cache=True)
def write_sorted(bounds, rows, start, data):  # type: ignore[no-untyped-def]
    """Out: data uint8. In: as above."""
    for key in range(bounds.shape[0] - 1):
        place, before = start[key], 0
        for index in range(bounds[key], bounds[key + 1]):
            place = _put(rows[index] - before, place, data)
            before = rows[index]


@nb.njit(nogil=True, cache=True)
def decode_all(start, data):  # type: ignore[no-untyped-def]
    """The rows of all keys, int64, one list after the other."""
    count = 0
    for place in range(data.shape[0]):
        count += data[place] < 128
    rows, used = np.empty(count, np.int64), 0
    for key in range(start.shape[0] - 1):
        row, place = np.int64(0), start[key]
        while place < start[key + 1]:
            difference, place = next_number(data, place)
            row += difference
            rows[used] = row
            used += 1
    return rows


@nb.njit(nogil=True, cache=True)
def decode(data):  # type: ignore[no-untyped-def]
    """The rows of one list, int64."""
    bounds = np.array([0, data.shape[0]])
    return decode_all(bounds, data)


@nb.njit(nogil=True, cache=True)
def count_rows(start, data, counts):  # type: ignore[no-untyped-def]
    """Out: counts int64 [k], zero before: how many rows each key has."""
    for key in range(counts.shape[0]):
        for place in range(start[key], start[key + 1]):
            counts[key] += data[place] < 128


@nb.njit(nogil=True, cache=True)
def count_pairs(start, data, first, by_key, by_row):  # type: ignore[no-untyped-def]
    """Out: by_key int64 [k] and by_row int64 [rows from `first` on], zero before: the pairs of each
    key and of each row. Rows that are not in by_row are left out."""
    for key in range(by_key.shape[0]):
        row, place = np.int64(0), start[key]
        while place < start[key + 1]:
            difference, place = next_number(data, place)
            row += difference
            if first <= row < first + by_row.shape[0]:
                by_key[key] += 1
                by_row[row - first] += 1


@nb.njit(nogil=True, cache=True)
def find_row(start, data, row, has_row):  # type: ignore[no-untyped-def]
    """Out: has_row bool [k], false before: the keys whose list has the row."""
    for key in range(has_row.shape[0]):
        reached, place = np.int64(0), start[key]
        while place < start[key + 1]:
            difference, place = next_number(data, place)
            reached += difference
            if reached >= row:
                has_row[key] = reached == row
                break


@nb.njit(nogil=True, cache=True)
def keys_of_rows(keys, start, data, wanted):  # type: ignore[no-untyped-def]
    """Out: keys and rows, int64 [pairs], of the postings whose rows are wanted.
    In: the arrays of postings; wanted bool [rows]."""
    count = 0
    for fill in range(2):
        found_keys = np.empty(count, np.int64)
        found_rows = np.empty(count, np.int64)
        count = 0
        for key in range(keys.shape[0]):
            row, place = np.int64(0), start[key]
            while place < start[key + 1]:
                difference, place = next_number(data, place)
                row += difference
                if row < wanted.shape[0] and wanted[row]:
                    if fill:
                        found_keys[count] = keys[key]
                        found_rows[count] = row
                    count += 1
    return found_keys, found_rows


@nb.njit(nogil=True, cache=True)
def append_lists(bounds, begin, end, offset, data, start, merged):  # type: ignore[no-untyped-def]
    """Out: start int64 [k + 1], merged uint8; how many of its bytes are used. In: key n has the
    lists bounds[n] : bounds[n + 1]; list i is data[begin[i] : end[i]], and its rows begin at
    offset[i] (int64 each)."""
    used = np.int64(0)
    for key in range(bounds.shape[0] - 1):
        reached = np.int64(0)
        for index in range(bounds[key], bounds[key + 1]):
            first, place = next_number(data, begin[index])
            row = offset[index] + first
            used = _put(row - reached, used, merged)
            reached = row
            # The other differences stay as they are; their sum is needed for the next list.
            value, shift = np.int64(0), 0
            for rest in range(place, end[index]):
                byte = data[rest]
                merged[used] = byte
                used += 1
                if byte > 127:
                    value |= np.int64(byte & 127) << shift
                    shift += 7
                else:
                    reached += value | np.int64(byte) << shift
                    value, shift = np.int64(0), 0
        start[key + 1] = used
    return used
