"""The hot loops that search a forest of cubes with a single new cube, compiled by Numba.

A batch fills a row for each restriction of the index before it walks (forest_batch_kernels.py). For
a single cube that would cost more than the walk itself, so here a row is compared when a node is
reached.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.cover.scan_index import lies_within
from headgate.match.bit_rows import LOW_BITS, ONE, Longs, first_not_less


class PlaceGroups(NamedTuple):
    """The places of an index, sorted, and the group of each."""

    places: Longs
    groups: Longs


@nb.njit(nogil=True, cache=True)
def _by_group(cube, place_groups, table):  # type: ignore[no-untyped-def]
    """The cube's restriction in each group of the index, or -1; and how many there are."""
    places, groups = place_groups
    restriction_of = np.full(places.shape[0], -1, np.int64)
    count = 0
    for restriction in cube:
        place = table.place[restriction]
        position = first_not_less(places, 0, places.shape[0], place)
        if position < places.shape[0] and places[position] == place:
            restriction_of[groups[position]] = restriction
            count += 1
    return restriction_of, count


@nb.njit(nogil=True, cache=True)
def groups_on_paths(forest):  # type: ignore[no-untyped-def]
    """uint64 [node]: the groups on all paths through it, group g as bit g modulo 64.

    Groups may share a bit, so a set bit is only a hint; a cleared bit is certain.
    """
    node_row, node_depth, row_group = forest.node_row, forest.node_depth, forest.row_group
    count = node_row.shape[0]
    groups = np.empty(count, np.uint64)
    depth_max = node_depth.max() if count else 0
    above = np.zeros(depth_max + 2, np.uint64)
    for node in range(count):
        depth = node_depth[node]
        above[depth + 1] = above[depth] | (ONE << (np.uint64(row_group[node_row[node]]) & LOW_BITS))
        groups[node] = above[depth + 1]
    below = np.zeros(depth_max + 2, np.uint64)  # [depth]: of the nodes behind, under one parent
    for node in range(count - 1, -1, -1):
        depth = node_depth[node]
        groups[node] |= below[depth + 1]
        below[depth + 1] = 0
        below[depth] |= groups[node]
    return groups


@nb.njit(nogil=True, cache=True)
def walk_one_covering(cube, place_groups, forest, exact, table, entries):  # type: ignore[no-untyped-def]
    """The entries that cover the cube, until an exact one: (that entry or -1, number of others).

    cube     int64 [n]      restrictions
    forest   IndexForest
    exact    bool [entry]
    table    RestrictionTable
    entries  int64 [room]   out: the inexact ones, as long as there is room
    """
    node_row, node_skip, node_end = forest.node_row, forest.node_skip, forest.node_end
    end_start, owners, alive = forest.end_start, forest.entries, forest.alive
    row_group, row_restriction = forest.row_group, forest.row_restriction
    restriction_of, _ = _by_group(cube, place_groups, table)
    node, used = 0, 0
    while node < node_row.shape[0]:
        row = node_row[node]
        restriction = restriction_of[row_group[row]]
        if restriction < 0 or not lies_within(restriction, row_restriction[row], table):
            node = node_skip[node]
            continue
        end = node_end[node]
        if end >= 0:
            for position in range(end_start[end], end_start[end + 1]):
                entry = owners[position]
                if alive[entry] and exact[entry]:
                    return entry, used
                if alive[entry] and used < entries.shape[0]:
                    entries[used] = entry
                    used += 1
        node += 1
    return -1, used


@nb.njit(nogil=True, cache=True)
def walk_one_covered(cube, place_groups, forest, search, table, entries):  # type: ignore[no-untyped-def]
    """How many entries lie within the cube; they are written to `entries` while there is room.

    cube     int64 [n]      restrictions
    forest   IndexForest
    search   (node_groups, depth): the result of groups_on_paths, and the depth of the forest
    table    RestrictionTable
    entries  int64 [room]   out

    A path restricts the cube's places in the order of groups. Children of a node are sorted by
    place, so if one of them has passed the next place of the cube, its later siblings have too. A
    node is skipped if the paths through it lack one of the cube's places.
    """
    node_row, node_depth, node_skip = forest.node_row, forest.node_depth, forest.node_skip
    node_end, end_start, owners = forest.node_end, forest.end_start, forest.entries
    row_group, row_restriction, alive = forest.row_group, forest.row_restriction, forest.alive
    node_groups, depth_max = search
    restriction_of, count = _by_group(cube, place_groups, table)
    if count < cube.shape[0]:
        return 0
    cube_groups = np.append(np.nonzero(restriction_of >= 0)[0], restriction_of.shape[0])
    cube_bits = np.uint64(0)
    for position in range(count):
        cube_bits |= ONE << (np.uint64(cube_groups[position]) & LOW_BITS)
    met = np.zeros(depth_max + 1, np.int64)  # [depth]: how many of the cube's places were met
    after = np.full(
        depth_max + 1, node_row.shape[0], np.int64
    )  # … and where the parent's tree ends
    node, used = 0, 0
    while node < node_row.shape[0]:
        depth, row = node_depth[node], node_row[node]
        group = row_group[row]
        if group > cube_groups[met[depth]]:
            node = after[depth]
            continue
        if cube_bits & ~node_groups[node] != 0:
            node = node_skip[node]
            continue
        met[depth + 1], after[depth + 1] = met[depth], node_skip[node]
        if group == cube_groups[met[depth]]:
            if not lies_within(row_restriction[row], restriction_of[group], table):
                node = node_skip[node]
                continue
            met[depth + 1] += 1
        end = node_end[node]
        if end >= 0 and met[depth + 1] == cube.shape[0]:
            for position in range(end_start[end], end_start[end + 1]):
                if alive[owners[position]] and used < entries.shape[0]:
                    entries[used] = owners[position]
                    used += 1
        node += 1
    return used
