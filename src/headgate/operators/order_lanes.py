"""Lanes: the items of a batch that are evaluated side by side, each with a graph of its own.

An item has only those clauses whose guards it satisfies, and only their predicates; here they are
*nodes*. Their graph is kept both ways, as in [Operators §5.1]. Items one after the
other that have the same clauses share it, as all do where no clause has a guard:

    graph         0                         1
    clauses       0     1     2             3     4          edge_start, edges: to nodes
    nodes         n0    n1    n2            n3    n4         back_start, backs: to clauses

    lane          0           1             2                shifts: from places of the graph
    clauses       0 1 2       3 4 5         6 7              to places of the lane
    of graph      0           0             1

`wanted[want, node]` counts, for a node of a lane, the undecided clauses that want it to be false,
true or just known. It only ever decreases.

Cost: 8 bytes for an edge of a graph, both ways; 13 for a node and 18 for a clause of a lane, beside
what an order keeps. All is linear in what the items' own candidates are, whatever else is in the
table. Rejected: one graph for all, with a bitmap for each item; popular predicates would lead to
tens of thousands of clauses of which an item has three. And a graph for each lane: with 80,000
clauses each, twenty of them fill no cache but the memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.match.kernels import Ints, Longs
from headgate.operators import order_lane_kernels as kernels
from headgate.operators.order_answers import Bools
from headgate.operators.order_table import Bytes, ClauseTable, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """Kernels change `wanted` and what follows it: the clauses and nodes of lanes."""

    table: ClauseTable
    rows: Ints
    lane_start: Ints
    clause_of: Ints
    node_start: Ints
    shifts: Ints
    edge_start: Ints
    edges: Ints
    back_start: Ints
    backs: Ints
    node_predicate: Ints
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
            lanes,
            self.shifts,
            self.lane_start,
            self.clause_of,
            self.table.joint,
            self.edge_start,
            self.edges,
            self.back_start,
            self.backs,
            self.ring,
            self.wanted,
            self.answers,
            self.left,
            self.verdicts,
            self.open_count,
            self.forced,
            self.forced_count,
            self.judged,
        )
        return self.judged[:count]

    def apply_tests(self, lane: int, node: int, solutions: Floats) -> None:
        """Refuse what the solutions of a node do not pass, before its answer is applied."""
        table = self.table
        kernels.refuse_by_tests(
            node,
            lane,
            solutions,
            self.shifts,
            self.clause_of,
            self.node_predicate,
            table.clause_start,
            table.predicates,
            table.test_start,
            (table.test_columns, table.test_relations, table.test_constants),
            self.edge_start,
            self.edges,
            self.back_start,
            self.backs,
            self.wanted,
            self.verdicts,
            self.open_count,
        )

    def decide(self, places: Ints, satisfied: Bools) -> None:
        kernels.decide_all(
            places,
            self.lanes_of(places),
            satisfied,
            self.left,
            self.shifts,
            self.verdicts,
            self.open_count,
            self.edge_start,
            self.edges,
            self.wanted,
            self.ring,
        )

    def lanes_of(self, places: Ints | Longs) -> Longs:
        return np.searchsorted(self.lane_start, places, side="right") - 1

    def answers_of(self, at: int) -> dict[int, tuple[int, int]]:
        """The node and the answer of each predicate that a clause needs."""
        clause_shift, node_shift = self.shifts[int(self.lanes_of(np.array([at]))[0])].tolist()
        first, last = self.edge_start[at - clause_shift : at - clause_shift + 2]
        nodes = self.edges[first:last] >> kernels.WANT_BITS
        own = nodes + node_shift
        found = zip(own.tolist(), self.answers[own].tolist(), strict=True)
        return dict(zip(self.node_predicate[nodes].tolist(), found, strict=True))

    def matches(self) -> tuple[Ints, Ints]:
        """The lane and the subscription of each match, in this order."""
        places = np.flatnonzero(self.verdicts == kernels.SATISFIED)
        lanes = self.lanes_of(places)
        owners = self.table.owner[self.clause_of[places]]
        order = np.lexsort((owners, lanes))
        return lanes[order].astype(np.int32), self.table.subscriptions[owners[order]]


def lay_out(table: ClauseTable, rows: Ints, lane_start: Ints, clause_of: Ints) -> Lanes:
    """Lanes for these rows of a batch, with their clauses in the order of visit."""
    graph_of = kernels.find_graphs(lane_start, clause_of)
    first_lanes = np.flatnonzero(np.diff(graph_of, prepend=-1))
    spans = zip(lane_start[first_lanes], lane_start[first_lanes + 1], strict=True)
    clauses = [clause_of[begin:end] for begin, end in spans]
    graph_start = np.cumsum([0, *(each.size for each in clauses)]).astype(np.int32)
    edge_start, edges, graph_node_start, node_predicate, ring = kernels.lay_out(
        graph_start,
        np.concatenate(clauses),
        table.owner,
        table.clause_start,
        table.predicates,
        table.wants,
        len(table.calls),
        table.subscriptions.size,
    )
    back_start, backs, graph_wanted = kernels.turn_around(edge_start, edges, node_predicate.size)
    node_start, shifts, wanted, left = kernels.copy_graphs(
        graph_of, graph_start, graph_node_start, graph_wanted, edge_start, lane_start
    )
    lanes = Lanes(
        table=table,
        rows=rows,
        lane_start=lane_start,
        clause_of=clause_of,
        node_start=node_start,
        shifts=shifts,
        edge_start=edge_start,
        edges=edges,
        back_start=back_start,
        backs=backs,
        node_predicate=node_predicate,
        ring=ring,
        wanted=wanted,
        answers=np.full(wanted.shape[1], kernels.UNKNOWN, np.int8),
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
