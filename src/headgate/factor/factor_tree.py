"""The filter plan of one source: a tree of predicates, each a set of clauses ([RoSeS §4.3]).

    true ─┬─ a ─┬─ a ∧ b              a filter that was asked for
          │     └─ a ∧ c ── a ∧ c ∧ d
          └─ e                        nodes 0 … filters − 1 are the filters, others are inserted

Law: a node's predicate implies its parent's. So an item that fails a node fails all below it, and
any tree that has all filters in it gives the same answers.

The way down from `true` to a filter is an order of its clauses, with clauses of inserted nodes that
it implies among them. That order is all that a program needs (match/forest.py): equal beginnings
become shared nodes, so that even children of one node share what their remaining clauses have in
common, which costs nothing and is no part of the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from headgate.factor.factor_cost import PAPER, CostModel
from headgate.factor.factor_input import FactorInput
from headgate.factor.factor_kernels import paths_of_filters, subsumes
from headgate.factor.factor_selectivity import Floats
from headgate.match.forest import Forest, build_path_forest
from headgate.match.kernels import Ints, Longs

PATH_MAX = 40
"""Rows on the way to a filter; conjunctions themselves have at most 16 (match/conjunctions.py)."""

Predicate = tuple[int, ...]
"""Clauses, ascending."""


@dataclass(frozen=True, slots=True, eq=False)
class FactorTree:
    """parent[n] is −1 for `true`. Node n has the predicate clauses[start[n] : start[n + 1]]."""

    parent: Ints
    start: Longs
    clauses: Ints
    selectivity: Floats
    filter_count: int

    def cost(self, model: CostModel = PAPER) -> float:
        """Evaluations for each item (for each batch, if the model has batches)."""
        return model.tree_cost(self.parent, self.selectivity)

    def predicate(self, node: int) -> Predicate:
        return tuple(self.clauses[self.start[node] : self.start[node + 1]].tolist())

    def check(self, given: FactorInput) -> None:
        """Assert the law, and that the filters are those that were given."""
        filters = self.filter_count
        assert filters == given.filter_count
        assert np.array_equal(self.clauses[: self.start[filters]], given.clauses)
        assert np.array_equal(self.start[: filters + 1], given.start)
        for node, above in enumerate(self.parent.tolist()):
            if above >= 0:
                own, its = (self._clauses_of(each) for each in (node, above))
                assert subsumes(its, own, given.implied_start, given.implied), (node, above)

    def _clauses_of(self, node: int) -> Ints:
        return self.clauses[self.start[node] : self.start[node + 1]]

    def paths(self, rank: Ints) -> tuple[Longs, Ints]:
        """The rows on the way to each filter; within a node those of the lowest rank first."""
        start, nothing = np.zeros(self.filter_count + 1, np.int64), np.zeros(0, np.int32)
        own = self.filter_count, self.parent, self.start, self.clauses, rank, PATH_MAX, start
        paths_of_filters(*own, nothing, False)
        np.cumsum(start, out=start)
        paths = np.empty(int(start[-1]), np.int32)
        paths_of_filters(*own, paths, True)
        return start, paths

    def forest(self, given: FactorInput) -> Forest:
        """The forest of a program (`match.program.with_forest`) that has the shape of this tree."""
        start, paths = self.paths(given.rank())
        lengths = np.diff(start)[given.distinct]
        begins = np.repeat(start[given.distinct] - np.cumsum(lengths) + lengths, lengths)
        rows = paths[begins + np.arange(int(lengths.sum()))]
        return build_path_forest(lengths.astype(np.int32), rows, given.owners)


def flat_tree(given: FactorInput) -> FactorTree:
    """The naive plan: every filter below `true`."""
    return tree_of(given, {})


def tree_of(given: FactorInput, parents: Mapping[Predicate, Predicate]) -> FactorTree:
    """The tree in which predicates have these parents, and all others stand below `true`."""
    filters = given.predicates()
    asked = set(filters)
    inserted = dict.fromkeys(each for edge in parents.items() for each in edge if each not in asked)
    nodes = [*filters, *inserted]
    number = {predicate: at for at, predicate in enumerate(nodes)}
    parent = [number[parents[each]] if each in parents else -1 for each in nodes]
    start = np.cumsum([0, *map(len, nodes)])
    clauses = np.array([clause for each in nodes for clause in each], np.int32)
    selectivity = given.selectivities.of_sets(start, clauses)
    return FactorTree(np.array(parent, np.int32), start, clauses, selectivity, len(filters))
