"""One form for all patterns that are the same tree: children in one order, texts folded.

The order of children says nothing (model/tree_pattern.py), so `//a[b]/c` and `//a[c]/b` are the
same pattern. Children are sorted by what they ask of a document first and by their marks last:
patterns that differ in marks only have their nodes in one order, and can share their evaluation.
"""

from __future__ import annotations

from dataclasses import replace

from headgate.model.text import fold
from headgate.model.tree_pattern import Mark, PatternNode, ValuePredicate
from headgate.model.values import Value

Key = tuple[object, ...]

_MARKS = (Mark.VAL, Mark.CONT)


def canonical(pattern: PatternNode) -> PatternNode:
    """The pattern in its canonical form. Every node has an identifier, marked {id} or not.

    >>> a = PatternNode("a", children=(PatternNode("c"), PatternNode("b")))
    >>> [child.label for child in canonical(a).children]
    ['b', 'c']
    """
    return _canonical(pattern)[0]


def _canonical(pattern: PatternNode) -> tuple[PatternNode, Key, Key]:
    """The node, the key of what it asks for, and the key of the marks in it."""
    below = sorted((_canonical(child) for child in pattern.children), key=_keys)
    predicates = pattern.predicates
    if predicates:
        predicates = tuple(sorted(dict.fromkeys(map(_folded, predicates)), key=_predicate_key))
    node = replace(
        pattern,
        marks=pattern.marks - {Mark.ID},
        predicates=predicates,
        children=tuple(each for each, _, _ in below),
    )
    asked = (
        pattern.label,
        pattern.axis,
        tuple(map(_predicate_key, predicates)),
        tuple(key for _, key, _ in below),
    )
    marks = (*(mark in node.marks for mark in _MARKS), *(key for _, _, key in below))
    return node, asked, marks


def _keys(found: tuple[PatternNode, Key, Key]) -> tuple[Key, Key]:
    return found[1], found[2]


def _folded(predicate: ValuePredicate) -> ValuePredicate:
    value = predicate.value
    return replace(predicate, value=fold(value)) if isinstance(value, str) else predicate


def _predicate_key(predicate: ValuePredicate) -> tuple[str, bool, Value]:
    """Sorts texts apart from numbers, which have no common order."""
    return predicate.relation, isinstance(predicate.value, str), predicate.value
