"""From a filter to its clauses: what must be true for each way in which an item can satisfy it.

The paper has conjunctions ([Operators §2.1]); our filters have `or` and `not` too. A
filter becomes a disjunction of clauses, and a clause has three parts:

    price < 9 and locIn('Bronx') and mobPattern(?n) and ?n > 50 and boats(?b) and ?b > 2 * ?n

    guard    price < 9                          what no operator is needed for: the program tests it
    needs    locIn('Bronx')    must be true     each predicate once, with what is wanted of it, and
             mobPattern(?1)    … with ?1 > 50   with tests that its own answer decides
             boats(?1)         must be true
    joint    mobPattern(?n) and boats(?b) and ?b > 2 * ?n      what only several answers decide

Law: an item satisfies the filter if and only if for one of the clauses it satisfies the guard,
every predicate is as wanted, and the joint part has a solution among the answers.

`not` is pushed down. Where it negates variables it cannot be: "no substitution satisfies this" is a
joint part of its own, whose predicates must be KNOWN, true or not. What needs no variable is taken
out of it first, so that guards never stand within a joint part:

    not (p(?x) and ?x > 5 and price < 9)        not price < 9,  or  not (p(?x) and ?x > 5)

A call that is written twice counts once. (Only NaN can tell: it is equal to nothing, so the judge,
who binds a variable again at each call, refuses what the second one finds.)

Cost: clauses are as many as there are ways, after those that another one implies are dropped; more
than CLAUSES_MAX are refused. Rejected: judging a filter with many ways as a whole once all of its
predicates are known. It would ask them all, and hide what they cost from whoever wrote the filter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from headgate.model.atoms import Call, Constraint, Variable
from headgate.model.errors import InvalidValue
from headgate.model.filters import (
    And,
    Filter,
    Not,
    Or,
    atoms_of,
    check_safety,
    conjunction,
    conjuncts,
    variables_of,
)
from headgate.operators.orders.predicates import ValueTest, unify, value_test, variable_names

CLAUSES_MAX = 256
EXPANSION_MAX = 4 * CLAUSES_MAX
"""How many ways may stand for a moment, before those that another one implies are dropped."""

FALSE, TRUE, KNOWN = 0, 1, 2
"""What a clause wants of a predicate."""

Way = tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class ClauseLiteral:
    """A predicate, what is wanted of it, and what one of its solutions must pass."""

    predicate: Call
    want: int
    tests: tuple[ValueTest, ...] = ()


@dataclass(frozen=True, slots=True)
class Clause:
    guard: Filter
    needs: tuple[ClauseLiteral, ...]
    joint: Filter | None = None


def clauses_of(filter_: Filter) -> tuple[Clause, ...]:
    """The clauses of a filter; none if nothing satisfies it."""
    if (plain := _plain_conjunction(filter_)) is not None:
        return (plain,)
    check_safety(filter_)
    _check_negations(filter_, filter_, frozenset())
    found = (_clause(way) for way in _ways(filter_))
    return tuple(clause for clause in found if clause is not None)


def _plain_conjunction(filter_: Filter) -> Clause | None:
    """The clause of what most filters are: atoms, none of which has a variable."""
    calls: dict[Call, None] = {}
    guards: list[Filter] = []
    for part in conjuncts(filter_):
        match part:
            case Call(_, arguments):
                if any(isinstance(each, Variable) for each in arguments):
                    return None
                calls[part] = None
            case And() | Or() | Not() | Constraint():
                return None
            case _:
                guards.append(part)
    return Clause(conjunction(guards), tuple(ClauseLiteral(call, TRUE) for call in calls))


def _ways(filter_: Filter) -> list[Way]:
    match filter_:
        case And(parts):
            return _distribute([_ways(part) for part in parts])
        case Or(parts):
            return _absorb([way for part in parts for way in _ways(part)])
        case Not(part):
            return _distribute([_ways_against(way) for way in _ways(part)])
    return [(filter_,)]


def _ways_against(way: Way) -> list[Way]:
    """The ways in which a conjunction is not satisfied."""
    single = [_complement(part) for part in way if not variables_of(part)]
    with_variables = [part for part in way if variables_of(part)]
    negated = [Not(conjunction(with_variables))] if with_variables else []
    return [(each,) for each in [*single, *negated]]


def _complement(part: Filter) -> Filter:
    return part.part if isinstance(part, Not) else Not(part)


def _distribute(choices: Iterable[list[Way]]) -> list[Way]:
    ways: list[Way] = [()]
    for some in sorted(choices, key=len):
        _check_count(len(ways) * len(some), EXPANSION_MAX)
        joined = (tuple(dict.fromkeys(left + right)) for left, right in product(ways, some))
        ways = _absorb([way for way in joined if not _contradicts(way)])
    return ways


def _contradicts(way: Way) -> bool:
    negated = {part.part for part in way if isinstance(part, Not)}
    return any(part in negated for part in way if not variables_of(part))


def _absorb(ways: list[Way]) -> list[Way]:
    """Without the ways that contain another one: it is satisfied whenever they are."""
    _check_count(len(ways), EXPANSION_MAX)
    kept: dict[frozenset[Filter], Way] = {}
    for way in sorted(ways, key=len):
        parts = frozenset(way)
        if not any(small <= parts for small in kept):
            kept[parts] = way
    _check_count(len(kept), CLAUSES_MAX)
    return list(kept.values())


def _check_count(count: int, most: int) -> None:
    if count > most:
        raise InvalidValue(
            f"a filter with operators can be satisfied in more than {CLAUSES_MAX} ways; "
            "make several feeds of it, with fewer alternatives each"
        )


def _check_negations(filter_: Filter, whole: Filter, bound: frozenset[str]) -> None:
    """A negation must see the same bindings whatever the order of the parts around it.

    It does if each of its variables is bound by a call beside it, or by no call outside of it.
    """
    match filter_:
        case And(parts):
            beside = (variables_of(part) for part in parts if isinstance(part, Call))
            bound = bound.union(*beside)
            for part in parts:
                _check_negations(part, whole, bound)
        case Or(parts):
            for part in parts:
                _check_negations(part, whole, bound)
        case Not(part):
            for name in sorted(variables_of(part) - bound):
                if _mentions(whole, name) != _mentions(part, name):
                    raise InvalidValue(
                        f"variable '?{name}' is negated, and bound by a call that need not be "
                        "true; bind it beside the negation, or give it another name",
                        subject=name,
                    )
            _check_negations(part, whole, bound)


def _mentions(filter_: Filter, name: str) -> int:
    return sum(name in variables_of(atom) for atom in atoms_of(filter_) if isinstance(atom, Call))


def _clause(way: Way) -> Clause | None:
    """The way as a clause; nothing if it asks a predicate to be both true and false."""
    guards = [part for part in way if not any(_is_operators(atom) for atom in atoms_of(part))]
    about_operators = [part for part in way if part not in guards]
    constraints = [part for part in about_operators if isinstance(part, Constraint)]
    wants: dict[Call, int] = {}
    tests: dict[Call, list[ValueTest]] = {}
    for part in about_operators:
        for call, want in _wanted(part):
            predicate = unify(call)
            before = wants.get(predicate, KNOWN)
            if {before, want} == {FALSE, TRUE}:
                return None
            wants[predicate] = before if want == KNOWN else want
            if want == TRUE:
                found = (value_test(call, each) for each in constraints)
                tests.setdefault(predicate, []).extend(each for each in found if each)
    # One predicate under two names of its variables may have another solution for each.
    twice = _twice(about_operators)
    needs = tuple(
        ClauseLiteral(
            each, want, () if each in twice else tuple(dict.fromkeys(tests.get(each, ())))
        )
        for each, want in wants.items()
    )
    return Clause(conjunction(guards), needs, _joint(about_operators, twice))


def _is_operators(atom: Filter) -> bool:
    return isinstance(atom, (Call, Constraint))


def _wanted(part: Filter) -> list[tuple[Call, int]]:
    match part:
        case Call():
            return [(part, TRUE)]
        case Not(Call() as call) if not variables_of(call):
            return [(call, FALSE)]
    return [(atom, KNOWN) for atom in atoms_of(part) if isinstance(atom, Call)]


def _twice(parts: list[Filter]) -> set[Call]:
    calls = [part for part in dict.fromkeys(parts) if isinstance(part, Call)]
    unified = [unify(call) for call in calls]
    return {each for each in unified if unified.count(each) > 1}


def _joint(parts: list[Filter], twice: set[Call]) -> Filter | None:
    """What the answers must satisfy together, unless each of them decides its share alone."""
    about_variables = [part for part in parts if variables_of(part)]
    calls = [part for part in about_variables if isinstance(part, Call)]
    names = [name for call in calls for name in variable_names(call)]
    shared = len(names) != len(set(names))
    alone = all(
        isinstance(part, Call)
        or (isinstance(part, Constraint) and any(value_test(call, part) for call in calls))
        for part in about_variables
    )
    return None if alone and not shared and not twice else And(tuple(about_variables))
