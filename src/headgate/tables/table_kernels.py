"""Kernels on the rows of one table: the index by join value, and the effect of changes on rows.

**The composite index on (join attribute, selection attribute)** of [Select-Joins §3.1], as arrays:

    join value j      start[j]  size[j]  capacity[j]
    pool              … | s s s s s · · · | s s · · | …      slots, by value[s, 0], then number[s]

Rows with the same join value are adjacent, in the order of their first selection attribute (and of
their version numbers where it is equal, so that a restart makes the same order). So the rows that a
new tuple joins with are one piece of memory, and its neighbours are found by bisection. A full
piece moves to the end of the pool with twice its capacity; `compact` closes the gaps. An insertion
costs log n and a move of at most the rows with its join value. Rejected: a B-tree. A join value has
hundreds of rows, rarely more than ten thousand; moving 80 kB takes less time than two cache misses
per tree level.

**Changes.** `apply_to_rows` finds the row of each change by its key and writes what happens to it:

    change ──► key ──► code ──► slot_of_key[code] ──► INSERT, DELETE, REPLACE, or nothing
                                                      DELETE and INSERT if its join value differs

A changed row gets a new slot and a new version number. A change to equal values only extends the
row's expiry.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.match.texts import Bytes
from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.byte_codes import are_equal, intern
from headgate.tables.message_buffer import DELETE, INSERT, REPLACE

CAPACITY_MIN = 4


class RowIndex(NamedTuple):
    """The rows of one table by join value."""

    value: Floats  # [slot, selection attribute]
    number: Longs  # [slot]: version number, never used again
    start: Longs  # [join value]
    size: Longs
    capacity: Longs
    pool: Longs  # slots; start and size of each join value refer to it
    used: Longs  # [1]: how much of the pool is in use


@nb.njit(nogil=True, cache=True)
def value_at(index, place):  # type: ignore[no-untyped-def]
    return index.value[index.pool[place], 0]


@nb.njit(nogil=True, cache=True)
def first_at_least(index, join, value):  # type: ignore[no-untyped-def]
    """The first place in the join value's piece whose row has at least this first value."""
    low, length = index.start[join], index.size[join]
    while length > 0:
        half = length >> 1
        if index.value[index.pool[low + half], 0] < value:
            low += half + 1
            length -= half + 1
        else:
            length = half
    return low


@nb.njit(nogil=True, cache=True)
def space_to_insert(index, join):  # type: ignore[no-untyped-def]
    """The most places of the pool that one more row of this join value takes."""
    return max(CAPACITY_MIN, 2 * index.capacity[join])


@nb.njit(nogil=True, cache=True)
def insert(index, join, slot):  # type: ignore[no-untyped-def]
    """Insert a row into its piece; the pool has `space_to_insert` free places."""
    if index.size[join] == index.capacity[join]:
        target, start = index.used[0], index.start[join]
        for position in range(index.size[join]):
            index.pool[target + position] = index.pool[start + position]
        index.capacity[join] = space_to_insert(index, join)
        index.start[join] = target
        index.used[0] += index.capacity[join]
    place = first_at_least(index, join, index.value[slot, 0])
    end = index.start[join] + index.size[join]
    while place < end and index.value[index.pool[place], 0] == index.value[slot, 0]:
        place += 1
    for position in range(end, place, -1):
        index.pool[position] = index.pool[position - 1]
    index.pool[place] = slot
    index.size[join] += 1


@nb.njit(nogil=True, cache=True)
def remove(index, join, slot):  # type: ignore[no-untyped-def]
    """Remove a row from its piece; it must be in it."""
    place = first_at_least(index, join, index.value[slot, 0])
    while index.pool[place] != slot:
        place += 1
    index.size[join] -= 1
    for position in range(place, index.start[join] + index.size[join]):
        index.pool[position] = index.pool[position + 1]


