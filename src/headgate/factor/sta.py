"""STA: a cheap Steiner tree of the subsumption graph, chosen by density ([RoSeS §5, Appendix A]).

    grow(v, missing)    a tree below v that reaches some of the missing filters
        repeat          for every u below v: the tree grow(u, missing), and the edge v → u
                        take the one with the least weight for each filter that it reaches

    level 1: edges from v to filters;   level 2: one node between;   level 3: two nodes, …

Invariant: each tree that is taken has the least *density*, weight / filters reached, of all trees
that were considered.

Algorithm 2 runs the inner algorithm for every number k' of filters to reach. The greedy choices do
not depend on k'; k' only decides where the run stops. So one run gives the trees of all k', and the
prefix of the run with the least density is taken. The trees below a vertex are cached until some of
its filters have been reached. Both give the same result as the printed algorithm.

Depth is limited by `level_max`, as in the algorithm that the paper modifies: 3 allows two inserted
nodes between `true` and a filter.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.factor.clause_sets import ClauseSets
from headgate.factor.filter_tree import PAPER, CostModel, FilterTree, Predicate, tree_of
from headgate.factor.subsumption_graph import SubsumptionGraph, subsumption_graph
from headgate.factor.time_budget import UNLIMITED, TimeBudget

LEVEL_MAX = 3

Filters = frozenset[Predicate]
Edges = tuple[tuple[Predicate, Predicate], ...]
"""Pairs (parent, child)."""


@dataclass(frozen=True, slots=True)
class _Grown:
    """A tree below a vertex: its edges, their weight, the filters that they reach."""

    edges: Edges = ()
    weight: float = 0.0
    reached: Filters = frozenset()


def factorize_sta(
    filters: ClauseSets,
    *,
    model: CostModel = PAPER,
    level_max: int = LEVEL_MAX,
    budget: TimeBudget = UNLIMITED,
) -> FilterTree:
    """The filter plan; `TimeBudgetExceeded` if there is no time for it."""
    graph = subsumption_graph(filters, model=model, budget=budget)
    search = _Search(graph, budget)
    missing, parents = graph.filters, dict[Predicate, Predicate]()
    vertices = list(graph.above)
    while missing:
        vertex, grown = search.densest(vertices, missing, 1.0, level_max)
        for above, below in grown.edges:
            parents.setdefault(below, above)
        missing -= grown.reached | {vertex}
    return tree_of(filters, parents)


@dataclass(slots=True)
class _Search:
    graph: SubsumptionGraph
    budget: TimeBudget
    _cache: dict[tuple[Predicate, int], tuple[Filters, list[_Grown]]] = field(default_factory=dict)
    _filters_below: dict[Predicate, Filters] = field(default_factory=dict)

    def densest(
        self, vertices: list[Predicate], missing: Filters, above: float, level: int
    ) -> tuple[Predicate, _Grown]:
        """The vertex and the tree below it with the least weight for each missing filter reached.
        `above` is the weight of the edge to the vertex."""
        best, least = None, float("inf")
        for vertex in vertices:
            itself = vertex in missing
            for grown in self._beginnings(vertex, missing, level - 1):
                reached = len(grown.reached) + itself
                if reached and (above + grown.weight) / reached < least:
                    best, least = (vertex, grown), (above + grown.weight) / reached
        assert best is not None, "every filter is a vertex"
        return best

    def _beginnings(self, vertex: Predicate, missing: Filters, level: int) -> list[_Grown]:
        """The trees below a vertex as they grow, from the empty one on; cached as long as the same
        filters below the vertex are missing."""
        if vertex not in self.graph.weight:
            return [_Grown()]
        if vertex not in self._filters_below:
            self._filters_below[vertex] = self.graph.filters & self.graph.below[vertex]
        missing_here = self._filters_below[vertex] & missing
        cached = self._cache.get((vertex, level))
        if cached is None or cached[0] != missing_here:
            self.budget.check("STA")
            cached = missing_here, self._grow(vertex, missing_here, level)
            self._cache[vertex, level] = cached
        return cached[1]

    def _grow(self, vertex: Predicate, missing: Filters, level: int) -> list[_Grown]:
        weight = self.graph.weight[vertex]
        if level <= 1:
            # All edges have the same weight, so taking all filters has the least density.
            edges = tuple((vertex, terminal) for terminal in sorted(missing))
            return [_Grown(), _Grown(edges, weight * len(edges), missing)]
        below, grown = sorted(self.graph.below[vertex]), [_Grown()]
        while left := missing - grown[-1].reached:
            last = grown[-1]
            chosen, subtree = self.densest(below, left, weight, level)
            grown.append(
                _Grown(
                    (*last.edges, (vertex, chosen), *subtree.edges),
                    last.weight + weight + subtree.weight,
                    last.reached | subtree.reached | (missing & {chosen}),
                )
            )
        return grown
