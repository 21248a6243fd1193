"""From changes to what the index is to do: who is new, who is replaced, who goes (columns in).

    change ──► its key's code ──► the row that is there ──► INSERT, DELETE, REPLACE, or nothing
                                   slot_of_key[code]        both of the first where its join value
                                                            is another one

A row that is changed gets a new slot and a new number, so that messages can tell both versions
apart. What comes as it is there already is no change, though it may be kept longer.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.match.texts import Bytes
from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.byte_kernels import are_equal, intern
from headgate.tables.change_kernels import DELETE, INSERT, REPLACE

SLOT_NONE = -1


class Slots(NamedTuple):
    """Rows of one table by slot, as they are written here; `used` counts what was ever taken."""

    value: Floats  # [slot, selection attribute]
    number: Longs
    key: Longs  # its code
    join: Longs
    until_s: Floats
    payload_start: Longs
    payload_bytes: Longs
    body_bytes: Longs  # how much of the payload is compared
    payload: Bytes  # all payloads, in any order
    payload_used: Longs  # [1]
    slot_of_key: Longs  # [code of a key]
    free: Longs
    free_count: Longs  # [1]
    gone: Longs  # slots that are free after this batch
    gone_count: Longs  # [1]
    used: Longs  # [1]


class Given(NamedTuple):
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
def put_line(lines, at, kind, side, join, new, old):  # type: ignore[no-untyped-def]
    lines[at, 0], lines[at, 1], lines[at, 2] = kind, side, join
    lines[at, 3], lines[at, 4] = new, old
    return at + 1


@nb.njit(nogil=True, cache=True)
def leave(rows, slot):  # type: ignore[no-untyped-def]
    rows.gone[rows.gone_count[0]] = slot
    rows.gone_count[0] += 1
    rows.until_s[slot] = np.inf


@nb.njit(nogil=True, cache=True)
def is_same(rows, slot, given, change):  # type: ignore[no-untyped-def]
    for d in range(rows.value.shape[1]):
        if rows.value[slot, d] != given.values[change, d]:
            return False
    begin, first = rows.payload_start[slot], given.payload_start[change]
    end, last = begin + rows.body_bytes[slot], first + given.body_bytes[change]
    return are_equal(rows.payload, begin, end, given.payload_data, first, last)


@nb.njit(nogil=True, cache=True)
def put_row(rows, given, change, key, join, number):  # type: ignore[no-untyped-def]
    """The slot of a new version of a row; the index does not know it yet."""
    if rows.free_count[0] > 0:
        rows.free_count[0] -= 1
        slot = rows.free[rows.free_count[0]]
    else:
        slot = rows.used[0]
        rows.used[0] += 1
    for d in range(rows.value.shape[1]):
        rows.value[slot, d] = given.values[change, d]
    rows.number[slot], rows.key[slot], rows.join[slot] = number, key, join
    rows.until_s[slot] = given.until_s[change]
    begin, end = given.payload_start[change], given.payload_start[change + 1]
    place = rows.payload_used[0]
    rows.payload[place : place + end - begin] = given.payload_data[begin:end]
    rows.payload_start[slot], rows.payload_bytes[slot] = place, end - begin
    rows.body_bytes[slot] = given.body_bytes[change]
    rows.payload_used[0] = place + end - begin
    rows.slot_of_key[key] = slot
    return slot


@nb.njit(nogil=True, cache=True)
def take(given, tables, keys, joins, first_number, step, lines):  # type: ignore[no-untyped-def]
    """Write what changes mean to `lines`; how many lines there are, and the next number."""
    used, number = 0, first_number
    for change in range(given.side.shape[0]):
        side = given.side[change]
        rows, codes = tables[side], keys[side]
        begin, end = given.key_start[change], given.key_start[change + 1]
        key = intern(codes, given.key_data, begin, end)
        old = rows.slot_of_key[key]
        if given.gone[change]:
            if old != SLOT_NONE:
                rows.slot_of_key[key] = SLOT_NONE
                leave(rows, old)
                used = put_line(lines, used, DELETE, side, rows.join[old], -1, old)
            continue
        begin, end = given.join_start[change], given.join_start[change + 1]
        join = intern(joins, given.join_data, begin, end)
        stays = old != SLOT_NONE and rows.join[old] == join
        if stays and is_same(rows, old, given, change):
            rows.until_s[old] = given.until_s[change]
            continue
        new = put_row(rows, given, change, key, join, number)
        number += step
        if old != SLOT_NONE:
            leave(rows, old)
        if stays:
            used = put_line(lines, used, REPLACE, side, join, new, old)
            continue
        if old != SLOT_NONE:
            used = put_line(lines, used, DELETE, side, rows.join[old], -1, old)
        used = put_line(lines, used, INSERT, side, join, new, -1)
    return used, number
