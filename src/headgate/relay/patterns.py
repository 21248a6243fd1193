"""Tree patterns as JSON, for files that relays read: no statement is parsed on the way of data.

["item", "//", ["val"], [["=", "ACME"]], [ … children … ]]
"""

from __future__ import annotations

from headgate.model.atoms import Relation
from headgate.model.errors import HeadgateError, RelayError
from headgate.model.tree_pattern import Axis, Mark, PatternNode, ValuePredicate

DEPTH_MAX = 64
MARKS = tuple(Mark)

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


def json_of_pattern(node: PatternNode) -> Json:
    marks: list[Json] = [mark.value for mark in MARKS if mark in node.marks]
    predicates: list[Json] = []
    for each in node.predicates:
        assert isinstance(each.value, str | int | float), "a node is compared with text or number"
        predicates.append([each.relation.value, each.value])
    children = [json_of_pattern(child) for child in node.children]
    return [node.label, node.axis.value, marks, predicates, children]


def pattern_of_json(found: Json, *, depth: int = 0) -> PatternNode:
    if depth > DEPTH_MAX:
        raise RelayError(f"a pattern is more than {DEPTH_MAX} nodes deep")
    match found:
        case [str(label), str(axis), list(marks), list(predicates), list(children)]:
            try:
                return PatternNode(
                    label,
                    Axis(axis),
                    marks=frozenset(Mark(str(mark)) for mark in marks),
                    predicates=tuple(map(_predicate, predicates)),
                    children=tuple(pattern_of_json(each, depth=depth + 1) for each in children),
                )
            except RelayError:
                raise
            except (ValueError, HeadgateError) as error:
                raise RelayError(f"the pattern's node '{label}': {error}") from None
    raise RelayError("a pattern's node is label, axis, marks, predicates and children")


def _predicate(found: Json) -> ValuePredicate:
    match found:
        case [str(relation), str() | int() | float() as value]:
            return ValuePredicate(Relation(relation), value)
    raise RelayError("a predicate is a relation and a text or number")
