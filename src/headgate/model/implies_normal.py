"""Negation normal form: filters as conjunctions and disjunctions of literals, for implies.py.

It has types of its own because of variables. A conjunction with variables needs one joint
substitution ([Operators §2.2]), so its parts must not be evaluated one by one:

    locIn('Bronx') and mobPattern(?p) and ?p > 50
        AllOf: Literal locIn('Bronx'), Literal VariableGroup{mobPattern(?p), ?p > 50}

A `VariableGroup` is closed: it shares no variable with anything outside of it. It is true if some
substitution satisfies all of its parts.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model.atoms import Atom, Call, Constraint
from headgate.model.filters import And, Filter, Not, Or, variables_of


@dataclass(frozen=True, slots=True)
class VariableGroup:
    """Conjuncts that share variables, opaque to everything but `implies_joint`."""

    parts: frozenset[Filter]


@dataclass(frozen=True, slots=True)
class Literal:
    atom: Atom | VariableGroup
    positive: bool


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Node, ...]


Node = Literal | AllOf | AnyOf


def negation_normal(filter_: Filter, *, positive: bool = True) -> Node:
    """The filter, or its negation if `positive` is false. The filter has no free variables."""
    match filter_:
        case Not(part):
            return negation_normal(part, positive=not positive)
        case And(parts):
            joint = frozenset(part for part in parts if variables_of(part))
            nodes = [
                negation_normal(part, positive=positive) for part in parts if part not in joint
            ]
            if joint:
                nodes.append(Literal(VariableGroup(joint), positive))
            return _flat(AllOf if positive else AnyOf, nodes)
        case Or(parts):
            nodes = [negation_normal(part, positive=positive) for part in parts]
            return _flat(AnyOf if positive else AllOf, nodes)
        case atom if variables_of(atom):
            return Literal(VariableGroup(frozenset((atom,))), positive)
        case atom:
            return Literal(atom, positive)


def _flat(shape: type[AllOf | AnyOf], nodes: list[Node]) -> AllOf | AnyOf:
    """A conjunction without conjunctions among its parts, and so for a disjunction."""
    parts: list[Node] = []
    for node in nodes:
        if isinstance(node, (AllOf, AnyOf)) and isinstance(node, shape):
            parts += node.parts
        else:
            parts.append(node)
    return shape(tuple(parts))


def implies_group(specific: VariableGroup, general: VariableGroup) -> bool:
    """Whether the parts of `general` are among those of `specific`, with the same variable names.

    A substitution for all parts satisfies each of them. A `not` depends on the bindings outside of
    it, so groups with one must be equal.
    """
    if specific == general:
        return True
    return general.parts <= specific.parts and all(
        isinstance(part, (Call, Constraint)) for part in general.parts
    )
