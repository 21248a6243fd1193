"""Descriptive skylines: which of the subscriptions that select a tuple are affected
([Select-Joins §3.2.1, Appendix B, C]).

The rows that a tuple t joins with are points on the other table's attribute C. A subscription that
selects t is affected if its range on C contains one of them. A description is a list of pairs (x,
y); it describes all subscriptions whose range [low, high] has `low ≤ x and high ≥ y` for one pair.

    joining rows            1  2 3         7  8          12
    ranges, all select t   ├──┤      ├─┤    ├───────────────┤       the middle one is unaffected

    Ref-SJ-Tup    (1,1) (2,2) (3,3) (7,7) (8,8) (12,12)      one pair per row
    Ref-SJ-Clu    those next to an anchor
    Ref-SJ-Clu+   (3,1) (12,7)     one pair per run of rows without an unaffected range in between
    Ref-SJ-Sub    the affected ranges themselves, without those that contain another

Invariant (Theorem 2): a subscription that selects t is described if and only if it is affected.
Others do not matter, as the message also names the tuple that must be selected.

Clu and Clu+ differ from the paper in two points. First, pairs that describe nobody new are left
out: from left to right a row or run is kept if it is the last one for some affected subscription
that no kept pair describes yet. That is the least number of pairs (stabbing intervals greedily); if
nobody is affected there is none, and no message. So Clu+ is never longer than Clu, nor Clu than
Sub. Second, Appendix B looks at each anchor between two rows and queries its R-tree for an
unaffected range; `mark_gaps` is one walk through the tree for all gaps, and prunes every node whose
ranges all contain a common row. Cost: Clu one pass over the anchors, Clu+ that walk; then one query
per pair.

With several attributes (Appendix C) pairs are rows as in Tup, of which Clu keeps each anchor's
envelope: the rows that have no other row in the box between themselves and the anchor. Clu+ also
leaves out rows that no subscription contains that selects t."""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.match.bit_rows import first_not_less
from headgate.tables.box_tree_kernels import (
    LEAF,
    BoxQuery,
    Floats,
    Tree,
    any_match,
    collect,
    is_within,
    may_contain,
    push_children,
    require_containing,
    require_range,
)
from headgate.tables.table_kernels import RowIndex, first_at_least, value_at

TUP, CLU, CLU_PLUS, SUB, EVERYONE = 0, 1, 2, 3, 4
"""Kinds of descriptions; EVERYONE means all subscriptions that select the tuple (Rel-Sel)."""


class ChangeEvent(NamedTuple):
    """A change of one table, with the tables and subscriptions that it is checked with."""

    number: int  # position in the batch
    side: int  # the table that changes
    join: int  # code of the join value
    own_first: int  # the first dimension of the table that changes
    own: RowIndex  # rows of the table that changes
    other: RowIndex  # rows of the other table
    tree: Tree  # the subscriptions
    query: BoxQuery
    anchors: Floats  # of the other table


@nb.njit(nogil=True, cache=True)
def write_pair(out, used, x, y):  # type: ignore[no-untyped-def]
    out[used], out[used + 1] = x, y
    return used + 2


@nb.njit(nogil=True, cache=True)
def describe(description, event, out, used):  # type: ignore[no-untyped-def]
    """Write the pairs that describe who is affected to out[used:] (float64); return their end.

    `event.query` selects the subscriptions that select the tuple.
    """
    other_rows, join = event.other, event.join
    if description == EVERYONE:
        for _ in range(other_rows.value.shape[1]):
            out[used], used = np.inf, used + 1
        for _ in range(other_rows.value.shape[1]):
            out[used], used = -np.inf, used + 1
        return used
    begin, end = other_rows.start[join], other_rows.start[join] + other_rows.size[join]
    if begin == end:
        return used
    if other_rows.value.shape[1] > 1:
        return describe_points(description, event, out, used)
    if description == TUP:
        return describe_rows(other_rows, begin, end, out, used)
    if description == SUB:
        return describe_affected(event, out, used)
    if description == CLU:
        end_of_pairs = find_near_anchors(event, out, used)
    else:
        end_of_pairs = find_runs(event, out, used)
    return keep_needed(event.tree, event.query, out, used, end_of_pairs)


