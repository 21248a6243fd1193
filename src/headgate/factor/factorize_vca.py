"""VCA on the subsumption graph: Algorithm 1 of [RoSeS §5], line by line.

    border: a b, a c, a c d         the most selective candidate is a c: it subsumes two of them
    border: a b, a c                a c ── a c d            expand: it is a filter, and is free
    border: a                       a ─┬─ a b               expand: benefit(a, true) > 0
                                       └─ a c ── a c d      reduce: a c stays, it is a filter

Law: the cost never rises: `expand` has a positive benefit, `reduce` takes away a negative one.

The benefit is the paper's, (k − 1) · w(y) − k · w(x), but for a candidate that is on the border
itself: it is evaluated anyway, so moving the k others below it gains k · (w(y) − w(x)).

Cost: the candidates are found anew after each step, for the whole border: quadratic in the filters.
It stays for comparison; factorize_vcb.py finds the same tree.
"""

from __future__ import annotations

from collections import Counter

from headgate.factor.factor_cost import PAPER, CostModel, benefit
from headgate.factor.factor_input import FactorInput
from headgate.factor.factor_tree import FactorTree, Predicate, tree_of
from headgate.factor.subsumption_graph import SubsumptionGraph, subsumption_graph
from headgate.factor.time_budget import UNLIMITED, TimeBudget


def factorize_vca(
    given: FactorInput, *, model: CostModel = PAPER, budget: TimeBudget = UNLIMITED
) -> FactorTree:
    """The filter plan; `TimeBudgetExceeded` if there is no time for it."""
    graph = subsumption_graph(given, model=model, budget=budget)
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
    return tree_of(given, plan.parent)


class _Plan:
    """The tree as it grows. What has no parent stands below `true`: the border."""

    def __init__(self, graph: SubsumptionGraph) -> None:
        self._graph = graph
        self.parent: dict[Predicate, Predicate] = {}
        self.border: set[Predicate] = set(graph.filters)
        self.refused: set[Predicate] = set()
        self._children: dict[Predicate, set[Predicate]] = {}

    def find_candidates(self) -> set[Predicate]:
        """The predicates that subsume at least two of the border, themselves included."""
        graph = self._graph
        counts = Counter(each for node in self.border for each in graph.above[node])
        counts.update(node for node in self.border if node in graph.order)
        return {each for each, count in counts.items() if count > 1}

    def benefit(self, candidate: Predicate) -> float:
        weight, count = self._graph.weight[candidate], len(self._factorized(candidate))
        if candidate in self.border:
            return count * (1 - weight)
        return benefit(count, 1.0, weight)

    def expand(self, candidate: Predicate) -> None:
        """Insert the candidate below `true`, and below it what it subsumes of the border."""
        factorized = self._factorized(candidate)
        children = self._children.setdefault(candidate, set())
        self.border.add(candidate)
        for fact in factorized:
            self.border.discard(fact)
            own = self._children.get(fact, set())
            if fact not in self._graph.filters and own and self._loses(fact, candidate):
                self._reduce(fact, candidate)
            else:
                self.parent[fact] = candidate
                children.add(fact)

    def _loses(self, fact: Predicate, candidate: Predicate) -> bool:
        weight = self._graph.weight
        return benefit(len(self._children[fact]), weight[candidate], weight[fact]) < 0

    def _reduce(self, fact: Predicate, candidate: Predicate) -> None:
        """Its children go below the candidate instead."""
        for child in self._children.pop(fact):
            self.parent[child] = candidate
            self._children[candidate].add(child)

    def _factorized(self, candidate: Predicate) -> list[Predicate]:
        """What the candidate subsumes of the border, itself not among it."""
        below = self._graph.below[candidate]
        return [each for each in self.border if each in below]
