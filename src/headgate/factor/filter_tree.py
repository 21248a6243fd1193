"""The filter plan of one source: a tree of predicates ([RoSeS §4.3]), and what it costs ([§4.2]).

    true ─┬─ a ─┬─ a ∧ b              nodes 0 … filters − 1 are the filters of the source
          │     └─ a ∧ c ── a ∧ c ∧ d
          └─ e                        the nodes after them are inserted: here a

Invariant: a node's predicate implies its parent's. An item that fails a node fails all nodes below
it, so every tree that holds all filters gives the same answers.

*As a program.* The path from `true` down to a filter is an order of its clauses, and of clauses of
inserted nodes that the filter implies. A program needs only this order (match/forest.py): common
prefixes become shared nodes. So children of one node also share common prefixes of their remaining
clauses, at no cost; the paper does not do this.

*Cost.* [RoSeS Table 1]: a filter costs a constant for each item that reaches it. A node is reached
by the items that its parent lets through, so a tree costs, in evaluations for each item,

    Σ over all nodes   w(selectivity of the parent)        w(true) = 1

and a plan without sharing costs 1 for each filter. A program evaluates a batch of items at once: a
node is visited if at least one item of the batch is left at its parent, and a visit costs the same
however many are left. For a batch of b items therefore

    w(s) = 1 − (1 − s)^b        b = 1 is Table 1;  b = 4,096: only very rare nodes are skipped

The cost of a tree is computed in one pass over its nodes. Rejected: a different cost for each form
of clause. A program answers all clauses before it walks over the tree; a node then costs one AND.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import overload

import numba as nb
import numpy as np

from headgate.factor.clause_sets import ClauseSets
from headgate.factor.implications import Lists, subsumes
from headgate.factor.selectivity import Floats, Selectivities
from headgate.match.bit_rows import Ints, Longs, popcount
from headgate.match.forest import Forest, build_path_forest

PATH_MAX = 40
"""Rows on the path to a filter; conjunctions themselves have at most 16 (match/conjunctions.py)."""

Predicate = tuple[int, ...]
"""The numbers of clauses, ascending."""


@dataclass(frozen=True, slots=True)
class CostModel:
    """The cost of a node if `batch_size` items are evaluated at once; 1 is the paper's model."""

    batch_size: int = 1

    def __post_init__(self) -> None:
        assert self.batch_size >= 1, self

    @overload
    def weight(self, selectivity: float) -> float: ...
    @overload
    def weight(self, selectivity: Floats) -> Floats: ...
    def weight(self, selectivity: float | Floats) -> float | Floats:
        """How often a node is evaluated whose parent has this selectivity."""
        return 1.0 - (1.0 - selectivity) ** self.batch_size

    def tree_cost(self, parent: Ints, selectivity: Floats) -> float:
        """The cost of a tree: node n is below parent[n], or below `true` where that is −1."""
        above = np.append(selectivity, 1.0)[parent]
        return float(np.sum(self.weight(above)))

    def forest_cost(self, forest: Forest, selectivities: Selectivities) -> float:
        """How many nodes of a compiled forest a batch is expected to visit."""
        return float(
            _forest_visits(
                (forest.node_row, forest.node_depth, forest.depth),
                (selectivities.bits, selectivities.sample_size, selectivities.single),
                self.batch_size,
            )
        )


PAPER = CostModel()


def benefit(count: int, above: float, inserted: float) -> float:
    """The benefit of inserting a node between a node and `count` of its children ([RoSeS §5]): the
    saving at the children minus the cost of the new node. `above` and `inserted` are the weights of
    the parent and of the new node.

    >>> benefit(3, 1.0, 0.5)
    0.5
    """
    return (count - 1) * above - count * inserted


@dataclass(frozen=True, slots=True, eq=False)
class FilterTree:
    """Node n is below parent[n], or below `true` where that is −1. Its predicate is
    clauses[start[n] : start[n + 1]]."""

    parent: Ints
    start: Longs
    clauses: Ints
    selectivity: Floats
    filter_count: int

    def cost(self, model: CostModel = PAPER) -> float:
        """Evaluations for each item (for each batch, if the model has batches)."""
        return model.tree_cost(self.parent, self.selectivity)

    def predicate(self, node: int) -> Predicate:
        return tuple(self._clauses_of(node).tolist())

    def check(self, filters: ClauseSets) -> None:
        """Assert the invariant, and that the tree has exactly these filters."""
        count = self.filter_count
        assert count == filters.filter_count
        assert np.array_equal(self.clauses[: self.start[count]], filters.clauses)
        assert np.array_equal(self.start[: count + 1], filters.start)
        for node, parent in enumerate(self.parent.tolist()):
            if parent >= 0:
                general, specific = self._clauses_of(parent), self._clauses_of(node)
                assert subsumes(general, specific, filters.implied), (node, parent)

    def _clauses_of(self, node: int) -> Ints:
        return self.clauses[self.start[node] : self.start[node + 1]]

    def paths(self, rank: Ints) -> tuple[Longs, Ints]:
        """The rows on the path to each filter; within a node those of the lowest rank first."""
        start, nothing = np.zeros(self.filter_count + 1, np.int64), np.zeros(0, np.int32)
        tree = self.parent, Lists(self.start, self.clauses), rank
        _write_paths(*tree, PATH_MAX, Lists(start, nothing), False)
        np.cumsum(start, out=start)
        paths = np.empty(int(start[-1]), np.int32)
        _write_paths(*tree, PATH_MAX, Lists(start, paths), True)
        return start, paths

    def forest(self, filters: ClauseSets) -> Forest:
        """The forest of a program (`match.program.with_forest`) in the shape of this tree."""
        start, paths = self.paths(filters.rank())
        lengths = np.diff(start)[filters.distinct]
        begins = np.repeat(start[filters.distinct] - np.cumsum(lengths) + lengths, lengths)
        rows = paths[begins + np.arange(int(lengths.sum()))]
        return build_path_forest(lengths.astype(np.int32), rows, filters.owners)


