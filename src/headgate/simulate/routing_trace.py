"""The trace of messages: which node gets which message, and from which node ([Select-Joins §6]).

Routing over zones and routing by filters both write such a trace. CnStar (cn_star.py) and the
dispatchers (node_subscriptions.py) read it. It is an int64 matrix with a line for each arrival;
constants name the columns:

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
    """Lines in the order of messages; the line that a message came from is before it."""

    lines: Longs

    def __len__(self) -> int:
        return len(self.lines)


@dataclass(frozen=True, slots=True, eq=False)
class Deliveries:
    """Lines (arrival, subscription): the messages that dispatchers send to clients."""

    lines: Longs


def traced(
    route: Callable[[int, Longs, int], tuple[int, int]], *, messages: int, lines_min: int
) -> Arrivals:
    """Run a routing kernel over all messages and enlarge its output as needed.

    `route(message, lines, used)` writes arrivals from this message on, after the `used` lines. It
    stops at a message for which fewer than `lines_min` lines are free, and returns that message
    and the number of lines used.
    """
    message, used, out = 0, 0, np.empty((2 * lines_min + 1_024, COLUMNS), np.int64)
    while True:
        message, used = route(message, out, used)
        if message == messages:
            return Arrivals(out[:used])
        out = np.concatenate([out[:used], np.empty((2 * len(out), COLUMNS), np.int64)])


@nb.njit(nogil=True, cache=True)
def put_arrival(out, used, message, node, origin, link, depth, delivers):  # type: ignore[no-untyped-def]
    """Write a line of the trace; returns the number of lines."""
    line = out[used]
    line[MESSAGE], line[NODE], line[FROM] = message, node, origin
    line[LINK], line[DEPTH], line[DELIVERS] = link, depth, delivers
    return used + 1
