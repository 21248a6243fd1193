"""Factorising the filters of one source: the optimiser that chooses a plan ([RoSeS §4.3]).

    filters ──► clauses, statistics ──► prefix, prefix-by-use    always there, in no time
                                    ──► vcb                      seconds for a million
                                    ──► sta                      where there is time for it
            ──► the plan that is expected to visit the fewest nodes of a program ──► the program

Law: for any filters, statistics and time the program gives the same answers (match/program.py).

Which plan is best is not asked of the paper's cost, which counts items one by one, but of the
compiled forest and of batches (factor_cost.py): that is what takes the time. In large batches most
nodes have an item left, so the plan with the fewest nodes wins, and sorted prefixes may have that.

A source is factorised by itself, from arrays alone (`factorize_arrays`), so that many sources can
be on many machines.

Rejected: VCA on the graph among the choices. It finds what VCB finds before it improves its tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headgate.factor.factor_cost import CostModel
from headgate.factor.factor_input import FactorInput, factor_input
from headgate.factor.factor_selectivity import Measured, nothing_measured, selectivities_of
from headgate.factor.factor_tree import FactorTree, flat_tree
from headgate.factor.factorize_prefix import factorize_prefix
from headgate.factor.factorize_sta import factorize_sta
from headgate.factor.factorize_vca import factorize_vca
from headgate.factor.factorize_vcb import factorize_vcb
from headgate.factor.subsumption import implications_of
from headgate.factor.time_budget import TimeBudget, TimeBudgetExceeded
from headgate.match.batch import Batch
from headgate.match.conjunctions import conjunctions_of
from headgate.match.forest import Forest
from headgate.match.program import Program, compile_rows, with_forest
from headgate.model.filters import And, Filter, Not, Or, conjuncts
from headgate.model.schema import Schema
from headgate.plan.cnf import to_cnf

BATCH = CostModel(4_096)
"""A batch of the matcher (DESIGN.md §5.2)."""
BUDGET_S = 10.0
STA_FILTERS_MAX = 2_000
"""STA holds its graph in Python's objects: beyond this it would need too much memory, too."""

Algorithm = Callable[[FactorInput, TimeBudget], FactorTree]
ALGORITHMS: dict[str, Algorithm] = {
    "naive": lambda given, _: flat_tree(given),
    "prefix": lambda given, _: factorize_prefix(given),
    "prefix-by-use": lambda given, _: factorize_prefix(given, rank=given.rank_by_use()),
    "vcb": lambda given, _: factorize_vcb(given),
    "vca": lambda given, budget: factorize_vca(given, budget=budget),
    "sta": lambda given, budget: factorize_sta(given, budget=budget),
}
CHOICES = ("prefix", "prefix-by-use", "vcb", "sta")


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The plan that was taken, and for each algorithm what its plan was expected to cost: nodes
    visited for a batch; nothing where there was no time for it."""

    algorithm: str
    tree: FactorTree
    forest: Forest
    expected: dict[str, float | None]


@dataclass(frozen=True, slots=True, eq=False)
class Factorized:
    """The filters of a source, compiled in the shape of the plan that was taken."""

    program: Program
    given: FactorInput
    choice: Choice
    clauses: Sequence[Filter]
    """What each row of the program asks."""


def factorize(
    filters: Sequence[Filter],
    schema: Schema,
    *,
    names: Sequence[int] | None = None,
    sample: Batch | None = None,
    measured: Measured = nothing_measured,
    budget_s: float = BUDGET_S,
    algorithm: str | None = None,
) -> Factorized:
    """One program for all filters, as `compile_program` gives it, in the shape that costs least.

    `sample` is items of the source, a few thousand of them (it takes a bit for each item and atom),
    and `measured` what the catalog knows of an atom. Without both the forms of atoms are all there
    is to go by. `algorithm` names one of ALGORITHMS to be taken
    whatever it costs.
    """
    budget = TimeBudget(budget_s)
    found = conjunctions_of([in_clauses(each) for each in filters])
    rows = compile_rows(found, schema, names=names)
    known = selectivities_of(found, rows, sample=sample, measured=measured)
    given = factor_input(found, implications_of(found, known), known)
    choice = factorize_arrays(given, budget=budget, algorithm=algorithm)
    return Factorized(with_forest(rows, choice.forest), given, choice, found.row_filters())


def factorize_arrays(
    given: FactorInput,
    *,
    budget: TimeBudget,
    model: CostModel = BATCH,
    algorithm: str | None = None,
) -> Choice:
    """The plan of one source that is expected to visit the fewest nodes, from arrays to arrays."""
    best: Choice | None = None
    expected: dict[str, float | None] = {}
    for name in CHOICES if algorithm is None else (algorithm,):
        expected[name] = None
        try:
            if best is not None:
                budget.check(name)
                if name == "sta" and given.filter_count > STA_FILTERS_MAX:
                    continue
            tree = ALGORITHMS[name](given, budget)
        except TimeBudgetExceeded:
            if algorithm is not None:
                raise
            continue
        forest = tree.forest(given)
        cost = expected[name] = model.forest_cost(forest, given.selectivities)
        if best is None or cost < (best.expected[best.algorithm] or 0.0):
            best = Choice(name, tree, forest, expected)
    assert best is not None, "the first one always has the time"
    return best


def in_clauses(filter_: Filter) -> Filter:
    """In conjunctive normal form where it is not: feeds with several branches ask for disjunctions
    of conjunctions (plan/leaves.py), in which common clauses hide."""
    if all(map(_is_clause, conjuncts(filter_))):
        return filter_
    return to_cnf(filter_)


def _is_clause(part: Filter) -> bool:
    parts = part.parts if isinstance(part, Or) else (part,)
    literals = (each.part if isinstance(each, Not) else each for each in parts)
    return not any(isinstance(each, And | Or | Not) for each in literals)
