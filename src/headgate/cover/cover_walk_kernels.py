"""Walks over the forest with a single cube, for those who insert one filter at a time.

A batch fills a row for each restriction of a part before it walks (cover_kernels.py). For one cube
that is more than the walk itself, so here a row is judged when a node asks for it.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.cover.cover_scan_kernels import lies_within
from headgate.match.kernels import LOW_BITS, ONE, first_not_less


@nb.njit(nogil=True, cache=True)
def _by_group(cube, places, place_group, lines):  # type: ignore[no-untyped-def]
    """The cube's restriction for each group of the part, or −1; and for how many there is one."""
    own = np.full(places.shape[0], -1, np.int64)
    found = 0
    for each in cube:
        wanted = lines[0][each]
        at = first_not_less(places, 0, places.shape[0], wanted)
        if at < places.shape[0] and places[at] == wanted:
            own[place_group[at]] = each
            found += 1
    return own, found


@nb.njit(nogil=True, cache=True)
def groups_on_paths(node_row, node_depth, row_group):  # type: ignore[no-untyped-def]
    """For each node the groups of all paths through it, as bits of a word that groups may share."""
    count = node_row.shape[0]
    found = np.empty(count, np.uint64)
    depth_max = node_depth.max() if count else 0
    above = np.zeros(depth_max + 2, np.uint64)
    for node in range(count):
        depth = node_depth[node]
        above[depth + 1] = above[depth] | (ONE << (np.uint64(row_group[node_row[node]]) & LOW_BITS))
        found[node] = above[depth + 1]
    below = np.zeros(depth_max + 2, np.uint64)  # [depth]: of the nodes behind, under one parent
    for node in range(count - 1, -1, -1):
        depth = node_depth[node]
        found[node] |= below[depth + 1]
        below[depth + 1] = 0
        below[depth] |= found[node]
    return found


@nb.njit(nogil=True, cache=True)
def walk_one_covering(  # type: ignore[no-untyped-def]
    cube,
    places,  # the places of the part, sorted …
    place_group,  # … and the group of each
    node_row,
    node_skip,
    node_end,
    end_start,
    owners,
    alive,
    exact,
    row_group,
    row_restriction,
    lines,
    entries,
):
    """The entries that cover the cube, until one is exact: (that entry or −1, how many others).

    Others are listed as long as there is room.
    """
    own, _ = _by_group(cube, places, place_group, lines)
    node, used = 0, 0
    while node < node_row.shape[0]:
        row = node_row[node]
        mine = own[row_group[row]]
        if mine < 0 or not lies_within(mine, row_restriction[row], lines):
            node = node_skip[node]
            continue
        end = node_end[node]
        if end >= 0:
            for each in range(end_start[end], end_start[end + 1]):
                entry = owners[each]
                if alive[entry] and exact[entry]:
                    return entry, used
                if alive[entry] and used < entries.shape[0]:
                    entries[used] = entry
                    used += 1
        node += 1
    return -1, used


@nb.njit(nogil=True, cache=True)
def walk_one_covered(  # type: ignore[no-untyped-def]
    cube,
    places,
    place_group,
    node_row,
    node_depth,
    node_skip,
    node_end,
    end_start,
    owners,
    alive,
    node_groups,  # see groups_on_paths
    row_group,
    row_restriction,
    depth_max,
    lines,
    entries,
):
    """How many entries lie within the cube; they are listed as long as there is room.

    The cube's places are met in the order of the paths. Children of a node are sorted by place, so
    where one has passed the place that is due, its later brothers have passed it too. And where no
    path through a node has all of the cube's places, none is followed.
    """
    own, found = _by_group(cube, places, place_group, lines)
    if found < cube.shape[0]:
        return 0
    due = np.append(np.nonzero(own >= 0)[0], own.shape[0])
    wanted = np.uint64(0)
    for at in range(found):
        wanted |= ONE << (np.uint64(due[at]) & LOW_BITS)
    met = np.zeros(depth_max + 1, np.int64)  # [depth]: how many of the cube's places were met
    after = np.full(
        depth_max + 1, node_row.shape[0], np.int64
    )  # … and where the parent's tree ends
    node, used = 0, 0
    while node < node_row.shape[0]:
        depth, row = node_depth[node], node_row[node]
        group = row_group[row]
        if group > due[met[depth]]:
            node = after[depth]
            continue
        if wanted & ~node_groups[node] != 0:
            node = node_skip[node]
            continue
        met[depth + 1], after[depth + 1] = met[depth], node_skip[node]
        if group == due[met[depth]]:
            if not lies_within(row_restriction[row], own[group], lines):
                node = node_skip[node]
                continue
            met[depth + 1] += 1
        end = node_end[node]
        if end >= 0 and met[depth + 1] == cube.shape[0]:
            for each in range(end_start[end], end_start[end + 1]):
                if alive[owners[each]] and used < entries.shape[0]:
                    entries[used] = owners[each]
                    used += 1
        node += 1
    return used
