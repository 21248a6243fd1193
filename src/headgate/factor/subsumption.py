"""Which clauses imply which: subsumption of predicates in CNF ([RoSeS §4.3], "subsumes").

    price > 10                     implies  price > 5                     numbers, texts, links
    title contains phrase 'a b'    implies  title contains 'a'            words
    a or b                         implies  a or b or c                   clauses: each literal of
    price > 10 or a                implies  price > 5 or a or b           the one implies one of the
                                                                          other
Law: a clause in another's list follows from it, in the logic of model/evaluate.py. A set of clauses
then subsumes another if each of its clauses follows from one of the other's. The reverse need not
hold: a few implications that are not found cost sharing, and never an answer.

Literals are judged by model/implies.py, one pair after the other, so few pairs may reach it. Words
are looked up, not compared. Of other literals those on the same attribute are compared, the widely
used first, and only where no item of the sample is a counterexample.

Cost: at most CHECKS_MAX judgements of about 40 µs, and a bit operation for each pair before them;
clauses are found through their rarest literal. Each clause keeps the IMPLIED_MAX most useful ones.

Rejected: all pairs of literals, which are 10¹⁰ for 100,000 prices; a list of all implied clauses,
since a price may imply thousands, and candidates are subsets of what a filter implies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from headgate.factor.factor_selectivity import Selectivities
from headgate.match.conjunctions import Conjunctions
from headgate.match.kernels import NOT, OR, Ints, Longs
from headgate.model.atoms import Atom, Call, Comparison, Constraint, Contains, Relation
from headgate.model.implies import implies
from headgate.model.words import words

CHECKS_MAX = 50_000
GENERAL_MAX = 256
"""Of the literals on one attribute, so many, the most used ones, may be found implied."""
SPECIFIC_MAX = 20_000
"""… and so many, the most used ones as well, may imply others."""
IMPLIED_MAX = 6

Literals = Mapping[int, set[int]]
"""For each literal those that it implies, itself not among them. A literal is a row."""


@dataclass(frozen=True, slots=True, eq=False)
class Implications:
    """Clause c implies implied[start[c] : start[c + 1]]; same_as[c] is the first that is equivalent
    to it. Only such first ones imply and are implied."""

    same_as: Ints
    start: Longs
    implied: Ints


def no_implications(row_count: int) -> Implications:
    """Every clause stands for itself alone: subsumption is that of subsets."""
    start = np.zeros(row_count + 1, np.int64)
    return Implications(np.arange(row_count, dtype=np.int32), start, np.zeros(0, np.int32))


def implications_of(found: Conjunctions, known: Selectivities) -> Implications:
    """The implications between the rows that conjunctions use as clauses."""
    uses = np.bincount(found.rows, minlength=found.row_count)
    by_literal = _literal_implications(found, known, uses)
    by_clause = _clause_implications(found, by_literal, uses)
    same_as = np.arange(found.row_count, dtype=np.int32)
    for clause, implied in by_clause.items():
        equivalent = [each for each in implied if clause in by_clause.get(each, ())]
        same_as[clause] = min([clause, *equivalent])
    worth = uses * (1 - known.single)
    start, flat = np.zeros(found.row_count + 1, np.int64), []
    for clause in sorted(by_clause):
        if same_as[clause] != clause:
            continue
        others = {int(same_as[each]) for each in by_clause[clause]} - {clause}
        useful = sorted(others, key=lambda each: (-worth[each], each))[:IMPLIED_MAX]
        start[clause + 1] = len(useful)
        flat += sorted(useful)
    return Implications(same_as, np.cumsum(start), np.array(flat, np.int32))


def _clause_implications(
    found: Conjunctions, by_literal: Literals, uses: Longs
) -> dict[int, set[int]]:
    """For each clause that is used those that it implies."""
    literals_of = {row: _literals_of(row, found) for row in np.nonzero(uses)[0].tolist()}
    clauses_with: defaultdict[int, list[int]] = defaultdict(list)
    for clause, literals in literals_of.items():
        for literal in literals:
            clauses_with[literal].append(clause)
    reached = {
        literal: {literal, *by_literal.get(literal, ())}
        for literals in literals_of.values()
        for literal in literals
    }
    implied: dict[int, set[int]] = {}
    for clause, literals in literals_of.items():
        rarest = min(literals, key=lambda each: len(clauses_with[each]))
        near = {other for each in reached[rarest] for other in clauses_with.get(each, ())}
        own = {
            other
            for other in near
            if other != clause
            and all(reached[each].intersection(literals_of[other]) for each in literals)
        }
        if own:
            implied[clause] = own
    return implied


def _literals_of(row: int, found: Conjunctions) -> tuple[int, ...]:
    """The literals of a clause; a row of another form is taken as one literal."""
    at = row - len(found.atoms)
    if at < 0 or found.derived[at][0] != OR:
        return (row,)
    return found.derived[at][1]


def _literal_implications(found: Conjunctions, known: Selectivities, uses: Longs) -> Literals:
    negated = {
        rows[0]: len(found.atoms) + at
        for at, (operator, rows) in enumerate(found.derived)
        if operator == NOT and rows[0] < len(found.atoms)
    }
    implied: defaultdict[int, set[int]] = defaultdict(set)
    for specific, general in (*_by_words(found.atoms), *_by_attribute(found, known, uses)):
        implied[specific].add(general)
        if specific in negated and general in negated:
            implied[negated[general]].add(negated[specific])
    return implied


def _by_words(atoms: Iterable[Atom]) -> Iterator[tuple[int, int]]:
    """What contains words, or equals a text of them, implies `contains` of each of them."""
    listed = list(atoms)
    asked = {
        (atom.attribute, atom.words): row
        for row, atom in enumerate(listed)
        if isinstance(atom, Contains) and not atom.phrase
    }
    for row, atom in enumerate(listed):
        match atom:
            case Contains(attribute):
                inside: Iterable[str] = atom.words
            case Comparison(attribute, Relation.EQUAL, str() as text, None):
                inside = words(text)
            case _:
                continue
        for word in inside:
            for where in dict.fromkeys((attribute, None)):
                general = asked.get((where, (word,)), row)
                if general != row and implies(atom, listed[general]):
                    yield row, general


def _by_attribute(
    found: Conjunctions, known: Selectivities, uses: Longs
) -> Iterator[tuple[int, int]]:
    """Pairs of other atoms on one attribute, until the checks run out; the most used first."""
    used = uses.copy()
    for _, rows in found.derived:
        np.add.at(used, list(rows), 1)
    groups: defaultdict[str | None, list[int]] = defaultdict(list)
    for row, atom in enumerate(found.atoms):
        if not isinstance(atom, Contains | Call | Constraint):
            groups[atom.attribute].append(row)
    checks_left = CHECKS_MAX
    for group in groups.values():
        order = sorted(group, key=lambda row: (-used[row], row))
        general = np.array(order[:GENERAL_MAX])
        outside = ~known.bits[general]
        for row in order[:SPECIFIC_MAX]:
            possible = general[~(known.bits[row] & outside).any(axis=1)]
            for other in possible.tolist():
                if other == row:
                    continue
                checks_left -= 1
                if checks_left < 0:
                    return
                if implies(found.atoms[row], found.atoms[other]):
                    yield row, other
