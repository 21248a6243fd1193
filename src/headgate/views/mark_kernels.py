"""The hot loops over marks: whose texts are asked for, and how much each view holds."""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.views.pattern_kernels import VAL

IDENTIFIER_BYTES = 12
"""To send: three numbers of four bytes."""


@nb.njit(nogil=True, cache=True)
def flag_marked(v, level, width, rows, start, cells, flags):  # type: ignore[no-untyped-def]
    """Of each node, which of its texts a view of this level has."""
    for view in range(v.table.shape[0]):
        table = v.table[view]
        if v.level[view] != level:
            continue
        for mark in range(v.mark_start[view], v.mark_start[view + 1]):
            column, kind = v.marks[mark]
            for line in range(rows[table]):
                flags[cells[start[table] + line * width[table] + column]] |= kind


@nb.njit(nogil=True, cache=True)
def held_bytes(v, width, rows, start, cells, val_bytes, cont_bytes):  # type: ignore[no-untyped-def]
    """How much each view holds: an identifier for each node of each tuple, and each text once."""
    found = np.zeros(v.table.shape[0], np.int64)
    seen = np.full(val_bytes.shape[0], -1, np.int64)
    for view in range(v.table.shape[0]):
        table = v.table[view]
        count = max(rows[table], 0)
        found[view] = IDENTIFIER_BYTES * count * width[table]
        for mark in range(v.mark_start[view], v.mark_start[view + 1]):
            column, kind = v.marks[mark]
            sizes = val_bytes if kind == VAL else cont_bytes
            for line in range(count):
                node = cells[start[table] + line * width[table] + column]
                if seen[node] != mark:
                    seen[node] = mark
                    found[view] += sizes[node]
    return found