def flat_tree(filters: ClauseSets) -> FilterTree:
    """The naive plan: every filter directly below `true`."""
    return tree_of(filters, {})


def tree_of(filters: ClauseSets, parents: Mapping[Predicate, Predicate]) -> FilterTree:
    """The tree in which predicates have these parents; all others are directly below `true`."""
    terminals = filters.predicates()
    is_terminal = set(terminals)
    inserted = dict.fromkeys(
        predicate for edge in parents.items() for predicate in edge if predicate not in is_terminal
    )
    nodes = [*terminals, *inserted]
    number = {predicate: node for node, predicate in enumerate(nodes)}
    parent = [number[parents[node]] if node in parents else -1 for node in nodes]
    start = np.cumsum([0, *map(len, nodes)])
    clauses = np.array([clause for node in nodes for clause in node], np.int32)
    selectivity = filters.selectivities.of_sets(start, clauses)
    return FilterTree(np.array(parent, np.int32), start, clauses, selectivity, len(terminals))


@nb.njit(nogil=True, cache=True)
def _write_paths(parent, sets, rank, path_max, paths, write):  # type: ignore[no-untyped-def]
    """The rows from the root down to each filter.

    In: parent int32 [nodes], sets Lists of clauses by node, rank int32 [clauses]. Out: paths, Lists
    by filter. Without `write` only lengths are written: paths.start[f + 1] is that of filter f. If
    a path has more than path_max rows, the path is the filter's own clauses instead.
    """
    chain = np.empty(path_max + 1, np.int64)
    path = np.empty(2 * path_max + 64, np.int32)
    for filter_ in range(paths.start.shape[0] - 1):
        depth, node = 0, filter_
        while node >= 0 and depth <= path_max:
            chain[depth] = node
            depth += 1
            node = parent[node]
        length = path_max + 1
        if node < 0:
            length = _fill_path(chain[:depth], sets, rank, path[:path_max])
        if length > path_max:
            chain[0] = filter_
            length = _fill_path(chain[:1], sets, rank, path)
        if write:
            begin = paths.start[filter_]
            paths.values[begin : begin + length] = path[:length]
        else:
            paths.start[filter_ + 1] = length


@nb.njit(nogil=True, cache=True)
def _fill_path(chain, sets, rank, path):  # type: ignore[no-untyped-def]
    """Write the rows of the chain's nodes (int64, the last one first) to `path` (int32), within a
    node by rank. Returns their number, or path.shape[0] + 1 if they do not fit."""
    length = 0
    for level in range(chain.shape[0] - 1, -1, -1):
        node, first = chain[level], length
        for position in range(sets.start[node], sets.start[node + 1]):
            clause, is_known = sets.values[position], False
            for place in range(first):
                if path[place] == clause:
                    is_known = True
                    break
            if is_known:
                continue
            if length >= path.shape[0]:
                return path.shape[0] + 1
            place = length
            while place > first and rank[path[place - 1]] > rank[clause]:
                path[place] = path[place - 1]
                place -= 1
            path[place] = clause
            length += 1
    return length


@nb.njit(nogil=True, cache=True)
def _forest_visits(nodes, selectivities, batch_size):  # type: ignore[no-untyped-def]
    """The expected number of nodes that a batch visits: those whose parent has an item left.

    nodes: rows int32 [nodes], depths int32 [nodes], depth of the forest. selectivities: bits uint64
    [row, word] of the sample, size of the sample, single float64 [row].
    """
    node_row, node_depth, depth = nodes
    bits, size, single = selectivities
    word_count, total = bits.shape[1], 0.0
    left = np.empty((depth + 1, word_count), np.uint64)
    left[0] = ~np.uint64(0)
    products, visits = np.ones(depth + 1), np.ones(depth + 1)
    for node in range(node_row.shape[0]):
        level, row = node_depth[node], node_row[node]
        total += visits[level]
        count = np.uint64(0)
        for word in range(word_count):
            value = left[level, word] & bits[row, word]
            left[level + 1, word] = value
            count += popcount(value)
        products[level + 1] = products[level] * single[row]
        share = products[level + 1]
        if size > 0:
            share = count / size if count > 0 else min(share, 0.5 / size)
        visits[level + 1] = 1.0 - (1.0 - share) ** batch_size
    return total
