"""Many tree patterns as arrays, and the embedding test on them ([Delta §4.1]).

    view v      its nodes are node_start[v] … node_start[v + 1], in preorder
    node n      label, axis, marks, the place of its parent within the view, its predicates
    attributes  what a rewriting must cover (§4.1), numbered within the view: for each node its
                identifier, then val and cont if they are marked, then each of its predicates

A predicate is an interval of positions in the order of all constants of its kind, so implication
compares integers. Constant number i has position 4 i. The positions between two constants stand for
the values between them; a constant that the vocabulary does not have gets 4 i + 2:

    = c   [4i, 4i]        < c   [−∞, 4i − 1]        ≥ c   [4i, ∞]        ≠ c   all but 4i

Predicates are compared one by one: that `≥ 5` and `≤ 5` together imply `= 5` is not recognised,
which loses a rewriting and never makes a wrong one. Texts and numbers are two kinds: a node with
text '5' satisfies `= 5` and `= '5'`, and neither implies the other.

A view of more than 64 nodes or attributes is encoded without nodes: it embeds nowhere, nothing
embeds into it, and the source serves it.

The kernels take few large tables rather than many columns, because each array that is passed to a
Numba function costs more than a comparison. Functions of the innermost loops are inlined. A set of
nodes of one view is a bit mask.

Rejected: ids of distinct predicates and a table of implications. The table is quadratic in the
constants that a hundred thousand views compare a price with.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.model.atoms import Relation
from headgate.model.text import fold
from headgate.model.tree_pattern import Axis, Mark, PatternNode, ValuePredicate

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Masks = npt.NDArray[np.uint64]

FAR = 1 << 40
UNKNOWN_LABEL = -1
"""A label of a new view that no known view has."""


class Patterns(NamedTuple):
    """Patterns as arrays (see the top of this file). Constants below name the columns."""

    node_start: Longs  # [view + 1]
    attribute_count: Longs  # [view]
    nodes: Ints  # [node, column]
    masks: Masks  # [node, column]: sets of nodes of the same view
    predicates: Longs  # [predicate, column]

    def taken(self, order: Longs) -> Patterns:
        """The views with these numbers, in this order."""
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
class PatternVocabulary:
    """The numbers of labels, and all constants in order. They do not change after `learn`."""

    labels: dict[str, int] = field(default_factory=lambda: {"*": ANY_LABEL})
    texts: list[str] = field(default_factory=list)
    numbers: list[float | int] = field(default_factory=list)

    def learn(self, views: Iterable[PatternNode]) -> None:
        """Number the labels and sort the constants of all views."""
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
        """4 × the number of the constant; a position between its neighbours if it is new."""
        if isinstance(constant, str):
            index = bisect_left(self.texts, constant)
            is_known = index < len(self.texts) and self.texts[index] == constant
        else:
            index = bisect_left(self.numbers, constant)
            is_known = index < len(self.numbers) and self.numbers[index] == constant
        return 4 * index if is_known else 4 * index - 2


def constant_of(predicate: ValuePredicate) -> Constant:
    """The constant in the form in which it compares."""
    value = predicate.value
    assert isinstance(value, str | int | float)
    return fold(value) if isinstance(value, str) else value


def preorder(view: PatternNode) -> list[tuple[PatternNode, int]]:
    """The nodes, each with the position of its parent in this list; -1 for the topmost."""
    nodes: list[tuple[PatternNode, int]] = []
    stack = [(view, -1)]
    while stack:
        entry = stack.pop()
        place = len(nodes)
        nodes.append(entry)
        stack += [(child, place) for child in reversed(entry[0].children)]
    return nodes


def encode_views(views: Sequence[PatternNode], vocabulary: PatternVocabulary) -> Patterns:
    """The views as arrays. The vocabulary has learned these views, or earlier ones."""
    return _Encoding(vocabulary).encode(views)


class _Encoding:
    def __init__(self, vocabulary: PatternVocabulary) -> None:
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
        """Add the nodes of a view; returns its number of attributes."""
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
        position = self.positions.get(constant)
        if position is None:
            position = self.positions[constant] = self.vocabulary.position(constant)
        is_not = predicate.relation is Relation.NOT_EQUAL
        return isinstance(constant, str), is_not, *_range(predicate.relation, position)


def _attribute_count(node: PatternNode) -> int:
    return 1 + (Mark.VAL in node.marks) + (Mark.CONT in node.marks) + len(node.predicates)


def _range(relation: Relation, position: int) -> tuple[int, int]:
    match relation:
        case Relation.LESS:
            return -FAR, position - 1
        case Relation.LESS_EQUAL:
            return -FAR, position
        case Relation.GREATER:
            return position + 1, FAR
        case Relation.GREATER_EQUAL:
            return position, FAR
    return position, position


# Kernels: relatives of nodes, the embedding test, and covered attributes.

LABEL, IS_ATTRIBUTE, AXIS, MARKS, PARENT, ATTRIBUTE, PREDICATES, PREDICATES_END = range(8)
ANCESTORS, DESCENDANTS, CHILDREN = range(3)
KIND, IS_NOT, LOW, HIGH = range(4)

ANY_LABEL = 0
CHILD_AXIS = 1
VAL, CONT = 1, 2
NODES_MAX = 64

ONE = np.uint64(1)
NONE = np.uint64(0)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@nb.njit(nogil=True, cache=True)
def fill_relatives(node_start, nodes, masks):  # type: ignore[no-untyped-def]
    """Fill masks [node, 3] with the ancestors, descendants, and '/' children of each node."""
    for view in range(node_start.shape[0] - 1):
        first = node_start[view]
        for n in range(1, node_start[view + 1] - first):
            above, bit = nodes[first + n, PARENT], ONE << np.uint64(n)
            masks[first + n, ANCESTORS] = masks[first + above, ANCESTORS]
            masks[first + n, ANCESTORS] |= ONE << np.uint64(above)
            if nodes[first + n, AXIS] == CHILD_AXIS:
                masks[first + above, CHILDREN] |= bit
            while above >= 0:
                masks[first + above, DESCENDANTS] |= bit
                above = nodes[first + above, PARENT]


@nb.njit(nogil=True, cache=True, inline="always")
def implies_predicate(specifics, specific, generals, general):  # type: ignore[no-untyped-def]
    """Whether one predicate implies another, as sets of positions."""
    low, high, point = specifics[specific, LOW], specifics[specific, HIGH], generals[general, LOW]
    if generals[general, IS_NOT]:
        implied = high < point or low > point
        if specifics[specific, IS_NOT]:
            implied = low == point
    else:
        implied = point <= low and high <= generals[general, HIGH]
        implied = implied and not specifics[specific, IS_NOT]
    return implied and specifics[specific, KIND] == generals[general, KIND]


@nb.njit(nogil=True, cache=True)
def follow(general, generals, specific, specifics):  # type: ignore[no-untyped-def]
    """Whether each predicate of a view's node is implied by a predicate of a query's node.

    `general` and `specific` are the rows of the two nodes.
    """
    for g in range(general[PREDICATES], general[PREDICATES_END]):
        is_implied = False
        for s in range(specific[PREDICATES], specific[PREDICATES_END]):
            if implies_predicate(specifics, s, generals, g):
                is_implied = True
        if not is_implied:
            return False
    return True


@nb.njit(nogil=True, cache=True)
def embed(v, view, q, query, below, images):  # type: ignore[no-untyped-def]
    """Whether the view embeds into the query; images[n] has all targets of node n.

    v, q    Patterns of the view and of the query
    below   uint64 [NODES_MAX]  scratch: targets of each node for which its subtree fits
    images  uint64 [NODES_MAX]  out: masks of query nodes

    A node is mapped to a node of the same label, a '*' to any element. The first pass goes from
    the leaves up and fills `below`. The second goes from the root down and keeps the targets that
    fit to a target of the parent. Children are mapped independently of each other, so each pair
    that is left occurs in an embedding.
    """
    nodes = v.nodes[v.node_start[view] : v.node_start[view + 1]]
    places = q.nodes[q.node_start[query] : q.node_start[query + 1]]
    relatives = q.masks[q.node_start[query] : q.node_start[query + 1]]
    if nodes.shape[0] == 0 or places.shape[0] == 0:
        return False
    below[: nodes.shape[0]] = ALL
    for n in range(nodes.shape[0] - 1, -1, -1):
        mask, above, label = NONE, NONE, nodes[n, LABEL]
        is_child = nodes[n, AXIS] == CHILD_AXIS
        has_predicates = nodes[n, PREDICATES] < nodes[n, PREDICATES_END]
        for m in range(places.shape[0]):
            if places[m, LABEL] != label and (label != ANY_LABEL or places[m, IS_ATTRIBUTE]):
                continue
            bit = ONE << np.uint64(m)
            if not below[n] & bit:
                continue
            if has_predicates and not follow(nodes[n], v.predicates, places[m], q.predicates):
                continue
            mask |= bit
            if not is_child:
                above |= relatives[m, ANCESTORS]
            elif m > 0 and places[m, AXIS] == CHILD_AXIS:
                above |= ONE << np.uint64(places[m, PARENT])
        if n > 0:
            below[nodes[n, PARENT]] &= above
        elif is_child:
            mask &= np.uint64(places[0, AXIS] == CHILD_AXIS)
        if mask == NONE:
            return False
        below[n] = mask
    images[0] = below[0]
    for n in range(1, nodes.shape[0]):
        parents, allowed = images[nodes[n, PARENT]], NONE
        way = CHILDREN if nodes[n, AXIS] == CHILD_AXIS else DESCENDANTS
        for m in range(places.shape[0]):
            if parents & (ONE << np.uint64(m)):
                allowed |= relatives[m, way]
        images[n] = below[n] & allowed
    return True


@nb.njit(nogil=True, cache=True)
def covered(v, view, q, query, images):  # type: ignore[no-untyped-def]
    """The mask of the query's attributes that the view covers in any of its embeddings.

    An identifier is covered only by a node of the same label, because it does not contain the
    label. A predicate is covered if the view enforces it, or has the value to test it.
    """
    nodes = v.nodes[v.node_start[view] : v.node_start[view + 1]]
    places = q.nodes[q.node_start[query] : q.node_start[query + 1]]
    cover = NONE
    for n in range(nodes.shape[0]):
        marks, label = nodes[n, MARKS], nodes[n, LABEL]
        has_value = np.uint64((marks & VAL) != 0)
        for m in range(places.shape[0]):
            if not images[n] & (ONE << np.uint64(m)):
                continue
            attribute = np.uint64(places[m, ATTRIBUTE])
            cover |= np.uint64(label == places[m, LABEL]) << attribute
            attribute += ONE
            if places[m, MARKS] & VAL:
                cover |= has_value << attribute
                attribute += ONE
            if places[m, MARKS] & CONT:
                cover |= np.uint64((marks & CONT) != 0) << attribute
                attribute += ONE
            for required in range(places[m, PREDICATES], places[m, PREDICATES_END]):
                cover |= has_value << attribute
                for offered in range(nodes[n, PREDICATES], nodes[n, PREDICATES_END]):
                    is_enforced = implies_predicate(v.predicates, offered, q.predicates, required)
                    cover |= np.uint64(is_enforced) << attribute
                attribute += ONE
    return cover


@nb.njit(nogil=True, cache=True)
def popcount(mask):  # type: ignore[no-untyped-def]
    mask = mask - ((mask >> np.uint64(1)) & np.uint64(0x5555555555555555))
    mask = (mask & np.uint64(0x3333333333333333)) + (
        (mask >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    mask = (mask + (mask >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((mask * np.uint64(0x0101010101010101)) >> np.uint64(56))
