"""From a cover to a plan: which embeddings are joined, tested and projected ([Delta §4.1]).

Given a cover of query q (Proposition 4.1), the rewriting joins the views on their identifiers, adds
the structural predicates that q has and the views lack, and the value predicates that are left.
A view is used with as many embeddings as are needed to cover its part, its *instances*:

    q = //a[. > 5]//b{val}      ⋈   v3(a)      v3 = //a{val}
                                    v7(b)      v7 = //b{val}
                                    where a//b                structural
                                    where a > 5               residual, on the val that v3 has

What an instance guarantees is not tested again: an edge that is also an edge of the view, a
predicate that a predicate of the view implies.
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
    """A value predicate that no view enforces, and where the value is."""

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
    """Where the marked texts of the query's nodes are."""

    def renumbered(self, views: Sequence[int]) -> RewritingPlan:
        """The same plan where its view n is view views[n]."""
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
        found = [
            (at, goes_to) for at in range(1, len(self.trees)) for goes_to in self._embeddings(at)
        ]
        assert not self.missing, "the views do not cover the query"
        self.found = found
        texts = {key: self._text_of(*key) for key in marked_nodes(self.query)}
        return RewritingPlan(
            self.query,
            tuple(Instance(self.numbers[at - 1], goes_to) for at, goes_to in found),
            tuple(each for each in self._edges() if not self._is_kept(each)),
            tuple(self._residuals()),
            texts,
        )

    def _embeddings(self, at: int) -> list[tuple[int, ...]]:
        """As many embeddings of a view as cover all that it can cover of what is missing."""
        below = np.zeros(NODES_MAX, np.uint64)
        images = np.zeros(NODES_MAX, np.uint64)
        assert embed(self.arrays, at, self.arrays, 0, below, images), "a view does not embed"
        found = []
        for n in range(len(self.trees[at])):
            for m in range(len(self.trees[0])):
                if int(images[n]) >> m & 1 and self._covers(at, n, m) & self.missing:
                    goes_to = self._embedding(at, below, n, m)
                    for each, place in enumerate(goes_to):
                        self.missing &= ~self._covers(at, each, place)
                    found.append(goes_to)
        return found

    def _covers(self, at: int, n: int, m: int) -> int:
        """The attributes of the query that node n has if it goes to m."""
        images = np.zeros(NODES_MAX, np.uint64)
        images[n] = 1 << m
        return int(covered(self.arrays, at, self.arrays, 0, images))

    def _embedding(self, at: int, below: Masks, n: int, m: int) -> tuple[int, ...]:
        """An embedding in which n goes to m, and all others to where they cover most."""
        wanted = {n: m}
        while self.trees[at][n][1] >= 0:  # the way up: a parent must be above its child's place
            child, n = n, self.trees[at][n][1]
            wanted[n] = next(
                place
                for place in range(len(self.trees[0]))
                if int(below[n]) >> place & 1
                and self._allowed(at, child, place) >> wanted[child] & 1
                and self._fits_above(at, below, n, place)
            )
        goes_to: list[int] = []
        for each, (_, parent) in enumerate(self.trees[at]):
            if each in wanted:
                goes_to.append(wanted[each])
                continue
            allowed = int(below[each]) & self._allowed(at, each, goes_to[parent])
            places = [place for place in range(len(self.trees[0])) if allowed >> place & 1]
            goes_to.append(
                max(places, key=lambda p: _bits(self._covers(at, each, p), self.missing))
            )
        return tuple(goes_to)

    def _allowed(self, at: int, child: int, place: int) -> int:
        """Where a child may go if its parent goes to this place."""
        is_child = self.trees[at][child][0].axis is Axis.CHILD
        return int(self.arrays.masks[place, CHILDREN if is_child else DESCENDANTS])

    def _fits_above(self, at: int, below: Masks, n: int, place: int) -> bool:
        """Whether the nodes above n can go above this place."""
        parent = self.trees[at][n][1]
        if parent < 0:
            return True
        return any(
            int(below[parent]) >> above & 1
            and self._allowed(at, n, above) >> place & 1
            and self._fits_above(at, below, parent, above)
            for above in range(len(self.trees[0]))
        )

    def _edges(self) -> list[PatternEdge]:
        edges = [
            PatternEdge(parent, at, node.axis) for at, (node, parent) in enumerate(self.trees[0])
        ]
        return [edge for edge in edges if edge.above >= 0 or edge.axis is Axis.CHILD]

    def _is_kept(self, edge: PatternEdge) -> bool:
        """Whether an instance has the edge in its own view."""
        for at, goes_to in self.found:
            for n, (node, parent) in enumerate(self.trees[at]):
                above = goes_to[parent] if parent >= 0 else -1
                same = (above, goes_to[n]) == (edge.above, edge.below)
                if same and (
                    node.axis is Axis.CHILD or (edge.axis is not Axis.CHILD and above >= 0)
                ):
                    return True
        return False

    def _residuals(self) -> list[Residual]:
        arrays, found = self.arrays, []
        for m, (node, _) in enumerate(self.trees[0]):
            for number, predicate in enumerate(node.predicates):
                asked = int(arrays.nodes[m, PREDICATES]) + number
                if not any(self._enforces(i, n, asked) for i, n in self._at(m)):
                    found.append(Residual(m, predicate, self._text_of(m, Mark.VAL)))
        return found

    def _at(self, m: int) -> list[Place]:
        """The places of instances that go to a node of the query."""
        return [
            (i, n)
            for i, (_, goes_to) in enumerate(self.found)
            for n, place in enumerate(goes_to)
            if place == m
        ]

    def _enforces(self, i: int, n: int, asked: int) -> bool:
        arrays = self.arrays
        row = arrays.nodes[arrays.node_start[self.found[i][0]] + n]
        return any(
            _implies(arrays.predicates, own, asked)
            for own in range(row[PREDICATES], row[PREDICATES_END])
        )

    def _text_of(self, m: int, mark: Mark) -> Place:
        return next(
            (i, n) for i, n in self._at(m) if mark in self.trees[self.found[i][0]][n][0].marks
        )


def _implies(predicates: Longs, specific: int, general: int) -> bool:
    return bool(implies_predicate(predicates, specific, predicates, general))


def _bits(mask: int, among: int) -> int:
    return (mask & among).bit_count()


def explain_rewriting(plan: RewritingPlan, names: Sequence[str]) -> str:
    """The plan as text, one line for each part; views by their names."""
    labels = [node.label for node, _ in preorder(plan.query)]
    called = [
        f"{label}#{at}" if labels.count(label) > 1 else label for at, label in enumerate(labels)
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
