"""Factorise the filters of one source and compile them: `factorize()` ([RoSeS §4.3]).

    filters ──► sets of clauses, with the selectivity of each clause      clause_sets, selectivity
            ──► a tree of shared predicates, by the method of a name      methods
            ──► a program in the shape of that tree                       match/program.py

Invariant: for any filters, statistics, method and time budget the program gives the same answers.

A source is factorised by itself, and `choose_plan` works on arrays alone, so that many sources can
be factorised on many machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.factor.clause_sets import ClauseSets, clause_sets
from headgate.factor.implications import implications_of
from headgate.factor.methods import AUTO, PlanChoice, check_method, choose_plan
from headgate.factor.selectivity import Measured, nothing_measured, selectivities_of
from headgate.factor.time_budget import TimeBudget
from headgate.match.batch import Batch
from headgate.match.conjunctions import conjunctions_of
from headgate.match.program import Program, compile_rows, with_forest
from headgate.model.filters import And, Filter, Not, Or, conjuncts
from headgate.model.schema import Schema
from headgate.plan.cnf import to_cnf

BUDGET_S = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Factorized:
    """The filters of a source, compiled in the shape of the chosen plan."""

    program: Program
    filters: ClauseSets
    choice: PlanChoice
    clauses: Sequence[Filter]
    """The condition of each row of the program."""


def factorize(
    filters: Sequence[Filter],
    schema: Schema,
    *,
    names: Sequence[int] | None = None,
    sample: Batch | None = None,
    measured: Measured = nothing_measured,
    budget_s: float = BUDGET_S,
    method: str = AUTO,
) -> Factorized:
    """One program for all filters, as `compile_program` gives it, in the shape that costs least.

    `sample` is some thousand items of the source (it takes one bit for each item and atom).
    `measured` gives the selectivity of an atom as the catalog has measured it. Without both,
    selectivities are guessed from the forms of the atoms. `method` is one of METHOD_NAMES
    (methods.py); an unknown name raises `PlanError`. `choice` of the result says which method made
    the plan, and what the plans that were compared are expected to cost.
    """
    check_method(method)
    budget = TimeBudget(budget_s)
    conjunctions = conjunctions_of([in_clauses(each) for each in filters])
    rows = compile_rows(conjunctions, schema, names=names)
    selectivities = selectivities_of(conjunctions, rows, sample=sample, measured=measured)
    sets = clause_sets(conjunctions, implications_of(conjunctions, selectivities), selectivities)
    choice = choose_plan(sets, budget=budget, method=method)
    return Factorized(with_forest(rows, choice.forest), sets, choice, conjunctions.row_filters())


def in_clauses(filter_: Filter) -> Filter:
    """The filter in conjunctive normal form. Feeds with several branches have disjunctions of
    conjunctions (plan/leaves.py), whose common clauses would not be found otherwise."""
    if all(map(_is_clause, conjuncts(filter_))):
        return filter_
    return to_cnf(filter_)


def _is_clause(part: Filter) -> bool:
    parts = part.parts if isinstance(part, Or) else (part,)
    literals = (each.part if isinstance(each, Not) else each for each in parts)
    return not any(isinstance(each, And | Or | Not) for each in literals)
