"""Adaptive: at every step, the predicate that is expected to decide most for its cost. Ours.

[Operators] decides an order of subscriptions beforehand. But an item's answers change
what is worth asking: once a popular predicate is false, the others of its subscriptions may have
nobody left who wants them. So the choice is made for each item, after each answer:

    score(t) = (clauses that want t · P(t is false) + clauses that want not t · P(t is true)) / cost

counted over undecided clauses. This is the greedy rule for covering, of which Theorem 1 says that
nothing polynomial does better by more than a constant factor. Three things make it cheap and good:

    forced    A clause with a single open predicate cannot be decided without it. It is asked
              first: it costs nothing that is not due anyway, and may decide others.
    buckets   Counts only decrease. Nodes lie in buckets of nearly equal scores (within 6 %), and
              one whose score has become smaller is moved only when it comes up. So a choice is a
              few steps, and the way down through the buckets is gone once for an item.
    together  If the second best shares no undecided clause with the best, it stays the best of the
              rest whatever the answer is, as others only lose. So both are asked at once, and the
              third. In a round an item asks up to 64 predicates, and not one.

Selectivities and costs are those of `Estimates` when a group of lanes begins: declared first, then
learned.

Cost: an item's edges are each followed twice at most, and a node is moved as often as it comes up
with an old score.

Rejected: a heap, exact to the last bit, which asks the same number within a percent and misses the
cache on every level of it. Weighing a clause by how few predicates it has left, or by the chance
that another of its predicates will be asked anyway: on the paper's workloads that asks 0 to 3 %
less, but scores then also grow, which would make every choice dearer.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headgate.match.kernels import Ints
from headgate.operators.order_adaptive_kernels import BUCKETS, fill_buckets, next_adaptive
from headgate.operators.order_arrangement import Arrangement, NextNodes
from headgate.operators.order_clauses import FALSE, KNOWN, TRUE
from headgate.operators.order_estimates import Estimates
from headgate.operators.order_lanes import Lanes
from headgate.operators.order_table import ClauseTable

KNOWN_GAIN = 1e-3
"""What only needs to be known decides nothing by itself, yet must be asked in the end."""


class AdaptiveOrder:
    def arrange(self, table: ClauseTable, estimates: Estimates) -> Arrangement:
        return Arrangement(table, None, lambda lanes: _begin(lanes, gains_of(estimates)))


def gains_of(estimates: Estimates) -> npt.NDArray[np.float32]:
    """[predicate, want]: how many clauses that want this an answer decides, for each unit of cost.

    Costs are taken relative to their mean, so that scores neither vanish nor overflow.
    """
    selectivity, cost = estimates.selectivity(), estimates.cost()
    gains = np.empty((selectivity.size, 3), np.float64)
    gains[:, FALSE], gains[:, TRUE], gains[:, KNOWN] = selectivity, 1 - selectivity, KNOWN_GAIN
    relative = np.maximum(cost / max(float(cost.mean()), 1e-30), 1e-9) if cost.size else cost
    return (gains / relative[:, None]).astype(np.float32)


def _begin(lanes: Lanes, gains: npt.NDArray[np.float32]) -> NextNodes:
    following = np.empty(lanes.answers.size, np.int32)
    heads = np.empty((lanes.count, BUCKETS), np.int32)
    tops = np.empty(lanes.count, np.int32)
    marks, choice = np.zeros(lanes.edge_start.size, np.int64), np.zeros(1, np.int64)
    fill_buckets(
        lanes.node_start,
        lanes.node_predicate,
        lanes.shifts,
        lanes.wanted,
        gains,
        following,
        heads,
        tops,
    )

    def next_nodes(some: Ints) -> tuple[Ints, Ints]:
        found: tuple[Ints, Ints] = next_adaptive(
            some,
            following,
            heads,
            tops,
            marks,
            choice,
            gains,
            lanes.lane_start,
            lanes.shifts,
            lanes.edge_start,
            lanes.edges,
            lanes.back_start,
            lanes.backs,
            lanes.node_predicate,
            lanes.wanted,
            lanes.answers,
            lanes.verdicts,
            lanes.open_count,
            lanes.forced,
            lanes.forced_count,
        )
        return found

    return next_nodes
