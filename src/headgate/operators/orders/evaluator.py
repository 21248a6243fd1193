"""Evaluation of operator predicates: an order chooses what to evaluate next, the engine does it.

In: a table of clauses, the candidate clauses of each item (those whose guard the item satisfies),
and a function that evaluates predicates. Out: the pairs of an item and a subscription that match.

    candidates   item 0: clauses 3 8
                 item 2: clauses 3
    round 1      items 0 and 2 both choose predicate p7; it is evaluated for both in one call
                 item 0: p7 is false, so clause 3 is refuted and 8 is open; item 2 has nothing left
    round 2      item 0 chooses p1 …

The items of a batch are evaluated side by side (item_evaluations.py). In each round the order
chooses the next predicates of every item, and items that chose the same predicate are evaluated in
one call, so that an operator with a batch form gets as many items as possible. All calls of a round
are sent together, because each may cost a trip to another process.

Invariants. The matches are those of model/evaluate.py, whatever the order. No predicate is
evaluated twice for one item, however many subscriptions share it. A clause with a predicate whose
call failed is not satisfied.

Cost: memory is bounded by SLOTS_MAX; a larger batch is evaluated in several groups of items. A
round takes three kernel calls, and Python code only for predicates that bind variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from headgate.match.bit_rows import Ints, Longs
from headgate.model.errors import OperatorError
from headgate.operators.answers import Bools, BoundValues, RoundAnswers
from headgate.operators.orders.clause_table import ClauseTable
from headgate.operators.orders.estimates import PredicateEstimates
from headgate.operators.orders.item_evaluations import ItemEvaluations, start_evaluations
from headgate.operators.orders.item_kernels import find_graphs, group_by_predicate, sort_by_rank
from headgate.operators.orders.joint_constraints import (
    BindingPredicates,
    JointConstraints,
    binding_predicates,
)
from headgate.operators.orders.predicates import call_text, numbers_of

SLOTS_MAX = 8_000_000
"""Clauses, nodes and edges of the items evaluated together; each takes about 20 bytes."""
ITEMS_MAX = 4_096

ChooseNext = Callable[[Ints], tuple[Ints, Ints]]
"""From items to the nodes to evaluate next: pairs (item, node), sorted by item. An item that needs
no more predicates is in no pair."""

EvaluateRound = Callable[[Ints, Longs, Ints], RoundAnswers]
"""`evaluate(predicates, starts, rows)` evaluates predicates[n] for the rows
rows[starts[n]] … rows[starts[n + 1] - 1] of the batch; operators/runtime.py implements it."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedOrder:
    """An order applied to one table."""

    table: ClauseTable
    """The clauses, with their literals in the order that the evaluation order wants."""
    visit: Ints | None
    """The clauses in the order in which they are visited; None for the order of the table."""
    begin: Callable[[ItemEvaluations], ChooseNext]


class EvaluationOrder(Protocol):
    """One of the four in methods.py. An order only chooses; it never changes the matches."""

    name: str

    def prepare(self, table: ClauseTable, estimates: PredicateEstimates) -> PreparedOrder: ...


@dataclass(frozen=True, slots=True, eq=False)
class CandidateClauses:
    """The clauses whose guards item i satisfies are clauses[start[i] : start[i + 1]], ascending."""

    start: Longs
    clauses: Ints

    @property
    def item_count(self) -> int:
        return self.start.size - 1


@dataclass(frozen=True, slots=True, eq=False)
class OperatorMatches:
    """Pairs of an item and a subscription, sorted by item and then by subscription."""

    items: Ints
    subscriptions: Ints
    evaluated: int
    """How many pairs of a predicate and an item were evaluated."""
    call_count: int
    """How many calls that took; one call evaluates a predicate for several items."""


