"""From a filter to its clauses: a disjunction of conjunctions over operator predicates.

The paper has conjunctions ([Operators §2.1]); filters here have `or` and `not` too. A filter
becomes a disjunction of clauses, and a clause has three parts:

    price < 9 and locIn('Bronx') and mobPattern(?n) and ?n > 50 and boats(?b) and ?b > 2 * ?n

    guard      price < 9                          atoms without operators: the program tests them
    literals   locIn('Bronx')    must be TRUE     each predicate once, with the required answer and
               mobPattern(?1)    … with ?1 > 50   the value tests that its own answer decides
               boats(?1)         must be TRUE
    joint      mobPattern(?n) and boats(?b) and ?b > 2 * ?n     what several answers decide

Invariant: an item satisfies the filter if and only if, for one of the clauses, it satisfies the
guard, every predicate has the required answer, and the joint constraint has a solution among the
answers.

`not` is pushed down to the atoms. Where it negates variables that is impossible: "no substitution
satisfies this" becomes a joint constraint of its own, whose predicates must be KNOWN, true or not.
Parts without variables are moved out of it first, so that a joint constraint never contains guards:

    not (p(?x) and ?x > 5 and price < 9)        not price < 9,  or  not (p(?x) and ?x > 5)

A call that is written twice counts once. (This differs from the oracle only for NaN, which is equal
to nothing: the oracle binds a variable again at each call, and rejects the second value.)

Cost: one clause for each conjunction of the disjunctive normal form, without those that another one
implies; more than CLAUSES_MAX are refused. Rejected: evaluating a filter with many clauses as a
whole once all of its predicates are known. It would evaluate them all, and hide the cost from the
user.
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
"""The limit on conjunctions during the expansion, before implied ones are dropped."""

FALSE, TRUE, KNOWN = 0, 1, 2
"""The answer that a clause requires of a predicate; KNOWN is either of them."""

Conjuncts = tuple[Filter, ...]
"""The parts of one conjunction of the disjunctive normal form."""


@dataclass(frozen=True, slots=True)
class ClauseLiteral:
    """A predicate, its required answer, and the tests that one of its solutions must pass."""

    predicate: Call
    required: int
    tests: tuple[ValueTest, ...] = ()


@dataclass(frozen=True, slots=True)
class Clause:
    guard: Filter
    literals: tuple[ClauseLiteral, ...]
    joint: Filter | None = None


def clauses_of(filter_: Filter) -> tuple[Clause, ...]:
    """The clauses of a filter; none if nothing satisfies it."""
    if (plain := _plain_conjunction(filter_)) is not None:
        return (plain,)
    check_safety(filter_)
    _check_negations(filter_, filter_, frozenset())
    clauses = (_clause(disjunct) for disjunct in _disjuncts(filter_))
    return tuple(clause for clause in clauses if clause is not None)


def _plain_conjunction(filter_: Filter) -> Clause | None:
    """The clause of a plain conjunction of atoms without variables, as most filters are."""
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


def _disjuncts(filter_: Filter) -> list[Conjuncts]:
    match filter_:
        case And(parts):
            return _distribute([_disjuncts(part) for part in parts])
        case Or(parts):
            return _absorb([disjunct for part in parts for disjunct in _disjuncts(part)])
        case Not(part):
            return _distribute([_negated(disjunct) for disjunct in _disjuncts(part)])
    return [(filter_,)]


def _negated(disjunct: Conjuncts) -> list[Conjuncts]:
    """The negation of a conjunction, as a disjunction."""
    single = [_complement(part) for part in disjunct if not variables_of(part)]
    with_variables = [part for part in disjunct if variables_of(part)]
    negated = [Not(conjunction(with_variables))] if with_variables else []
    return [(each,) for each in [*single, *negated]]


def _complement(part: Filter) -> Filter:
    return part.part if isinstance(part, Not) else Not(part)


def _distribute(choices: Iterable[list[Conjuncts]]) -> list[Conjuncts]:
    disjuncts: list[Conjuncts] = [()]
    for choice in sorted(choices, key=len):
        _check_count(len(disjuncts) * len(choice), EXPANSION_MAX)
        joined = (tuple(dict.fromkeys(left + right)) for left, right in product(disjuncts, choice))
        disjuncts = _absorb([disjunct for disjunct in joined if not _contradicts(disjunct)])
    return disjuncts


def _contradicts(disjunct: Conjuncts) -> bool:
    negated = {part.part for part in disjunct if isinstance(part, Not)}
    return any(part in negated for part in disjunct if not variables_of(part))


def _absorb(disjuncts: list[Conjuncts]) -> list[Conjuncts]:
    """Without the conjunctions that contain another one, which is satisfied whenever they are."""
    _check_count(len(disjuncts), EXPANSION_MAX)
    kept: dict[frozenset[Filter], Conjuncts] = {}
    for disjunct in sorted(disjuncts, key=len):
        parts = frozenset(disjunct)
        if not any(small <= parts for small in kept):
            kept[parts] = disjunct
    _check_count(len(kept), CLAUSES_MAX)
    return list(kept.values())


def _check_count(count: int, limit: int) -> None:
    if count > limit:
        raise InvalidValue(
            f"a filter with operators has more than {CLAUSES_MAX} alternatives; "
            "make several feeds of it, with fewer alternatives each"
        )


def _check_negations(filter_: Filter, whole: Filter, bound: frozenset[str]) -> None:
    """A negation must see the same bindings whatever the order of the parts around it.

    It does if each of its variables is bound by a call of the same conjunction, or by no call
    outside of the negation.
    """
    match filter_:
        case And(parts):
            binding = (variables_of(part) for part in parts if isinstance(part, Call))
            bound = bound.union(*binding)
            for part in parts:
                _check_negations(part, whole, bound)
        case Or(parts):
            for part in parts:
                _check_negations(part, whole, bound)
        case Not(part):
            for name in sorted(variables_of(part) - bound):
                if _calls_with(whole, name) != _calls_with(part, name):
                    raise InvalidValue(
                        f"variable '?{name}' is negated, and bound by a call that need not be "
                        "true; bind it in the same conjunction, or give it another name",
                        subject=name,
                    )
            _check_negations(part, whole, bound)


def _calls_with(filter_: Filter, name: str) -> int:
    """How many calls have this variable as an argument."""
    return sum(name in variables_of(atom) for atom in atoms_of(filter_) if isinstance(atom, Call))


def _clause(disjunct: Conjuncts) -> Clause | None:
    """The conjunction as a clause; None if it requires a predicate to be both true and false."""
    guards = [
        part for part in disjunct if not any(_is_operator_atom(atom) for atom in atoms_of(part))
    ]
    about_operators = [part for part in disjunct if part not in guards]
    constraints = [part for part in about_operators if isinstance(part, Constraint)]
    required: dict[Call, int] = {}
    tests: dict[Call, list[ValueTest]] = {}
    for part in about_operators:
        for call, answer in _required_answers(part):
            predicate = unify(call)
            before = required.get(predicate, KNOWN)
            if {before, answer} == {FALSE, TRUE}:
                return None
            required[predicate] = before if answer == KNOWN else answer
            if answer == TRUE:
                value_tests = (value_test(call, each) for each in constraints)
                tests.setdefault(predicate, []).extend(each for each in value_tests if each)
    # A predicate with two sets of variable names may have a different solution for each.
    repeated = _repeated_predicates(about_operators)
    literals = tuple(
        ClauseLiteral(
            each, answer, () if each in repeated else tuple(dict.fromkeys(tests.get(each, ())))
        )
        for each, answer in required.items()
    )
    return Clause(conjunction(guards), literals, _joint(about_operators, repeated))


def _is_operator_atom(atom: Filter) -> bool:
    return isinstance(atom, (Call, Constraint))


def _required_answers(part: Filter) -> list[tuple[Call, int]]:
    match part:
        case Call():
            return [(part, TRUE)]
        case Not(Call() as call) if not variables_of(call):
            return [(call, FALSE)]
    return [(atom, KNOWN) for atom in atoms_of(part) if isinstance(atom, Call)]


def _repeated_predicates(parts: list[Filter]) -> set[Call]:
    """The predicates that are called with several sets of variable names."""
    calls = [part for part in dict.fromkeys(parts) if isinstance(part, Call)]
    unified = [unify(call) for call in calls]
    return {each for each in unified if unified.count(each) > 1}


def _joint(parts: list[Filter], repeated: set[Call]) -> Filter | None:
    """What the answers must satisfy together; None if value tests decide everything."""
    about_variables = [part for part in parts if variables_of(part)]
    calls = [part for part in about_variables if isinstance(part, Call)]
    names = [name for call in calls for name in variable_names(call)]
    shared = len(names) != len(set(names))
    is_decided_by_tests = all(
        isinstance(part, Call)
        or (isinstance(part, Constraint) and any(value_test(call, part) for call in calls))
        for part in about_variables
    )
    if is_decided_by_tests and not shared and not repeated:
        return None
    return And(tuple(about_variables))
