"""From grammar rules to tree patterns: steps, branches, value predicates and marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headgate.language.names import Name
from headgate.language.vocabulary import read_word
from headgate.model.atoms import Relation
from headgate.model.tree_pattern import Axis, Mark, PatternNode, ValuePredicate
from headgate.model.values import Value

NodePart = frozenset[Mark] | ValuePredicate | PatternNode


class BuildPatterns:
    def pattern(self, *steps: PatternNode) -> PatternNode:
        return _path(steps)

    def step(self, axis: Axis, node: PatternNode) -> PatternNode:
        return replace(node, axis=axis)

    def axis(self, token: Name) -> Axis:
        return Axis(token)

    def node(self, label: str, *parts: NodePart) -> PatternNode:
        marks = (part for part in parts if isinstance(part, frozenset))
        return PatternNode(
            label,
            marks=frozenset[Mark]().union(*marks),
            predicates=tuple(part for part in parts if isinstance(part, ValuePredicate)),
            children=tuple(part for part in parts if isinstance(part, PatternNode)),
        )

    def label(self, *tokens: Name) -> str:
        return "".join(token.strip("`") for token in tokens)

    def marks(self, *names: Name) -> frozenset[Mark]:
        return frozenset(read_word(Mark, name, called="mark") for name in names)

    def self_predicate(self, relation: Relation, value: Value) -> ValuePredicate:
        return ValuePredicate(relation, value)

    def branch(
        self, axis: Axis | None, node: PatternNode, *rest: PatternNode | Relation | Value | None
    ) -> PatternNode:
        *steps, relation, value = rest
        nodes = [replace(node, axis=axis or Axis.CHILD)]
        nodes += [step for step in steps if isinstance(step, PatternNode)]
        if isinstance(relation, Relation):
            assert value is not None
            assert not isinstance(value, PatternNode)
            predicate = ValuePredicate(relation, value)
            nodes[-1] = replace(nodes[-1], predicates=(*nodes[-1].predicates, predicate))
        return _path(nodes)


def _path(nodes: Sequence[PatternNode]) -> PatternNode:
    """A path of steps as one tree: each step is the last child of the one before it."""
    below = nodes[-1]
    for node in reversed(nodes[:-1]):
        below = replace(node, children=(*node.children, below))
    return below
