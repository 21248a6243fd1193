"""The subsumption graph: all predicates of a source, and which subsume which ([RoSeS §4.3]).

    a ──► a b ──► a b c        an edge from each predicate to each one that it subsumes, transitive
    b ──►     ──►              edges included; its weight is the share of items that pass its origin

Nodes are the filters and every predicate that subsumes at least two of them. A predicate that
subsumes a single filter is left out: it has a cost itself and saves no more than that, so no
cheapest tree contains it.

Invariant: any tree of the graph that reaches all filters from `true` is a filter plan.

Cost: one test for each pair of a filter and one of its candidates, and a Python set for each. STA
and VCA (Algorithm 1 as printed) need all of the graph; vcb.py needs none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from headgate.factor.candidates import find_candidates
from headgate.factor.clause_sets import ClauseSets
from headgate.factor.filter_tree import PAPER, CostModel, Predicate
from headgate.factor.implications import subsumes
from headgate.factor.time_budget import UNLIMITED, TimeBudget


@dataclass(frozen=True, slots=True)
class SubsumptionGraph:
    """order[p] is the position of candidate p in the order of VCA; above[p] has the candidates that
    subsume p, in that order; below[p] has the predicates that p subsumes."""

    filters: frozenset[Predicate]
    order: dict[Predicate, int]
    above: dict[Predicate, list[Predicate]]
    below: dict[Predicate, set[Predicate]]
    weight: dict[Predicate, float]


def subsumption_graph(
    filters: ClauseSets, *, model: CostModel = PAPER, budget: TimeBudget = UNLIMITED
) -> SubsumptionGraph:
    """The graph; `TimeBudgetExceeded` if there is no time for it."""
    candidates = find_candidates(filters)
    terminals = filters.predicates()
    sets = [candidates.predicate(number) for number in range(candidates.count)]
    order = {predicate: number for number, predicate in enumerate(sets)}
    weights = model.weight(candidates.selectivity).tolist()
    flat, start = candidates.members.values, candidates.members.start
    members = [
        [terminals[member] for member in flat[begin:end].tolist()]
        for begin, end in pairwise(start.tolist())
    ]
    above: dict[Predicate, list[Predicate]] = {terminal: [] for terminal in terminals}
    for predicate, subsumed in zip(sets, members, strict=True):
        for member in subsumed:
            if member != predicate:
                above[member].append(predicate)
    for number, predicate in enumerate(sets):
        if predicate not in above:
            budget.check("the subsumption graph")
            # A predicate that subsumes a candidate subsumes all members of the candidate.
            possible = [other for other in above[members[number][0]] if other != predicate]
            clauses = candidates.clauses(number)
            above[predicate] = [
                other
                for other in possible
                if subsumes(candidates.clauses(order[other]), clauses, filters.implied)
            ]
    below: dict[Predicate, set[Predicate]] = {predicate: set() for predicate in above}
    for predicate, general in above.items():
        for other in general:
            below[other].add(predicate)
    return SubsumptionGraph(
        frozenset(terminals), order, above, below, dict(zip(sets, weights, strict=True))
    )
