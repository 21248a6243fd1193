"""Many tree patterns as flat arrays: what the kernels of this room see of them ([Delta §4.1]).

    view v      its nodes are node_start[v] … node_start[v + 1], in preorder
    node n      label, axis, marks, the place of its parent within the view, its predicates
    attributes  what a rewriting must cover (§4.1), numbered within the view: for each node its
                identifier, then val and cont if they are marked, then each of its predicates

A predicate is a set of positions in the order of all constants of its kind, so that implication
compares integers. Constant number i of its kind has position 4 i; what lies between two has the
positions between, and one that is not known yet 4 i + 2:

    = c   [4i, 4i]        < c   [−∞, 4i − 1]        ≥ c   [4i, ∞]        ≠ c   all but 4i

Predicates imply one by one, as the order is dense; that `≥ 5` and `≤ 5` together imply `= 5` is not
seen, which loses a rewriting and never makes a wrong one. Texts and numbers are two kinds: a node
whose text is '5' satisfies `= 5` and `= '5'`, and neither implies the other.

A view of more than 64 nodes or attributes is encoded without nodes: it embeds nowhere, nothing
embeds into it, and the source serves it.

Rejected: ids of distinct predicates and a table of implications, which is quadratic in the
constants that a hundred thousand views compare a price with.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.model.atoms import Relation
from headgate.model.tree_pattern import Axis, Mark, PatternNode, ValuePredicate
from headgate.model.words import fold
from headgate.views.pattern_kernels import ANY_LABEL, CONT, NODES_MAX, VAL, fill_relatives

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Masks = npt.NDArray[np.uint64]

FAR = 1 << 40
UNKNOWN_LABEL = -1
"""A label of a new view that no known view has."""


class Patterns(NamedTuple):
    """See above; pattern_kernels.py names the columns."""

    node_start: Longs  # [view + 1]
    attribute_count: Longs  # [view]
    nodes: Ints  # [node, column]
    masks: Masks  # [node, column]: sets of nodes of the same view
    predicates: Longs  # [predicate, column]

    def taken(self, order: Longs) -> Patterns:
        """Some of the views, in this order."""
        sizes = np.diff(self.node_start)[order]
        node_start = np.concatenate([[0], np.cumsum(sizes)])
        inside = np.arange(node_start[-1]) - np.repeat(node_start[:-1], sizes)
        nodes = np.repeat(self.node_start[:-1][order], sizes) + inside
        return Patterns(
            node_start,
            self.attribute_count[order],
            self.nodes[nodes],
            self.masks[nodes],
            self.predicates,
        )


Constant = float | int | str


@dataclass(slots=True)
class Vocabulary:
    """The numbers of labels and the order of constants. Constants stay as they are once sorted."""

    labels: dict[str, int] = field(default_factory=lambda: {"*": ANY_LABEL})
    texts: list[str] = field(default_factory=list)
    numbers: list[float | int] = field(default_factory=list)

    def learn(self, views: Iterable[PatternNode]) -> None:
        """Number the labels and sort the constants of these views, which are all that there are."""
        texts: set[str] = set()
        numbers: set[float | int] = set()
        for view in views:
            for node, _ in preorder(view):
                self.labels.setdefault(node.label, len(self.labels))
                for predicate in node.predicates:
                    constant = constant_of(predicate)
                    if isinstance(constant, str):
                        texts.add(constant)
                    else:
                        numbers.add(constant)
        self.texts, self.numbers = sorted(texts), sorted(numbers)

    def label(self, label: str) -> int:
        return self.labels.get(label, UNKNOWN_LABEL)

    def position(self, constant: Constant) -> int:
        """4 × its number, or between its neighbours if it is a new one."""
        if isinstance(constant, str):
            at = bisect_left(self.texts, constant)
            known = at < len(self.texts) and self.texts[at] == constant
        else:
            at = bisect_left(self.numbers, constant)
            known = at < len(self.numbers) and self.numbers[at] == constant
        return 4 * at if known else 4 * at - 2


def constant_of(predicate: ValuePredicate) -> Constant:
    """The constant in the form in which it compares."""
    value = predicate.value
    assert isinstance(value, str | int | float)
    return fold(value) if isinstance(value, str) else value


def preorder(view: PatternNode) -> list[tuple[PatternNode, int]]:
    """The nodes, each with the place of its parent in this list, -1 for the topmost."""
    found: list[tuple[PatternNode, int]] = []
    stack = [(view, -1)]
    while stack:
        entry = stack.pop()
        place = len(found)
        found.append(entry)
        stack += [(child, place) for child in reversed(entry[0].children)]
    return found


def encode_views(views: Sequence[PatternNode], vocabulary: Vocabulary) -> Patterns:
    """The views as arrays, by a vocabulary that has learned them or views before them."""
    return _Encoding(vocabulary).encode(views)


class _Encoding:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.positions: dict[Constant, int] = {}
        self.nodes: list[tuple[int, bool, bool, int, int, int, int, int]] = []
        self.predicates: list[tuple[bool, bool, int, int]] = []

    def encode(self, views: Sequence[PatternNode]) -> Patterns:
        node_start = np.zeros(len(views) + 1, np.int64)
        attribute_count = np.zeros(len(views), np.int64)
        for number, view in enumerate(views):
            attribute_count[number] = self._view(view)
            node_start[number + 1] = len(self.nodes)
        nodes = np.array(self.nodes, np.int32).reshape(-1, 8)
        masks = np.zeros((len(nodes), 3), np.uint64)
        fill_relatives(node_start, nodes, masks)
        predicates = np.array(self.predicates, np.int64).reshape(-1, 4)
        return Patterns(node_start, attribute_count, nodes, masks, predicates)

    def _view(self, view: PatternNode) -> int:
        """Add the view's nodes; how many attributes it has."""
        nodes = preorder(view)
        count = sum(_attribute_count(node) for node, _ in nodes)
        if len(nodes) > NODES_MAX or count > NODES_MAX:
            return 0
        attribute = 0
        for node, parent in nodes:
            label = node.label
            marks = VAL * (Mark.VAL in node.marks) + CONT * (Mark.CONT in node.marks)
            is_child = node.axis is Axis.CHILD
            code = self.vocabulary.label(label)
            first = len(self.predicates)
            if node.predicates:
                self.predicates += [self._predicate(each) for each in node.predicates]
            row = code, label[0] == "@", is_child, marks, parent, attribute, first
            self.nodes.append((*row, len(self.predicates)))
            attribute += _attribute_count(node)
        return attribute

    def _predicate(self, predicate: ValuePredicate) -> tuple[bool, bool, int, int]:
        constant = constant_of(predicate)
        at = self.positions.get(constant)
        if at is None:
            at = self.positions[constant] = self.vocabulary.position(constant)
        is_not = predicate.relation is Relation.NOT_EQUAL
        return isinstance(constant, str), is_not, *_range(predicate.relation, at)


def _attribute_count(node: PatternNode) -> int:
    return 1 + (Mark.VAL in node.marks) + (Mark.CONT in node.marks) + len(node.predicates)


def _range(relation: Relation, at: int) -> tuple[int, int]:
    match relation:
        case Relation.LESS:
            return -FAR, at - 1
        case Relation.LESS_EQUAL:
            return -FAR, at
        case Relation.GREATER:
            return at + 1, FAR
        case Relation.GREATER_EQUAL:
            return at, FAR
    return at, at
