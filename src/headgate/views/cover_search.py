"""Search for covers of one view's attributes by views embedded in it ([Delta §4.3, Algorithm 4]).

Sets of views are searched depth first. On each level the next view is the one that covers most of
the missing attributes. A view that was tried on a level is not tried again below its later
siblings, because all covers with it have been visited. So no set of visited covers is stored, as in
the paper. A level is abandoned as soon as the remaining views do not cover the missing attributes.

A view can feed only a limited number of others, so the covers should not all use the same views.
The search first takes few covers for each first choice. The last of k rewritings are replaced by
covers of the least popular views: those up to the lowest popularity at which a cover exists,

    max over attributes a of v    min over views u that cover a    popular[u]
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.views.label_trie import mixed
from headgate.views.pattern_arrays import ALL, NODES_MAX, NONE, ONE, Ints, Longs, Masks, popcount

STEPS = 8
"""A search for k rewritings takes at most STEPS * k steps; covers beyond that are not found."""
FIRST_CHOICES = 6
"""At most k / FIRST_CHOICES of k rewritings begin with the same view, as long as there are others.
As many are covers by the least popular views."""
FREE, NEVER = -1, NODES_MAX + 1
"""Values of `tried_on` that are no level: the view may be chosen, or must not be chosen."""
NODES_UNIT = 1 << 24
INTEREST_UNIT = 1 << 32


class Query(NamedTuple):
    """A view for which covers are searched, with the views that embed into it."""

    number: int
    views: Ints
    covers: Masks
    popular: Longs
    """[position in `views`]: how many views could read it."""
    required: np.uint64
    """The attributes that a cover must have."""
    tops: np.uint64
    """The highest attribute of each node."""


@nb.njit(nogil=True, cache=True)
def covers_of_range(graph, first, end, k):  # type: ignore[no-untyped-def]
    """Covers of views first … end − 1: the number for each view, the size of each, their members.

    graph  rewrite_cgr.Coverage
    k      at most this many covers for a view
    Returns counts int64 [view], sizes int64 [cover], members int32, ascending within a cover.
    """
    counts = np.zeros(end - first, np.int64)
    sizes, members = np.empty(1024, np.int64), np.empty(1024, np.int32)
    used, sizes_used = 0, 0
    covers_found, cover_sizes = np.empty((k, NODES_MAX), np.int64), np.empty(k, np.int64)
    for view in range(first, end):
        views = graph.embedded[graph.start[view] : graph.start[view + 1]]
        covers = graph.covers[graph.start[view] : graph.start[view + 1]]
        if views.shape[0] == 0:
            continue
        required = ALL >> np.uint64(NODES_MAX - graph.attribute_count[view])
        popular = graph.popular[views]
        query = Query(graph.number[view], views, covers, popular, required, graph.tops[view])
        count = find_covers(query, covers_found, cover_sizes)
        counts[view - first] = count
        if sizes_used + count > sizes.shape[0]:
            sizes = np.append(sizes, np.empty(sizes.shape[0] + count, np.int64))
        for number in range(count):
            size = cover_sizes[number]
            if used + size > members.shape[0]:
                members = np.append(members, np.empty(members.shape[0] + size, np.int32))
            for position in range(size):
                members[used + position] = views[covers_found[number, position]]
            members[used : used + size].sort()
            used += size
            sizes[sizes_used] = size
            sizes_used += 1
    return counts, sizes[:sizes_used].copy(), members[:used].copy()


@nb.njit(nogil=True, cache=True)
def find_covers(query, covers_found, cover_sizes):  # type: ignore[no-untyped-def]
    """Fill the lines of `covers_found` with minimal covers; returns how many there are.

    query         Query
    covers_found  int64 [k, NODES_MAX]  out: positions in query.views
    cover_sizes   int64 [k]             out

    The first search takes few covers for each first choice. If lines are left, a second search
    takes all others. If none is left, covers by the least popular views replace the last lines.
    """
    lines = covers_found.shape[0]
    few = max(lines // FIRST_CHOICES, 1)
    tried_on = np.full(query.views.shape[0], FREE, np.int64)
    count = _search(query, tried_on, covers_found, cover_sizes, 0, few)
    if count < lines:
        return _search(query, tried_on, covers_found, cover_sizes, count, lines)
    lean = np.empty((lines // FIRST_CHOICES, NODES_MAX), np.int64)
    lean_size = np.empty(few, np.int64)
    tried_on[query.popular > popularity_needed(query)] = NEVER
    last = lines
    for line in range(_search(query, tried_on, lean, lean_size, 0, 1)):
        size = lean_size[line]
        if not _is_listed(covers_found, cover_sizes, lines, lean[line, :size]):
            last -= 1
            covers_found[last, :size], cover_sizes[last] = lean[line, :size], size
    return count


@nb.njit(nogil=True, cache=True)
def popularity_needed(query):  # type: ignore[no-untyped-def]
    """The lowest p such that the views of popularity ≤ p cover the query, if all views do."""
    least = np.full(NODES_MAX, np.iinfo(np.int64).max, np.int64)
    for position in range(query.views.shape[0]):
        cover, popular = query.covers[position] & query.required, query.popular[position]
        while cover != NONE:
            lowest = cover & (~cover + ONE)
            bit = popcount(lowest - ONE)
            least[bit] = min(least[bit], popular)
            cover ^= lowest
    return least[: popcount(query.required)].max()


@nb.njit(nogil=True, cache=True)
def _search(query, tried_on, covers_found, cover_sizes, count, per_first_choice):  # type: ignore[no-untyped-def]
    """Add covers after the first `count`, at most `per_first_choice` for one first choice.

    tried_on  int64 [view]  FREE, NEVER or the level on which it was tried; restored at the end
    Returns the new number of covers.
    """
    covers, required = query.covers, query.required
    current = np.zeros(NODES_MAX + 1, np.uint64)
    chosen = np.empty(NODES_MAX, np.int64)
    level, steps, before = 0, STEPS * covers_found.shape[0], count
    while count < covers_found.shape[0] and steps > 0:
        steps -= 1
        best = -1
        if level == 0 or count - before < per_first_choice:
            best = _most_interesting(query, current[level], tried_on)
        if best < 0:
            _release_level(tried_on, level)
            level -= 1
            if level < 0:
                break
            continue
        if level == 0:
            before = count
        tried_on[best] = level
        chosen[level] = best
        current[level + 1] = current[level] | covers[best]
        if current[level + 1] & required == required:
            size = _minimise(covers, required, chosen, level + 1, covers_found[count])
            if not _is_listed(covers_found, cover_sizes, count, covers_found[count, :size]):
                cover_sizes[count] = size
                count += 1
        else:
            level += 1
    for tried_level in range(level + 1):
        _release_level(tried_on, tried_level)
    return count


@nb.njit(nogil=True, cache=True)
def _release_level(tried_on, level):  # type: ignore[no-untyped-def]
    for position in range(tried_on.shape[0]):
        if tried_on[position] == level:
            tried_on[position] = FREE


@nb.njit(nogil=True, cache=True)
def _most_interesting(query, current, tried_on):  # type: ignore[no-untyped-def]
    """The view that covers most missing attributes, then those of most nodes; -1 if the remaining
    views cannot complete a cover.

    Nodes are counted without a loop: within the bits of each node, adding all lower bits carries
    into the highest bit unless no bit was set. A hash breaks ties, so that queries do not all use
    the same views.
    """
    views, covers, tops = query.views, query.covers, query.tops
    missing, lower = query.required & ~current, query.required & ~tops
    best, best_interest, reachable = -1, np.int64(-1), NONE
    for position in range(views.shape[0]):
        gain = covers[position] & missing
        if tried_on[position] != FREE or gain == NONE:
            continue
        reachable |= gain
        interest = popcount(gain) * INTEREST_UNIT
        if interest + INTEREST_UNIT <= best_interest:
            continue
        nodes = popcount((((gain & lower) + lower) | gain) & tops)
        spread = np.int64(
            mixed(query.number * 1_000_003 + views[position]) & np.uint64(NODES_UNIT - 1)
        )
        interest += nodes * NODES_UNIT + spread
        if interest > best_interest or (
            interest == best_interest and views[position] < views[best]
        ):
            best, best_interest = position, interest
    return best if reachable == missing else -1


@nb.njit(nogil=True, cache=True)
def _minimise(covers, required, chosen, size, out):  # type: ignore[no-untyped-def]
    """Write the chosen views without redundant ones to `out`, sorted; returns their number."""
    kept_count = 0
    for position in range(size):
        others_cover = NONE
        for other in range(kept_count):
            others_cover |= covers[out[other]]
        for other in range(position + 1, size):
            others_cover |= covers[chosen[other]]
        if others_cover & required != required:
            out[kept_count] = chosen[position]
            kept_count += 1
    out[:kept_count].sort()
    return kept_count


@nb.njit(nogil=True, cache=True)
def _is_listed(covers_found, cover_sizes, count, cover):  # type: ignore[no-untyped-def]
    size = cover.shape[0]
    for line in range(count):
        if cover_sizes[line] == size and np.all(covers_found[line, :size] == cover):
            return True
    return False
