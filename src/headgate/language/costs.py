"""What the parts of a statement add to the CPU time of an item, by their form alone.

    an atom    by its kind and constants, for texts of an assumed size
    a join     a lookup for each primary item; without an index, a pair for each item of the window

Prices (plan/price.py) are made of these figures, and quotas (catalog/limits.py) count them. They
are what a part adds to a program with many others, measured on one core.
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate.language.statements import CreateFeed, RegisterOperator, WindowJoin
from headgate.model.atoms import (
    Atom,
    Call,
    Comparison,
    Constraint,
    LinkAtom,
    Matches,
    Relation,
    Similar,
    StartsWith,
    WindowAttribute,
)
from headgate.model.duration import Duration, WindowSize
from headgate.model.filters import Filter, Or, atoms_of, conjuncts
from headgate.model.patterns import cost_ns_per_byte

INDEXED_NS, PREFIX_NS, LINK_NS = 0.05, 0.2, 1.0
SIMILAR_NS, SIMILAR_WORD_NS = 0.3, 0.2
"""A `similar` text, which its rarest words find; below 0.5 also each of its words."""
CALL_NS = 1_000.0
"""A call of an operator, for each unit of the cost that it declares."""
TEXT_BYTES = {"title": 100, "author": 30, "link": 100, "category": 30}
TEXT_BYTES_OTHER, ITEM_BYTES = 1_000, 2_000
"""The assumed size of a text attribute, and of all texts of an item."""
LOOKUP_NS, PAIR_NS = 20_000.0, 100.0
"""To look a primary item up in an index of the window; to compare it with an item of the window."""
WINDOW_ITEMS_ASSUMED = 10_000
"""In a window of time, where the rate of its sources is not known."""


def cpu_us_of_statement(statement: CreateFeed, operators: Mapping[str, RegisterOperator]) -> float:
    """The CPU time that a statement adds by itself; what it is built on has its own."""
    atoms = (atom for condition in statement.where for atom in atoms_of(condition.filter))
    joins = (
        join_cpu_us(join.predicate, assumed_items(join.window))
        for join in statement.joins
        if isinstance(join, WindowJoin)
    )
    return sum(atom_cpu_us(atom, operators) for atom in atoms) + sum(joins)


def atom_cpu_us(atom: Atom, operators: Mapping[str, RegisterOperator]) -> float:
    """What an atom adds to the CPU time of an item."""
    match atom:
        case Matches(attribute, pattern):
            size = TEXT_BYTES.get(attribute, TEXT_BYTES_OTHER) if attribute else ITEM_BYTES
            cpu_ns = size * cost_ns_per_byte(pattern)
        case Similar(words=words) if not isinstance(words, WindowAttribute):
            cpu_ns = SIMILAR_NS + (0.0 if atom.threshold >= 0.5 else SIMILAR_WORD_NS * len(words))
        case Call(operator):
            declared = operators.get(operator)
            cost = None if declared is None else declared.cost
            cpu_ns = CALL_NS * (1.0 if cost is None else float(cost))
        case StartsWith():
            cpu_ns = PREFIX_NS
        case LinkAtom():
            cpu_ns = LINK_NS
        case Constraint():
            cpu_ns = 0.0
        case _:
            cpu_ns = INDEXED_NS
    return cpu_ns / 1_000


def assumed_items(size: WindowSize) -> float:
    """How many items a window has at most, or is taken to have."""
    return WINDOW_ITEMS_ASSUMED if isinstance(size, Duration) else float(size.count)


def join_cpu_us(predicate: Filter, window_items: float) -> float:
    """What a join takes for each primary item."""
    pairs = 0.0 if has_index(predicate) else window_items
    return (LOOKUP_NS + PAIR_NS * pairs) / 1_000


def has_index(predicate: Filter) -> bool:
    """Whether partners are found by an index: of alternatives, each must have one."""
    for part in conjuncts(predicate):
        match part:
            case Comparison(relation=Relation.EQUAL, value=WindowAttribute()):
                return True
            case Similar(text=WindowAttribute()):
                return True
            case Or(parts) if all(map(has_index, parts)):
                return True
    return False
