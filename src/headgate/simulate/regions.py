"""Regions of messages, and the test whether a region meets a box ([Select-Joins §3.2]).

A network knows regions, sizes and payloads, but no joins. `regions_of` and `load_of` convert the
messages of a select-join server. Each row has its own payload, so a join result has two; the id of
a payload is the number of the row's version, which is never used again. A deletion has no payload.

A subscription is a point with a coordinate for each bound of its ranges, all lower bounds first, as
in tables/box_tree_kernels.py. A zone, a filter and a block of subscriptions are boxes of such
points, closed on both sides. A region meets a box if it may contain a point there; a point is a box
with equal sides, so the same test decides who gets a message:

    own table      some range of the box contains `selected`, and the tightest of those that do
                   contains none of `excluded` (a wider one contains more)
    other table    for one pair (x, y): least lower bound ≤ x, and greatest upper bound ≥ y

Invariant: `meets` is exact for boxes; for points it equals `Region.holds`. The coordinates of the
two tables are independent in a box, so the two parts are tested one by one. A place without a
subscription is NaN, and meets nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.simulate.cn_star import PAYLOADS, Load
from headgate.simulate.recent_entries import NONE
from headgate.tables import message_buffer as columns
from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.messages import MessageBatch, MessageKind


def regions_of(messages: MessageBatch) -> Regions:
    header, names = messages.header, (columns.OWN_SIDE, columns.START)
    own, start, excluded, pairs = (
        np.ascontiguousarray(header[:, each]) for each in (*names, columns.EXCLUDED, columns.PAIRS)
    )
    widths = np.array([each.dimensions for each in messages.rows], np.int64)
    return Regions(own, start, excluded, pairs, messages.numbers, widths)


def load_of(messages: MessageBatch, numbers: tuple[Longs, Longs]) -> Load:
    """What each message weighs, and the payloads in it; `numbers` are those of rows, by table and
    slot."""
    header = messages.header
    ids: Longs = np.full((len(messages), PAYLOADS), NONE, np.int64)
    sizes: Longs = np.zeros((len(messages), PAYLOADS), np.int64)
    is_paid = header[:, columns.MESSAGE_KIND] == MessageKind.INSERT
    for side, source in enumerate(messages.rows):
        is_own = header[:, columns.ROW_SIDE] == side
        own, partner = is_paid & is_own, is_paid & ~is_own & (header[:, columns.PARTNER] >= 0)
        for at, which, slot in ((0, own, columns.SLOT), (1, partner, columns.PARTNER)):
            slots = header[which, slot]
            ids[which, at] = numbers[side][slots]
            sizes[which, at] = source.payload_bytes[slots]
    bare = messages.size_bytes - sizes.sum(axis=1)
    return Load(bare, ids, ids, sizes)


# Kernels.


class Regions(NamedTuple):
    """The regions of a batch of messages. `numbers` from `start` on are, for each message: the
    tuple that must be selected | tuples that must not be | pairs."""

    own: Longs  # [message]
    start: Longs
    excluded: Longs
    pairs: Longs
    numbers: Floats
    widths: Longs  # [2]: attributes of either table


@nb.njit(nogil=True, cache=True)
def meets(regions, at, least, most, box):  # type: ignore[no-untyped-def]
    """Whether a region may hold a point of box number `box`."""
    own = regions.own[at]
    half, width = least.shape[1] // 2, regions.widths[own]
    first, start = (0 if own == 0 else regions.widths[0]), regions.start[at]
    for d in range(width):
        value = regions.numbers[start + d]
        if not (least[box, first + d] <= value and most[box, half + first + d] >= value):
            return False
    for e in range(regions.excluded[at]):
        inside, point = True, start + width * (1 + e)
        for d in range(width):
            value, left_out = regions.numbers[start + d], regions.numbers[point + d]
            tightest_low = min(most[box, first + d], value)
            tightest_high = max(least[box, half + first + d], value)
            if not tightest_low <= left_out <= tightest_high:
                inside = False
                break
        if inside:
            return False
    return meets_pair(regions, at, least, most, box)


@nb.njit(nogil=True, cache=True)
def meets_pair(regions, at, least, most, box):  # type: ignore[no-untyped-def]
    """Whether a point of the box fits one of the pairs, as far as the other table is concerned."""
    own = regions.own[at]
    half, width = least.shape[1] // 2, regions.widths[1 - own]
    first = regions.widths[0] if own == 0 else 0
    pair = regions.start[at] + regions.widths[own] * (1 + regions.excluded[at])
    for _ in range(regions.pairs[at]):
        fits = True
        for d in range(width):
            low, high = regions.numbers[pair + d], regions.numbers[pair + width + d]
            if not (least[box, first + d] <= low and most[box, half + first + d] >= high):
                fits = False
                break
        if fits:
            return True
        pair += 2 * width
    return False


@nb.njit(nogil=True, cache=True)
def heart(regions, at, least, most):  # type: ignore[no-untyped-def]
    """The points that see all of the region, as a box; False if the region is empty.

    A region holds, with any of its points r and any point h of its heart, every point between them
    (coordinate by coordinate). On the other table that is whatever fits all pairs. On its own table
    it is all that the region holds, if that is a box; where tuples of several attributes are
    excluded, it is the tightest range, as narrower ranges contain less.
    """
    own = regions.own[at]
    half, width, start = least.shape[0] // 2, regions.widths[own], regions.start[at]
    first, other = (0, regions.widths[0]) if own == 0 else (regions.widths[0], 0)
    least[:], most[:] = -np.inf, np.inf
    for d in range(width):
        value = regions.numbers[start + d]
        most[first + d], least[half + first + d] = value, value
    for e in range(regions.excluded[at]):
        point, is_selected = start + width * (1 + e), True
        for d in range(width):
            value, left_out = regions.numbers[start + d], regions.numbers[point + d]
            is_selected &= value == left_out
            if width > 1:
                least[first + d], most[half + first + d] = value, value
            elif left_out < value:
                least[first] = max(least[first], np.nextafter(left_out, np.inf))
            elif left_out > value:
                most[half + first] = min(most[half + first], np.nextafter(left_out, -np.inf))
        if is_selected:
            return False
    pair, width = start + width * (1 + regions.excluded[at]), regions.widths[1 - own]
    for _ in range(regions.pairs[at]):
        for d in range(width):
            low, high = regions.numbers[pair + d], regions.numbers[pair + width + d]
            most[other + d] = min(most[other + d], low)
            least[half + other + d] = max(least[half + other + d], high)
        pair += 2 * width
    return regions.pairs[at] > 0
