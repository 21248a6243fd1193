"""Regions of messages, and the test whether a region meets a box ([Select-Joins §3.2]).

The network handles regions, sizes and payloads, but no joins. `regions_of` and `load_of` convert
the messages of a select-join server. Each row has its own payload, so a join result has two. The id
of a payload is the number of the row's version, which is never reused. A deletion has no payload.

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
    own_side, start, excluded, pairs = (
        np.ascontiguousarray(header[:, column])
        for column in (*names, columns.EXCLUDED, columns.PAIRS)
    )
    widths = np.array([rows.dimensions for rows in messages.rows], np.int64)
    return Regions(own_side, start, excluded, pairs, messages.numbers, widths)


def load_of(messages: MessageBatch, numbers: tuple[Longs, Longs]) -> Load:
    """The sizes and payloads of messages; `numbers` has the row numbers by table and slot."""
    header = messages.header
    ids: Longs = np.full((len(messages), PAYLOADS), NONE, np.int64)
    sizes: Longs = np.zeros((len(messages), PAYLOADS), np.int64)
    has_payload = header[:, columns.MESSAGE_KIND] == MessageKind.INSERT
    for side, source in enumerate(messages.rows):
        is_own = header[:, columns.ROW_SIDE] == side
        is_changed_row, is_partner = (
            has_payload & is_own,
            has_payload & ~is_own & (header[:, columns.PARTNER] >= 0),
        )
        for payload, which, slot in (
            (0, is_changed_row, columns.SLOT),
            (1, is_partner, columns.PARTNER),
        ):
            slots = header[which, slot]
            ids[which, payload] = numbers[side][slots]
            sizes[which, payload] = source.payload_bytes[slots]
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
def meets(regions, message, least, most, box):  # type: ignore[no-untyped-def]
    """Whether the region of a message may contain a point of box number `box`.

    least and most are float64 [box, coordinate].
    """
    own_side = regions.own[message]
    half, width = least.shape[1] // 2, regions.widths[own_side]
    first, start = (0 if own_side == 0 else regions.widths[0]), regions.start[message]
    for d in range(width):
        value = regions.numbers[start + d]
        if not (least[box, first + d] <= value and most[box, half + first + d] >= value):
            return False
    for e in range(regions.excluded[message]):
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
    return meets_pair(regions, message, least, most, box)


@nb.njit(nogil=True, cache=True)
def meets_pair(regions, message, least, most, box):  # type: ignore[no-untyped-def]
    """Whether a point of the box satisfies one of the pairs, in the coordinates of the other
    table."""
    own_side = regions.own[message]
    half, width = least.shape[1] // 2, regions.widths[1 - own_side]
    first = regions.widths[0] if own_side == 0 else 0
    pair = regions.start[message] + regions.widths[own_side] * (1 + regions.excluded[message])
    for _ in range(regions.pairs[message]):
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
def core(regions, message, least, most):  # type: ignore[no-untyped-def]
    """Write the core of a region as a box to least and most; False if the region is empty.

    The core is a set of points h such that, for every point r of the region, the region contains
    every point between r and h, coordinate by coordinate. In the coordinates of the other table it
    is the box that satisfies all pairs. In those of the own table it is the whole region if that is
    a box; if tuples of several attributes are excluded, it is the tightest range, because narrower
    ranges contain less.
    """
    own_side = regions.own[message]
    half, width, start = least.shape[0] // 2, regions.widths[own_side], regions.start[message]
    first, other = (0, regions.widths[0]) if own_side == 0 else (regions.widths[0], 0)
    least[:], most[:] = -np.inf, np.inf
    for d in range(width):
        value = regions.numbers[start + d]
        most[first + d], least[half + first + d] = value, value
    for e in range(regions.excluded[message]):
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
    pair, width = start + width * (1 + regions.excluded[message]), regions.widths[1 - own_side]
    for _ in range(regions.pairs[message]):
        for d in range(width):
            low, high = regions.numbers[pair + d], regions.numbers[pair + width + d]
            most[other + d] = min(most[other + d], low)
            least[half + other + d] = max(least[half + other + d], high)
        pair += 2 * width
    return regions.pairs[message] > 0
