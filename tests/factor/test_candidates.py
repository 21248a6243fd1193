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
    for number, filter_ in enumerate(filters):
        for size in range(1, len(filter_) + 1):
            for subset in combinations(filter_, size):
                expected.setdefault(subset, set()).add(number)
    result = find_candidates(given_)
    members_of = {
        result.predicate(candidate): result.members.values[start:end].tolist()
        for candidate, (start, end) in enumerate(
            zip(result.members.start[:-1], result.members.start[1:], strict=True)
        )
    }
    assert {predicate: set(members) for predicate, members in members_of.items()} == {
        predicate: members for predicate, members in expected.items() if len(members) > 1
    }
    assert all(members == sorted(members) for members in members_of.values())
    assert [filters[f] if f >= 0 else None for f in result.as_filter] == [
        predicate if predicate in filters else None for predicate in members_of
    ]
    assert (np.diff(result.selectivity) >= 0).all()


@given(sets_of())
def test_a_conjunction_is_counted_in_the_sample(sets: list[list[int]]) -> None:
    given_ = word_input(sets)
    selectivities, result = given_.selectivities, find_candidates(given_)
    bits = np.unpackbits(selectivities.bits.view(np.uint8), axis=1, bitorder="little")
    for candidate in range(result.count):
        count = bits[list(result.predicate(candidate))].all(axis=0).sum()
        if count:
            assert result.selectivity[candidate] == count / selectivities.sample_size
        else:
            assert 0 < result.selectivity[candidate] <= 0.5 / selectivities.sample_size


def test_a_filter_that_implies_a_candidate_is_its_member() -> None:
    bounds = [Comparison("i", Relation.GREATER, bound) for bound in (5, 10)]
    given_ = input_of([And((bounds[0], word(1))), And((bounds[1], word(1)))])
    result = find_candidates(given_)
    clauses = {result.predicate(each): each for each in range(result.count)}
    assert set(clauses) == {(0, 1), (0,), (1,)}, "the wider bound is 0, the word 1"
    assert result.as_filter[clauses[0, 1]] == 0
    assert np.diff(result.members.start).tolist() == [2, 2, 2]


def test_too_many_subsets_reduce_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    given_ = word_input([[0, 1, 2, 3], [1, 2, 3, 4], [0, 1, 2, 4]])
    whole = find_candidates(given_)
    monkeypatch.setattr(candidates, "PAIRS_MAX", 12)
    fewer = find_candidates(given_)
    assert 0 < fewer.count < whole.count


def test_without_a_sample_selectivities_are_measured_or_guessed() -> None:
    rock, big = word(0), Comparison("i", Relation.GREATER, 5)
    conjunctions = conjunctions_of([And((rock, Or((big, Not(rock)))))])

    def measured(atom: Atom) -> float | None:
        return 0.25 if atom == rock else None

    rows = compile_rows(conjunctions, SCHEMA)
    selectivities = selectivities_of(conjunctions, rows, sample=None, measured=measured)
    guess = selectivities.single[conjunctions.atoms.index(big)]
    assert selectivities.single[conjunctions.atoms.index(rock)] == 0.25
    assert selectivities.single[-1] == pytest.approx(1 - (1 - guess) * 0.25)
    both = selectivities.of_sets(np.array([0, 2, 2]), np.array([0, 1], np.int32))
    assert both.tolist() == [pytest.approx(selectivities.single[0] * selectivities.single[1]), 1.0]


def test_conjunctions_absent_from_the_sample_are_rarer_than_one_item() -> None:
    conjunctions = conjunctions_of([And((word(0), word(1), word(2)))])
    sample = batch_of_items([item(w="word0 word1"), item(w="word0"), item(w="")], TYPES)
    rows = compile_rows(conjunctions, SCHEMA)
    selectivities = selectivities_of(conjunctions, rows, sample=sample, measured=lambda _: 0.9)
    assert selectivities.single.tolist() == [2 / 3, 1 / 3, 0.5 / 3]
    shares = selectivities.of_sets(np.array([0, 2, 5]), np.array([0, 1, 0, 1, 2], np.int32))
    assert shares[0] == 1 / 3
    assert shares[1] == pytest.approx(2 / 3 * 1 / 3 * 0.5 / 3)
    assert (
        selectivities_of(conjunctions, rows, sample=None, measured=nothing_measured).sample_size
        == 0
    )
