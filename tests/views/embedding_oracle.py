"""The oracle of the embedding graph: embeddings and covers by trying all maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headgate.model.atoms import Comparison
from headgate.model.implies import implies
from headgate.model.tree_pattern import Axis, PatternNode, ValuePredicate
from headgate.model.values import kind_of
from headgate.views.pattern_arrays import preorder
from headgate.views.view_tuples import MARKS

Attribute = tuple[int, object]
"""A node of the query, and "id", a mark, or the number of a predicate."""


def implied(general: ValuePredicate, specific: ValuePredicate) -> bool:
    if kind_of(general.value) is not kind_of(specific.value):
        return False
    return implies(
        Comparison("value", specific.relation, specific.value),
        Comparison("value", general.relation, general.value),
    )


def embeddings(view: PatternNode, query: PatternNode) -> Iterator[tuple[int, ...]]:
    """Every map of the view's nodes to the query's that is an embedding."""
    nodes, places = preorder(view), preorder(query)

    def extend(goes_to: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(goes_to) == len(nodes):
            yield goes_to
            return
        node, parent = nodes[len(goes_to)]
        for m, (place, _) in enumerate(places):
            if not _may_go(node, place):
                continue
            if parent >= 0 and not _is_way_down(places, goes_to[parent], m, node.axis):
                continue
            if parent < 0 and node.axis is Axis.CHILD and (m or place.axis is not Axis.CHILD):
                continue
            yield from extend((*goes_to, m))

    yield from extend(())


def _may_go(node: PatternNode, place: PatternNode) -> bool:
    if node.label != place.label and (node.label != "*" or place.label.startswith("@")):
        return False
    return all(any(implied(each, own) for own in place.predicates) for each in node.predicates)


def _is_way_down(places: list[tuple[PatternNode, int]], above: int, below: int, axis: Axis) -> bool:
    node, parent = places[below]
    if axis is Axis.CHILD:
        return parent == above and node.axis is Axis.CHILD
    while parent >= 0 and parent != above:
        parent = places[parent][1]
    return parent == above and above >= 0


def attributes(query: PatternNode) -> list[Attribute]:
    """In the order in which they are numbered."""
    result: list[Attribute] = []
    for m, (node, _) in enumerate(preorder(query)):
        result.append((m, "id"))
        result += [(m, mark) for mark in MARKS if mark in node.marks]
        result += [(m, number) for number in range(len(node.predicates))]
    return result


def cover(view: PatternNode, query: PatternNode) -> set[Attribute] | None:
    """The attributes of the query that the view covers; None if it does not embed."""
    places, result, is_embedded = preorder(query), set[Attribute](), False
    for goes_to in embeddings(view, query):
        is_embedded = True
        for (node, _), m in zip(preorder(view), goes_to, strict=True):
            place = places[m][0]
            if node.label == place.label:
                result.add((m, "id"))
            result |= {(m, mark) for mark in node.marks & place.marks}
            for number, predicate in enumerate(place.predicates):
                enforced = any(implied(predicate, own) for own in node.predicates)
                if enforced or MARKS[0] in node.marks:
                    result.add((m, number))
    return result if is_embedded else None


def has_cycle(reads: Mapping[int, set[int]]) -> bool:
    """Whether the views that each view may read (`reads`) form a cycle."""
    left = dict(reads)
    while free := [view for view, others in left.items() if not others & set(left)]:
        for view in free:
            del left[view]
    return bool(left)
