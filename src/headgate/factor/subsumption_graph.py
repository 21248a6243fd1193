"""The subsumption graph: all predicates of a source, and which subsume which ([RoSeS §4.3]).

    a ──► a b ──► a b c        an edge wherever one predicate subsumes another, transitive ones too;
    b ──►     ──►              it weighs what the predicate that it comes from lets through

Nodes are the filters and every predicate that subsumes at least two of them. One that subsumes a
single filter is left out: it has a price itself, and spares no more than what it takes its place
of, so no cheapest tree has it.

Law: any tree in it that reaches all filters from `true` is a filter plan.

Cost: a look at each pair of a filter and one of its candidates, and a set for each; this is for STA
and for Algorithm 1 as printed, which need all of it. factorize_vcb.py needs none.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.factor.candidates import Candidates, find_candidates
from headgate.factor.factor_cost import PAPER, CostModel
from headgate.factor.factor_input import FactorInput
from headgate.factor.factor_kernels import subsumes
from headgate.factor.factor_tree import Predicate
from headgate.factor.time_budget import UNLIMITED, TimeBudget


@dataclass(frozen=True, slots=True)
class SubsumptionGraph:
    """`order` has the candidates as VCA takes them; above[p] are those that subsume p, in that
    order, and below[p] the predicates that p subsumes."""

    filters: frozenset[Predicate]
    order: dict[Predicate, int]
    above: dict[Predicate, list[Predicate]]
    below: dict[Predicate, set[Predicate]]
    weight: dict[Predicate, float]


def subsumption_graph(
    given: FactorInput, *, model: CostModel = PAPER, budget: TimeBudget = UNLIMITED
) -> SubsumptionGraph:
    """The graph; `TimeBudgetExceeded` if there is no time for it."""
    found = find_candidates(given)
    filters = given.predicates()
    sets = [found.predicate(each) for each in range(found.count)]
    order = {predicate: at for at, predicate in enumerate(sets)}
    weights = model.weight(found.selectivity).tolist()
    members = [
        [filters[member] for member in found.members[start:end].tolist()]
        for start, end in zip(found.member_start[:-1], found.member_start[1:], strict=True)
    ]
    above: dict[Predicate, list[Predicate]] = {each: [] for each in filters}
    for predicate, own in zip(sets, members, strict=True):
        for member in own:
            if member != predicate:
                above[member].append(predicate)
    for at, predicate in enumerate(sets):
        if predicate not in above:
            budget.check("the subsumption graph")
            # What subsumes a candidate subsumes all of its members.
            near = [each for each in above[members[at][0]] if each != predicate]
            above[predicate] = [each for each in near if _subsumes(given, found, order[each], at)]
    below: dict[Predicate, set[Predicate]] = {each: set() for each in above}
    for predicate, own_above in above.items():
        for each in own_above:
            below[each].add(predicate)
    return SubsumptionGraph(
        frozenset(filters), order, above, below, dict(zip(sets, weights, strict=True))
    )


def _subsumes(given: FactorInput, found: Candidates, general: int, specific: int) -> bool:
    one, other = (
        found.clauses[found.start[at] : found.start[at + 1]] for at in (general, specific)
    )
    return bool(subsumes(one, other, given.implied_start, given.implied))
