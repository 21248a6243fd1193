"""Structural identifiers from parents (document.py)."""

from __future__ import annotations

import numba as nb
import numpy as np


@nb.njit(nogil=True, cache=True)
def identifiers(parent):  # type: ignore[no-untyped-def]
    """Number, last and depth of each node; parents come before their children, -1 is no node."""
    count = parent.shape[0]
    found = np.zeros((count, 3), np.int64)
    for node in range(count):
        found[node, 0] = found[node, 1] = node
        if node:
            found[node, 2] = found[parent[node], 2] + 1
    for node in range(count - 1, 0, -1):
        found[parent[node], 1] = max(found[parent[node], 1], found[node, 1])
    return found
