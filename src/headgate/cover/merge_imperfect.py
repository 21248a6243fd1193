"""Imperfect merging: one conjunction in place of several, at the price of some items in vain.

[MBD §5.3]. The imperfect degree of a merger M of F1 … Fn is the share of P(M) that no part
matches (Definition 1); with advertisements, among the items that are advertised (Definition 2). The
imperfect merging threshold (IMT) is the degree times the probability of M, which is the share of
all items that are forwarded in vain:

    IMT(M) = P(M) · (1 − P(F1 or … or Fn) / P(M)) = P(M) − P(F1 or … or Fn)

Candidates have the same attributes and differ in one or two conditions (§5.1.1). What differs is
joined: by the union where it can be written (`in`, touching ranges), by the hull of it otherwise,
and dropped where there is none. The paper's Table 1 is a part of that:

    price < 100, price > 200   ──►  price is present        price > 150, = 145   ──►  price >= 145
    price < 100, price = 145   ──►  price <= 145            contains 'a', 'b'    ──►  dropped

(The paper prints > 145 and < 145, which would lose what it wants to keep.)

The best set of mergers is NP-complete to find, so this is greedy: of all neighbouring pairs
(neighbours.py) the one with the smallest IMT is merged next, from a heap, until the smallest is
above the threshold. Mergers merge again. So a run up to one threshold is the beginning of the run
up to a higher one.

Law: P(M) ⊇ P(F1) ∪ … ∪ P(Fn), and the declared `imt` and `degree` are not less than the true ones,
if the cells are right (cells.py). Both are taken against the original parts, never against mergers:
with U1 ⊆ M1 and U2 ⊆ M2 what the parts of two mergers match,

    P(U1 ∪ U2)  ≥  max(P(U1), P(U2), P(U1) + P(U2) − P(M1 ∩ M2))

where M1 ∩ M2 is a box again. For two conjunctions, and in cells of one item each, it is equal.

Cost: each conjunction is in k + k(k−1)/2 groups, kept in the order of their values, and is weighed
with its two neighbours in each. A merger leaves its groups and enters new ones.

Rejected    All pairs of a group: quadratic, and the closest are neighbours. Rounds, merging many
            pairs at a time: faster, but the result depends on where the rounds end.
            Dropping where a hull exists: it always costs more items.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heappop, heappush

from headgate.cover.cells import Cells
from headgate.cover.conditions import Conditions, Conjunction
from headgate.cover.merger import Merger
from headgate.cover.neighbours import Neighbours
from headgate.cover.pair_weights import Node, PairWeights
from headgate.model.filters import Filter
from headgate.model.schema import Schema

ROUNDING = 1e-12
"""Sums of probabilities are not exact; less than this in vain is nothing."""


def merge_imperfect(
    filters: Sequence[Filter],
    schema: Schema,
    cells: Cells,
    *,
    threshold: float,
    total_max: float = math.inf,
) -> list[Merger]:
    """Mergers of two parts and more, each with an IMT of at most the threshold.

    Parts are positions in `filters`, no part in two mergers; what is in none stays as it is.
    Filters that no item can satisfy are left alone. A threshold says nothing about many mergers
    together; `total_max` bounds the sum of their IMTs, and so the share of items that are
    forwarded though no part of any merger matches.
    """
    return ImperfectMerging(filters, schema, cells).up_to(threshold, total_max=total_max)


class ImperfectMerging:
    """A run that can be continued to a higher threshold. One thread at a time."""

    def __init__(self, filters: Sequence[Filter], schema: Schema, cells: Cells) -> None:
        self._conditions = Conditions(schema)
        self._weights = PairWeights(self._conditions, cells)
        self._neighbours = Neighbours(self._conditions)
        self._nodes: list[Node | None] = []
        self._number_of: dict[Conjunction, int] = {}
        self._heap: list[tuple[float, int, int]] = []
        self._total = 0.0
        positions: dict[Conjunction, list[int]] = {}
        for position, filter_ in enumerate(filters):
            conjunction = self._conditions.read(filter_)
            if conjunction is not None:
                positions.setdefault(conjunction, []).append(position)
        for conjunction, parts in positions.items():
            self._number_of[conjunction] = len(self._nodes)
            self._nodes.append(self._weights.single(conjunction, tuple(parts)))
        for left, right in self._neighbours.add_all(list(enumerate(positions))):
            self._weigh(left, right)

    def up_to(self, threshold: float, *, total_max: float = math.inf) -> list[Merger]:
        """All mergers within these limits, which are not lower than those of the call before."""
        while self._heap and self._heap[0][0] <= threshold:
            vain, left, right = heappop(self._heap)
            first, second = self._nodes[left], self._nodes[right]
            if first is None or second is None:
                continue
            if self._total + vain - first.vain - second.vain > total_max:
                heappush(self._heap, (vain, left, right))
                break
            self._remove(left)
            self._remove(right)
            self._add(self._weights.merged(first, second))
        mergers = [self._merger(each) for each in self._nodes if each and len(each.parts) > 1]
        return sorted(mergers, key=lambda merger: merger.parts)

    def _add(self, node: Node) -> None:
        """A new node, and what had the same conditions is a part of it."""
        same = self._number_of.get(node.conjunction)
        if same is not None:
            other = self._nodes[same]
            assert other is not None
            self._remove(same)
            node = self._weights.merged(other, node)
        number = len(self._nodes)
        self._nodes.append(node)
        self._number_of[node.conjunction] = number
        self._total += node.vain
        for neighbour in self._neighbours.add(number, node.conjunction):
            self._weigh(neighbour, number)

    def _remove(self, number: int) -> None:
        node = self._nodes[number]
        assert node is not None
        self._nodes[number] = None
        self._total -= node.vain
        del self._number_of[node.conjunction]
        for left, right in self._neighbours.remove(number, node.conjunction):
            self._weigh(left, right)

    def _weigh(self, left: int, right: int) -> None:
        first, second = self._nodes[left], self._nodes[right]
        if first is not None and second is not None:
            vain = self._weights.vain(first, second)
            heappush(self._heap, (vain if vain > ROUNDING else 0.0, left, right))

    def _merger(self, node: Node) -> Merger:
        vain = node.vain if node.vain > ROUNDING else 0.0
        degree = min(1.0, vain / node.probability) if vain else 0.0
        return Merger(self._conditions.filter_of(node.conjunction), node.parts, degree, vain)
