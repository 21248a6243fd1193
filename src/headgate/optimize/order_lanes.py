"""Lanes: the items of a batch that are evaluated side by side, each with a graph of its own.

An item has only those clauses whose guards it satisfies, and only their predicates; here they are
*nodes*. The graph is kept both ways, as in expensive-operators.txt §5.1, in arrays that all lanes
share:

    lane        0                     1
    clauses     0     1     2         3     4           clause_of: which clause of the table it is
    edges       n0 n1 n1 n2 n0 n2     n3 n4 n4          edge_start, edges
    nodes       n0    n1    n2        n3    n4          node_predicate; and back: back_start, backs

`wanted[want, node]` is how many clauses want the node to be false, true or just known, at first. As
clauses are decided there are fewer; `back_end` says how far a node's list still has undecided ones.

Cost: 8 bytes for an edge, both ways, 19 for a node and 21 for a clause, at most; all are linear in
what the item's own candidates are, whatever else is in the table. Rejected: a shared graph with one
bitmap for each item; popular predicates would lead to tens of thousands of clauses of which an item
has three.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.match.kernels import Ints, Longs
from headgate.optimize import order_lane_kernels as kernels
from headgate.optimize.order_answers import Bools
from headgate.optimize.order_table import Bytes, ClauseTable, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """The arrays are the state: kernels change what follows `wanted`, and `back_end`, `backs`."""

    table: ClauseTable
    rows: Ints
    lane_start: Ints
    clause_of: Ints
    edge_start: Ints
    edges: Ints
    node_start: Ints
    node_predicate: Ints
    back_start: Ints
    back_end: Ints
    backs: Ints
    ring: Ints
    wanted: Ints
    answers: Bytes
    left: Ints
    verdicts: Bytes
    open_count: Ints
    forced: Ints
    forced_count: Ints
    judged: Ints

    @property
    def count(self) -> int:
        return self.rows.size

    def apply(self, lanes: Ints, nodes: Ints, answered: Bools, true: Bools) -> Ints:
        """Apply one answer to each of these lanes; the clauses whose joint part is to be judged."""
        count = kernels.apply_answers(
            nodes,
            answered,
            true,
            self.answers,
            self.left,
            self.verdicts,
            self.forced,
            self.forced_count,
            lanes,
            self.lane_start,
            self.clause_of,
            self.table.joint,
            self.back_start,
            self.back_end,
            self.backs,
            self.ring,
            self.open_count,
            self.judged,
        )
        return self.judged[:count]

    def apply_tests(self, lane: int, node: int, solutions: Floats) -> None:
        """Refuse what the solutions of a node do not pass, before its answer is applied."""
        table = self.table
        kernels.refuse_by_tests(
            node,
            lane,
            self.node_predicate[node],
            solutions,
            self.verdicts,
            self.open_count,
            self.clause_of,
            table.clause_start,
            table.predicates,
            table.test_start,
            (table.test_columns, table.test_relations, table.test_constants),
            self.back_start,
            self.back_end,
            self.backs,
        )

    def decide(self, places: Ints, satisfied: Bools) -> None:
        kernels.decide_all(
            places,
            self.lanes_of(places),
            satisfied,
            self.left,
            self.verdicts,
            self.ring,
            self.open_count,
        )

    def lanes_of(self, places: Ints | Longs) -> Longs:
        return np.searchsorted(self.lane_start, places, side="right") - 1

    def matches(self) -> tuple[Ints, Ints]:
        """The lane and the subscription of each match, in this order."""
        places = np.flatnonzero(self.verdicts == kernels.SATISFIED)
        lanes = self.lanes_of(places)
        owners = self.table.owner[self.clause_of[places]]
        order = np.lexsort((owners, lanes))
        return lanes[order].astype(np.int32), self.table.subscriptions[owners[order]]


def lay_out(table: ClauseTable, rows: Ints, lane_start: Ints, clause_of: Ints) -> Lanes:
    """Lanes for these rows of a batch, with their clauses in the order of visit."""
    edge_start, edges, node_start, node_predicate, ring = kernels.lay_out(
        lane_start,
        clause_of,
        table.owner,
        table.clause_start,
        table.predicates,
        table.wants,
        len(table.calls),
        table.subscriptions.size,
    )
    back_start, backs, wanted = kernels.turn_around(
        lane_start, clause_of, edge_start, edges, node_start
    )
    left = np.diff(edge_start)
    lanes = Lanes(
        table=table,
        rows=rows,
        lane_start=lane_start,
        clause_of=clause_of,
        edge_start=edge_start,
        edges=edges,
        node_start=node_start,
        node_predicate=node_predicate,
        back_start=back_start,
        back_end=back_start[1:].copy(),
        backs=backs,
        ring=ring,
        wanted=wanted,
        answers=np.full(node_predicate.size, kernels.UNKNOWN, np.int8),
        left=left,
        verdicts=np.zeros(left.size, np.int8),
        open_count=np.diff(lane_start),
        forced=np.empty(left.size, np.int32),
        forced_count=np.zeros(rows.size, np.int32),
        judged=np.empty(left.size, np.int32),
    )
    _begin(lanes)
    return lanes


def _begin(lanes: Lanes) -> None:
    """Clauses that need no predicate are satisfied; those that need one are forced."""
    single = np.flatnonzero(lanes.left == 1).astype(np.int32)
    of_lane = lanes.lanes_of(single)
    counts = np.bincount(of_lane, minlength=lanes.count).astype(np.int32)
    within = np.arange(single.size) - np.repeat(np.cumsum(counts) - counts, counts)
    lanes.forced[lanes.lane_start[of_lane] + within] = single
    lanes.forced_count[:] = counts
    none = np.flatnonzero(lanes.left == 0).astype(np.int32)
    lanes.decide(none, np.ones(none.size, np.bool_))