@nb.njit(nogil=True, cache=True)
def describe_rows(other_rows, begin, end, out, used):  # type: ignore[no-untyped-def]
    """Ref-SJ-Tup: one pair per distinct value of the joining rows."""
    for place in range(begin, end):
        value = value_at(other_rows, place)
        if place == begin or value > value_at(other_rows, place - 1):
            used = write_pair(out, used, value, value)
    return used


@nb.njit(nogil=True, cache=True)
def find_near_anchors(event, out, used):  # type: ignore[no-untyped-def]
    """Write the rows next to each anchor, in ascending order as the anchors are."""
    other_rows, anchors = event.other, event.anchors
    begin = other_rows.start[event.join]
    end = begin + other_rows.size[event.join]
    last, place = np.nan, begin
    for cluster in range(anchors.shape[0]):
        anchor = anchors[cluster, 0]
        while place < end and value_at(other_rows, place) < anchor:
            place += 1
        if place > begin and (place == end or value_at(other_rows, place) > anchor):
            value = value_at(other_rows, place - 1)
            if not value <= last:
                used, last = write_pair(out, used, value, value), value
        if place < end:
            value = value_at(other_rows, place)
            if not value <= last:
                used, last = write_pair(out, used, value, value), value
    return used


@nb.njit(nogil=True, cache=True)
def describe_affected(event, out, used):  # type: ignore[no-untyped-def]
    """Ref-SJ-Sub: the affected ranges that contain no other affected range."""
    tree, query, other_rows, join = event.tree, event.query, event.other, event.join
    begin, end = other_rows.start[join], other_rows.start[join] + other_rows.size[join]
    require_range(
        query, -np.inf, value_at(other_rows, end - 1), value_at(other_rows, begin), np.inf
    )
    hits = query.hits
    count = collect(tree, query, query.no_exclusions)
    low, high = query.other_first, query.least.shape[0] // 2 + query.other_first
    affected = 0
    for rank in range(count):
        point = hits[rank]
        place = first_at_least(other_rows, join, tree.points[point, low])
        if value_at(other_rows, place) <= tree.points[point, high]:
            hits[affected] = point
            affected += 1
    chosen = hits[:affected]
    lows, highs = np.empty(affected), np.empty(affected)
    for rank in range(affected):
        lows[rank], highs[rank] = tree.points[chosen[rank], low], tree.points[chosen[rank], high]
    by_low = np.argsort(-lows, kind="mergesort")
    order = by_low[np.argsort(highs[by_low], kind="mergesort")]
    last = np.nan
    for rank in order:
        if not lows[rank] <= last:
            used, last = write_pair(out, used, lows[rank], highs[rank]), lows[rank]
    return used


@nb.njit(nogil=True, cache=True)
def values_of(index, begin, end):  # type: ignore[no-untyped-def]
    """The distinct values of pool[begin:end], ascending."""
    values, used = np.empty(end - begin), 0
    for place in range(begin, end):
        value = value_at(index, place)
        if used == 0 or value > values[used - 1]:
            values[used], used = value, used + 1
    return values[:used]


@nb.njit(nogil=True, cache=True)
def mark_gaps(tree, query, values, is_split):  # type: ignore[no-untyped-def]
    """Mark the gaps between consecutive values that contain the range of a subscription within the
    query: is_split[at] (bool) for the gap before values[at] (float64, ascending).

    One walk for all gaps. A node is pruned if all its ranges contain a common value, or if all of
    them lie in a gap that is marked already.
    """
    low, high = query.other_first, query.least.shape[0] // 2 + query.other_first
    stack, count = query.stack, values.shape[0]
    for tier in range(tree.tiers.shape[0]):
        start, size, root = tree.tiers[tier]
        stack[0, 0], stack[0, 1], stack[0, 2] = 0, start, start + size
        top = 1
        while top > 0:
            top -= 1
            number, begin, end = stack[top]
            node = root + number
            if not may_contain(tree, node, query.least, query.most):
                continue
            gap_of_low = first_not_less(values, 0, count, tree.box_most[node, low])
            if gap_of_low < count and values[gap_of_low] <= tree.box_least[node, high]:
                continue
            gap = first_not_less(values, 0, count, tree.box_least[node, low])
            if gap < count and is_split[gap] and tree.box_most[node, high] < values[gap]:
                continue
            if end - begin > LEAF:
                top = push_children(stack, top, number, begin, end)
                continue
            for point in range(begin, end):
                if is_within(tree.points, point, query.least, query.most):
                    gap_of_low = first_not_less(values, 0, count, tree.points[point, low])
                    if tree.points[point, high] < values[gap_of_low]:
                        is_split[gap_of_low] = True


