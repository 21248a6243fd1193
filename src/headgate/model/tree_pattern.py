r"""Tree patterns over XML documents, and the oracle that matches them ([Delta §4.1]).

    //item[topic = 'ACME'][author {val}]/headline {cont}

              item            a node has a label, an edge to its parent (/ child, // descendant),
           /    |    \        value predicates, and marks: what of it the result holds
      topic  author  headline     id    the identifier of the XML node
    = 'ACME'  {val}   {cont}      val   its text
                                  cont  the whole subtree below it

The step after a node and the branches in its brackets are all its children, in the order in which
they are written: `//a[b]/c` and `//a[b][c]` are the same pattern.

An embedding maps the pattern's nodes to nodes of the document so that labels, edges and value
predicates hold; two pattern nodes may map to the same node. '/' at the pattern's top means the root
element, '//' any element. An '@name' node is an attribute: of the node above it for '/', of that
node or any element below it for '//'. The text of a node is all text within it. A text constant is
compared with the folded text (text.py), a number with the number that the text is; the predicate is
false if the text is no number. A document that is not well-formed XML embeds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lxml import etree

from headgate.model.atoms import Relation
from headgate.model.errors import InvalidValue
from headgate.model.text import fold, parse_xml
from headgate.model.values import Kind, Value, kind_of


class Axis(StrEnum):
    CHILD = "/"
    DESCENDANT = "//"


class Mark(StrEnum):
    ID = "id"
    VAL = "val"
    CONT = "cont"


@dataclass(frozen=True, slots=True)
class ValuePredicate:
    """The text of a node compared with a constant; with a number, as a number."""

    relation: Relation
    value: Value

    def __post_init__(self) -> None:
        if kind_of(self.value) not in (Kind.TEXT, Kind.NUMBER):
            raise InvalidValue("a node's value is compared with a text or a number")


@dataclass(frozen=True, slots=True)
class PatternNode:
    """A node of the pattern. The label is an element's name, '@name' for an attribute, or '*'."""

    label: str
    axis: Axis = Axis.DESCENDANT
    marks: frozenset[Mark] = frozenset()
    predicates: tuple[ValuePredicate, ...] = ()
    children: tuple[PatternNode, ...] = ()

    def __post_init__(self) -> None:
        if self.label.startswith("@") and self.children:
            raise InvalidValue(f"the attribute '{self.label}' has nothing below it")


# --- the oracle: does a document embed a pattern? ------------------------------------------------


def matches_pattern(pattern: PatternNode, document: str) -> bool:
    """Whether the pattern has at least one embedding in the document."""
    root = parse_xml(document)
    if root is None:
        return False
    if pattern.label.startswith("@"):
        # An attribute has an element above it, so '/@name' at the top is nowhere.
        return pattern.axis is Axis.DESCENDANT and _attribute_matches(pattern, root)
    return any(
        _element_matches(pattern, element)
        for element in ([root] if pattern.axis is Axis.CHILD else _elements(root))
    )


def _element_matches(pattern: PatternNode, element: etree._Element) -> bool:
    if pattern.label not in ("*", label_of(element)):
        return False
    if pattern.predicates:
        # Not itertext(), which includes the text of comments.
        text = etree.tostring(element, method="text", encoding="unicode", with_tail=False)
        if not all(holds(predicate, text) for predicate in pattern.predicates):
            return False
    return all(_child_matches(child, element) for child in pattern.children)


def _child_matches(pattern: PatternNode, parent: etree._Element) -> bool:
    if pattern.label.startswith("@"):
        return _attribute_matches(pattern, parent)
    below = _elements(parent) if pattern.axis is Axis.DESCENDANT else parent.iterchildren("*")
    return any(_element_matches(pattern, each) for each in below if each is not parent)


def _attribute_matches(pattern: PatternNode, owner: etree._Element) -> bool:
    owners = _elements(owner) if pattern.axis is Axis.DESCENDANT else iter([owner])
    return any(
        pattern.label == label and all(holds(predicate, value) for predicate in pattern.predicates)
        for element in owners
        for label, value in attributes_of(element)
    )


def _elements(root: etree._Element) -> Iterator[etree._Element]:
    """The element itself and all elements below it, without comments and instructions."""
    return root.iter("*")


def label_of(element: etree._Element) -> str:
    """The element's name as it is written in the document, with its prefix if it has one."""
    tag = str(element.tag)
    if tag[0] != "{":
        return tag
    local = tag[tag.index("}") + 1 :]
    return f"{element.prefix}:{local}" if element.prefix else local


ATTRIBUTES_FEW = 64
"""lxml's `items` searches an element's attributes from the first one for each value."""


def attributes_of(element: etree._Element) -> list[tuple[str, str]]:
    """The labels of the attributes, '@name' with a prefix if it has one, and their values."""
    attributes = element.attrib
    if not attributes:
        return []
    if len(attributes) <= ATTRIBUTES_FEW:
        found = [(str(name), str(value)) for name, value in attributes.items()]
    else:
        found = [(str(each.attrname), str(each)) for each in element.xpath("@*")]
    prefix_of: dict[str | None, str] = {}
    if any(name[0] == "{" for name, _ in found):
        for prefix, url in element.nsmap.items():
            if prefix:
                prefix_of.setdefault(url, prefix)
    return [(_attribute_label(name, prefix_of), value) for name, value in found]


def _attribute_label(name: str, prefix_of: dict[str | None, str]) -> str:
    if name[0] != "{":
        return "@" + name
    namespace, _, local = name[1:].rpartition("}")
    return f"@{prefix_of.get(namespace, 'xml')}:{local}"


def holds(predicate: ValuePredicate, text: str) -> bool:
    compare, constant = predicate.relation.holds, predicate.value
    if isinstance(constant, str):
        return compare(fold(text), fold(constant))
    try:
        number = float(text)
    except ValueError:
        return False
    return not math.isnan(number) and compare(number, constant)
