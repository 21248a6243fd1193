"""The hot loop of Algorithm 4: covers of one view's attributes by the views embedded in it.

A choice of views is searched depth first. On each level the next view is the one of most interest;
what was tried on a level is not tried again below its later siblings, as all covers with it have
been seen: that is the paper's set of visited covers, without storing it. A level is left as soon as
the views that may still be chosen no longer cover what is missing.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.views.pattern_kernels import ALL, NODES_MAX, NONE, popcount
from headgate.views.trie_kernels import mixed

STEPS = 8
"""Steps of a search for each rewriting that is asked for; what it has not found then, it leaves."""
FIRST_CHOICES = 6
"""Of k rewritings, at most k / FIRST_CHOICES begin with the same view, as long as there are others:
a view can feed only so many."""
NODES_UNIT = 1 << 24
INTEREST_UNIT = 1 << 32


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
        number, tops = graph.number[view], graph.tops[view]
        count = find_covers(number, views, covers, wanted, tops, found, found_size)
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
def find_covers(view, views, covers, wanted, tops, found, found_size):  # type: ignore[no-untyped-def]
    """At most as many covers as `found` has lines, each minimal; how many there are.

    First with few covers for each view that is chosen first, then, if there is room, all others.
    """
    few = max(found.shape[0] // FIRST_CHOICES, 1)
    count = _search(view, views, covers, wanted, tops, found, found_size, 0, few)
    if count < found.shape[0]:
        every = found.shape[0]
        count = _search(view, views, covers, wanted, tops, found, found_size, count, every)
    return count


@nb.njit(nogil=True, cache=True)
def _search(view, views, covers, wanted, tops, found, found_size, count, most):  # type: ignore[no-untyped-def]
    """Add covers to those that are known, at most `most` with one first choice."""
    current = np.zeros(NODES_MAX + 1, np.uint64)
    chosen = np.empty(NODES_MAX, np.int64)
    tried_on = np.full(views.shape[0], -1, np.int64)
    level, steps, before = 0, STEPS * found.shape[0], count
    while count < found.shape[0] and steps > 0:
        steps -= 1
        best = -1
        if level == 0 or count - before < most:
            best = _most_interesting(view, views, covers, wanted, tops, current[level], tried_on)
        if best < 0:
            for at in range(views.shape[0]):
                if tried_on[at] == level:
                    tried_on[at] = -1
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
            if not _is_known(found, found_size, count, size):
                found_size[count] = size
                count += 1
        else:
            level += 1
    return count


@nb.njit(nogil=True, cache=True)
def _most_interesting(view, views, covers, wanted, tops, current, tried_on):  # type: ignore[no-untyped-def]
    """The view that covers most of what is missing, then of most nodes; -1 if no cover is left.

    `tops` has the highest attribute of each node. Within each node, adding all lower bits carries
    into the highest unless nothing was there: the bits that are left count nodes. Where all is
    equal a hash decides, so that not all queries lean on the same views.
    """
    missing, lower = wanted & ~current, wanted & ~tops
    best, most, reachable = -1, np.int64(-1), NONE
    for at in range(views.shape[0]):
        gain = covers[at] & missing
        if tried_on[at] >= 0 or gain == NONE:
            continue
        reachable |= gain
        interest = popcount(gain) * INTEREST_UNIT
        if interest + INTEREST_UNIT <= most:
            continue
        nodes = popcount((((gain & lower) + lower) | gain) & tops)
        spread = np.int64(mixed(view * 1_000_003 + views[at]) & np.uint64(NODES_UNIT - 1))
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
def _is_known(found, found_size, count, size):  # type: ignore[no-untyped-def]
    for line in range(count):
        if found_size[line] == size and np.all(found[line, :size] == found[count, :size]):
            return True
    return False
