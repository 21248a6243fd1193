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
    asked: list[Filter], sample: list[Item] | None = None
) -> tuple[Conjunctions, Implications]:
    found = conjunctions_of(asked)
    batch = batch_of_items(sample, TYPES) if sample else None
    rows = compile_rows(found, SCHEMA)
    known = selectivities_of(found, rows, sample=batch, measured=nothing_measured)
    return found, implications_of(found, known)


def pairs(asked: list[Filter]) -> set[tuple[object, object]]:
    found, told = implied_by(asked)
    clauses = [_unordered(each) for each in found.row_filters()]
    return {
        (clauses[each], clauses[other])
        for each in range(found.row_count)
        for other in told.implied.values[
            told.implied.start[each] : told.implied.start[each + 1]
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
    asked: list[Filter], of: list[Item], sample: list[Item]
) -> None:
    found, told = implied_by(asked, sample)
    clauses = found.row_filters()
    for each in range(found.row_count):
        same = clauses[told.same_as[each]]
        implied = told.implied.values[
            told.implied.start[each] : told.implied.start[each + 1]
        ].tolist()
        assert len(implied) <= IMPLIED_MAX
        assert each not in implied
        for item in of:
            truth = matches(clauses[each], item)
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
        (Comparison("w", Relation.EQUAL, "Rock me"), rock),
        (rock, whole_rock),
        (Not(pop), Not(Contains("w", "rock pop", phrase=True))),
        (rock, Or((pop, rock))),
        (Or((more[10], rock)), Or((pop, more[5], rock))),
        (Or((more[10], rock)), Or((whole_rock, more[5]))),
    ],
)
def test_numbers_words_and_clauses(specific: Filter, general: Filter) -> None:
    found = pairs([specific, general])
    assert found == {(_unordered(specific), _unordered(general))}


def test_what_is_not_implied_is_not_found() -> None:
    assert not pairs([rock, pop, more[5], Comparison("i", Relation.LESS, 5)])
    assert not pairs([Or((rock, pop)), Or((rock, more[5]))])


def test_equivalent_clauses_are_one() -> None:
    one, other = Comparison("i", Relation.EQUAL, 5), In("i", (5,))
    found, told = implied_by([one, other])
    assert found.row_count == 2
    assert told.same_as.tolist() == [0, 0]
