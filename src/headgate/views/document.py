"""A document as arrays with structural identifiers ([Delta §4.1]).

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
from headgate.views.identifier_kernels import identifiers

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
        if not len(node):  # nothing within it but text: that is at hand
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
    parents, labels = [-1], [_label(root, str(root.tag))]
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
            labels.append(_label(element, str(element.tag)))
            nodes.append(element)
        if element.attrib:
            for name, value in element.attrib.items():
                parents.append(number)
                labels.append("@" + _label(element, str(name)))
                nodes.append(str(value))
    parent = np.array(parents, np.int64)
    return Document(identifiers(parent), parent, labels, nodes)


def _label(element: etree._Element, name: str) -> str:
    """As model/match_pattern.py has it, and most names have no namespace."""
    return label_of(element, name) if name[0] == "{" else name