class Evaluator:
    """Evaluates batches with one order and one table. The estimates may be shared with others."""

    def __init__(
        self, table: ClauseTable, order: EvaluationOrder, estimates: PredicateEstimates
    ) -> None:
        self._estimates = estimates
        self._prepared = order.prepare(table, estimates)
        visit = self._prepared.visit
        self._rank: Ints | None = None
        if visit is not None:
            self._rank = np.empty(visit.size, np.int32)
            self._rank[visit] = np.arange(visit.size, dtype=np.int32)
        self._binding = binding_predicates(self._prepared.table)

    def evaluate(
        self, candidates: CandidateClauses, evaluate_round: EvaluateRound
    ) -> OperatorMatches:
        rows: list[Ints] = []
        subscriptions: list[Ints] = []
        evaluated = call_count = 0
        for evaluations in self._groups(candidates):
            rounds = _Rounds(evaluations, evaluate_round, self._estimates, self._binding)
            rounds.run(self._prepared.begin(evaluations))
            items, matched = evaluations.matches()
            rows.append(evaluations.rows[items])
            subscriptions.append(matched)
            evaluated += rounds.evaluated
            call_count += rounds.call_count
        none = np.zeros(0, np.int32)
        return OperatorMatches(
            np.concatenate([*rows, none]),
            np.concatenate([*subscriptions, none]),
            evaluated,
            call_count,
        )

    def _groups(self, candidates: CandidateClauses) -> Iterator[ItemEvaluations]:
        """Items with candidates, in groups as large as memory allows, of at least one item."""
        table = self._prepared.table
        edges_before = np.zeros(candidates.clauses.size + 1, np.int64)
        np.cumsum(table.lengths[candidates.clauses], out=edges_before[1:])
        rows = np.flatnonzero(np.diff(candidates.start)).astype(np.int32)
        first, last = candidates.start[rows], candidates.start[rows + 1]
        edges = edges_before[last] - edges_before[first]
        nodes = np.minimum(edges, len(table.calls))
        graph_of = find_graphs(candidates.start, candidates.clauses)[rows]
        has_new_graph = np.diff(graph_of, prepend=-1) > 0
        size_up_to = np.cumsum(last - first + nodes + np.where(has_new_graph, edges, 0))
        begin = 0
        while begin < rows.size:
            before = size_up_to[begin - 1] if begin else 0
            fitting = int(np.searchsorted(size_up_to, before + SLOTS_MAX, side="right"))
            end = min(max(begin + 1, fitting), begin + ITEMS_MAX)
            group = rows[begin:end]
            yield self._start(candidates, group)
            begin += group.size

    def _start(self, candidates: CandidateClauses, rows: Ints) -> ItemEvaluations:
        first, last = candidates.start[rows[0]], candidates.start[rows[-1] + 1]
        clauses = np.ascontiguousarray(candidates.clauses[first:last], np.int32)
        starts = np.append(candidates.start[rows], last) - first
        slot_start = starts.astype(np.int32)
        if self._rank is not None:
            clauses = sort_by_rank(slot_start, clauses, self._rank, self._prepared.visit)
        return start_evaluations(self._prepared.table, rows, slot_start, clauses)


class _Rounds:
    """The rounds of one group of items."""

    def __init__(
        self,
        evaluations: ItemEvaluations,
        evaluate_round: EvaluateRound,
        estimates: PredicateEstimates,
        binding: BindingPredicates,
    ) -> None:
        self._evaluations, self._evaluate_round = evaluations, evaluate_round
        self._estimates, self._binding = estimates, binding
        self._joint = JointConstraints(evaluations, binding.numbers)
        self.evaluated = self.call_count = 0

    def run(self, choose_next: ChooseNext) -> None:
        active = np.arange(self._evaluations.count, dtype=np.int32)
        while active.size:
            items, nodes = choose_next(active)
            if items.size:
                self._round(items, nodes)
            active = items[np.flatnonzero(np.diff(items, prepend=-1))]

    def _round(self, choosing_items: Ints, chosen_nodes: Ints) -> None:
        """Evaluate the chosen nodes and apply the answers."""
        evaluations = self._evaluations
        items, nodes, rows, starts, predicates = group_by_predicate(
            choosing_items,
            chosen_nodes,
            evaluations.graphs.node_predicate,
            evaluations.state.node_offset,
            evaluations.rows,
        )
        answers = self._evaluate_round(predicates, starts, rows)
        answered, true = answers.answered, answers.true
        self._estimates.observe(predicates, starts, answered, true, answers.seconds)
        for call in self._binding.positions_in(predicates):
            span = slice(*starts[call : call + 2].tolist())
            holds, bound = answered[span] & true[span], answers.bound.get(call)
            self._bind(int(predicates[call]), items[span], nodes[span], holds, bound)
        joint_slots = evaluations.apply(items, nodes, answered, true)
        if joint_slots.size:
            evaluations.decide(joint_slots, self._joint.are_satisfiable(joint_slots))
        self.evaluated += items.size
        self.call_count += predicates.size

    def _bind(
        self, predicate: int, items: Ints, nodes: Ints, holds: Bools, bound: BoundValues | None
    ) -> None:
        """Test the solutions of each node, and keep them where a joint constraint needs them."""
        if bound is None:
            call = call_text(self._evaluations.table.calls[predicate])
            raise OperatorError(f"{call} was answered without values for its variables")
        columns = [column.to_pylist() for column in bound.values]
        starts = bound.starts.tolist()
        for position in np.flatnonzero(holds).tolist():
            item, node = int(items[position]), int(nodes[position])
            solutions = [column[starts[position] : starts[position + 1]] for column in columns]
            if predicate in self._binding.tested:
                self._evaluations.apply_tests(item, node, numbers_of(solutions))
            if predicate in self._binding.joined:
                self._joint.remember(node, list(zip(*solutions, strict=True)))
