"""Sequential: Algorithm 1 of [Operators §4.1].

Take any undecided subscription and *mark* it. Evaluate those of its predicates that are not known
yet, each if an undecided subscription contains it, even when the marked one is decided in between.
Whatever an answer decides is removed at once.

    S1  a b        marked: a? no, so S1 is decided; b? S2 wants it: no
    S2  b c        decided, and c is never asked
    S3  d e        marked: …

Law (Theorem 2): it evaluates at most d times as many predicates as any order, if no subscription
has more than d. Marked subscriptions have no new predicate in common, and whoever is to decide one
of them must evaluate at least one of its new predicates. Where costs differ, the factor is
d · Cmax / Cmin (§4.3). It holds for conjunctions, which the paper is about.

"Any" is the order in which subscriptions came and in which their predicates are written.
"""

from __future__ import annotations

from headgate.match.kernels import Ints
from headgate.operators.order_arrangement import Arrangement, NextNodes, one_each
from headgate.operators.order_estimates import Estimates
from headgate.operators.order_lanes import Lanes
from headgate.operators.order_next_kernels import next_sequential
from headgate.operators.order_table import ClauseTable


class SequentialOrder:
    def arrange(self, table: ClauseTable, estimates: Estimates) -> Arrangement:
        del estimates
        return Arrangement(table, None, _begin)


def _begin(lanes: Lanes) -> NextNodes:
    place = lanes.lane_start[:-1].copy()
    edge = lanes.edge_start[place - lanes.shifts[:, 0]]

    def next_nodes(some: Ints) -> tuple[Ints, Ints]:
        found: Ints = next_sequential(
            some,
            place,
            edge,
            lanes.lane_start,
            lanes.shifts,
            lanes.edge_start,
            lanes.edges,
            lanes.answers,
            lanes.verdicts,
            lanes.wanted,
        )
        return one_each(some, found)

    return next_nodes
