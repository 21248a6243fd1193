"""The trace of messages: which node gets which message, and from which node ([Select-Joins §6]).

Routing over zones and routing by filters both write such a trace. CnStar (cn_star.py) and the
dispatchers (node_subscriptions.py) read it. An int64 matrix with a line for each arrival; the
columns have names (MESSAGE, NODE, …):

    MESSAGE  NODE  FROM  LINK  DEPTH  DELIVERS
    0        0     -1    -1    0      1          the server's own node, no hop
    0        7     0     3     1      1          from line 0, by link 3 of all links
    1        0     -1    -1    0      0          only forwarded, on the way to the region
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numba as nb
import numpy as np

from headgate.tables.box_tree_kernels import Longs

MESSAGE, NODE, FROM, LINK, DEPTH, DELIVERS, COLUMNS = range(7)


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Lines in the order of messages; whom a line comes from is before it."""

    lines: Longs

    def __len__(self) -> int:
        return len(self.lines)


@dataclass(frozen=True, slots=True, eq=False)
class Deliveries:
    """Lines (arrival, subscription): what the dispatchers of nodes send to clients."""

    lines: Longs


def traced(
    route: Callable[[int, Longs, int], tuple[int, int]], *, messages: int, lines_min: int
) -> Arrivals:
    """All that a kernel writes, with as much room as it needs.

    The kernel gets the next message, the lines, and how many of them are used. It says which
    message did not fit, for which it wants `lines_min` lines, and how many are used now.
    """
    at, used, out = 0, 0, np.empty((2 * lines_min + 1_024, COLUMNS), np.int64)
    while True:
        at, used = route(at, out, used)
        if at == messages:
            return Arrivals(out[:used])
        out = np.concatenate([out[:used], np.empty((2 * len(out), COLUMNS), np.int64)])


@nb.njit(nogil=True, cache=True)
def put_arrival(out, used, message, node, origin, link, depth, delivers):  # type: ignore[no-untyped-def]
    """Write a line of the trace; how many lines there are now."""
    line = out[used]
    line[MESSAGE], line[NODE], line[FROM] = message, node, origin
    line[LINK], line[DEPTH], line[DELIVERS] = link, depth, delivers
    return used + 1
