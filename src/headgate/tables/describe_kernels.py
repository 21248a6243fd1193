"""Descriptive skylines: who of those that select a new tuple is affected (§3.2.1, App. B and C).

The rows that a tuple t joins with are points on the other table's attribute C. A subscription that
selects t is affected if its range on C contains one of them. A description is a list of pairs (x,
y); it means every subscription whose range [low, high] has `low ≤ x and high ≥ y` for one of them.

    joining rows            1  2 3         7  8          12
    ranges, all select t   ├──┤      ├─┤    ├───────────────┤       the middle one is unaffected

    Ref-SJ-Tup    (1,1) (2,2) (3,3) (7,7) (8,8) (12,12)      one pair for each row
    Ref-SJ-Clu    those next to an anchor
    Ref-SJ-Clu+   (3,1) (12,7)     a pair for each run of rows between which no one is unaffected
    Ref-SJ-Sub    the ranges of the affected themselves, without those that contain another

Law (Theorem 2): a subscription that selects t is described if and only if it is affected. For
others nothing is promised, as the message says which tuple must be selected.

Clu and Clu+ here differ from the paper in two points. What no one needs is left out: from left to
right a row or a run is kept if it is someone's last one whom no kept one has served. That is the
least number of them (stabbing intervals greedily); if no one is affected, there is none, and no
message. So Clu+ is never longer than Clu, nor Clu than Sub. And Appendix B looks at each anchor
between two rows and asks its R-tree for an unaffected one; `mark_gaps` is one walk through the tree
for all gaps, which leaves every part whose ranges all contain a common row. Only ranges about as
narrow as a gap are looked at one by one. Cost: Clu one pass over the anchors, Clu+ that walk; and
one question for each pair.

With several attributes (Appendix C) pairs are rows as in Tup, of which Clu keeps each anchor's
envelope: the rows that have no other row in the box between themselves and the anchor. Clu+ leaves
out those that no subscription contains that selects t.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.match.kernels import first_not_less
from headgate.tables.box_tree_kernels import (
    LEAF,
    collect,
    is_within,
    may_hold,
    push_children,
)
from headgate.tables.question_kernels import (
    ask_containing,
    ask_range,
    is_there,
    value_at,
)
from headgate.tables.table_kernels import first_at_least

TUP, CLU, CLU_PLUS, SUB, EVERYONE = 0, 1, 2, 3, 4


@nb.njit(nogil=True, cache=True)
def write_pair(out, used, x, y):  # type: ignore[no-untyped-def]
    out[used], out[used + 1] = x, y
    return used + 2


@nb.njit(nogil=True, cache=True)
def describe(flavour, tree, question, other, join, anchors, out, used):  # type: ignore[no-untyped-def]
    """Write the pairs to out[used:]; where they end. The question says who selects the tuple."""
    if flavour == EVERYONE:
        for _ in range(other.value.shape[1]):
            out[used], used = np.inf, used + 1
        for _ in range(other.value.shape[1]):
            out[used], used = -np.inf, used + 1
        return used
    begin, end = other.start[join], other.start[join] + other.size[join]
    if begin == end:
        return used
    if other.value.shape[1] > 1:
        return describe_points(flavour, tree, question, other, begin, end, anchors, out, used)
    if flavour == TUP:
        return describe_rows(other, begin, end, out, used)
    if flavour == SUB:
        return describe_affected(tree, question, other, join, out, used)
    if flavour == CLU:
        found = find_near(other, begin, end, anchors, out, used)
    else:
        found = find_runs(tree, question, other, join, out, used)
    return keep_needed(tree, question, out, used, found)


@nb.njit(nogil=True, cache=True)
def describe_rows(other, begin, end, out, used):  # type: ignore[no-untyped-def]
    """Ref-SJ-Tup."""
    for place in range(begin, end):
        value = value_at(other, place)
        if place == begin or value > value_at(other, place - 1):
            used = write_pair(out, used, value, value)
    return used


@nb.njit(nogil=True, cache=True)
def find_near(other, begin, end, anchors, out, used):  # type: ignore[no-untyped-def]
    """Write the rows next to each anchor, which come in order as the anchors do."""
    last, place = np.nan, begin
    for cluster in range(anchors.shape[0]):
        anchor = anchors[cluster, 0]
        while place < end and value_at(other, place) < anchor:
            place += 1
        if place > begin and (place == end or value_at(other, place) > anchor):
            value = value_at(other, place - 1)
            if not value <= last:
                used, last = write_pair(out, used, value, value), value
        if place < end:
            value = value_at(other, place)
            if not value <= last:
                used, last = write_pair(out, used, value, value), value
    return used


@nb.njit(nogil=True, cache=True)
def describe_affected(tree, question, other, join, out, used):  # type: ignore[no-untyped-def]
    """Ref-SJ-Sub: of the affected ranges those that contain no other."""
    begin, end = other.start[join], other.start[join] + other.size[join]
    ask_range(question, -np.inf, value_at(other, end - 1), value_at(other, begin), np.inf)
    found = question.found
    count = collect(tree, question.least, question.most, question.none, question.stack, found)
    low, high = question.first, question.least.shape[0] // 2 + question.first
    affected = 0
    for at in range(count):
        point = found[at]
        place = first_at_least(other, join, tree.points[point, low])
        if value_at(other, place) <= tree.points[point, high]:
            found[affected] = point
            affected += 1
    chosen = found[:affected]
    lows, highs = np.empty(affected), np.empty(affected)
    for at in range(affected):
        lows[at], highs[at] = tree.points[chosen[at], low], tree.points[chosen[at], high]
    by_low = np.argsort(-lows, kind="mergesort")
    order = by_low[np.argsort(highs[by_low], kind="mergesort")]
    last = np.nan
    for at in order:
        if not lows[at] <= last:
            used, last = write_pair(out, used, lows[at], highs[at]), lows[at]
    return used


@nb.njit(nogil=True, cache=True)
def values_of(index, begin, end):  # type: ignore[no-untyped-def]
    """The distinct values of a piece, in order."""
    values, used = np.empty(end - begin), 0
    for place in range(begin, end):
        value = value_at(index, place)
        if used == 0 or value > values[used - 1]:
            values[used], used = value, used + 1
    return values[:used]


@nb.njit(nogil=True, cache=True)
def mark_gaps(tree, question, values, is_split):  # type: ignore[no-untyped-def]
    """Which gaps between consecutive values hold the range of someone that the question asks for.

    One walk for all gaps. A part of the tree is left where all its ranges contain a common value,
    or where all of them lie in a gap that is marked already.
    """
    low, high = question.first, question.least.shape[0] // 2 + question.first
    stack, count = question.stack, values.shape[0]
    for tier in range(tree.tiers.shape[0]):
        start, size, root = tree.tiers[tier]
        stack[0, 0], stack[0, 1], stack[0, 2] = 0, start, start + size
        top = 1
        while top > 0:
            top -= 1
            number, begin, end = stack[top]
            node = root + number
            if not may_hold(tree, node, question.least, question.most):
                continue
            at = first_not_less(values, 0, count, tree.box_most[node, low])
            if at < count and values[at] <= tree.box_least[node, high]:
                continue
            gap = first_not_less(values, 0, count, tree.box_least[node, low])
            if gap < count and is_split[gap] and tree.box_most[node, high] < values[gap]:
                continue
            if end - begin > LEAF:
                top = push_children(stack, top, number, begin, end)
                continue
            for point in range(begin, end):
                if is_within(tree.points, point, question.least, question.most):
                    at = first_not_less(values, 0, count, tree.points[point, low])
                    if tree.points[point, high] < values[at]:
                        is_split[at] = True


@nb.njit(nogil=True, cache=True)
def find_runs(tree, question, other, join, out, used):  # type: ignore[no-untyped-def]
    """Write every run as (last, first): rows with no unaffected range between two of them."""
    values = values_of(other, other.start[join], other.start[join] + other.size[join])
    is_split = np.zeros(values.shape[0], np.bool_)  # before which value a run ends
    after, before = np.nextafter(values[0], np.inf), np.nextafter(values[-1], -np.inf)
    ask_range(question, after, np.inf, -np.inf, before)
    if values.shape[0] > 1:
        mark_gaps(tree, question, values, is_split)
    first = values[0]
    for at in range(1, values.shape[0]):
        if is_split[at]:
            used = write_pair(out, used, values[at - 1], first)
            first = values[at]
    return write_pair(out, used, values[-1], first)


@nb.njit(nogil=True, cache=True)
def keep_needed(tree, question, out, begin, end):  # type: ignore[no-untyped-def]
    """Of pairs (last, first) of disjoint stretches in order, keep those that are needed."""
    kept, served = begin, -np.inf
    for pair in range(begin, end, 2):
        last, first = out[pair], out[pair + 1]
        before_next = np.nextafter(out[pair + 3], -np.inf) if pair + 2 < end else np.inf
        ask_range(question, served, last, first, before_next)
        if is_there(question, tree, question.none):
            kept = write_pair(out, kept, last, first)
            served = np.nextafter(last, np.inf)
    return kept


@nb.njit(nogil=True, cache=True)
def between(one, value, other):  # type: ignore[no-untyped-def]
    """Whether a point is in the least box that contains two others."""
    for d in range(value.shape[0]):
        if not min(one[d], other[d]) <= value[d] <= max(one[d], other[d]):
            return False
    return True


@nb.njit(nogil=True, cache=True)
def envelope(index, begin, end, point, kept):  # type: ignore[no-untyped-def]
    """Definition 2: the rows with no other row between themselves and the point; of equal rows one.

    Their slots are written to `kept`; how many they are.
    """
    used = 0
    for place in range(begin, end):
        slot = index.pool[place]
        hidden, still = False, 0
        for at in range(used):
            if between(point, index.value[kept[at]], index.value[slot]):
                hidden = True
                break
        if hidden:
            continue
        for at in range(used):
            if not between(point, index.value[slot], index.value[kept[at]]):
                kept[still] = kept[at]
                still += 1
        kept[still] = slot
        used = still + 1
    return used


@nb.njit(nogil=True, cache=True)
def describe_points(flavour, tree, question, other, begin, end, anchors, out, used):  # type: ignore[no-untyped-def]
    """With several attributes: rows, all or those of some anchor's envelope (Appendix C)."""
    chosen = np.zeros(end - begin, np.bool_)
    if flavour in (TUP, SUB):
        chosen[:] = True
    else:
        kept = np.empty(end - begin, np.int64)
        place_of = np.argsort(other.pool[begin:end])
        slots = other.pool[begin:end][place_of]
        for cluster in range(anchors.shape[0]):
            for at in range(envelope(other, begin, end, anchors[cluster], kept)):
                chosen[place_of[np.searchsorted(slots, kept[at])]] = True
    for at in range(end - begin):
        if not chosen[at]:
            continue
        values = other.value[other.pool[begin + at]]
        if flavour in (CLU_PLUS, SUB):
            ask_containing(question, question.first, values)
            if not is_there(question, tree, question.none):
                continue
        for _ in range(2):
            for d in range(values.shape[0]):
                out[used], used = values[d], used + 1
    return used
