"""What a filter plan costs: [RoSeS §4.2, Table 1], and what it becomes in a program of bit rows.

Table 1: a filter costs a constant for each item that reaches it, and lets sel(p) · R(b) through. In
a tree of filters a node is reached by what its parent lets through, so a tree costs

    Σ over all nodes   w(selectivity of the parent)        w(true) = 1, in evaluations per item

and a plan without sharing costs 1 for each filter. Joins and windows do not depend on the tree.

The program evaluates a batch of items at once: a node is visited if at least one item of the batch
is left at its parent, and the visit costs the same however many are left. So for a batch of b items

    w(s) = 1 − (1 − s)^b        b = 1 is Table 1;  b = 4,096: what is skipped is what is very rare

Cost is linear in the nodes. Rejected: a price for each clause by its form. All clauses of a program
are answered before the walk, by one pass for all of a form; a node's own price is that of an AND.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import numpy as np

from headgate.factor.factor_kernels import forest_visits
from headgate.factor.factor_selectivity import Floats, Selectivities
from headgate.match.forest import Forest
from headgate.match.kernels import Ints


@dataclass(frozen=True, slots=True)
class CostModel:
    """How many items are evaluated at once; 1 is the paper's model."""

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

    def forest_cost(self, forest: Forest, known: Selectivities) -> float:
        """How many nodes of a compiled forest are visited for a batch, as an estimate."""
        bits, size, single = known.bits, known.sample_size, known.single
        rows = forest.node_row, forest.node_depth
        return float(forest_visits(*rows, bits, size, single, self.batch_size, forest.depth))


PAPER = CostModel()


def benefit(count: int, above: float, inserted: float) -> float:
    """Of inserting a node between another one and `count` of its children ([RoSeS §5]): what the
    children cost less, minus what the node costs. Both numbers are weights.

    >>> benefit(3, 1.0, 0.5)
    0.5
    """
    return (count - 1) * above - count * inserted
