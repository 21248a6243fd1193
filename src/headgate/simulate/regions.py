"""From messages of a select-join's server to what the network's kernels see of them.

A network knows regions, sizes and payloads, and no joins. A row's payload is a payload of its own,
so a join result has two; its id is the number of the row's version, which is never used again. A
deletion has no payload.
"""

from __future__ import annotations

import numpy as np

from headgate.simulate.payload_kernels import PAYLOADS, Load
from headgate.simulate.recent_kernels import NONE
from headgate.simulate.region_kernels import Regions
from headgate.tables import change_kernels as columns
from headgate.tables.box_tree_kernels import Longs
from headgate.tables.messages import Kind, Messages


def regions_of(messages: Messages) -> Regions:
    header, names = messages.header, (columns.OWN_SIDE, columns.START)
    own, start, excluded, pairs = (
        np.ascontiguousarray(header[:, each]) for each in (*names, columns.EXCLUDED, columns.PAIRS)
    )
    widths = np.array([each.dimensions for each in messages.rows], np.int64)
    return Regions(own, start, excluded, pairs, messages.numbers, widths)


def load_of(messages: Messages, numbers: tuple[Longs, Longs]) -> Load:
    """What each message weighs, and the payloads in it; `numbers` are those of rows, by table and
    slot."""
    header = messages.header
    ids: Longs = np.full((len(messages), PAYLOADS), NONE, np.int64)
    sizes: Longs = np.zeros((len(messages), PAYLOADS), np.int64)
    is_paid = header[:, columns.MESSAGE_KIND] == Kind.INSERT
    for side, source in enumerate(messages.rows):
        is_own = header[:, columns.ROW_SIDE] == side
        own, partner = is_paid & is_own, is_paid & ~is_own & (header[:, columns.PARTNER] >= 0)
        for at, which, slot in ((0, own, columns.SLOT), (1, partner, columns.PARTNER)):
            slots = header[which, slot]
            ids[which, at] = numbers[side][slots]
            sizes[which, at] = source.payload_bytes[slots]
    bare = messages.size_bytes - sizes.sum(axis=1)
    return Load(bare, ids, ids, sizes)