@nb.njit(nogil=True, cache=True)
def find_runs(event, out, used):  # type: ignore[no-untyped-def]
    """Write every run as (last, first): rows without an unaffected range between two of them."""
    tree, query, other_rows, join = event.tree, event.query, event.other, event.join
    values = values_of(
        other_rows, other_rows.start[join], other_rows.start[join] + other_rows.size[join]
    )
    is_split = np.zeros(values.shape[0], np.bool_)  # before which value a run ends
    after, before = np.nextafter(values[0], np.inf), np.nextafter(values[-1], -np.inf)
    require_range(query, after, np.inf, -np.inf, before)
    if values.shape[0] > 1:
        mark_gaps(tree, query, values, is_split)
    first = values[0]
    for gap in range(1, values.shape[0]):
        if is_split[gap]:
            used = write_pair(out, used, values[gap - 1], first)
            first = values[gap]
    return write_pair(out, used, values[-1], first)


@nb.njit(nogil=True, cache=True)
def keep_needed(tree, query, out, begin, end):  # type: ignore[no-untyped-def]
    """Keep those of the ascending disjoint pairs (last, first) that describe a subscription that no
    kept pair describes; return their end."""
    kept, served = begin, -np.inf
    for pair in range(begin, end, 2):
        last, first = out[pair], out[pair + 1]
        before_next = np.nextafter(out[pair + 3], -np.inf) if pair + 2 < end else np.inf
        require_range(query, served, last, first, before_next)
        if any_match(tree, query, query.no_exclusions):
            kept = write_pair(out, kept, last, first)
            served = np.nextafter(last, np.inf)
    return kept


@nb.njit(nogil=True, cache=True)
def between(point, value, corner):  # type: ignore[no-untyped-def]
    """Whether `value` is in the least box that contains the two other points."""
    for d in range(value.shape[0]):
        if not min(point[d], corner[d]) <= value[d] <= max(point[d], corner[d]):
            return False
    return True


@nb.njit(nogil=True, cache=True)
def envelope(index, begin, end, point, kept):  # type: ignore[no-untyped-def]
    """Definition 2: the rows without another row between themselves and the point.

    Writes their slots to `kept` (int64), one of equal rows; returns how many.
    """
    used = 0
    for place in range(begin, end):
        slot = index.pool[place]
        hidden, still = False, 0
        for rank in range(used):
            if between(point, index.value[kept[rank]], index.value[slot]):
                hidden = True
                break
        if hidden:
            continue
        for rank in range(used):
            if not between(point, index.value[slot], index.value[kept[rank]]):
                kept[still] = kept[rank]
                still += 1
        kept[still] = slot
        used = still + 1
    return used


@nb.njit(nogil=True, cache=True)
def describe_points(description, event, out, used):  # type: ignore[no-untyped-def]
    """With several attributes: all rows, or those of some anchor's envelope (Appendix C)."""
    tree, query, other_rows, anchors = event.tree, event.query, event.other, event.anchors
    begin = other_rows.start[event.join]
    end = begin + other_rows.size[event.join]
    chosen = np.zeros(end - begin, np.bool_)
    if description in (TUP, SUB):
        chosen[:] = True
    else:
        kept = np.empty(end - begin, np.int64)
        place_of = np.argsort(other_rows.pool[begin:end], kind="mergesort")
        slots = other_rows.pool[begin:end][place_of]
        for cluster in range(anchors.shape[0]):
            for row in range(envelope(other_rows, begin, end, anchors[cluster], kept)):
                chosen[place_of[np.searchsorted(slots, kept[row])]] = True
    for row in range(end - begin):
        if not chosen[row]:
            continue
        values = other_rows.value[other_rows.pool[begin + row]]
        if description in (CLU_PLUS, SUB):
            require_containing(query, query.other_first, values)
            if not any_match(tree, query, query.no_exclusions):
                continue
        for _ in range(2):
            for d in range(values.shape[0]):
                out[used], used = values[d], used + 1
    return used
