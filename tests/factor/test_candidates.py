"""Candidates are all predicates that subsume two filters, by the obvious enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from tests.factor.factor_examples import SCHEMA, TYPES, input_of, sets_of, word, word_input
from tests.match.agree import item

from headgate.factor import candidates
from headgate.factor.candidates import find_candidates
from headgate.factor.selectivity import nothing_measured, selectivities_of
from headgate.match.batch import batch_of_items
from headgate.match.conjunctions import conjunctions_of
from headgate.match.program import compile_rows
from headgate.model.atoms import Atom, Comparison, Relation
from headgate.model.filters import And, Not, Or


@settings(max_examples=200)
@given(sets_of())
def test_candidates_are_all_shared_subsets(sets: list[list[int]]) -> None:
    given_ = word_input(sets)
    filters = given_.predicates()
    expected: dict[tuple[int, ...], set[int]] = {}
    for number, each in enumerate(filters):
        for size in range(1, len(each) + 1):
            for subset in combinations(each, size):
                expected.setdefault(subset, set()).add(number)
    found = find_candidates(given_)
    told = {
        found.predicate(each): found.members.values[start:end].tolist()
        for each, (start, end) in enumerate(
            zip(found.members.start[:-1], found.members.start[1:], strict=True)
        )
    }
    assert {each: set(own) for each, own in told.items()} == {
        each: own for each, own in expected.items() if len(own) > 1
    }
    assert all(own == sorted(own) for own in told.values())
    assert [filters[f] if f >= 0 else None for f in found.as_filter] == [
        each if each in filters else None for each in told
    ]
    assert (np.diff(found.selectivity) >= 0).all()


@given(sets_of())
def test_a_conjunction_is_counted_in_the_sample(sets: list[list[int]]) -> None:
    given_ = word_input(sets)
    known, found = given_.selectivities, find_candidates(given_)
    bits = np.unpackbits(known.bits.view(np.uint8), axis=1, bitorder="little")
    for each in range(found.count):
        count = bits[list(found.predicate(each))].all(axis=0).sum()
        if count:
            assert found.selectivity[each] == count / known.sample_size
        else:
            assert 0 < found.selectivity[each] <= 0.5 / known.sample_size


def test_what_implies_is_a_member_too() -> None:
    more = [Comparison("i", Relation.GREATER, bound) for bound in (5, 10)]
    given_ = input_of([And((more[0], word(1))), And((more[1], word(1)))])
    found = find_candidates(given_)
    clauses = {found.predicate(each): each for each in range(found.count)}
    assert set(clauses) == {(0, 1), (0,), (1,)}, "the wider bound is 0, the word 1"
    assert found.as_filter[clauses[0, 1]] == 0
    assert np.diff(found.members.start).tolist() == [2, 2, 2]


def test_too_many_sets_are_made_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    given_ = word_input([[0, 1, 2, 3], [1, 2, 3, 4], [0, 1, 2, 4]])
    whole = find_candidates(given_)
    monkeypatch.setattr(candidates, "PAIRS_MAX", 12)
    fewer = find_candidates(given_)
    assert 0 < fewer.count < whole.count


def test_without_a_sample_the_catalog_is_asked_then_the_form() -> None:
    rock, big = word(0), Comparison("i", Relation.GREATER, 5)
    found = conjunctions_of([And((rock, Or((big, Not(rock)))))])

    def measured(atom: Atom) -> float | None:
        return 0.25 if atom == rock else None

    rows = compile_rows(found, SCHEMA)
    known = selectivities_of(found, rows, sample=None, measured=measured)
    guess = known.single[found.atoms.index(big)]
    assert known.single[found.atoms.index(rock)] == 0.25
    assert known.single[-1] == pytest.approx(1 - (1 - guess) * 0.25)
    both = known.of_sets(np.array([0, 2, 2]), np.array([0, 1], np.int32))
    assert both.tolist() == [pytest.approx(known.single[0] * known.single[1]), 1.0]


def test_what_the_sample_never_saw_is_rarer_than_one_of_its_items() -> None:
    found = conjunctions_of([And((word(0), word(1), word(2)))])
    sample = batch_of_items([item(w="word0 word1"), item(w="word0"), item(w="")], TYPES)
    rows = compile_rows(found, SCHEMA)
    known = selectivities_of(found, rows, sample=sample, measured=lambda _: 0.9)
    assert known.single.tolist() == [2 / 3, 1 / 3, 0.5 / 3]
    shares = known.of_sets(np.array([0, 2, 5]), np.array([0, 1, 0, 1, 2], np.int32))
    assert shares[0] == 1 / 3
    assert shares[1] == pytest.approx(2 / 3 * 1 / 3 * 0.5 / 3)
    assert selectivities_of(found, rows, sample=None, measured=nothing_measured).sample_size == 0
