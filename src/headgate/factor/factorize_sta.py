"""STA: a cheap Steiner tree of the subsumption graph by density ([RoSeS §5, Appendix A]).

    grow(v, wanted)     a tree below v that reaches some of the wanted filters
        repeat          for every u below v:  the tree grow(u, wanted), and the edge v → u
                        take the one with the least weight for each filter that it reaches

    level 1: edges from v to filters;   level 2: one node between;   level 3: two nodes, …

Law: each tree that is taken has the least *density*, weight / filters reached, of all that were
looked at, so the whole costs at most as much as any of them would for as many filters.

Algorithm 2 runs the inner algorithm for every number k' of filters to reach. The greedy choice does
not depend on k', only where it stops does: one run gives the trees of all k', and the beginning of
it that has the least density is taken. What is below a vertex is looked at again only if filters of
it were reached since. Both are exact, and the search stays exhaustive: it looks at all vertices for
each tree that it takes.

Depth is limited by `level_max`, as in the algorithm that the paper modifies: 3 allows two inserted
nodes between `true` and a filter.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.factor.factor_cost import PAPER, CostModel
from headgate.factor.factor_input import FactorInput
from headgate.factor.factor_tree import FactorTree, Predicate, tree_of
from headgate.factor.subsumption_graph import SubsumptionGraph, subsumption_graph
from headgate.factor.time_budget import UNLIMITED, TimeBudget

LEVEL_MAX = 3

Filters = frozenset[Predicate]


Edges = tuple[tuple[Predicate, Predicate], ...]
"""As (above, below)."""


@dataclass(frozen=True, slots=True)
class _Grown:
    """A tree below a vertex: its edges, what they weigh, the filters that they reach."""

    edges: Edges = ()
    weight: float = 0.0
    reached: Filters = frozenset()


def factorize_sta(
    given: FactorInput,
    *,
    model: CostModel = PAPER,
    level_max: int = LEVEL_MAX,
    budget: TimeBudget = UNLIMITED,
) -> FactorTree:
    """The filter plan; `TimeBudgetExceeded` if there is no time for it."""
    graph = subsumption_graph(given, model=model, budget=budget)
    search = _Search(graph, budget)
    wanted, parents = graph.filters, dict[Predicate, Predicate]()
    vertices = list(graph.above)
    while wanted:
        vertex, grown = search.densest(vertices, wanted, 1.0, level_max)
        for above, below in grown.edges:
            parents.setdefault(below, above)
        wanted -= grown.reached | {vertex}
    return tree_of(given, parents)


@dataclass(slots=True)
class _Search:
    graph: SubsumptionGraph
    budget: TimeBudget
    _known: dict[tuple[Predicate, int], tuple[Filters, list[_Grown]]] = field(default_factory=dict)
    _filters_below: dict[Predicate, Filters] = field(default_factory=dict)

    def densest(
        self, vertices: list[Predicate], wanted: Filters, above: float, level: int
    ) -> tuple[Predicate, _Grown]:
        """The vertex, with the tree below it, that reaches wanted filters at the least weight each;
        the edge to it weighs `above`."""
        best, least = None, float("inf")
        for vertex in vertices:
            itself = vertex in wanted
            for grown in self._beginnings(vertex, wanted, level - 1):
                reached = len(grown.reached) + itself
                if reached and (above + grown.weight) / reached < least:
                    best, least = (vertex, grown), (above + grown.weight) / reached
        assert best is not None, "every filter is a vertex"
        return best

    def _beginnings(self, vertex: Predicate, wanted: Filters, level: int) -> list[_Grown]:
        """The trees below a vertex as they grow, from none on. They are the same as long as the
        same filters below it are wanted."""
        if vertex not in self.graph.weight:
            return [_Grown()]
        if vertex not in self._filters_below:
            self._filters_below[vertex] = self.graph.filters & self.graph.below[vertex]
        own = self._filters_below[vertex] & wanted
        known = self._known.get((vertex, level))
        if known is None or known[0] != own:
            self.budget.check("STA")
            known = own, self._grow(vertex, own, level)
            self._known[vertex, level] = known
        return known[1]

    def _grow(self, vertex: Predicate, wanted: Filters, level: int) -> list[_Grown]:
        weight = self.graph.weight[vertex]
        if level <= 1:
            # All edges weigh the same: the more of them, the less dense is what leads here.
            edges = tuple((vertex, each) for each in sorted(wanted))
            return [_Grown(), _Grown(edges, weight * len(edges), wanted)]
        below, grown = sorted(self.graph.below[vertex]), [_Grown()]
        while left := wanted - grown[-1].reached:
            last = grown[-1]
            chosen, more = self.densest(below, left, weight, level)
            grown.append(
                _Grown(
                    (*last.edges, (vertex, chosen), *more.edges),
                    last.weight + weight + more.weight,
                    last.reached | more.reached | (wanted & {chosen}),
                )
            )
        return grown
