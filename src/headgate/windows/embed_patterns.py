"""Which of many tree patterns a document embeds ([Delta §4.1]), in |patterns| × |document|.

The oracle, model/tree_pattern.py, tries all embeddings: a pattern of k steps `//*//*…` takes n^k
steps on a document of n elements, and documents are not trusted. Here each pattern node is
evaluated once per element, children of the pattern first and elements in reverse document order, so
that the answers for everything below an element are known before it:

    fits[e]      element e is an image of the pattern node
    child[e]     a child of e is one
    below[e]     a descendant of e is one

Invariant: the same answer as the oracle. A document is parsed once for all patterns. Value
predicates are tested last, as the text of an element is that of everything within it; libxml2
refuses documents nested deeper than 256, so all these texts together have at most 256 times the
document's length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lxml import etree

from headgate.model.items import Item
from headgate.model.text import parse_xml
from headgate.model.tree_pattern import Axis, PatternNode, attributes_of, holds, label_of


def embeds_patterns(patterns: Sequence[PatternNode], item: Item) -> list[bool]:
    """For each pattern whether the item's document has at least one embedding of it."""
    value = item.attributes.get("document")
    root = parse_xml(value) if isinstance(value, str) else None
    if root is None:
        return [False] * len(patterns)
    document = _Document(root)
    return [document.embeds(pattern) for pattern in patterns]


class _Images(NamedTuple):
    """The three answers about one pattern node, one byte per element (see the module)."""

    fits: bytearray
    child: bytearray
    below: bytearray


class _Document:
    def __init__(self, root: etree._Element) -> None:
        self.elements = list(root.iter("*"))
        number_of = {element: number for number, element in enumerate(self.elements)}
        parents = [element.getparent() for element in self.elements[1:]]
        self.parent = [-1, *(number_of[each] for each in parents if each is not None)]
        self.labels = [label_of(element) for element in self.elements]

    def embeds(self, pattern: PatternNode) -> bool:
        images = self._images(pattern)
        if pattern.axis is Axis.DESCENDANT:
            return any(images.fits)
        # An attribute has an element above it, so '/@name' at the top is nowhere.
        return not pattern.label.startswith("@") and bool(images.fits[0])

    def _images(self, pattern: PatternNode) -> _Images:
        children = [(child, self._images(child)) for child in pattern.children]
        count = len(self.elements)
        images = _Images(bytearray(count), bytearray(count), bytearray(count))
        fits, child, below = images
        for number in reversed(range(count)):
            fits[number] = self._fits(pattern, number) and all(
                _is_under(node, node_images, number) for node, node_images in children
            )
            if fits[number] and not pattern.label.startswith("@"):
                fits[number] = self._holds(pattern, number)
            parent = self.parent[number]
            if parent >= 0:
                child[parent] |= fits[number]
                below[parent] |= fits[number] | below[number]
        return images

    def _fits(self, pattern: PatternNode, number: int) -> bool:
        """Whether the element has the label, or an attribute with the label and the values."""
        if not pattern.label.startswith("@"):
            return pattern.label in ("*", self.labels[number])
        element = self.elements[number]
        return any(
            pattern.label == label
            and all(holds(predicate, value) for predicate in pattern.predicates)
            for label, value in attributes_of(element)
        )

    def _holds(self, pattern: PatternNode, number: int) -> bool:
        if not pattern.predicates:
            return True
        element = self.elements[number]
        text = etree.tostring(element, method="text", encoding="unicode", with_tail=False)
        return all(holds(predicate, text) for predicate in pattern.predicates)


def _is_under(pattern: PatternNode, images: _Images, number: int) -> bool:
    """Whether an image of the pattern node is below the element, along the node's axis."""
    if pattern.label.startswith("@"):
        is_here = bool(images.fits[number])
        return is_here or (pattern.axis is Axis.DESCENDANT and bool(images.below[number]))
    return bool((images.child if pattern.axis is Axis.CHILD else images.below)[number])
