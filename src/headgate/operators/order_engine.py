"""Evaluation: items and their candidate clauses in, matches out; an order says what is asked.

    candidates   item 0: clauses 3 8      the program says which guards an item satisfies
                 item 2: clauses 3
    round        item 0 asks p7, item 2 asks p7          one question: p7 for items 0 and 2
                 item 0: p7 is false, so 3 is refused, 8 still open; item 2: nothing is left
    round        item 0 asks p1 …

Items are evaluated side by side in lanes. In a round each lane names the predicates that it wants
next, and lanes that want the same one are asked together: an operator with a batch form gets as
many items as possible. All questions of a round are asked at once, as each may cost a trip to
another process. No predicate is asked twice for an item, however many subscriptions share it.

Law: the matches are those of model/evaluate.py, whatever the order; a clause that needs an answer
which failed is not satisfied.

Cost: memory is bounded by PLACES_MAX, beyond which a batch is taken in several parts. A round costs
three calls of kernels, and Python only where predicates bind variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headgate.match.kernels import Ints, Longs
from headgate.model.errors import OperatorError
from headgate.operators.order_answers import Ask, Bools, Bound
from headgate.operators.order_arrangement import NextNodes, Order
from headgate.operators.order_chain_kernels import in_visit_order
from headgate.operators.order_estimates import Estimates
from headgate.operators.order_joint import Binding, JointParts, binding_of
from headgate.operators.order_lane_kernels import find_graphs, group
from headgate.operators.order_lanes import Lanes, lay_out
from headgate.operators.order_predicates import call_text
from headgate.operators.order_table import ClauseTable
from headgate.operators.order_value_tests import numbers_of

PLACES_MAX = 8_000_000
"""Of clauses, nodes and edges: what is laid out at once takes some 20 bytes for each."""
LANES_MAX = 4_096


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """For each item of a batch the clauses of the table whose guards it satisfies, ascending."""

    start: Longs
    clauses: Ints

    @property
    def item_count(self) -> int:
        return self.start.size - 1


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Pairs of an item and the name of a subscription, sorted; and how many questions it took."""

    items: Ints
    subscriptions: Ints
    evaluated: int
    questions: int


class Evaluator:
    """One order over one table. Estimates may be shared with others, and go on learning."""

    def __init__(self, table: ClauseTable, order: Order, estimates: Estimates) -> None:
        self._estimates = estimates
        self._arranged = order.arrange(table, estimates)
        visit = self._arranged.visit
        self._rank: Ints | None = None
        if visit is not None:
            self._rank = np.empty(visit.size, np.int32)
            self._rank[visit] = np.arange(visit.size, dtype=np.int32)
        self._binding = binding_of(self._arranged.table)

    def evaluate(self, candidates: Candidates, ask: Ask) -> Matches:
        items: list[Ints] = []
        subscriptions: list[Ints] = []
        evaluated = questions = 0
        for lanes in self._lanes(candidates):
            asked = _Asking(lanes, ask, self._estimates, self._binding)
            asked.run(self._arranged.begin(lanes))
            found, names = lanes.matches()
            items.append(lanes.rows[found])
            subscriptions.append(names)
            evaluated += asked.evaluated
            questions += asked.questions
        none = np.zeros(0, np.int32)
        return Matches(
            np.concatenate([*items, none]),
            np.concatenate([*subscriptions, none]),
            evaluated,
            questions,
        )

    def _lanes(self, candidates: Candidates) -> Iterator[Lanes]:
        """Items that have candidates, as many at a time as memory allows, but at least one."""
        table = self._arranged.table
        edges = np.zeros(candidates.clauses.size + 1, np.int64)
        np.cumsum(table.lengths[candidates.clauses], out=edges[1:])
        rows = np.flatnonzero(np.diff(candidates.start)).astype(np.int32)
        first, last = candidates.start[rows], candidates.start[rows + 1]
        own_edges = edges[last] - edges[first]
        nodes = np.minimum(own_edges, len(table.calls))
        shares = find_graphs(candidates.start, candidates.clauses)[rows]
        is_alone = np.diff(shares, prepend=-1) > 0
        ends = np.cumsum(last - first + nodes + np.where(is_alone, own_edges, 0))
        at = 0
        while at < rows.size:
            before = ends[at - 1] if at else 0
            end = max(at + 1, int(np.searchsorted(ends, before + PLACES_MAX, side="right")))
            some = rows[at : min(end, at + LANES_MAX)]
            yield self._lay_out(candidates, some)
            at += some.size

    def _lay_out(self, candidates: Candidates, rows: Ints) -> Lanes:
        first, last = candidates.start[rows[0]], candidates.start[rows[-1] + 1]
        clauses = np.ascontiguousarray(candidates.clauses[first:last], np.int32)
        starts = np.append(candidates.start[rows], last) - first
        lane_start = starts.astype(np.int32)
        if self._rank is not None:
            clauses = in_visit_order(lane_start, clauses, self._rank, self._arranged.visit)
        return lay_out(self._arranged.table, rows, lane_start, clauses)


class _Asking:
    """The rounds of some lanes."""

    def __init__(self, lanes: Lanes, ask: Ask, estimates: Estimates, binding: Binding) -> None:
        self._lanes, self._ask, self._estimates, self._binding = lanes, ask, estimates, binding
        self._joint = JointParts(lanes, binding.numbers)
        self.evaluated = self.questions = 0

    def run(self, next_nodes: NextNodes) -> None:
        active = np.arange(self._lanes.count, dtype=np.int32)
        while active.size:
            lanes, nodes = next_nodes(active)
            if lanes.size:
                self._round(lanes, nodes)
            active = lanes[np.flatnonzero(np.diff(lanes, prepend=-1))]

    def _round(self, asking: Ints, wanted: Ints) -> None:
        """Ask what these lanes want to know next, and apply what is answered."""
        state = self._lanes
        lanes, nodes, rows, starts, predicates = group(
            asking, wanted, state.node_predicate, state.shifts, state.rows
        )
        answers = self._ask(predicates, starts, rows)
        answered, true = answers.answered, answers.true
        self._estimates.observe(predicates, starts, answered, true, answers.seconds)
        for question in self._binding.among(predicates):
            own = slice(*starts[question : question + 2].tolist())
            holds, bound = answered[own] & true[own], answers.bound.get(question)
            self._bind(int(predicates[question]), lanes[own], nodes[own], holds, bound)
        judged = self._lanes.apply(lanes, nodes, answered, true)
        if judged.size:
            self._lanes.decide(judged, self._joint.judge(judged))
        self.evaluated += lanes.size
        self.questions += predicates.size

    def _bind(
        self, predicate: int, lanes: Ints, nodes: Ints, holds: Bools, bound: Bound | None
    ) -> None:
        """Test the solutions of each node, and remember them if clauses join them."""
        if bound is None:
            call = call_text(self._lanes.table.calls[predicate])
            raise OperatorError(f"{call} was answered without values for its variables")
        columns = [column.to_pylist() for column in bound.values]
        starts = bound.starts.tolist()
        for n in np.flatnonzero(holds).tolist():
            own = [column[starts[n] : starts[n + 1]] for column in columns]
            if predicate in self._binding.tested:
                self._lanes.apply_tests(int(lanes[n]), int(nodes[n]), numbers_of(own))
            if predicate in self._binding.joined:
                self._joint.remember(int(nodes[n]), list(zip(*own, strict=True)))
