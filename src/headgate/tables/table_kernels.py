"""The composite index on (join attribute, selection attribute) of one table (§3.1), as flat arrays.

    join value j      start[j]  size[j]  capacity[j]
    pool              … | s s s s s · · · | s s · · | …      slots, by value[s, 0], then number[s]

Rows that share a join value lie side by side in the order of their first selection attribute (and
of their numbers where it is equal, so that a restart makes no other order), so
that what a new tuple joins with is one piece of memory, and its neighbours are found by bisection.
A piece that is full moves to the end of the pool with twice its room; `compact` closes the gaps.
An insertion costs log n and a move of at most as many numbers as there are rows with its join
value.

Rejected: a B-tree. Rows of one join value are hundreds, rarely more than ten thousand; moving 80 kB
takes less time than two cache misses for each level of a tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb

from headgate.tables.box_tree_kernels import Floats, Longs

CAPACITY_MIN = 4


class Index(NamedTuple):
    """What the kernels see of one table."""

    value: Floats  # [slot, selection attribute]
    number: Longs  # [slot]: the row's own number, never used again
    start: Longs  # [join value]
    size: Longs
    capacity: Longs
    pool: Longs
    used: Longs  # [1]: how much of the pool is in use


@nb.njit(nogil=True, cache=True)
def first_at_least(index, join, wanted):  # type: ignore[no-untyped-def]
    """The first place of the join value's piece whose row has at least this first value."""
    low, length = index.start[join], index.size[join]
    while length > 0:
        half = length >> 1
        if index.value[index.pool[low + half], 0] < wanted:
            low += half + 1
            length -= half + 1
        else:
            length = half
    return low


@nb.njit(nogil=True, cache=True)
def room_needed(index, join):  # type: ignore[no-untyped-def]
    """How much of the pool one more row of this join value may take."""
    return max(CAPACITY_MIN, 2 * index.capacity[join])


@nb.njit(nogil=True, cache=True)
def insert(index, join, slot):  # type: ignore[no-untyped-def]
    """Put a row into its piece; the pool has the room that it may need."""
    if index.size[join] == index.capacity[join]:
        target, start = index.used[0], index.start[join]
        for at in range(index.size[join]):
            index.pool[target + at] = index.pool[start + at]
        index.capacity[join] = room_needed(index, join)
        index.start[join] = target
        index.used[0] += index.capacity[join]
    place = first_at_least(index, join, index.value[slot, 0])
    end = index.start[join] + index.size[join]
    while place < end and index.value[index.pool[place], 0] == index.value[slot, 0]:
        place += 1
    for at in range(end, place, -1):
        index.pool[at] = index.pool[at - 1]
    index.pool[place] = slot
    index.size[join] += 1


@nb.njit(nogil=True, cache=True)
def remove(index, join, slot):  # type: ignore[no-untyped-def]
    """Take a row out of its piece, where it is."""
    place = first_at_least(index, join, index.value[slot, 0])
    while index.pool[place] != slot:
        place += 1
    index.size[join] -= 1
    for at in range(place, index.start[join] + index.size[join]):
        index.pool[at] = index.pool[at + 1]


@nb.njit(nogil=True, cache=True)
def compact_room(size):  # type: ignore[no-untyped-def]
    """The room of a piece with so many rows when it is moved: for half as many rows again."""
    return max(CAPACITY_MIN, size + size // 2) if size > 0 else 0


@nb.njit(nogil=True, cache=True)
def compact_places(sizes):  # type: ignore[no-untyped-def]
    """The places that all pieces take when they are moved."""
    places = 0
    for size in sizes:
        places += compact_room(size)
    return places


@nb.njit(nogil=True, cache=True)
def compact(index, pool):  # type: ignore[no-untyped-def]
    """Move all pieces into another pool, without gaps; it has `compact_places` at least."""
    used = 0
    for join in range(index.start.shape[0]):
        start, size = index.start[join], index.size[join]
        for at in range(size):
            pool[used + at] = index.pool[start + at]
        index.start[join] = used
        index.capacity[join] = compact_room(size)
        used += index.capacity[join]
    index.used[0] = used
