"""Filters: Boolean expressions over atoms. True is the empty `And`, false the empty `Or`.

Variables must be *safe*, as in Datalog: an operator call binds each variable before anything tests
it. A call binds its variables; a conjunction binds what its parts bind; a disjunction binds what
all of its parts bind; a negation binds nothing, and sees what is bound outside of it. A constraint
needs all of its variables bound.

    mobPattern(?p) and ?p > 50                        safe, in either order
    mobPattern(?p) and (?p > 50 or ?p < 3)            safe
    (mobPattern(?p) or locIn('Bronx')) and ?p > 50    not safe: the second part binds no ?p
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from headgate.model.atoms import Arithmetic, Atom, Call, Constraint, Expression, Variable, leaves_of
from headgate.model.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Filter


Filter = Atom | And | Or | Not

TRUE = And(())
FALSE = Or(())


def conjunction(filters: Iterable[Filter]) -> Filter:
    """The conjunction, flat, without repetitions, and simplified where a part is true or false.

    >>> from headgate.model.atoms import IsPresent
    >>> conjunction([IsPresent("a"), And((IsPresent("b"), IsPresent("a"))), TRUE])
    And(parts=(IsPresent(attribute='a'), IsPresent(attribute='b')))
    """
    parts = tuple(dict.fromkeys(_flat(filters, And)))
    if FALSE in parts:
        return FALSE
    return parts[0] if len(parts) == 1 else And(parts)


def disjunction(filters: Iterable[Filter]) -> Filter:
    """The disjunction, flat, without repetitions, and simplified where a part is true or false."""
    parts = tuple(dict.fromkeys(_flat(filters, Or)))
    if TRUE in parts:
        return TRUE
    return parts[0] if len(parts) == 1 else Or(parts)


def conjuncts(filter_: Filter) -> tuple[Filter, ...]:
    """The parts of a conjunction; anything else is its own only part."""
    return filter_.parts if isinstance(filter_, And) else (filter_,)


def atoms_of(filter_: Filter) -> Iterator[Atom]:
    """Every occurrence of an atom, from left to right."""
    match filter_:
        case And(parts) | Or(parts):
            for part in parts:
                yield from atoms_of(part)
        case Not(part):
            yield from atoms_of(part)
        case atom:
            yield atom


def map_atoms(filter_: Filter, change: Callable[[Atom], Filter]) -> Filter:
    """The filter with every atom replaced; the shape stays as it is."""
    match filter_:
        case And(parts):
            return And(tuple(map_atoms(part, change) for part in parts))
        case Or(parts):
            return Or(tuple(map_atoms(part, change) for part in parts))
        case Not(part):
            return Not(map_atoms(part, change))
        case atom:
            return change(atom)


def variables_of(filter_: Filter) -> frozenset[str]:
    """The names of all variables in the filter."""
    names: set[str] = set()
    for atom in atoms_of(filter_):
        match atom:
            case Call(_, arguments):
                names.update(each.name for each in arguments if isinstance(each, Variable))
            case Constraint(left, _, right):
                leaves = leaves_of(left) + leaves_of(right)
                names.update(each.name for each in leaves if isinstance(each, Variable))
    return frozenset(names)


def rename_variables(filter_: Filter, new_name: Callable[[str], str]) -> Filter:
    """The filter with its variables renamed; it is true of the same items."""

    def rename_in(expression: Expression) -> Expression:
        match expression:
            case Variable(name):
                return Variable(new_name(name))
            case Arithmetic(sign, left, right):
                return Arithmetic(sign, rename_in(left), rename_in(right))
        return expression

    def rename(atom: Atom) -> Atom:
        match atom:
            case Call(operator, arguments):
                renamed = (
                    Variable(new_name(a.name)) if isinstance(a, Variable) else a for a in arguments
                )
                return Call(operator, tuple(renamed))
            case Constraint(left, relation, right):
                return Constraint(rename_in(left), relation, rename_in(right))
        return atom

    return map_atoms(filter_, rename)


def _flat(filters: Iterable[Filter], kind: type[And | Or]) -> Iterator[Filter]:
    for filter_ in filters:
        if isinstance(filter_, kind):
            yield from _flat(filter_.parts, kind)
        else:
            yield filter_


# --- variable safety -----------------------------------------------------------------------------

Names = frozenset[str]
NO_NAMES: Names = frozenset()


def binds(filter_: Filter) -> Names:
    """The variables that have a value wherever the filter is true."""
    match filter_:
        case Call(_, arguments):
            return frozenset(each.name for each in arguments if isinstance(each, Variable))
        case And(parts):
            return NO_NAMES.union(*(binds(part) for part in parts))
        case Or(parts) if parts:
            return frozenset.intersection(*(binds(part) for part in parts))
    return NO_NAMES


def needs(filter_: Filter) -> Names:
    """The variables that must be bound before the filter can be evaluated."""
    match filter_:
        case Constraint():
            return variables_of(filter_)
        case And(parts):
            inside = binds(filter_)
            return NO_NAMES.union(*(needs(part) for part in parts)) - inside
        case Or(parts):
            return NO_NAMES.union(*(needs(part) for part in parts))
        case Not(part):
            return needs(part)
    return NO_NAMES


def ready_order(parts: tuple[Filter, ...], *, bound: Names = NO_NAMES) -> tuple[Filter, ...]:
    """The parts of a conjunction, ordered so that each comes after those that bind its variables.

    Parts that negate variables come last, as a negation sees what is bound outside of it.
    """
    waiting = sorted(parts, key=_negates_variables)
    ordered: list[Filter] = []
    while waiting:
        ready = next((part for part in waiting if needs(part) <= bound), None)
        if ready is None:
            missing = min(NO_NAMES.union(*(needs(part) for part in waiting)) - bound)
            raise InvalidValue(
                f"variable '?{missing}' is not bound by an operator call in the same conjunction",
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


def check_safety(filter_: Filter, *, bound: Names = NO_NAMES) -> None:
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