@nb.njit(nogil=True, cache=True)
def compact_capacity(size):  # type: ignore[no-untyped-def]
    """The capacity that a piece of this size gets when it is moved: half as many again."""
    return max(CAPACITY_MIN, size + size // 2) if size > 0 else 0


@nb.njit(nogil=True, cache=True)
def compact_places(sizes):  # type: ignore[no-untyped-def]
    """The number of places that all pieces take after `compact`."""
    places = 0
    for size in sizes:
        places += compact_capacity(size)
    return places


@nb.njit(nogil=True, cache=True)
def compact(index, pool):  # type: ignore[no-untyped-def]
    """Move all pieces into another pool, without gaps; it has at least `compact_places`."""
    used = 0
    for join in range(index.start.shape[0]):
        start, size = index.start[join], index.size[join]
        for position in range(size):
            pool[used + position] = index.pool[start + position]
        index.start[join] = used
        index.capacity[join] = compact_capacity(size)
        used += index.capacity[join]
    index.used[0] = used


SLOT_NONE = -1


class RowArrays(NamedTuple):
    """Rows of one table by slot, for kernels that write them."""

    value: Floats  # [slot, selection attribute]
    number: Longs
    key: Longs  # code of the key
    join: Longs  # code of the join value
    until_s: Floats
    payload_start: Longs
    payload_bytes: Longs
    body_bytes: Longs  # how much of the payload is compared
    payload: Bytes  # all payloads, in any order
    payload_used: Longs  # [1]
    slot_of_key: Longs  # [code of a key]
    free: Longs  # slots to reuse
    free_count: Longs  # [1]
    gone: Longs  # slots of deleted rows, free after this batch
    gone_count: Longs  # [1]
    used: Longs  # [1]: slots ever used


class ChangeArrays(NamedTuple):
    """The columns of changes (`changes.py`)."""

    side: npt.NDArray[np.int8]
    gone: npt.NDArray[np.bool_]
    key_start: Longs
    key_data: Bytes
    join_start: Longs
    join_data: Bytes
    payload_start: Longs
    payload_data: Bytes
    body_bytes: Longs  # how much of each payload is compared
    values: Floats
    until_s: Floats


@nb.njit(nogil=True, cache=True)
def put_line(lines, line, kind, side, join, new, old):  # type: ignore[no-untyped-def]
    lines[line, 0], lines[line, 1], lines[line, 2] = kind, side, join
    lines[line, 3], lines[line, 4] = new, old
    return line + 1


@nb.njit(nogil=True, cache=True)
def release(rows, slot):  # type: ignore[no-untyped-def]
    """Mark the slot of a deleted row: it is reused from the next batch on."""
    rows.gone[rows.gone_count[0]] = slot
    rows.gone_count[0] += 1
    rows.until_s[slot] = np.inf


@nb.njit(nogil=True, cache=True)
def is_unchanged(rows, slot, changes, change):  # type: ignore[no-untyped-def]
    """Whether a change has the same values and payload body as the row."""
    for d in range(rows.value.shape[1]):
        if rows.value[slot, d] != changes.values[change, d]:
            return False
    begin, first = rows.payload_start[slot], changes.payload_start[change]
    end, last = begin + rows.body_bytes[slot], first + changes.body_bytes[change]
    return are_equal(rows.payload, begin, end, changes.payload_data, first, last)


@nb.njit(nogil=True, cache=True)
def put_row(rows, changes, change, key, join, number):  # type: ignore[no-untyped-def]
    """Write a new version of a row and return its slot; the index by join value is not updated."""
    if rows.free_count[0] > 0:
        rows.free_count[0] -= 1
        slot = rows.free[rows.free_count[0]]
    else:
        slot = rows.used[0]
        rows.used[0] += 1
    for d in range(rows.value.shape[1]):
        rows.value[slot, d] = changes.values[change, d]
    rows.number[slot], rows.key[slot], rows.join[slot] = number, key, join
    rows.until_s[slot] = changes.until_s[change]
    begin, end = changes.payload_start[change], changes.payload_start[change + 1]
    place = rows.payload_used[0]
    rows.payload[place : place + end - begin] = changes.payload_data[begin:end]
    rows.payload_start[slot], rows.payload_bytes[slot] = place, end - begin
    rows.body_bytes[slot] = changes.body_bytes[change]
    rows.payload_used[0] = place + end - begin
    rows.slot_of_key[key] = slot
    return slot


@nb.njit(nogil=True, cache=True)
def apply_to_rows(changes, tables, keys, joins, first_number, step, lines):  # type: ignore[no-untyped-def]
    """Apply changes to rows and write their effects to `lines` (int64, [line, 5]); return the
    number of lines and the next version number."""
    used, number = 0, first_number
    for change in range(changes.side.shape[0]):
        side = changes.side[change]
        rows, codes = tables[side], keys[side]
        begin, end = changes.key_start[change], changes.key_start[change + 1]
        key = intern(codes, changes.key_data, begin, end)
        old = rows.slot_of_key[key]
        if changes.gone[change]:
            if old != SLOT_NONE:
                rows.slot_of_key[key] = SLOT_NONE
                release(rows, old)
                used = put_line(lines, used, DELETE, side, rows.join[old], -1, old)
            continue
        begin, end = changes.join_start[change], changes.join_start[change + 1]
        join = intern(joins, changes.join_data, begin, end)
        stays = old != SLOT_NONE and rows.join[old] == join
        if stays and is_unchanged(rows, old, changes, change):
            rows.until_s[old] = changes.until_s[change]
            continue
        new = put_row(rows, changes, change, key, join, number)
        number += step
        if old != SLOT_NONE:
            release(rows, old)
        if stays:
            used = put_line(lines, used, REPLACE, side, join, new, old)
            continue
        if old != SLOT_NONE:
            used = put_line(lines, used, DELETE, side, rows.join[old], -1, old)
        used = put_line(lines, used, INSERT, side, join, new, -1)
    return used, number
