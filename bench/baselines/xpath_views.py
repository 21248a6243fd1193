"""One XPath for each view: what a system without shared evaluation would ask of a document.

XPath returns nodes, not tuples: it is asked for the topmost nodes that have all the rest, which is
less than what a view holds. Texts are compared as they stand.
"""

from __future__ import annotations

from collections.abc import Sequence

from lxml import etree

from headgate.model.atoms import Relation
from headgate.model.tree_pattern import PatternNode, ValuePredicate


def xpath_of(pattern: PatternNode) -> str:
    return f"{pattern.axis}{_step(pattern)}"


def _step(node: PatternNode) -> str:
    tests = "".join(f"[. {_test(each)}]" for each in node.predicates)
    below = "".join(f"[.{child.axis}{_step(child)}]" for child in node.children)
    return f"{node.label}{tests}{below}"


def _test(predicate: ValuePredicate) -> str:
    relation = "=" if predicate.relation is Relation.EQUAL else str(predicate.relation)
    value = predicate.value
    return f'{relation} "{value}"' if isinstance(value, str) else f"{relation} {value}"


class XPathViews:
    def __init__(self, views: Sequence[PatternNode]) -> None:
        self._asked = [etree.XPath(xpath_of(view)) for view in views]

    def evaluate(self, text: str) -> int:
        """How many nodes all views together find in a document."""
        root = etree.fromstring(text.encode()).getroottree()
        return sum(len(each(root)) for each in self._asked)
