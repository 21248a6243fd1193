"""Implication compared with the oracle: sound on all atoms, complete where the docstring says."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.scripts import any_script
from tests.model.strategies import (
    CONSTANTS,
    NEW_YEAR,
    all_atoms,
    counterexample,
    filters,
    items_with,
    link_atoms,
    literals,
    part_atoms,
    text_atoms,
    value_atoms,
)

from headgate.model.atoms import (
    Atom,
    Comparison,
    Contains,
    In,
    IsPresent,
    Relation,
    Similar,
    StartsWith,
    TimestampPart,
    WindowAttribute,
)
from headgate.model.evaluate import matches
from headgate.model.filters import FALSE, TRUE, And, Filter, Not, Or
from headgate.model.implies import disjoint, implies, implies_filter
from headgate.model.text import fold, words
from headgate.model.values import Link, Xml


def test_comparisons_with_the_window_are_compared_by_form() -> None:
    same = Comparison("x", Relation.EQUAL, WindowAttribute("x"))
    part = Comparison("x", Relation.EQUAL, WindowAttribute("y"), TimestampPart.YEAR)
    alike = Similar("x", WindowAttribute("x"), 0.7)
    assert implies(same, same)
    assert implies(same, IsPresent("x"))
    assert not implies(same, Comparison("x", Relation.LESS_EQUAL, WindowAttribute("x")))
    assert disjoint(part, Comparison("x", Relation.EQUAL, 2026))
    assert implies(alike, Similar("x", WindowAttribute("x"), 0.6))
    assert not implies(alike, Similar("x", WindowAttribute("y"), 0.6))


@pytest.mark.parametrize("atom", [Comparison("x", Relation.EQUAL, v) for v in (1, True, "1", b"1")])
def test_kinds_are_disjoint(atom: Atom) -> None:
    others = [Link("1"), Xml("1"), 1, False, "2", b"2", NEW_YEAR]
    for other in others:
        if other != 1 or atom.value is True:  # type: ignore[union-attr]
            assert disjoint(atom, Comparison("x", Relation.EQUAL, other))


@pytest.mark.parametrize("part", [part for part in TimestampPart if part is not TimestampPart.DATE])
def test_the_bounds_of_a_timestamp_part_are_possible(part: TimestampPart) -> None:
    low, high = {
        TimestampPart.YEAR: (1, 9999),
        TimestampPart.MONTH: (1, 12),
        TimestampPart.DAY: (1, 31),
        TimestampPart.HOUR: (0, 23),
        TimestampPart.WEEKDAY: (1, 7),
    }.get(part, (0, 59))
    for value, possible in ((low - 1, False), (low, True), (high, True), (high + 1, False)):
        atom = Comparison("x", Relation.EQUAL, value, part)
        assert implies_filter(atom, FALSE) is not possible


def test_words_are_certain_only_where_nothing_but_a_text_is_left() -> None:
    constants = (0, b"", Xml(""), Link(""), NEW_YEAR)
    below = [Not(Comparison("x", Relation.LESS, each)) for each in constants]
    above = [Not(Comparison("x", Relation.GREATER_EQUAL, each)) for each in constants]
    no_other = (*below, *above, Contains("y", "pop"), Not(In("x", (True, False))))
    rock, found = Not(Comparison("x", Relation.NOT_EQUAL, "rock")), Contains(None, "rock pop")
    assert implies_filter(And((rock, IsPresent("x"), *no_other)), found)
    assert not implies_filter(And((rock, *no_other)), found)
    assert not implies_filter(And((rock, IsPresent("x"), *no_other[1:])), found)
    assert not implies_filter(And((rock, IsPresent("x"), *no_other[:-1])), found)


@given(literals(all_atoms), literals(all_atoms))
@settings(max_examples=300, deadline=None)
def test_a_literal_that_is_implied_holds(specific: Atom | Not, general: Atom | Not) -> None:
    if implies(specific, general):
        assert counterexample(specific, general) is None
    if disjoint(specific, general):
        assert counterexample(specific, Not(general)) is None
    assert disjoint(specific, general) == disjoint(general, specific)
    assert implies(specific, general) == implies(Not(general), Not(specific))


near = value_atoms("text") | text_atoms | link_atoms | value_atoms("link")


@given(literals(near), literals(near))
@settings(max_examples=300, deadline=None)
def test_a_text_or_link_that_is_implied_holds(specific: Atom | Not, general: Atom | Not) -> None:
    if implies(specific, general):
        assert counterexample(specific, general) is None


@given(filters(all_atoms), filters(all_atoms))
@settings(max_examples=120, deadline=None)
def test_a_filter_that_is_implied_holds(specific: Filter, general: Filter) -> None:
    if implies_filter(specific, general):
        assert counterexample(specific, general) is None
    assert implies_filter(And((specific, general)), general)
    assert implies_filter(specific, Or((general, specific)))
    assert implies_filter(FALSE, general)
    assert implies_filter(specific, TRUE)


def two_filters(atoms: st.SearchStrategy[Atom]) -> st.SearchStrategy[tuple[Filter, Filter]]:
    return st.tuples(filters(atoms), filters(atoms))


@given(st.one_of([two_filters(value_atoms(kind)) for kind in CONSTANTS]))
@settings(max_examples=200, deadline=None)
def test_complete_on_the_values_of_one_kind(both: tuple[Filter, Filter]) -> None:
    """The pool has a value in every interval that the constants cut out of the order."""
    assert implies_filter(*both) == (counterexample(*both) is None)


MONTHS_AND_HOURS = items_with(
    [{}, {"x": 1}]
    + [
        {"x": NEW_YEAR.replace(month=month, hour=hour)}
        for month in range(1, 13)
        for hour in range(24)
    ]
)


@given(two_filters(part_atoms(TimestampPart.MONTH, TimestampPart.HOUR)))
@settings(max_examples=40, deadline=None)
def test_complete_on_the_parts_of_a_timestamp(both: tuple[Filter, Filter]) -> None:
    specific, general = both
    holds = all(matches(general, item) for item in MONTHS_AND_HOURS if matches(specific, item))
    assert implies_filter(specific, general) == holds


@given(st.lists(literals(near), min_size=3, max_size=3))
@settings(max_examples=100, deadline=None)
def test_transitive(chain: list[Atom | Not]) -> None:
    if all(implies(left, right) for left, right in pairwise(chain)):
        assert implies(chain[0], chain[-1])


@given(st.text(max_size=8), st.text(max_size=4))
@settings(max_examples=40, deadline=None)
def test_any_unicode(text: str, other: str) -> None:
    spellings = [
        text,
        text.upper(),
        text.swapcase(),
        text + other,
        other + text,
        text + " " + other,
    ]
    atoms: list[Atom] = [Comparison("x", Relation.EQUAL, text), In("x", (text, other))]
    atoms += [Comparison("x", relation, text + other) for relation in Relation]
    for each in {text, other, text + other}:
        if words(each):
            atoms += [Contains("x", each), Contains("x", each, phrase=True), Similar("x", each)]
            assert implies(Comparison("x", Relation.EQUAL, each), Contains("x", each, phrase=True))
        if each.split():
            atoms += [StartsWith("x", each)]
    items = items_with({"x": kind(spelling)} for spelling in spellings for kind in (str, Xml))
    truths = [[matches(atom, item) for item in items] for atom in atoms]
    for specific, its in zip(atoms, truths, strict=True):
        for general, theirs in zip(atoms, truths, strict=True):
            if not all(there or not here for here, there in zip(its, theirs, strict=True)):
                assert not implies(specific, general)


@given(any_script, any_script)
@settings(max_examples=60, deadline=None)
def test_any_script(text: str, other: str) -> None:
    """What one atom implies of another holds for the texts that they are made of."""
    constants = [each for each in (text, other, text + other, f"{other} {text}") if words(each)]
    atoms: list[Atom] = [
        Contains("x", each, phrase) for each in constants for phrase in (False, True)
    ]
    atoms += [StartsWith("x", each) for each in constants if fold(each)]
    items = items_with({"x": each} for each in (*constants, text + "\u0301", other + text))
    truths = [[matches(atom, item) for item in items] for atom in atoms]
    for specific, its in zip(atoms, truths, strict=True):
        for general, theirs in zip(atoms, truths, strict=True):
            if not all(there or not here for here, there in zip(its, theirs, strict=True)):
                assert not implies(specific, general)


@pytest.mark.parametrize(
    ("specific", "general", "expected"),
    [
        ("東京都", "東京", True),
        ("東京都", "都京", False),
        ("京都 東京", "東 京", True),
        ("東 京", "東京", False),
        ("rock 東京", "rock", True),
        ("हिन्दी", "ह", False),
    ],
)
def test_phrases_of_scripts_without_spaces(specific: str, general: str, expected: bool) -> None:
    assert implies(Contains("x", specific), Contains("x", general)) == expected
    held = Comparison("x", Relation.EQUAL, specific)
    assert implies(held, Contains("x", general)) == (expected or specific == "東 京")


def test_a_large_filter_implies_itself_and_a_hard_case_ends() -> None:
    def at(name: str, value: int) -> Filter:
        return Comparison(name, Relation.EQUAL, value)

    rows = tuple(Or((at(f"a{n}", 1), at(f"b{n}", 2))) for n in range(40))
    assert implies_filter(And(rows), And(rows))
    columns = tuple(And((at(f"a{n}", 1), at(f"b{n}", 2))) for n in range(40))
    assert implies_filter(Or(columns), Or(columns))
    for large in (And(rows), Or(columns)):
        assert implies_filter(And((at("x", 1), large)), And((IsPresent("x"), large)))
        assert implies_filter(And((at("x", 1), large)), Or((at("x", 2), large)))
    # A contradiction that only much branching would find: more pigeons than holes.
    holes = range(8)
    each_sits = [Or(tuple(at(f"{p}", hole) for hole in holes)) for p in range(9)]
    alone = [
        Not(And((at(f"{p}", hole), at(f"{q}", hole))))
        for hole in holes
        for p in range(9)
        for q in range(p)
    ]
    assert not implies_filter(And((*each_sits, *alone)), at("free", 1))
