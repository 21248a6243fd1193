"""Tree patterns over XML documents ([Delta §4.1]).

    //item[topic = 'ACME'][author {val}]/headline {cont}

              item            a node has a label, an edge to its parent (/ child, // descendant),
           /    |    \\        value predicates, and marks: what of it the result holds
      topic  author  headline     id    the identifier of the XML node
    = 'ACME'  {val}   {cont}      val   its text
                                  cont  the whole subtree below it

The step after a node and the branches in its brackets are all its children, in the order in which
they are written: `//a[b]/c` and `//a[b][c]` are the same pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headgate.model.atoms import Relation
from headgate.model.errors import InvalidValue
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
