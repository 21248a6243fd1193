"""From tree patterns to their canonical text: the last child of a node is the next step."""

from __future__ import annotations

import re

from headgate.language.unparse_filter import write_value
from headgate.model.tree_pattern import Axis, Mark, PatternNode, ValuePredicate

_PLAIN_LABEL = re.compile(r"@?[^\W\d]\w*(:[^\W\d]\w*)?|\*")


def unparse_pattern(pattern: PatternNode) -> str:
    """The whole pattern, beginning with its axis."""
    return pattern.axis + _node(pattern)


def _node(node: PatternNode) -> str:
    text = _label(node.label) + _marks(node.marks)
    text += "".join(f"[. {_predicate(each)}]" for each in node.predicates)
    if not node.children:
        return text
    *branches, last = node.children
    text += "".join(f"[{_branch(branch)}]" for branch in branches)
    return text + last.axis + _node(last)


def _branch(node: PatternNode) -> str:
    """A branch; the usual '/' before its first node is left out, a lone predicate stands behind."""
    axis = "" if node.axis is Axis.CHILD else node.axis
    if len(node.predicates) == 1 and not node.children:
        text = _label(node.label) + _marks(node.marks)
        return f"{axis}{text} {_predicate(node.predicates[0])}"
    return axis + _node(node)


def _label(label: str) -> str:
    return label if _PLAIN_LABEL.fullmatch(label) else f"`{label}`"


def _marks(marks: frozenset[Mark]) -> str:
    return f"{{{', '.join(mark for mark in Mark if mark in marks)}}}" if marks else ""


def _predicate(predicate: ValuePredicate) -> str:
    return f"{predicate.relation} {write_value(predicate.value)}"
