"""Implications between clauses are true of all items, and the obvious ones are found."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.factor.factor_examples import SCHEMA, TYPES, clause_filters
from tests.match.strategies import filters, items

from headgate.factor.implications import IMPLIED_MAX, Implications, implications_of
from headgate.factor.selectivity import nothing_measured, selectivities_of
from headgate.match.batch import batch_of_items
from headgate.match.conjunctions import Conjunctions, conjunctions_of
from headgate.match.program import compile_rows
from headgate.model.atoms import Between, Comparison, Contains, In, IsPresent, Relation
from headgate.model.evaluate import matches
from headgate.model.filters import Filter, Not, Or
from headgate.model.items import Item

rock, pop, whole_rock = Contains("w", "rock"), Contains("w", "pop"), Contains(None, "rock")
more = {n: Comparison("i", Relation.GREATER, n) for n in (5, 10)}


def implied_by(
    given_filters: list[Filter], sample: list[Item] | None = None
) -> tuple[Conjunctions, Implications]:
    conjunctions = conjunctions_of(given_filters)
    batch = batch_of_items(sample, TYPES) if sample else None
    rows = compile_rows(conjunctions, SCHEMA)
    selectivities = selectivities_of(conjunctions, rows, sample=batch, measured=nothing_measured)
    return conjunctions, implications_of(conjunctions, selectivities)


def pairs(given_filters: list[Filter]) -> set[tuple[object, object]]:
    conjunctions, result = implied_by(given_filters)
    clauses = [_unordered(each) for each in conjunctions.row_filters()]
    return {
        (clauses[clause], clauses[other])
        for clause in range(conjunctions.row_count)
        for other in result.implied.values[
            result.implied.start[clause] : result.implied.start[clause + 1]
        ].tolist()
    }


def _unordered(clause: Filter) -> object:
    return frozenset(clause.parts) if isinstance(clause, Or) else clause


@settings(max_examples=200)
@given(
    st.lists(clause_filters() | filters, max_size=8),
    st.lists(items, min_size=1, max_size=10),
    st.lists(items, max_size=4),
)
def test_no_item_is_a_counterexample(
    given_filters: list[Filter], of: list[Item], sample: list[Item]
) -> None:
    conjunctions, result = implied_by(given_filters, sample)
    clauses = conjunctions.row_filters()
    for clause in range(conjunctions.row_count):
        same = clauses[result.same_as[clause]]
        implied = result.implied.values[
            result.implied.start[clause] : result.implied.start[clause + 1]
        ].tolist()
        assert len(implied) <= IMPLIED_MAX
        assert clause not in implied
        for item in of:
            truth = matches(clauses[clause], item)
            assert truth == matches(same, item)
            assert not truth or all(matches(clauses[other], item) for other in implied)


@pytest.mark.parametrize(
    ("specific", "general"),
    [
        (more[10], more[5]),
        (Comparison("i", Relation.EQUAL, 7), more[5]),
        (Between("i", 6, 9), Between("i", 6, 12)),
        (In("i", (7, 8)), more[5]),
        (more[5], IsPresent("i")),
        (Contains("w", "rock pop", phrase=True), pop),
        (Contains("w", "東京都", phrase=True), Contains("w", "東京", phrase=True)),
        (Comparison("w", Relation.EQUAL, "Rock me"), rock),
        (rock, whole_rock),
        (Not(pop), Not(Contains("w", "rock pop", phrase=True))),
        (rock, Or((pop, rock))),
        (Or((more[10], rock)), Or((pop, more[5], rock))),
        (Or((more[10], rock)), Or((whole_rock, more[5]))),
    ],
)
def test_numbers_words_and_clauses(specific: Filter, general: Filter) -> None:
    result = pairs([specific, general])
    assert result == {(_unordered(specific), _unordered(general))}


def test_no_implication_is_found_where_there_is_none() -> None:
    assert not pairs([rock, pop, more[5], Comparison("i", Relation.LESS, 5)])
    assert not pairs([Or((rock, pop)), Or((rock, more[5]))])
    assert not pairs([Contains("w", "東京都"), Contains("w", "都京")])


def test_equivalent_clauses_are_one() -> None:
    equal, in_list = Comparison("i", Relation.EQUAL, 5), In("i", (5,))
    conjunctions, result = implied_by([equal, in_list])
    assert conjunctions.row_count == 2
    assert result.same_as.tolist() == [0, 0]
