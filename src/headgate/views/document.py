"""A document as arrays with structural identifiers ([Delta §4.1]).

Nodes are elements and attributes in document order. An element's attributes come right after it and
before its children. An identifier has three numbers; two identifiers are enough to decide:

    id = (number, last, depth)      order      a.number < b.number
                                    ancestor   a.number < b.number ≤ a.last
                                    parent     ancestor, and a.depth + 1 = b.depth

              site 0,5,0
             /          \\
       person 1,3,1     item 4,5,1          `last` is the number of the last node below, or its own
       /        \\           \\
   @id 2,2,2   name 3,3,2    @id 5,5,2

An attribute is a child of its element, as in model/tree_pattern.py. `val` is all text within a
node; `cont` is the subtree as XML, and for an attribute its value.

`DocumentArrays` is what the kernels of run_levels.py read. Value predicates compare positions in
the order of constants (pattern_arrays.py). A text is read only where a pattern compares a value of
that label, and it is folded once for all patterns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numba as nb
import numpy as np
from lxml import etree

from headgate.model.text import fold, parse_xml
from headgate.model.tree_pattern import Mark, attributes_of, label_of
from headgate.views.pattern_arrays import Ints, Longs, PatternVocabulary
from headgate.views.tuple_tables import NO_VALUE

NUMBER, LAST, DEPTH = range(3)


def is_ancestor(above: Longs, below: Longs) -> bool:
    """Whether the node of the first identifier is an ancestor of the node of the second."""
    return bool(above[NUMBER] < below[NUMBER] <= above[LAST])


def is_parent(above: Longs, below: Longs) -> bool:
    return is_ancestor(above, below) and bool(above[DEPTH] + 1 == below[DEPTH])


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    ids: Longs  # [node, 3]
    parent: Longs  # [node]: -1 for the root
    labels: list[str]
    nodes: list[etree._Element | str]
    """An element, or the value of an attribute."""

    @classmethod
    def read(cls, text: str) -> Document | None:
        """The document, or None if the text is not well-formed XML."""
        root = parse_xml(text)
        return None if root is None else _read(root)

    def val(self, number: int) -> str:
        node = self.nodes[number]
        if isinstance(node, str):
            return node
        if not len(node):  # no child elements: avoid serialising
            return node.text or ""
        return etree.tostring(node, method="text", encoding="unicode", with_tail=False)

    def cont(self, number: int) -> str:
        node = self.nodes[number]
        if isinstance(node, str):
            return node
        return etree.tostring(node, encoding="unicode", with_tail=False)

    def marked(self, number: int, mark: Mark) -> str:
        return self.val(number) if mark is Mark.VAL else self.cont(number)


def _read(root: etree._Element) -> Document:
    parents, labels = [-1], [label_of(root)]
    nodes: list[etree._Element | str] = [root]
    number_of = {root: 0}
    for element in root.iter("*"):
        if element is root:
            number = 0
        else:
            above = element.getparent()
            assert above is not None
            number = number_of[element] = len(nodes)
            parents.append(number_of[above])
            labels.append(label_of(element))
            nodes.append(element)
        for label, value in attributes_of(element):
            parents.append(number)
            labels.append(label)
            nodes.append(value)
    parent = np.array(parents, np.int64)
    return Document(identifiers(parent), parent, labels, nodes)


# Arrays for kernels.


class DocumentArrays(NamedTuple):
    last: Ints  # [node]
    depth: Ints  # [node]
    parent: Ints  # [node]: -1 for the root
    label_start: Longs  # [label + 1]: into by_label
    by_label: Ints  # nodes, sorted by label; all elements first, for the label '*'
    text_at: Longs  # [node]: position of its text in the order of constants, or NO_VALUE
    number_at: Longs  # [node]: the same for its value as a number


def document_arrays(
    document: Document, vocabulary: PatternVocabulary, valued: Sequence[bool]
) -> DocumentArrays:
    """The arrays of a document. `valued[label]`: whether a pattern compares values of its nodes."""
    codes = np.array([vocabulary.label(label) for label in document.labels], np.int32)
    is_element = np.array([label[0] != "@" for label in document.labels], np.bool_)
    elements = np.flatnonzero(is_element)
    order = np.argsort(codes, kind="stable")
    order = order[codes[order] > 0]
    counts = np.bincount(codes[order], minlength=len(vocabulary.labels))
    counts[0] = len(elements)
    compared = np.flatnonzero((codes > 0) & np.asarray(valued, np.bool_)[codes])
    if valued[0]:
        compared = np.union1d(compared, elements)
    return DocumentArrays(
        document.ids[:, LAST].astype(np.int32),
        document.ids[:, DEPTH].astype(np.int32),
        document.parent.astype(np.int32),
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([elements, order]).astype(np.int32),
        *_places(document, vocabulary, compared.tolist()),
    )


def _places(
    document: Document, vocabulary: PatternVocabulary, nodes: Sequence[int]
) -> tuple[Longs, Longs]:
    text_at = np.full(len(document.labels), NO_VALUE, np.int64)
    number_at = np.full(len(document.labels), NO_VALUE, np.int64)
    for node in nodes:
        text_at[node], number_at[node] = value_places(document.val(node), vocabulary)
    return text_at, number_at


def value_places(text: str, vocabulary: PatternVocabulary) -> tuple[int, int]:
    """The positions of a text and of its value as a number in the orders of constants."""
    place = vocabulary.position(fold(text))
    try:
        number = float(text)
    except ValueError:
        return place, NO_VALUE
    return place, NO_VALUE if math.isnan(number) else vocabulary.position(number)


@nb.njit(nogil=True, cache=True)
def identifiers(parent):  # type: ignore[no-untyped-def]
    """int64 [node, 3]: number, last and depth of each node. Parents come before their children."""
    count = parent.shape[0]
    ids = np.zeros((count, 3), np.int64)
    for node in range(count):
        ids[node, 0] = ids[node, 1] = node
        if node:
            ids[node, 2] = ids[parent[node], 2] + 1
    for node in range(count - 1, 0, -1):
        ids[parent[node], 1] = max(ids[parent[node], 1], ids[node, 1])
    return ids
