"""The evaluation state of several items: open clauses, evaluated predicates, verdicts.

An item has only the clauses whose guards it satisfies. Each of them is a *slot* of the item, and
each distinct predicate in them is a *node* of the item. Slots and nodes are linked in both
directions, as in [Operators §5.1]. Consecutive items with the same clauses share one graph of
links, as all items do where no clause has a guard:

    graph              0                      1
    clauses            0     1     2          3     4       clause_edges: from clauses to nodes
    nodes              n0    n1    n2         n3    n4      node_edges:   from nodes to clauses

    item               0          1           2
    its graph          0          0           1
    slots              0 1 2      3 4 5       6 7           slot = clause of the graph + slot_offset
                                                            node = node of the graph + node_offset

`demand[required, node]` counts the undecided slots that require the node to be FALSE, TRUE or
KNOWN. It only ever decreases.

Cost: 8 bytes for an edge of a graph, both directions included; 13 for a node and 18 for a slot. All
of it is linear in the candidates of the items, however large the table is. Rejected: one graph for
the whole table with a bitmap for each item (a popular predicate would lead to tens of thousands of
clauses of which an item has three); a graph for each item (with 80,000 clauses each, twenty of them
fit in no cache).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.match.bit_rows import Ints, Longs
from headgate.operators.answers import Bools
from headgate.operators.orders import item_kernels as kernels
from headgate.operators.orders.clause_table import ClauseTable, Floats
from headgate.operators.orders.item_kernels import (
    ClauseArrays,
    EvaluationGraphs,
    EvaluationState,
    RoundResult,
)
from headgate.operators.orders.predicates import ValueTests


@dataclass(frozen=True, slots=True, eq=False)
class ItemEvaluations:
    """`graphs` are read-only; the kernels change `state`."""

    table: ClauseTable
    rows: Ints
    """The row of each item in the batch."""
    graphs: EvaluationGraphs
    state: EvaluationState
    joint_slots: Ints
    """Scratch space of `apply`, as large as all slots."""

    @property
    def count(self) -> int:
        return self.rows.size

    def apply(self, items: Ints, nodes: Ints, answered: Bools, true: Bools) -> Ints:
        """Apply answers; returns the slots whose joint constraint must be checked now."""
        result = RoundResult(items, nodes, answered, true)
        count = kernels.apply_answers(
            self.graphs, self.state, result, self.table.joint, self.joint_slots
        )
        return self.joint_slots[:count]

    def apply_tests(self, item: int, node: int, solutions: Floats) -> None:
        """Refute slots whose value tests no solution of the node passes; before `apply`."""
        kernels.refute_by_tests(
            self.graphs, self.state, item, node, solutions, _value_tests(self.table)
        )

    def decide(self, slots: Ints, satisfiable: Bools) -> None:
        """Refute or satisfy slots whose joint constraint was checked."""
        kernels.decide_slots(self.graphs, self.state, slots, self.items_of(slots), satisfiable)

    def items_of(self, slots: Ints | Longs) -> Longs:
        return np.searchsorted(self.state.slot_start, slots, side="right") - 1

    def answers_of(self, slot: int) -> dict[int, tuple[int, int]]:
        """The node and the answer of each predicate in a slot's clause, by predicate."""
        item = int(self.items_of(np.array([slot]))[0])
        clause = slot - int(self.state.slot_offset[item])
        first, last = self.graphs.clause_edge_start[clause : clause + 2]
        graph_nodes = self.graphs.clause_edges[first:last] >> kernels.REQUIRED_BITS
        nodes = graph_nodes + self.state.node_offset[item]
        answers = zip(nodes.tolist(), self.state.answers[nodes].tolist(), strict=True)
        return dict(zip(self.graphs.node_predicate[graph_nodes].tolist(), answers, strict=True))

    def matches(self) -> tuple[Ints, Ints]:
        """The item and the subscription of each match, sorted."""
        slots = np.flatnonzero(self.state.verdicts == kernels.SATISFIED)
        items = self.items_of(slots)
        owners = self.table.owner[self.state.clause_of[slots]]
        order = np.lexsort((owners, items))
        return items[order].astype(np.int32), self.table.subscriptions[owners[order]]


def start_evaluations(
    table: ClauseTable, rows: Ints, slot_start: Ints, clause_of: Ints
) -> ItemEvaluations:
    """Start evaluating these rows of a batch.

    The clauses of item i are clause_of[slot_start[i] : slot_start[i + 1]], in the order of visit.
    """
    graph_of = kernels.find_graphs(slot_start, clause_of)
    first_items = np.flatnonzero(np.diff(graph_of, prepend=-1))
    spans = zip(slot_start[first_items], slot_start[first_items + 1], strict=True)
    clauses = [clause_of[begin:end] for begin, end in spans]
    graph_start = np.cumsum([0, *(each.size for each in clauses)]).astype(np.int32)
    edge_start, edges, graph_node_start, node_predicate, sibling = kernels.build_graphs(
        graph_start,
        np.concatenate(clauses),
        ClauseArrays(table.owner, table.clause_start, table.predicates, table.wants),
        len(table.calls),
        table.subscriptions.size,
    )
    back_start, back_edges, graph_demand = kernels.reverse_edges(
        edge_start, edges, node_predicate.size
    )
    graphs = EvaluationGraphs(edge_start, edges, back_start, back_edges, node_predicate, sibling)
    node_start, slot_offset, node_offset, demand, open_literals = kernels.copy_graphs(
        graphs, graph_of, graph_start, graph_node_start, graph_demand, slot_start
    )
    state = EvaluationState(
        slot_start=slot_start,
        clause_of=clause_of,
        node_start=node_start,
        slot_offset=slot_offset,
        node_offset=node_offset,
        demand=demand,
        answers=np.full(demand.shape[1], kernels.UNKNOWN, np.int8),
        open_literals=open_literals,
        verdicts=np.zeros(open_literals.size, np.int8),
        open_slots=np.diff(slot_start),
        unit_slots=np.empty(open_literals.size, np.int32),
        unit_count=np.zeros(rows.size, np.int32),
    )
    evaluations = ItemEvaluations(table, rows, graphs, state, np.empty_like(clause_of))
    _decide_short_clauses(evaluations)
    return evaluations


def _decide_short_clauses(evaluations: ItemEvaluations) -> None:
    """Satisfy the slots without literals, and list those with a single literal as unit slots."""
    state = evaluations.state
    unit = np.flatnonzero(state.open_literals == 1).astype(np.int32)
    items = evaluations.items_of(unit)
    counts = np.bincount(items, minlength=evaluations.count).astype(np.int32)
    within = np.arange(unit.size) - np.repeat(np.cumsum(counts) - counts, counts)
    state.unit_slots[state.slot_start[items] + within] = unit
    state.unit_count[:] = counts
    empty = np.flatnonzero(state.open_literals == 0).astype(np.int32)
    evaluations.decide(empty, np.ones(empty.size, np.bool_))


def _value_tests(table: ClauseTable) -> ValueTests:
    return ValueTests(
        table.clause_start,
        table.predicates,
        table.test_start,
        table.test_columns,
        table.test_relations,
        table.test_constants,
    )
