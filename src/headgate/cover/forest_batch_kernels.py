"""The hot loops that search a forest of cubes with a batch of new ones, compiled by Numba.

A row has a bit for each new filter of a batch, 64 to a word, as in match/bit_rows.py. Restrictions
are numbers of a `RestrictionTable` (cubes.py). A *group* is a place of the index, in the order of
the paths.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.cover.cubes import Bools
from headgate.cover.scan_index import lies_within
from headgate.match.bit_rows import LOW_BITS, ONE, Ints, Longs, Words, popcount


class SortedRows(NamedTuple):
    """The rows of an index, sorted within each group."""

    group_start: Longs  # [group + 1]: the first row of each group
    restriction: Longs  # [row]
    by_low: Longs  # [row]: the rows of each group, the highest beginning first
    by_high: Longs  # [row]: the rows of each group, the lowest end first


class NewRestrictions(NamedTuple):
    """The distinct restrictions of a batch, sorted by place, and which new filters have them."""

    first: Longs  # [group]: where the new restrictions at its place begin …
    last: Longs  # [group]: … and end
    restriction: Longs  # [new]
    by_low: Longs  # [new]: as in SortedRows
    by_high: Longs  # [new]
    masks: Words  # [new, word]


class IndexForest(NamedTuple):
    """The nodes of a forest in depth-first order, the entries that end at them, and their rows."""

    node_row: Ints  # [node]
    node_depth: Ints  # [node]
    node_skip: Ints  # [node]: the next node outside of its subtree
    node_end: Ints  # [node]: an end, or -1
    end_start: Ints  # [end + 1]: the first of the entries that end here
    entries: Ints
    row_group: Longs  # [row]
    row_restriction: Longs  # [row]
    alive: Bools  # [entry]: false if it was removed


@nb.njit(nogil=True, cache=True)
def fill_masks(start, flat, masks):  # type: ignore[no-untyped-def]
    """Set in masks[r] the bits of the cubes that have restriction r.

    Cube c is flat[start[c] : start[c + 1]]; masks is uint64 [restriction, word].
    """
    for cube in range(start.shape[0] - 1):
        bit = ONE << (np.uint64(cube) & LOW_BITS)
        for position in range(start[cube], start[cube + 1]):
            masks[flat[position], cube >> 6] |= bit


@nb.njit(nogil=True, cache=True)
def keep_rows(start, flat, rows, kept):  # type: ignore[no-untyped-def]
    """kept[c] &= rows[r] for each row r of cube c, flat[start[c] : start[c + 1]].

    rows is uint64 [row, word]; kept is uint64 [cube, word], in and out.
    """
    for cube in range(start.shape[0] - 1):
        for position in range(start[cube], start[cube + 1]):
            for word in range(rows.shape[1]):
                kept[cube, word] &= rows[flat[position], word]


@nb.njit(nogil=True, cache=True)
def fill_covering_rows(sorted_rows, new_restrictions, table, rows):  # type: ignore[no-untyped-def]
    """Set in rows[r] the bits of the new filters whose restriction lies within that of row r.

    sorted_rows       SortedRows
    new_restrictions  NewRestrictions
    table             RestrictionTable
    rows              uint64 [row, word], out

    One sweep from the right collects those that begin where the row does or later, one from the
    left those that end where it does or earlier. That suffices for a row of one interval, whatever
    the new restriction is; a row of several intervals is compared with each.
    """
    group_start, row_restriction, by_low, by_high = sorted_rows
    new_first, new_last, new_restriction, new_by_low, new_by_high, masks = new_restrictions
    _, first, last, lows, highs = table
    word_count = rows.shape[1]
    acc = np.empty(word_count, np.uint64)
    for group in range(group_start.shape[0] - 1):
        new_begin, new_end = new_first[group], new_last[group]
        if new_begin == new_end:
            continue
        acc[:] = 0
        next_new = new_begin
        for position in range(group_start[group], group_start[group + 1]):
            row = by_low[position]
            limit = lows[first[row_restriction[row]]]
            while (
                next_new < new_end and lows[first[new_restriction[new_by_low[next_new]]]] >= limit
            ):
                new = new_by_low[next_new]
                for word in range(word_count):
                    acc[word] |= masks[new, word]
                next_new += 1
            for word in range(word_count):
                rows[row, word] = acc[word]
        acc[:] = 0
        next_new = new_begin
        for position in range(group_start[group], group_start[group + 1]):
            row = by_high[position]
            restriction = row_restriction[row]
            limit = highs[last[restriction] - 1]
            while (
                next_new < new_end
                and highs[last[new_restriction[new_by_high[next_new]]] - 1] <= limit
            ):
                new = new_by_high[next_new]
                for word in range(word_count):
                    acc[word] |= masks[new, word]
                next_new += 1
            for word in range(word_count):
                rows[row, word] &= acc[word]
            if last[restriction] - first[restriction] > 1:
                rows[row] = 0
                for new in range(new_begin, new_end):
                    if lies_within(new_restriction[new], restriction, table):
                        for word in range(word_count):
                            rows[row, word] |= masks[new, word]


@nb.njit(nogil=True, cache=True)
def fill_covered_rows(sorted_rows, new_restrictions, table, rows):  # type: ignore[no-untyped-def]
    """Set in rows[r] the bits of the new filters whose restriction contains that of row r, and of
    those without a restriction at its place.

    Parameters as in fill_covering_rows. The sweeps go the other way; new restrictions of several
    intervals are compared with each row.
    """
    group_start, row_restriction, by_low, by_high = sorted_rows
    new_first, new_last, new_restriction, new_by_low, new_by_high, masks = new_restrictions
    _, first, last, lows, highs = table
    word_count = rows.shape[1]
    acc, lacking = np.empty(word_count, np.uint64), np.empty(word_count, np.uint64)
    for group in range(group_start.shape[0] - 1):
        begin, end = group_start[group], group_start[group + 1]
        new_begin, new_end = new_first[group], new_last[group]
        lacking[:] = ~np.uint64(0)
        for new in range(new_begin, new_end):
            for word in range(word_count):
                lacking[word] &= ~masks[new, word]
        acc[:] = 0
        next_new = new_end - 1
        for position in range(end - 1, begin - 1, -1):
            row = by_low[position]
            limit = lows[first[row_restriction[row]]]
            while (
                next_new >= new_begin
                and lows[first[new_restriction[new_by_low[next_new]]]] <= limit
            ):
                new = new_by_low[next_new]
                restriction = new_restriction[new]
                if last[restriction] - first[restriction] == 1:
                    for word in range(word_count):
                        acc[word] |= masks[new, word]
                next_new -= 1
            for word in range(word_count):
                rows[row, word] = acc[word]
        acc[:] = 0
        next_new = new_end - 1
        for position in range(end - 1, begin - 1, -1):
            row = by_high[position]
            limit = highs[last[row_restriction[row]] - 1]
            while (
                next_new >= new_begin
                and highs[last[new_restriction[new_by_high[next_new]]] - 1] >= limit
            ):
                new = new_by_high[next_new]
                for word in range(word_count):
                    acc[word] |= masks[new, word]
                next_new -= 1
            for word in range(word_count):
                rows[row, word] = (rows[row, word] & acc[word]) | lacking[word]
        for new in range(new_begin, new_end):
            restriction = new_restriction[new]
            if last[restriction] - first[restriction] > 1:
                for row in range(begin, end):
                    if lies_within(row_restriction[row], restriction, table):
                        for word in range(word_count):
                            rows[row, word] |= masks[new, word]


@nb.njit(nogil=True, cache=True)
def walk_covering(forest, exact, rows, stack, coverer, pairs):  # type: ignore[no-untyped-def]
    """Find entries that cover new filters: the right-hand diagram of [MBD §4.2]. Returns the
    number of pairs.

    forest   IndexForest
    exact    bool [entry]             whether the description of the entry is exact
    rows     uint64 [row, word]       from fill_covering_rows
    stack    uint64 [depth + 1, word] stack[0] has the new filters; the rest is scratch space
    coverer  int64 [new filter]       out: an exact entry that covers it
    pairs    CandidatePairs           out: pairs with inexact entries, which must be checked

    A filter that is covered is removed from the whole path, so that nothing is done for it again.
    """
    node_row, node_depth, node_skip = forest.node_row, forest.node_depth, forest.node_skip
    node_end, end_start, owners = forest.node_end, forest.end_start, forest.entries
    alive, (checks_left, news, entries) = forest.alive, pairs
    node, node_count, word_count, used = 0, node_row.shape[0], rows.shape[1], 0
    while node < node_count:
        depth, row = node_depth[node], node_row[node]
        any_bit = np.uint64(0)
        for word in range(word_count):
            value = stack[depth, word] & rows[row, word]
            stack[depth + 1, word] = value
            any_bit |= value
        if any_bit == 0:
            node = node_skip[node]
            continue
        end = node_end[node]
        if end >= 0:
            for position in range(end_start[end], end_start[end + 1]):
                entry = owners[position]
                if not alive[entry]:
                    continue
                for word in range(word_count):
                    left = stack[depth + 1, word]
                    if left == 0:
                        continue
                    if exact[entry]:
                        for above in range(depth + 2):
                            stack[above, word] &= ~left
                    while left != 0:
                        lowest = left & (~left + ONE)
                        left ^= lowest
                        new = (word << 6) + np.int64(popcount(lowest - ONE))
                        if exact[entry]:
                            coverer[new] = entry
                        elif checks_left[new] > 0:
                            checks_left[new] -= 1
                            news[used], entries[used] = new, entry
                            used += 1
        node += 1
    return used


@nb.njit(nogil=True, cache=True)
def fill_gap_table(new_first, new_last, masks, table):  # type: ignore[no-untyped-def]
    """table[l, i]: a row of the new filters that restrict one of the places i … i + 2^l − 1.

    new_first, new_last  int64 [place]          as in NewRestrictions
    table                uint64 [level, place, word], out

    The places are those of the batch, in the order of the paths. Any run of places is then the
    union of two entries.
    """
    count = new_first.shape[0]
    for place in range(count):
        table[0, place] = 0
        for new in range(new_first[place], new_last[place]):
            for word in range(table.shape[2]):
                table[0, place, word] |= masks[new, word]
    for level in range(1, table.shape[0]):
        half = 1 << (level - 1)
        for place in range(count - 2 * half + 1):
            for word in range(table.shape[2]):
                table[level, place, word] = (
                    table[level - 1, place, word] | table[level - 1, place + half, word]
                )


@nb.njit(nogil=True, cache=True, inline="always")
def _without_gap(stack, depth, first, end, table):  # type: ignore[no-untyped-def]
    """Remove the filters that restrict a place in first … end − 1; returns whether any is left."""
    if first >= end:
        return True
    level = 0
    while (2 << level) <= end - first:
        level += 1
    second = end - (1 << level)
    any_bit = np.uint64(0)
    for word in range(stack.shape[1]):
        value = stack[depth, word] & ~(table[level, first, word] | table[level, second, word])
        stack[depth, word] = value
        any_bit |= value
    return any_bit != 0


@nb.njit(nogil=True, cache=True)
def _list_pairs(covering, entry, new_exact, pairs, used):  # type: ignore[no-untyped-def]
    """Add pairs of an entry and the new filters that cover it, up to the first exact one."""
    checks_left, news, entries = pairs
    for word in range(covering.shape[0]):
        left = covering[word]
        while left != 0:
            lowest = left & (~left + ONE)
            left ^= lowest
            new = (word << 6) + np.int64(popcount(lowest - ONE))
            if new_exact[new] or checks_left[new] > 0:
                news[used], entries[used] = new, entry
                used += 1
            if new_exact[new]:
                return used
            checks_left[new] = max(checks_left[new] - 1, 0)
    return used


@nb.njit(nogil=True, cache=True)
def walk_covered(forest, gaps, rows, stack, new_exact, pairs):  # type: ignore[no-untyped-def]
    """Find entries that new filters cover: the left-hand diagram of [MBD §4.2]. Returns the
    number of pairs.

    forest     IndexForest
    gaps       (places_before, gap_table): places_before[g] is how many places of the batch come
               before group g; gap_table is that of fill_gap_table
    rows       uint64 [row, word]        from fill_covered_rows
    stack      uint64 [depth + 2, word]  stack[0] has the new filters; the rest is scratch space
    new_exact  bool [new filter]
    pairs      CandidatePairs            out: one pair for an entry within an exact filter; pairs
                                         with inexact filters must be checked

    An entry is covered if each place of the new filter is on its path. Paths follow one order of
    places, so a new filter is out as soon as a path has passed one of its places.
    """
    node_row, node_depth, node_skip = forest.node_row, forest.node_depth, forest.node_skip
    node_end, end_start, owners = forest.node_end, forest.end_start, forest.entries
    alive, row_group, (places_before, table) = forest.alive, forest.row_group, gaps
    node, node_count, word_count, used = 0, node_row.shape[0], rows.shape[1], 0
    passed = np.zeros(stack.shape[0] + 1, np.int64)  # [depth]: places of the batch dealt with
    all_places = places_before[places_before.shape[0] - 1]
    while node < node_count:
        depth, row = node_depth[node], node_row[node]
        group = row_group[row]
        any_bit = np.uint64(0)
        for word in range(word_count):
            value = stack[depth, word] & rows[row, word]
            stack[depth + 1, word] = value
            any_bit |= value
        if any_bit == 0 or not _without_gap(
            stack, depth + 1, passed[depth], places_before[group], table
        ):
            node = node_skip[node]
            continue
        passed[depth + 1] = places_before[group + 1]
        end = node_end[node]
        if end >= 0:
            for word in range(word_count):
                stack[depth + 2, word] = stack[depth + 1, word]
            if _without_gap(stack, depth + 2, passed[depth + 1], all_places, table):
                for position in range(end_start[end], end_start[end + 1]):
                    if alive[owners[position]]:
                        used = _list_pairs(
                            stack[depth + 2], owners[position], new_exact, pairs, used
                        )
        node += 1
    return used
