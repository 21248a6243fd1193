"""The factorised filters of a source, maintained as filters are added and removed ([RoSeS §8]).

    add, remove ──► IncrementalTree: a small change of the tree
    settle      ──► build a new tree if the old one has lost more than `loss_max`
    compile     ──► the program in the shape of the tree

Invariant: at any time the program of `compile` gives the answers of each filter by itself.

Clauses are numbered in the order in which they appear, so that the tree keeps its numbers; what a
new clause implies is found when a new tree is built. No command uses this: catalogs change in
batches, and a new plan for 100,000 filters takes seconds (bench/factorize.py compares both).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench.baselines.incremental_tree import IncrementalTree
from headgate.factor.clause_sets import clause_sets, reduce_sets
from headgate.factor.factorize import in_clauses
from headgate.factor.filter_tree import PAPER, CostModel, Predicate
from headgate.factor.implications import Implications, Lists, implications_of
from headgate.factor.selectivity import Measured, nothing_measured, selectivities_of
from headgate.match.batch import Batch
from headgate.match.bit_rows import Words
from headgate.match.conjunctions import ConjunctionBuilder, Conjunctions, conjunctions_of
from headgate.match.program import Program, compile_rows, with_forest
from headgate.model.filters import Filter
from headgate.model.schema import Schema

LOSS_MAX = 0.05


class IncrementalFactors:
    """For one thread. Filters are known by names, which are numbers."""

    def __init__(
        self,
        schema: Schema,
        *,
        sample: Batch | None = None,
        measured: Measured = nothing_measured,
        model: CostModel = PAPER,
        loss_max: float = LOSS_MAX,
    ) -> None:
        self._schema, self._sample, self._measured = schema, sample, measured
        self._model, self._loss_max = model, loss_max
        self._filters: dict[int, Filter] = {}
        self.rebuild()

    def add(self, name: int, filter_: Filter) -> None:
        assert name not in self._filters, f"{name} is there already"
        self._filters[name] = in_clauses(filter_)
        predicate = self._predicate(self._filters[name])
        if predicate:
            self._tree.add(predicate)

    def remove(self, name: int) -> None:
        predicate = self._predicate(self._filters.pop(name))
        if predicate:
            self._tree.remove(predicate)

    @property
    def cost(self) -> float:
        return self._tree.cost

    def estimated_loss(self) -> float:
        return self._tree.estimated_loss()

    def settle(self) -> bool:
        """Build the tree anew if it has lost too much; whether that was so."""
        if self.estimated_loss() <= self._loss_max:
            return False
        self.rebuild()
        return True

    def rebuild(self) -> None:
        """Build the tree anew, and forget clauses that no filter has any more."""
        self._builder = ConjunctionBuilder()
        found = self._conjunctions()
        rows = compile_rows(found, self._schema)
        self._known = selectivities_of(found, rows, sample=self._sample, measured=self._measured)
        self._implications = implications_of(found, self._known)
        given = clause_sets(found, self._implications, self._known)
        self._tree = IncrementalTree(given, model=self._model)
        self._number_of = [*range(len(found.atoms)), *(-1 - at for at in range(len(found.derived)))]
        self._clause_of = {number: clause for clause, number in enumerate(self._number_of)}

    def compile(self) -> Program:
        """The program of all filters that are there; a filter's name is its name."""
        found = self._conjunctions()
        row_of = np.array([self._builder.row(each) for each in self._number_of], np.int32)
        clause_at = np.full(found.row_count, -1, np.int32)
        clause_at[row_of] = np.arange(row_of.size, dtype=np.int32)
        by_clause = replace(found, rows=clause_at[found.rows])
        given = clause_sets(by_clause, self._implications, self._known)
        forest = self._tree.tree(given.start, given.clauses).forest(given)
        names = sorted(self._filters)
        rows = compile_rows(found, self._schema, names=names)
        return with_forest(rows, replace(forest, node_row=row_of[forest.node_row]))

    def _conjunctions(self) -> Conjunctions:
        ordered = [self._filters[name] for name in sorted(self._filters)]
        return self._builder.conjunctions(ordered)

    def _predicate(self, filter_: Filter) -> Predicate:
        """The clauses of a filter, without those that others of it imply; none where all items
        satisfy it, or none does."""
        numbers = self._builder.numbers_of(filter_)
        if not numbers:
            return ()
        clauses = np.array([self._clause(each) for each in numbers], np.int32)
        lengths, kept = np.array([clauses.size], np.int32), np.empty_like(clauses)
        known = self._implications
        used = reduce_sets(lengths, clauses, known, lengths.copy(), kept)
        return tuple(kept[:used].tolist())

    def _clause(self, number: int) -> int:
        """The clause that a number of the builder stands for; a new one is looked at first."""
        clause = self._clause_of.get(number)
        if clause is None:
            clause = self._clause_of[number] = len(self._number_of)
            self._number_of.append(number)
            self._known = self._known.with_clause(*self._look_at(number))
            old = self._implications
            self._implications = Implications(
                np.append(old.same_as, np.int32(clause)),
                Lists(np.append(old.implied.start, old.implied.start[-1]), old.implied.values),
            )
            self._tree.learn(self._known)
        return clause

    def _look_at(self, number: int) -> tuple[float, Words]:
        """The selectivity of a clause, and its row of the sample."""
        found = conjunctions_of([self._builder.filter_of(number)])
        rows = compile_rows(found, self._schema)
        known = selectivities_of(found, rows, sample=self._sample, measured=self._measured)
        share = known.of_sets(np.array([0, found.rows.size]), found.rows)
        return float(share[0]), np.bitwise_and.reduce(known.bits[found.rows], axis=0)
