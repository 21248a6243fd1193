"""Naive: one subscription after the other, each until a predicate is not as wanted (§5.2).

expensive-operators.txt's baseline. It keeps the answers, so no predicate is asked twice for an
item. But it does not look ahead: a subscription whose third predicate is known to be false is asked
its first two all the same.

    S1  a b        a? yes  b? no
    S2  c b d      c? …                b is known to be false, and c is asked in vain
"""

from __future__ import annotations

from headgate.match.kernels import Ints
from headgate.optimize.order_arrangement import Arrangement, NextNodes
from headgate.optimize.order_estimates import Estimates
from headgate.optimize.order_lanes import Lanes
from headgate.optimize.order_next_kernels import next_naive
from headgate.optimize.order_table import ClauseTable


class NaiveOrder:
    def arrange(self, table: ClauseTable, estimates: Estimates) -> Arrangement:
        del estimates
        return Arrangement(table, None, _begin)


def _begin(lanes: Lanes) -> NextNodes:
    place = lanes.lane_start[:-1].copy()

    def next_nodes(some: Ints) -> Ints:
        found: Ints = next_naive(
            some,
            place,
            lanes.lane_start,
            lanes.shifts,
            lanes.edge_start,
            lanes.edges,
            lanes.answers,
            lanes.verdicts,
        )
        return found

    return next_nodes
