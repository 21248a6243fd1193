"""The depth of a statement, measured without recursion, before anything recurses into it."""

from __future__ import annotations

from headgate.language.script import NESTING_MAX
from headgate.language.statements import Advertise, CreateFeed, Group, Statement, WindowJoin
from headgate.model.atoms import Arithmetic, Constraint
from headgate.model.filters import And, Not, Or
from headgate.model.tree_pattern import PatternNode


def check_depth(statement: Statement) -> str:
    """What is nested too deep, or an empty text."""
    roots: list[object] = []
    match statement:
        case Advertise(_, filter_):
            roots = [filter_]
        case CreateFeed(_, from_clause, pattern, joins, where):
            roots = [from_clause, pattern, *(condition.filter for condition in where)]
            for join in joins:
                if isinstance(join, WindowJoin):
                    roots += [join.secondary, join.predicate]
    level = roots
    for _ in range(NESTING_MAX):
        level = [child for node in level for child in _children(node)]
        if not level:
            return ""
    return f"a statement is nested at most {NESTING_MAX} deep"


def _children(node: object) -> tuple[object, ...]:
    match node:
        case And(parts) | Or(parts):
            return parts
        case Not(part):
            return (part,)
        case Constraint(left, _, right) | Arithmetic(_, left, right):
            return left, right
        case PatternNode():
            return node.children
        case Group(members):
            return members
    return ()
