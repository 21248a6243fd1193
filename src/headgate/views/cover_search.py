"""Search for covers of one view's attributes by views embedded in it ([Delta §4.3, Algorithm 4]).

Sets of views are searched depth first. On each level the next view is the one of most interest. A
view that was tried on a level is not tried again below its later siblings, because all covers with
it have been seen: this replaces the paper's set of visited covers without storing it. A level is
left as soon as the views that may still be chosen no longer cover the missing attributes.

A view can feed only a limited number of others, so the covers should not all use the same views.
The search begins with few covers for each first choice. The last of k rewritings are replaced by
covers of the least popular views: those at or below the lowest threshold that leaves a cover,

    max over attributes a of v    min over views u that cover a    popular[u]
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.views.label_trie import mixed
from headgate.views.pattern_arrays import ALL, NODES_MAX, NONE, ONE, Ints, Longs, Masks, popcount

STEPS = 8
"""Steps of a search for each rewriting that is asked for; what it has not found then, it leaves."""
FIRST_CHOICES = 6
"""Of k rewritings, at most k / FIRST_CHOICES begin with the same view, as long as there are others;
and as many are covers by the least popular views."""
FREE, NEVER = -1, NODES_MAX + 1
"""Instead of the level on which a view was tried: it may be chosen, or must not."""
NODES_UNIT = 1 << 24
INTEREST_UNIT = 1 << 32


class Query(NamedTuple):
    """A view whose covers are looked for, with the views that embed into it."""

    number: int
    views: Ints
    covers: Masks
    popular: Longs
    """[place among `views`]: how many views could read it."""
    wanted: np.uint64
    tops: np.uint64
    """The highest attribute of each node."""


@nb.njit(nogil=True, cache=True)
def covers_of_range(graph, first, end, k):  # type: ignore[no-untyped-def]
    """Of views first … end: how many rewritings each has, the size of each, their members."""
    counts = np.zeros(end - first, np.int64)
    sizes, members = np.empty(1024, np.int64), np.empty(1024, np.int32)
    used, sizes_used = 0, 0
    found, found_size = np.empty((k, NODES_MAX), np.int64), np.empty(k, np.int64)
    for view in range(first, end):
        views = graph.embedded[graph.start[view] : graph.start[view + 1]]
        covers = graph.covers[graph.start[view] : graph.start[view + 1]]
        if views.shape[0] == 0:
            continue
        wanted = ALL >> np.uint64(NODES_MAX - graph.attribute_count[view])
        popular = graph.popular[views]
        query = Query(graph.number[view], views, covers, popular, wanted, graph.tops[view])
        count = find_covers(query, found, found_size)
        counts[view - first] = count
        if sizes_used + count > sizes.shape[0]:
            sizes = np.append(sizes, np.empty(sizes.shape[0] + count, np.int64))
        for number in range(count):
            size = found_size[number]
            if used + size > members.shape[0]:
                members = np.append(members, np.empty(members.shape[0] + size, np.int32))
            for at in range(size):
                members[used + at] = views[found[number, at]]
            members[used : used + size].sort()
            used += size
            sizes[sizes_used] = size
            sizes_used += 1
    return counts, sizes[:sizes_used].copy(), members[:used].copy()


@nb.njit(nogil=True, cache=True)
def find_covers(query, found, found_size):  # type: ignore[no-untyped-def]
    """At most as many covers as `found` has lines, each minimal; how many there are.

    First with few covers for each view that is chosen first, then, if there is room, all others. If
    there is none, the last lines give way to covers by the least popular views.
    """
    lines = found.shape[0]
    few = max(lines // FIRST_CHOICES, 1)
    tried_on = np.full(query.views.shape[0], FREE, np.int64)
    count = _search(query, tried_on, found, found_size, 0, few)
    if count < lines:
        return _search(query, tried_on, found, found_size, count, lines)
    lean = np.empty((lines // FIRST_CHOICES, NODES_MAX), np.int64)
    lean_size = np.empty(few, np.int64)
    tried_on[query.popular > popularity_needed(query)] = NEVER
    last = lines
    for line in range(_search(query, tried_on, lean, lean_size, 0, 1)):
        size = lean_size[line]
        if not _is_known(found, found_size, lines, lean[line, :size]):
            last -= 1
            found[last, :size], found_size[last] = lean[line, :size], size
    return count


@nb.njit(nogil=True, cache=True)
def popularity_needed(query):  # type: ignore[no-untyped-def]
    """The lowest popularity at which views up to it cover the query, if any views do."""
    least = np.full(NODES_MAX, np.iinfo(np.int64).max, np.int64)
    for at in range(query.views.shape[0]):
        cover, popular = query.covers[at] & query.wanted, query.popular[at]
        while cover != NONE:
            lowest = cover & (~cover + ONE)
            bit = popcount(lowest - ONE)
            least[bit] = min(least[bit], popular)
            cover ^= lowest
    return least[: popcount(query.wanted)].max()


@nb.njit(nogil=True, cache=True)
def _search(query, tried_on, found, found_size, count, most):  # type: ignore[no-untyped-def]
    """Add covers to those that are known, at most `most` with one first choice.

    `tried_on` says what must not be chosen, and is left as it was found.
    """
    covers, wanted = query.covers, query.wanted
    current = np.zeros(NODES_MAX + 1, np.uint64)
    chosen = np.empty(NODES_MAX, np.int64)
    level, steps, before = 0, STEPS * found.shape[0], count
    while count < found.shape[0] and steps > 0:
        steps -= 1
        best = -1
        if level == 0 or count - before < most:
            best = _most_interesting(query, current[level], tried_on)
        if best < 0:
            _forget(tried_on, level)
            level -= 1
            if level < 0:
                break
            continue
        if level == 0:
            before = count
        tried_on[best] = level
        chosen[level] = best
        current[level + 1] = current[level] | covers[best]
        if current[level + 1] & wanted == wanted:
            size = _minimise(covers, wanted, chosen, level + 1, found[count])
            if not _is_known(found, found_size, count, found[count, :size]):
                found_size[count] = size
                count += 1
        else:
            level += 1
    for at in range(level + 1):
        _forget(tried_on, at)
    return count


@nb.njit(nogil=True, cache=True)
def _forget(tried_on, level):  # type: ignore[no-untyped-def]
    for at in range(tried_on.shape[0]):
        if tried_on[at] == level:
            tried_on[at] = FREE


@nb.njit(nogil=True, cache=True)
def _most_interesting(query, current, tried_on):  # type: ignore[no-untyped-def]
    """The view that covers most of what is missing, then of most nodes; -1 if no cover is left.

    Within each node, adding all lower bits carries into the highest unless nothing was there: the
    bits that are left count nodes. Where all is equal a hash decides, so that not all queries lean
    on the same views.
    """
    views, covers, tops = query.views, query.covers, query.tops
    missing, lower = query.wanted & ~current, query.wanted & ~tops
    best, most, reachable = -1, np.int64(-1), NONE
    for at in range(views.shape[0]):
        gain = covers[at] & missing
        if tried_on[at] != FREE or gain == NONE:
            continue
        reachable |= gain
        interest = popcount(gain) * INTEREST_UNIT
        if interest + INTEREST_UNIT <= most:
            continue
        nodes = popcount((((gain & lower) + lower) | gain) & tops)
        spread = np.int64(mixed(query.number * 1_000_003 + views[at]) & np.uint64(NODES_UNIT - 1))
        interest += nodes * NODES_UNIT + spread
        if interest > most or (interest == most and views[at] < views[best]):
            best, most = at, interest
    return best if reachable == missing else -1


@nb.njit(nogil=True, cache=True)
def _minimise(covers, wanted, chosen, size, out):  # type: ignore[no-untyped-def]
    """The choice without views that the others make redundant, sorted; how many are left."""
    left = 0
    for at in range(size):
        rest = NONE
        for other in range(left):
            rest |= covers[out[other]]
        for other in range(at + 1, size):
            rest |= covers[chosen[other]]
        if rest & wanted != wanted:
            out[left] = chosen[at]
            left += 1
    out[:left].sort()
    return left


@nb.njit(nogil=True, cache=True)
def _is_known(found, found_size, count, cover):  # type: ignore[no-untyped-def]
    size = cover.shape[0]
    for line in range(count):
        if found_size[line] == size and np.all(found[line, :size] == cover):
            return True
    return False
