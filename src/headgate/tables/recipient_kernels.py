"""Who gets a message: the subscriptions in its region, found in the tree instead of one by one.

Join results of one tuple (Enum-J, Ref-J) are looked up together: who selects the tuple gets those
between two bounds, as they are in the order of their values.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.match.kernels import first_not_less
from headgate.tables.box_tree_kernels import Excluded, collect
from headgate.tables.change_kernels import (
    EXCLUDED,
    OF_CHANGE,
    OWN_SIDE,
    PAIRS,
    PARTNER,
    START,
)
from headgate.tables.question_kernels import ask_all, ask_containing, is_there


@nb.njit(nogil=True, cache=True)
def is_described(points, point, first, pairs):  # type: ignore[no-untyped-def]
    """Whether the ranges from dimension `first` on fit one pair (x, y)."""
    half = points.shape[1] // 2
    for pair in range(pairs.shape[0]):
        fits = True
        for d in range(pairs.shape[2]):
            m = first + d
            fits &= points[point, m] <= pairs[pair, 0, d]
            fits &= points[point, half + m] >= pairs[pair, 1, d]
        if fits:
            return True
    return False


@nb.njit(nogil=True, cache=True)
def find_recipients(line, numbers, widths, trees, question):  # type: ignore[no-untyped-def]
    """Places in the tree of those in the region of one message, in question.found; how many."""
    half = question.least.shape[0] // 2
    own = line[OWN_SIDE]
    own_width, other_width = widths[own], widths[1 - own]
    own_first, other_first = (0, own_width) if own == 0 else (other_width, 0)
    behind = line[START] + own_width
    points = numbers[behind : behind + line[EXCLUDED] * own_width].reshape(-1, own_width)
    behind += line[EXCLUDED] * own_width
    size = 2 * other_width * line[PAIRS]
    pairs = numbers[behind : behind + size].reshape(-1, 2, other_width)
    ask_all(question)
    ask_containing(question, own_first, numbers[line[START] : line[START] + own_width])
    for d in range(other_width):
        question.most[other_first + d] = pairs[:, 0, d].max()
        question.least[half + other_first + d] = pairs[:, 1, d].min()
    excluded = Excluded(points, own_first)
    tree = trees[own]
    count = collect(tree, question.least, question.most, excluded, question.stack, question.found)
    if line[PAIRS] == 1:
        return count
    used = 0
    for at in range(count):
        if is_described(tree.points, question.found[at], other_first, pairs):
            question.found[used] = question.found[at]
            used += 1
    return used


@nb.njit(nogil=True, cache=True)
def write_recipients(first, header, numbers, widths, trees, question, out, used):  # type: ignore[no-untyped-def]
    """Write who gets which messages, from message `first` on: lines (subscription, first, end).

    The messages from first up to end, without end, are for the subscription. Which message did not
    fit any more, and how many lines there are.
    """
    message = first
    while message < header.shape[0]:
        line = header[message]
        own, end = line[OWN_SIDE], message + 1
        if line[PARTNER] >= 0 and widths[0] == 1 and widths[1] == 1:
            while (
                end < header.shape[0]
                and header[end, PARTNER] >= 0
                and header[end, OF_CHANGE] == line[OF_CHANGE]
            ):
                end += 1
        if end == message + 1:
            count = find_recipients(line, numbers, widths, trees, question)
        else:
            values = numbers[line[START] + 1 : header[end - 1, START] + 3 : 3]
            count = find_affected(numbers[line[START]], values, own, trees, question)
        if used + count > out.shape[0]:
            return message, used
        tree = trees[own]
        for at in range(count):
            point = question.found[at]
            begin, behind = message, end
            if end > message + 1:
                low, high = tree.points[point, 1 - own], tree.points[point, 3 - own]
                begin = message + first_not_less(values, 0, values.shape[0], low)
                above = np.nextafter(high, np.inf)
                behind = message + first_not_less(values, 0, values.shape[0], above)
            if begin < behind:
                out[used, 0], out[used, 1], out[used, 2] = tree.subscription[point], begin, behind
                used += 1
        message = end
    return message, used


@nb.njit(nogil=True, cache=True)
def find_affected(value, values, own, trees, question):  # type: ignore[no-untyped-def]
    """Those who select a tuple and reach the values that it joins with, one attribute each."""
    ask_all(question)
    question.most[own] = question.least[2 + own] = value
    question.most[1 - own], question.least[3 - own] = values[-1], values[0]
    return collect(
        trees[own], question.least, question.most, question.none, question.stack, question.found
    )


@nb.njit(nogil=True, cache=True)
def mark_wanted_points(points, tree, question, out):  # type: ignore[no-untyped-def]
    """Whether any subscription's ranges contain each point; NaN is in all ranges."""
    half = points.shape[1]
    for row in range(points.shape[0]):
        ask_all(question)
        for d in range(half):
            if not np.isnan(points[row, d]):
                question.most[d] = question.least[half + d] = points[row, d]
        out[row] = is_there(question, tree, question.none)


@nb.njit(nogil=True, cache=True)
def selected_rows(tables, joins, low, high, keeps_unjoined, out):  # type: ignore[no-untyped-def]
    """Slots of the rows in one subscription's semijoins: all of the left table, then of the right.

    `out` is [2, room for all rows of a table]; how many there are of either.
    """
    used = np.zeros(2, np.int64)
    for join in range(joins):
        before = used[0], used[1]
        for side in range(2):
            index = tables[side]
            first = 0 if side == 0 else tables[0].value.shape[1]
            for place in range(index.start[join], index.start[join] + index.size[join]):
                slot, inside = index.pool[place], True
                for d in range(index.value.shape[1]):
                    inside &= low[first + d] <= index.value[slot, d] <= high[first + d]
                if inside:
                    out[side, used[side]] = slot
                    used[side] += 1
        if not keeps_unjoined and (used[0] == before[0] or used[1] == before[1]):
            used[0], used[1] = before
    return used
