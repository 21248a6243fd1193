"""VCA on the subsumption graph: Algorithm 1 of [RoSeS §5], line by line.

    border: a b, a c, a c d         the most selective candidate is a c: it subsumes two of them
    border: a b, a c                a c ── a c d            expand: it is a filter, and is free
    border: a                       a ─┬─ a b               expand: benefit(a, true) > 0
                                       └─ a c ── a c d      reduce: a c stays, it is a filter

Invariant: the cost never rises. `expand` inserts a node only if its benefit is positive, and
`reduce` removes one only if its benefit is negative.

The benefit is that of the paper, (k − 1) · w(y) − k · w(x), except for a candidate that is on the
border itself: it is evaluated anyway, so moving the k others below it gains k · (w(y) − w(x)).

Cost: after each step the candidates are found again for the whole border: quadratic in the filters.
VCA is kept for comparison; vcb.py finds the same tree in one pass.
"""

from __future__ import annotations

from collections import Counter

from headgate.factor.clause_sets import ClauseSets
from headgate.factor.filter_tree import PAPER, CostModel, FilterTree, Predicate, benefit, tree_of
from headgate.factor.subsumption_graph import SubsumptionGraph, subsumption_graph
from headgate.factor.time_budget import UNLIMITED, TimeBudget


def factorize_vca(
    filters: ClauseSets, *, model: CostModel = PAPER, budget: TimeBudget = UNLIMITED
) -> FilterTree:
    """The filter plan; `TimeBudgetExceeded` if there is no time for it."""
    graph = subsumption_graph(filters, model=model, budget=budget)
    plan = _Plan(graph)
    candidates = plan.find_candidates()
    while candidates:
        budget.check("VCA")
        best = min(candidates, key=graph.order.__getitem__)
        if plan.benefit(best) > 0:
            plan.expand(best)
            candidates = plan.find_candidates() - plan.refused
        else:
            plan.refused.add(best)
            candidates.discard(best)
    return tree_of(filters, plan.parent)


class _Plan:
    """The tree as it grows. The border is the set of nodes directly below `true`."""

    def __init__(self, graph: SubsumptionGraph) -> None:
        self._graph = graph
        self.parent: dict[Predicate, Predicate] = {}
        self.border: set[Predicate] = set(graph.filters)
        self.refused: set[Predicate] = set()
        self._children: dict[Predicate, set[Predicate]] = {}

    def find_candidates(self) -> set[Predicate]:
        """The predicates that subsume at least two border nodes, themselves included."""
        graph = self._graph
        counts = Counter(general for node in self.border for general in graph.above[node])
        counts.update(node for node in self.border if node in graph.order)
        return {each for each, count in counts.items() if count > 1}

    def benefit(self, candidate: Predicate) -> float:
        weight, count = self._graph.weight[candidate], len(self._factorized(candidate))
        if candidate in self.border:
            return count * (1 - weight)
        return benefit(count, 1.0, weight)

    def expand(self, candidate: Predicate) -> None:
        """Insert the candidate below `true`; the border nodes that it subsumes move below it."""
        factorized = self._factorized(candidate)
        children = self._children.setdefault(candidate, set())
        self.border.add(candidate)
        for node in factorized:
            self.border.discard(node)
            below = self._children.get(node, set())
            if node not in self._graph.filters and below and self._loses(node, candidate):
                self._reduce(node, candidate)
            else:
                self.parent[node] = candidate
                children.add(node)

    def _loses(self, node: Predicate, candidate: Predicate) -> bool:
        """Whether the children of a node would cost less directly below the candidate."""
        weight = self._graph.weight
        return benefit(len(self._children[node]), weight[candidate], weight[node]) < 0

    def _reduce(self, node: Predicate, candidate: Predicate) -> None:
        """Remove a node: its children move below the candidate."""
        for child in self._children.pop(node):
            self.parent[child] = candidate
            self._children[candidate].add(child)

    def _factorized(self, candidate: Predicate) -> list[Predicate]:
        """The other border nodes that the candidate subsumes."""
        below = self._graph.below[candidate]
        return [node for node in self.border if node in below]
