"""The hot loops of covering on the forest: compiled by Numba, without the GIL.

A row has a bit for each new filter of a batch, 64 to a word, as in match/kernels.py. Restrictions
and their `lines` are those of cover_scan_kernels.py.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.cover.cover_scan_kernels import lies_within
from headgate.match.kernels import LOW_BITS, ONE, popcount


@nb.njit(nogil=True, cache=True)
def fill_masks(start, flat, masks):  # type: ignore[no-untyped-def]
    """masks[r]: the filters of the batch that have restriction r."""
    for each in range(start.shape[0] - 1):
        bit = ONE << (np.uint64(each) & LOW_BITS)
        for at in range(start[each], start[each + 1]):
            masks[flat[at], each >> 6] |= bit


@nb.njit(nogil=True, cache=True)
def keep_rows(start, flat, rows, found):  # type: ignore[no-untyped-def]
    """Keep in found[c] what is in all rows of cube c, which are flat[start[c] : start[c + 1]]."""
    for each in range(start.shape[0] - 1):
        for at in range(start[each], start[each + 1]):
            for word in range(rows.shape[1]):
                found[each, word] &= rows[flat[at], word]


@nb.njit(nogil=True, cache=True)
def fill_covering_rows(  # type: ignore[no-untyped-def]
    group_start,  # [group + 1]: where the rows of a place begin
    row_restriction,  # [row]
    by_low,  # rows of each group, those that begin highest first
    by_high,  # rows of each group, those that end lowest first
    new_first,  # [group]: where the new restrictions at this place begin …
    new_last,  # … and end
    new_restriction,
    new_by_low,
    new_by_high,
    masks,
    lines,
    rows,
):
    """rows[r]: the new filters whose restriction lies within that of the row.

    One sweep from the right collects those that begin where the row does or later, one from the
    left those that end where it does or earlier. That is all for a row of one interval, whatever
    the new restriction is; a row of several is compared with each.
    """
    _, first, last, lows, highs = lines
    word_count = rows.shape[1]
    acc = np.empty(word_count, np.uint64)
    for group in range(group_start.shape[0] - 1):
        new_begin, new_end = new_first[group], new_last[group]
        if new_begin == new_end:
            continue
        acc[:] = 0
        at = new_begin
        for each in range(group_start[group], group_start[group + 1]):
            row = by_low[each]
            limit = lows[first[row_restriction[row]]]
            while at < new_end and lows[first[new_restriction[new_by_low[at]]]] >= limit:
                new = new_by_low[at]
                for word in range(word_count):
                    acc[word] |= masks[new, word]
                at += 1
            for word in range(word_count):
                rows[row, word] = acc[word]
        acc[:] = 0
        at = new_begin
        for each in range(group_start[group], group_start[group + 1]):
            row = by_high[each]
            own = row_restriction[row]
            limit = highs[last[own] - 1]
            while at < new_end and highs[last[new_restriction[new_by_high[at]]] - 1] <= limit:
                new = new_by_high[at]
                for word in range(word_count):
                    acc[word] |= masks[new, word]
                at += 1
            for word in range(word_count):
                rows[row, word] &= acc[word]
            if last[own] - first[own] > 1:
                rows[row] = 0
                for new in range(new_begin, new_end):
                    if lies_within(new_restriction[new], own, lines):
                        for word in range(word_count):
                            rows[row, word] |= masks[new, word]


@nb.njit(nogil=True, cache=True)
def fill_covered_rows(  # type: ignore[no-untyped-def]
    group_start,
    row_restriction,
    by_low,
    by_high,
    new_first,
    new_last,
    new_restriction,
    new_by_low,
    new_by_high,
    masks,
    lines,
    rows,
):
    """rows[r]: the new filters that say nothing of the place, or within whose restriction the row
    lies. The sweeps go the other way; new restrictions of several intervals are compared."""
    _, first, last, lows, highs = lines
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
        at = new_end - 1
        for each in range(end - 1, begin - 1, -1):
            row = by_low[each]
            limit = lows[first[row_restriction[row]]]
            while at >= new_begin and lows[first[new_restriction[new_by_low[at]]]] <= limit:
                new = new_by_low[at]
                own = new_restriction[new]
                if last[own] - first[own] == 1:
                    for word in range(word_count):
                        acc[word] |= masks[new, word]
                at -= 1
            for word in range(word_count):
                rows[row, word] = acc[word]
        acc[:] = 0
        at = new_end - 1
        for each in range(end - 1, begin - 1, -1):
            row = by_high[each]
            limit = highs[last[row_restriction[row]] - 1]
            while at >= new_begin and highs[last[new_restriction[new_by_high[at]]] - 1] >= limit:
                new = new_by_high[at]
                for word in range(word_count):
                    acc[word] |= masks[new, word]
                at -= 1
            for word in range(word_count):
                rows[row, word] = (rows[row, word] & acc[word]) | lacking[word]
        for at in range(new_begin, new_end):
            new = new_restriction[at]
            if last[new] - first[new] > 1:
                for row in range(begin, end):
                    if lies_within(row_restriction[row], new, lines):
                        for word in range(word_count):
                            rows[row, word] |= masks[at, word]


@nb.njit(nogil=True, cache=True)
def walk_covering(  # type: ignore[no-untyped-def]
    node_row,
    node_depth,
    node_skip,
    node_end,
    end_start,
    owners,
    alive,
    exact,
    rows,
    stack,
    coverer,
    judged,
    news,
    entries,
):
    """The right-hand side of the pair of diagrams ([MBD §4.2]): which entries cover new filters.

    coverer[f]: an exact entry that covers new filter f. Entries that are not exact are listed for
    the judge, as pairs of news and entries, while judged[f] is left. How many there are. A filter
    that is covered is taken off the whole path, so that nothing is done for it again.
    """
    node, node_count, word_count, used = 0, node_row.shape[0], rows.shape[1], 0
    while node < node_count:
        depth, row = node_depth[node], node_row[node]
        found = np.uint64(0)
        for word in range(word_count):
            value = stack[depth, word] & rows[row, word]
            stack[depth + 1, word] = value
            found |= value
        if found == 0:
            node = node_skip[node]
            continue
        end = node_end[node]
        if end >= 0:
            for each in range(end_start[end], end_start[end + 1]):
                entry = owners[each]
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
                        elif judged[new] > 0:
                            judged[new] -= 1
                            news[used], entries[used] = new, entry
                            used += 1
        node += 1
    return used


@nb.njit(nogil=True, cache=True)
def fill_gap_table(new_first, new_last, masks, table):  # type: ignore[no-untyped-def]
    """table[l, i]: the new filters that say something of one of the places i … i + 2^l − 1.

    The places are those of the batch, in the order of the paths. Any run of them is then the union
    of two entries.
    """
    count = new_first.shape[0]
    for at in range(count):
        table[0, at] = 0
        for new in range(new_first[at], new_last[at]):
            for word in range(table.shape[2]):
                table[0, at, word] |= masks[new, word]
    for level in range(1, table.shape[0]):
        half = 1 << (level - 1)
        for at in range(count - 2 * half + 1):
            for word in range(table.shape[2]):
                table[level, at, word] = (
                    table[level - 1, at, word] | table[level - 1, at + half, word]
                )


@nb.njit(nogil=True, cache=True, inline="always")
def _without_gap(stack, depth, first, end, table):  # type: ignore[no-untyped-def]
    """Take off those that say something of the places first … end − 1; whether any is left."""
    if first >= end:
        return True
    level = 0
    while (2 << level) <= end - first:
        level += 1
    second = end - (1 << level)
    found = np.uint64(0)
    for word in range(stack.shape[1]):
        value = stack[depth, word] & ~(table[level, first, word] | table[level, second, word])
        stack[depth, word] = value
        found |= value
    return found != 0


@nb.njit(nogil=True, cache=True)
def _list_pairs(covering, entry, new_exact, judged, news, entries, used):  # type: ignore[no-untyped-def]
    """Pairs of an entry and the new filters that cover it, up to the first that is exact."""
    for word in range(covering.shape[0]):
        left = covering[word]
        while left != 0:
            lowest = left & (~left + ONE)
            left ^= lowest
            new = (word << 6) + np.int64(popcount(lowest - ONE))
            if new_exact[new] or judged[new] > 0:
                news[used], entries[used] = new, entry
                used += 1
            if new_exact[new]:
                return used
            judged[new] = max(judged[new] - 1, 0)
    return used


@nb.njit(nogil=True, cache=True)
def walk_covered(  # type: ignore[no-untyped-def]
    node_row,
    node_depth,
    node_skip,
    node_end,
    end_start,
    owners,
    alive,
    row_group,
    places_before,
    table,
    rows,
    stack,
    new_exact,
    judged,
    news,
    entries,
):
    """The left-hand side: which entries do new filters cover. Pairs of both; how many there are.

    An entry has one pair with a filter that is exact; others are for the judge, while judged is
    left.

    An entry is covered if each place of the new filter is on its path. Paths follow one order of
    places, so a new filter is out as soon as a path has passed one of its places by.
    places_before[g]: how many places of the batch come before group g in that order.
    """
    node, node_count, word_count, used = 0, node_row.shape[0], rows.shape[1], 0
    passed = np.zeros(stack.shape[0] + 1, np.int64)  # [depth]: places of the batch dealt with
    all_places = places_before[places_before.shape[0] - 1]
    while node < node_count:
        depth, row = node_depth[node], node_row[node]
        group = row_group[row]
        found = np.uint64(0)
        for word in range(word_count):
            value = stack[depth, word] & rows[row, word]
            stack[depth + 1, word] = value
            found |= value
        if found == 0 or not _without_gap(
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
                for each in range(end_start[end], end_start[end + 1]):
                    if alive[owners[each]]:
                        used = _list_pairs(
                            stack[depth + 2], owners[each], new_exact, judged, news, entries, used
                        )
        node += 1
    return used
