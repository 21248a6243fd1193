"""The plan of a rewriting: which embeddings of views are joined, and what is tested ([Delta §4.1]).

Given views that cover query q (Proposition 4.1), the rewriting joins them on their identifiers and
tests the structural and value predicates of q that no view enforces. A view may occur several
times, with different embeddings, its *instances*:

    q = //a[. > 5]//b{val}      ⋈   v3(a)      v3 = //a{val}
                                    v7(b)      v7 = //b{val}
                                    where a//b                structural
                                    where a > 5               residual, on the val that v3 has

Predicates that an instance guarantees are not tested again: an edge that is also an edge of the
view, and a value predicate that a predicate of the view implies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headgate.model.tree_pattern import Axis, Mark, PatternNode, ValuePredicate
from headgate.views.pattern_arrays import (
    CHILDREN,
    DESCENDANTS,
    NODES_MAX,
    PREDICATES,
    PREDICATES_END,
    Longs,
    Masks,
    Patterns,
    PatternVocabulary,
    covered,
    embed,
    encode_views,
    implies_predicate,
    preorder,
)
from headgate.views.view_tuples import marked_nodes

Place = tuple[int, int]
"""An instance, and a node of its view."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One embedding of a view: node n of the view goes to node goes_to[n] of the query."""

    view: int
    goes_to: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PatternEdge:
    """A structural predicate between two nodes of the query; `above` is -1 for the root itself."""

    above: int
    below: int
    axis: Axis


@dataclass(frozen=True, slots=True)
class Residual:
    """A value predicate that no view enforces, and the place of the value that it tests."""

    node: int
    predicate: ValuePredicate
    value: Place


@dataclass(frozen=True, slots=True)
class RewritingPlan:
    query: PatternNode
    instances: tuple[Instance, ...]
    edges: tuple[PatternEdge, ...]
    residuals: tuple[Residual, ...]
    texts: dict[tuple[int, Mark], Place]
    """The place of each marked text of the query."""

    def renumbered(self, views: Sequence[int]) -> RewritingPlan:
        """The same plan with view n replaced by views[n]."""
        instances = (replace(each, view=views[each.view]) for each in self.instances)
        return replace(self, instances=tuple(instances))


def rewriting_plan(query: PatternNode, views: Mapping[int, PatternNode]) -> RewritingPlan:
    """The plan that computes the query from these views, which cover it."""
    return _Planning(query, views).plan()


