"""⋈ id[P and Q](s, w) = ⋈ id[Q](σ[P](s), w)        where P does not look at the window

If P(i) is false, no item of the window joins i, and i is dropped by the join as by the filter.
If it is true, Q alone decides which do. The join stays even if nothing remains of its predicate
(Q = true), because the window must still hold an item, and all of it becomes the annotation.

Precondition: P and Q share no ?variables; only whole scopes move (variable_scopes.py).
"""

from __future__ import annotations

from headgate.model.atoms import Comparison, Similar, WindowAttribute
from headgate.model.filters import Filter as Predicate
from headgate.model.filters import atoms_of, conjunction
from headgate.plan.algebra import Filter, Join, Plan
from headgate.plan.variable_scopes import Scope, scopes_of


def split_join_predicate(plan: Plan) -> Plan | None:
    if not isinstance(plan, Join):
        return None
    scopes = scopes_of(plan.predicate)
    movable = [part for scope in scopes if not _looks_at_window(scope) for part in scope]
    if not movable:
        return None
    rest = conjunction(part for scope in scopes if _looks_at_window(scope) for part in scope)
    return Join(plan.id, rest, Filter(conjunction(movable), plan.primary), plan.window)


def _looks_at_window(scope: Scope) -> bool:
    return any(_of_window(part) for part in scope)


def _of_window(filter_: Predicate) -> bool:
    return any(
        isinstance(operand, WindowAttribute)
        for atom in atoms_of(filter_)
        for operand in _operands(atom)
    )


def _operands(atom: object) -> tuple[object, ...]:
    match atom:
        case Comparison():
            return (atom.value,)
        case Similar():
            return (atom.text,)
    return ()
