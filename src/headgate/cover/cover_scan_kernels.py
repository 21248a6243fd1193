"""The loops of covering that compare cubes one by one, compiled by Numba, without the GIL.

restriction r    place[r], intervals lows[i] … highs[i] for i in first[r] … last[r] − 1
cube c           flat[start[c] : start[c + 1]], restrictions in the order of their places
"""

from __future__ import annotations

import numba as nb
import numpy as np


@nb.njit(nogil=True, cache=True)
def lies_within(narrow, wide, lines):  # type: ignore[no-untyped-def]
    """Whether restriction `narrow` lies within `wide`, at the same place."""
    if narrow == wide:
        return True
    _, first, last, lows, highs = lines
    at, end = first[wide], last[wide]
    for each in range(first[narrow], last[narrow]):
        while at < end and highs[at] < highs[each]:
            at += 1
        if at == end or lows[at] > lows[each]:
            return False
    return True


@nb.njit(nogil=True, cache=True)
def is_covered(narrow_flat, at, end, wide_flat, first, last, lines):  # type: ignore[no-untyped-def]
    """Whether the cube narrow_flat[at:end] lies within wide_flat[first:last]: at each place of the
    wide one ([MBD §2])."""
    place = lines[0]
    if end - at < last - first:
        return False
    for each in range(first, last):
        wanted = place[wide_flat[each]]
        while at < end and place[narrow_flat[at]] < wanted:
            at += 1
        if at == end or place[narrow_flat[at]] != wanted:
            return False
        if not lies_within(narrow_flat[at], wide_flat[each], lines):
            return False
    return True


@nb.njit(nogil=True, cache=True)
def scan_covering(  # type: ignore[no-untyped-def]
    new_start, new_flat, start, flat, alive, exact, lines, coverer, judged, news, entries
):
    """The first of two passes, entry by entry: who covers the new cubes that have no coverer yet?

    coverer[f]: an exact entry that covers new cube f. Entries before it that are not exact are
    listed for the judge, as pairs of news and entries, while judged[f] is left. How many there are.
    """
    used = 0
    for new in range(new_start.shape[0] - 1):
        if coverer[new] >= 0:
            continue
        own, own_end = new_start[new], new_start[new + 1]
        for entry in range(start.shape[0] - 1):
            if alive[entry] and is_covered(
                new_flat, own, own_end, flat, start[entry], start[entry + 1], lines
            ):
                if exact[entry]:
                    coverer[new] = entry
                    break
                if judged[new] > 0:
                    judged[new] -= 1
                    news[used], entries[used] = new, entry
                    used += 1
    return used


@nb.njit(nogil=True, cache=True)
def scan_covered(  # type: ignore[no-untyped-def]
    new_start, new_flat, new_exact, start, flat, alive, lines, judged, news, entries
):
    """The second pass: pairs of a new cube and an entry that lies within it. How many there are.

    An entry has one pair with a new cube that is exact; the others, as long as judged is left.
    """
    used = 0
    taken = np.zeros(start.shape[0], np.bool_)
    for new in range(new_start.shape[0] - 1):
        own, own_end = new_start[new], new_start[new + 1]
        for entry in range(start.shape[0] - 1):
            if not alive[entry] or taken[entry] or (not new_exact[new] and judged[new] == 0):
                continue
            if is_covered(flat, start[entry], start[entry + 1], new_flat, own, own_end, lines):
                if new_exact[new]:
                    taken[entry] = True
                else:
                    judged[new] -= 1
                news[used], entries[used] = new, entry
                used += 1
    return used


@nb.njit(nogil=True, cache=True)
def two_passes(start, flat, before, lines, coverer):  # type: ignore[no-untyped-def]
    """Insert the exact cubes from `before` on, one after the other, behind those that are there.

    coverer[e] is −1 for a root, and for any other entry one that covers it, or that did.
    """
    count = start.shape[0] - 1
    roots, root_count = np.empty(count, np.int64), 0
    for entry in range(before):
        if coverer[entry] < 0:
            roots[root_count] = entry
            root_count += 1
    for new in range(before, count):
        own, own_end = start[new], start[new + 1]
        coverer[new] = -1
        for at in range(root_count):
            root = roots[at]
            if is_covered(flat, own, own_end, flat, start[root], start[root + 1], lines):
                coverer[new] = root
                break
        if coverer[new] >= 0:
            continue
        kept = 0
        for at in range(root_count):
            root = roots[at]
            if is_covered(flat, start[root], start[root + 1], flat, own, own_end, lines):
                coverer[root] = new
            else:
                roots[kept] = root
                kept += 1
        roots[kept] = new
        root_count = kept + 1
