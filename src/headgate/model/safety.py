"""Variable safety: every variable is bound by an operator call before anything tests it.

The rule is that of safe Datalog. A call binds its variables; a conjunction binds what its parts
bind; a disjunction binds what all of its parts bind; a negation binds nothing, and sees what is
bound outside of it. A constraint needs all of its variables bound.

    mobPattern(?p) and ?p > 50                    safe, in either order
    mobPattern(?p) and (?p > 50 or ?p < 3)        safe
    (mobPattern(?p) or locIn('Bronx')) and ?p > 50    not safe: the second way binds no ?p
"""

from __future__ import annotations

from headgate.model.atoms import Call, Constraint, Variable
from headgate.model.errors import InvalidValue
from headgate.model.filters import And, Filter, Not, Or, variables_of

Names = frozenset[str]
NONE: Names = frozenset()


def binds(filter_: Filter) -> Names:
    """The variables that have a value wherever the filter is true."""
    match filter_:
        case Call(_, arguments):
            return frozenset(each.name for each in arguments if isinstance(each, Variable))
        case And(parts):
            return NONE.union(*(binds(part) for part in parts))
        case Or(parts) if parts:
            return frozenset.intersection(*(binds(part) for part in parts))
    return NONE


def needs(filter_: Filter) -> Names:
    """The variables that must be bound before the filter can be judged."""
    match filter_:
        case Constraint():
            return variables_of(filter_)
        case And(parts):
            inside = binds(filter_)
            return NONE.union(*(needs(part) for part in parts)) - inside
        case Or(parts):
            return NONE.union(*(needs(part) for part in parts))
        case Not(part):
            return needs(part)
    return NONE


def ready_order(parts: tuple[Filter, ...], *, bound: Names = NONE) -> tuple[Filter, ...]:
    """The parts of a conjunction so that each comes after those that bind what it needs.

    Parts that negate variables come last, as a negation sees what is bound outside of it.
    """
    waiting = sorted(parts, key=_negates_variables)
    ordered: list[Filter] = []
    while waiting:
        ready = next((part for part in waiting if needs(part) <= bound), None)
        if ready is None:
            missing = min(NONE.union(*(needs(part) for part in waiting)) - bound)
            raise InvalidValue(
                f"variable '?{missing}' is not bound by an operator call beside it",
                subject=missing,
            )
        waiting.remove(ready)
        ordered.append(ready)
        bound |= binds(ready)
    return tuple(ordered)


def _negates_variables(filter_: Filter) -> bool:
    match filter_:
        case Not(part):
            return bool(variables_of(part))
        case And(parts) | Or(parts):
            return any(_negates_variables(part) for part in parts)
    return False


def check_safety(filter_: Filter, *, bound: Names = NONE) -> None:
    """Raise `InvalidValue` where a variable may be tested before it has a value."""
    match filter_:
        case And(parts):
            for part in ready_order(parts, bound=bound):
                check_safety(part, bound=bound)
                bound |= binds(part)
        case Or(parts):
            for part in parts:
                check_safety(part, bound=bound)
        case Not(part):
            check_safety(part, bound=bound)
        case _:
            ready_order((filter_,), bound=bound)
