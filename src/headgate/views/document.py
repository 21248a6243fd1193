"""A document as arrays with structural identifiers (delta.txt §4.1).

Nodes are elements and attributes in document order, an element's attributes right behind it and
before its children. An identifier is three numbers, and two of them decide everything:

    id = (number, last, depth)      order      a.number < b.number
                                    ancestor   a.number < b.number ≤ a.last
                                    parent     ancestor, and a.depth + 1 = b.depth

              site 0,5,0
             /          \\
       person 1,3,1     item 4,5,1          `last` is the number of the last node below, or its own
       /        \\           \\
   @id 2,2,2   name 3,3,2    @id 5,5,2

An attribute is a child of its element, so '//@id' below an element is its own or one further down,
as model/match_pattern.py has it. `val` is a node's text, all that is within it; `cont` the subtree
as XML, of an attribute its value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from lxml import etree

from headgate.model.match_pattern import label_of
from headgate.model.tree_pattern import Mark
from headgate.model.xml_text import parse_xml
from headgate.views.encode_views import Longs

NUMBER, LAST, DEPTH = range(3)


def is_ancestor(above: Longs, below: Longs) -> bool:
    """Decided from two identifiers."""
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
        """The document, or nothing where the text is no well-formed XML."""
        root = parse_xml(text)
        return None if root is None else _read(root)

    def val(self, number: int) -> str:
        node = self.nodes[number]
        if isinstance(node, str):
            return node
        return etree.tostring(node, method="text", encoding="unicode", with_tail=False)

    def cont(self, number: int) -> str:
        node = self.nodes[number]
        if isinstance(node, str):
            return node
        return etree.tostring(node, encoding="unicode", with_tail=False)

    def marked(self, number: int, mark: Mark) -> str:
        return self.val(number) if mark is Mark.VAL else self.cont(number)


def _read(root: etree._Element) -> Document:
    parents, labels = [-1], [label_of(root, str(root.tag))]
    nodes: list[etree._Element | str] = [root]
    number_of = {root: 0}
    for element in root.iter("*"):
        if element is not root:
            above = element.getparent()
            assert above is not None
            number_of[element] = len(nodes)
            parents.append(number_of[above])
            labels.append(label_of(element, str(element.tag)))
            nodes.append(element)
        for name, value in element.attrib.items():
            parents.append(number_of[element])
            labels.append("@" + label_of(element, str(name)))
            nodes.append(str(value))
    return Document(_identifiers(parents), np.array(parents, np.int64), labels, nodes)


def _identifiers(parents: list[int]) -> Longs:
    last, depth = list(range(len(parents))), [0] * len(parents)
    for number in range(1, len(parents)):
        depth[number] = depth[parents[number]] + 1
    for number in range(len(parents) - 1, 0, -1):
        last[parents[number]] = max(last[parents[number]], last[number])
    return np.stack([np.arange(len(parents)), np.array(last), np.array(depth)], axis=1)