class _Planning:
    def __init__(self, query: PatternNode, views: Mapping[int, PatternNode]) -> None:
        self.query, self.numbers = query, list(views)
        patterns = [query, *views.values()]
        vocabulary = PatternVocabulary()
        vocabulary.learn(patterns)
        self.arrays: Patterns = encode_views(patterns, vocabulary)
        self.trees = [preorder(pattern) for pattern in patterns]
        self.missing = (1 << int(self.arrays.attribute_count[0])) - 1

    def plan(self) -> RewritingPlan:
        embeddings = [
            (view, goes_to)
            for view in range(1, len(self.trees))
            for goes_to in self._embeddings(view)
        ]
        assert not self.missing, "the views do not cover the query"
        self.embeddings = embeddings
        texts = {key: self._text_of(*key) for key in marked_nodes(self.query)}
        return RewritingPlan(
            self.query,
            tuple(Instance(self.numbers[view - 1], goes_to) for view, goes_to in embeddings),
            tuple(each for each in self._edges() if not self._is_guaranteed(each)),
            tuple(self._residuals()),
            texts,
        )

    def _embeddings(self, view: int) -> list[tuple[int, ...]]:
        """Embeddings of a view that together cover all missing attributes that it can cover."""
        below = np.zeros(NODES_MAX, np.uint64)
        images = np.zeros(NODES_MAX, np.uint64)
        assert embed(self.arrays, view, self.arrays, 0, below, images), "a view does not embed"
        embeddings = []
        for n in range(len(self.trees[view])):
            for m in range(len(self.trees[0])):
                if int(images[n]) >> m & 1 and self._covers(view, n, m) & self.missing:
                    goes_to = self._embedding(view, below, n, m)
                    for node, place in enumerate(goes_to):
                        self.missing &= ~self._covers(view, node, place)
                    embeddings.append(goes_to)
        return embeddings

    def _covers(self, view: int, n: int, m: int) -> int:
        """The mask of the query's attributes that node n covers if it is mapped to node m."""
        images = np.zeros(NODES_MAX, np.uint64)
        images[n] = 1 << m
        return int(covered(self.arrays, view, self.arrays, 0, images))

    def _embedding(self, view: int, below: Masks, n: int, m: int) -> tuple[int, ...]:
        """An embedding that maps n to m, and other nodes to where they cover most."""
        fixed = {n: m}
        while self.trees[view][n][1] >= 0:  # the way up: a parent must be above its child's place
            child, n = n, self.trees[view][n][1]
            fixed[n] = next(
                place
                for place in range(len(self.trees[0]))
                if int(below[n]) >> place & 1
                and self._allowed(view, child, place) >> fixed[child] & 1
                and self._fits_above(view, below, n, place)
            )
        goes_to: list[int] = []
        for node, (_, parent) in enumerate(self.trees[view]):
            if node in fixed:
                goes_to.append(fixed[node])
                continue
            allowed = int(below[node]) & self._allowed(view, node, goes_to[parent])
            places = [place for place in range(len(self.trees[0])) if allowed >> place & 1]
            goes_to.append(
                max(places, key=lambda p: _bits(self._covers(view, node, p), self.missing))
            )
        return tuple(goes_to)

    def _allowed(self, view: int, child: int, place: int) -> int:
        """The mask of targets of a child if its parent is mapped to this place."""
        is_child = self.trees[view][child][0].axis is Axis.CHILD
        return int(self.arrays.masks[place, CHILDREN if is_child else DESCENDANTS])

    def _fits_above(self, view: int, below: Masks, n: int, place: int) -> bool:
        """Whether the ancestors of n can be mapped to ancestors of this place."""
        parent = self.trees[view][n][1]
        if parent < 0:
            return True
        return any(
            int(below[parent]) >> above & 1
            and self._allowed(view, n, above) >> place & 1
            and self._fits_above(view, below, parent, above)
            for above in range(len(self.trees[0]))
        )

    def _edges(self) -> list[PatternEdge]:
        edges = [
            PatternEdge(parent, position, node.axis)
            for position, (node, parent) in enumerate(self.trees[0])
        ]
        return [edge for edge in edges if edge.above >= 0 or edge.axis is Axis.CHILD]

    def _is_guaranteed(self, edge: PatternEdge) -> bool:
        """Whether the view of an instance has the edge."""
        for view, goes_to in self.embeddings:
            for n, (node, parent) in enumerate(self.trees[view]):
                above = goes_to[parent] if parent >= 0 else -1
                same = (above, goes_to[n]) == (edge.above, edge.below)
                if same and (
                    node.axis is Axis.CHILD or (edge.axis is not Axis.CHILD and above >= 0)
                ):
                    return True
        return False

    def _residuals(self) -> list[Residual]:
        arrays, residuals = self.arrays, []
        for m, (node, _) in enumerate(self.trees[0]):
            for number, predicate in enumerate(node.predicates):
                required = int(arrays.nodes[m, PREDICATES]) + number
                if not any(self._enforces(i, n, required) for i, n in self._at(m)):
                    residuals.append(Residual(m, predicate, self._text_of(m, Mark.VAL)))
        return residuals

    def _at(self, m: int) -> list[Place]:
        """The places (instance, node) that are mapped to a node of the query."""
        return [
            (i, n)
            for i, (_, goes_to) in enumerate(self.embeddings)
            for n, place in enumerate(goes_to)
            if place == m
        ]

    def _enforces(self, i: int, n: int, required: int) -> bool:
        arrays = self.arrays
        row = arrays.nodes[arrays.node_start[self.embeddings[i][0]] + n]
        return any(
            _implies(arrays.predicates, offered, required)
            for offered in range(row[PREDICATES], row[PREDICATES_END])
        )

    def _text_of(self, m: int, mark: Mark) -> Place:
        return next(
            (i, n) for i, n in self._at(m) if mark in self.trees[self.embeddings[i][0]][n][0].marks
        )


def _implies(predicates: Longs, specific: int, general: int) -> bool:
    return bool(implies_predicate(predicates, specific, predicates, general))


def _bits(mask: int, among: int) -> int:
    return (mask & among).bit_count()


def explain_rewriting(plan: RewritingPlan, names: Sequence[str]) -> str:
    """The plan as text, one line for each instance and each predicate."""
    labels = [node.label for node, _ in preorder(plan.query)]
    called = [
        f"{label}#{position}" if labels.count(label) > 1 else label
        for position, label in enumerate(labels)
    ]
    lines = ["⋈"]
    for instance in plan.instances:
        lines.append(f"  {names[instance.view]}({', '.join(called[m] for m in instance.goes_to)})")
    for edge in plan.edges:
        above = called[edge.above] if edge.above >= 0 else ""
        lines.append(f"  where {above}{edge.axis}{called[edge.below]}")
    for residual in plan.residuals:
        predicate = residual.predicate
        lines.append(f"  where {called[residual.node]} {predicate.relation} {predicate.value!r}")
    return "\n".join(lines)
