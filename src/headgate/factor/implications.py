"""Implications between clauses: subsumption of predicates in CNF ([RoSeS §4.3], "subsumes").

    price > 10                     implies  price > 5                     numbers, texts, links
    title contains phrase 'a b'    implies  title contains 'a'            words
    a or b                         implies  a or b or c                   clauses: each literal of
    price > 10 or a                implies  price > 5 or a or b           the one implies one of the
                                                                          other
Invariant: a clause in another's list follows from it, in the logic of model/evaluate.py. A set of
clauses subsumes another set if each of its clauses follows from a clause of the other. The reverse
need not hold: an implication that is not found costs sharing, never an answer.

Two literals are compared by model/implies.py, which takes about 40 µs, so few pairs may reach it.
Words are looked up, not compared. Other literals are compared with those on the same attribute, the
most used first, and only where no item of the sample is a counterexample.

Cost: at most CHECKS_MAX comparisons, and a bit operation for each pair before them. Clauses are
found through their rarest literal. Each clause keeps its IMPLIED_MAX most useful implications.

Rejected: all pairs of literals, which are 10¹⁰ for 100,000 prices; a list of all implied clauses,
since a price may imply thousands, and candidates are subsets of what a filter implies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.factor.selectivity import Selectivities
from headgate.match.bit_rows import NOT, OR, Ints, Longs
from headgate.match.conjunctions import Conjunctions
from headgate.model.atoms import Atom, Call, Comparison, Constraint, Contains, Relation
from headgate.model.implies import implies
from headgate.model.text import words

CHECKS_MAX = 50_000
GENERAL_MAX = 256
"""Of the literals on one attribute, only the GENERAL_MAX most used are tested as implied ones."""
SPECIFIC_MAX = 20_000
"""Of the literals on one attribute, only the SPECIFIC_MAX most used are tested as implying ones."""
IMPLIED_MAX = 6
PHRASE_MAX = 12
"""Phrases of more words are not tested for the phrases within them."""

Literals = Mapping[int, set[int]]
"""For each literal the other literals that it implies. A literal is a row of the program."""


class Lists(NamedTuple):
    """Lists of numbers in flat arrays: list n is values[start[n] : start[n + 1]].

    start    int64 [lists + 1]
    values   int32 [start[-1]]
    """

    start: Longs
    values: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Implications:
    """List c of `implied` has the other clauses that clause c implies. same_as[c] is the first
    clause that is equivalent to c; only such first clauses imply others and are implied."""

    same_as: Ints
    implied: Lists


def no_implications(row_count: int) -> Implications:
    """No clause implies another one: subsumption is that of subsets."""
    nothing = Lists(np.zeros(row_count + 1, np.int64), np.zeros(0, np.int32))
    return Implications(np.arange(row_count, dtype=np.int32), nothing)


@nb.njit(nogil=True, cache=True, inline="always")
def implies_clause(specific, general, implied):  # type: ignore[no-untyped-def]
    """Whether clause `specific` (a number) implies clause `general`; implied: Lists by clause."""
    if specific == general:
        return True
    for position in range(implied.start[specific], implied.start[specific + 1]):
        if implied.values[position] == general:
            return True
    return False


@nb.njit(nogil=True, cache=True)
def subsumes(general, specific, implied):  # type: ignore[no-untyped-def]
    """Whether each clause of `general` (int32 array) follows from a clause of `specific` (int32
    array); implied: Lists by clause."""
    for general_clause in general:
        follows = False
        for clause in specific:
            if implies_clause(clause, general_clause, implied):
                follows = True
                break
        if not follows:
            return False
    return True


def implications_of(conjunctions: Conjunctions, selectivities: Selectivities) -> Implications:
    """The implications between the rows that conjunctions use as clauses."""
    uses = np.bincount(conjunctions.rows, minlength=conjunctions.row_count)
    by_literal = _literal_implications(conjunctions, selectivities, uses)
    by_clause = _clause_implications(conjunctions, by_literal, uses)
    same_as = np.arange(conjunctions.row_count, dtype=np.int32)
    for clause, implied in by_clause.items():
        equivalent = [each for each in implied if clause in by_clause.get(each, ())]
        same_as[clause] = min([clause, *equivalent])
    worth = uses * (1 - selectivities.single)
    start, flat = np.zeros(conjunctions.row_count + 1, np.int64), []
    for clause in sorted(by_clause):
        if same_as[clause] != clause:
            continue
        others = {int(same_as[each]) for each in by_clause[clause]} - {clause}
        useful = sorted(others, key=lambda each: (-worth[each], each))[:IMPLIED_MAX]
        start[clause + 1] = len(useful)
        flat += sorted(useful)
    return Implications(same_as, Lists(np.cumsum(start), np.array(flat, np.int32)))


def _clause_implications(
    conjunctions: Conjunctions, by_literal: Literals, uses: Longs
) -> dict[int, set[int]]:
    """For each clause that is used, the clauses that it implies."""
    literals_of = {row: _literals_of(row, conjunctions) for row in np.nonzero(uses)[0].tolist()}
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
        candidates = {other for each in reached[rarest] for other in clauses_with.get(each, ())}
        clauses = {
            other
            for other in candidates
            if other != clause
            and all(reached[each].intersection(literals_of[other]) for each in literals)
        }
        if clauses:
            implied[clause] = clauses
    return implied


def _literals_of(row: int, conjunctions: Conjunctions) -> tuple[int, ...]:
    """The literals of a clause; a row of another form is taken as one literal."""
    derived_number = row - len(conjunctions.atoms)
    if derived_number < 0 or conjunctions.derived[derived_number][0] != OR:
        return (row,)
    return conjunctions.derived[derived_number][1]


def _literal_implications(
    conjunctions: Conjunctions, selectivities: Selectivities, uses: Longs
) -> Literals:
    negated = {
        rows[0]: len(conjunctions.atoms) + number
        for number, (operator, rows) in enumerate(conjunctions.derived)
        if operator == NOT and rows[0] < len(conjunctions.atoms)
    }
    implied: defaultdict[int, set[int]] = defaultdict(set)
    for specific, general in (
        *_by_words(conjunctions.atoms),
        *_by_attribute(conjunctions, selectivities, uses),
    ):
        implied[specific].add(general)
        if specific in negated and general in negated:
            implied[negated[general]].add(negated[specific])
    return implied


def _by_words(atoms: Iterable[Atom]) -> Iterator[tuple[int, int]]:
    """`contains` of several words, and `=` of a text, imply `contains` of each word; a phrase, as
    '東京都' is one, implies the phrases within it."""
    listed = list(atoms)
    row_of = {
        (atom.attribute, atom.words, atom.phrase): row
        for row, atom in enumerate(listed)
        if isinstance(atom, Contains)
    }
    for row, atom in enumerate(listed):
        match atom:
            case Contains(attribute):
                inside: set[tuple[tuple[str, ...], bool]] = {
                    ((word,), False) for word in atom.words
                }
                if atom.phrase and len(atom.words) <= PHRASE_MAX:
                    inside |= {(part, True) for part in _runs(atom.words)}
            case Comparison(attribute, Relation.EQUAL, str() as text, None):
                inside = {((word,), False) for word in words(text)}
            case _:
                continue
        for part, is_phrase in sorted(inside):
            for where in dict.fromkeys((attribute, None)):
                general = row_of.get((where, part, is_phrase), row)
                if general != row and implies(atom, listed[general]):
                    yield row, general


def _runs(phrase: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """All runs of words within a phrase."""
    for first in range(len(phrase)):
        for last in range(first + 1, len(phrase) + 1):
            yield phrase[first:last]


def _by_attribute(
    conjunctions: Conjunctions, selectivities: Selectivities, uses: Longs
) -> Iterator[tuple[int, int]]:
    """Pairs of other atoms on the same attribute, the most used first; at most CHECKS_MAX tests."""
    used = uses.copy()
    for _, rows in conjunctions.derived:
        np.add.at(used, list(rows), 1)
    groups: defaultdict[str | None, list[int]] = defaultdict(list)
    for row, atom in enumerate(conjunctions.atoms):
        if not isinstance(atom, Contains | Call | Constraint):
            groups[atom.attribute].append(row)
    checks_left = CHECKS_MAX
    for group in groups.values():
        order = sorted(group, key=lambda row: (-used[row], row))
        general = np.array(order[:GENERAL_MAX])
        outside = ~selectivities.bits[general]
        for row in order[:SPECIFIC_MAX]:
            possible = general[~(selectivities.bits[row] & outside).any(axis=1)]
            for other in possible.tolist():
                if other == row:
                    continue
                checks_left -= 1
                if checks_left < 0:
                    return
                if implies(conjunctions.atoms[row], conjunctions.atoms[other]):
                    yield row, other
