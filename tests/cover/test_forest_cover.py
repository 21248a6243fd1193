"""Covering on the forest gives the roots that comparing every pair gives, whatever the batches."""

from __future__ import annotations

import itertools

import pytest
from bench.baselines.attribute_orders import ORDERS
from bench.baselines.two_pass_cover import TwoPassCover
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cover.cover_strategies import (
    any_kind,
    cubes,
    is_easy,
    mixed,
    number_atoms,
    numbers,
    texts,
)
from tests.cover.naive_cover import NaiveCover
from tests.model.strategies import all_atoms, counterexample, items_with, literals

from headgate.cover import forest_cover, forest_index
from headgate.cover.forest_cover import Cover, ForestCover
from headgate.model.atoms import (
    Between,
    Call,
    Comparison,
    Contains,
    In,
    IsPresent,
    LinkAtom,
    LinkRelation,
    Relation,
    StartsWith,
    TimestampPart,
)
from headgate.model.evaluate import matches
from headgate.model.filters import FALSE, TRUE, And, Filter, Not, Or
from headgate.model.implies import implies_filter

WAYS = [ForestCover, TwoPassCover, NaiveCover]


def roots_after(way: Cover, filters: list[Filter], sizes: list[int]) -> list[int]:
    """The roots after inserting the filters in batches of these sizes, over and over."""
    roots: dict[int, None] = {}
    position, next_size = 0, itertools.cycle(sizes)
    while position < len(filters):
        size = next(next_size)
        batch = range(position, min(position + size, len(filters)))
        covered = way.insert(batch, [filters[each] for each in batch])
        roots |= dict.fromkeys(batch)
        assert all(each in roots for each in covered)
        for each in covered:
            del roots[each]
        assert all(by in roots or by in covered for by in covered.values())
        position += size
    return sorted(roots)


def small_levels(patch: pytest.MonkeyPatch, few: int = 0) -> None:
    """Lower the limits so that a few filters make several levels; `few` replaces FEW."""
    patch.setattr(forest_cover, "RECENT_MAX", 1)
    patch.setattr(forest_cover, "LEVEL_RATIO", 2)
    patch.setattr(forest_cover, "FEW", few)


def check_roots(filters: list[Filter], sizes: list[int]) -> None:
    expected = roots_after(NaiveCover(), filters, [1])
    assert roots_after(TwoPassCover(), filters, sizes) == expected
    for few in (0, 100):
        with pytest.MonkeyPatch.context() as patch:
            small_levels(patch, few)
            assert roots_after(ForestCover(), filters, sizes) == expected, few


sizes = st.lists(st.sampled_from([1, 2, 7, 70]), min_size=1, max_size=3)


@given(st.lists(cubes, max_size=24), sizes)
@settings(max_examples=150, deadline=None)
def test_the_roots_of_conjunctions(filters: list[Filter], sizes: list[int]) -> None:
    check_roots(filters, sizes)


@given(st.lists(numbers, max_size=12), sizes)
@settings(max_examples=150, deadline=None)
def test_the_roots_of_any_comparisons(filters: list[Filter], sizes: list[int]) -> None:
    check_roots(filters, sizes)


@given(st.lists(texts, max_size=10), sizes)
@settings(max_examples=100, deadline=None)
def test_the_roots_of_texts(filters: list[Filter], sizes: list[int]) -> None:
    check_roots(filters, sizes)


@given(st.lists(mixed, max_size=10), sizes)
@settings(max_examples=150, deadline=None)
def test_the_roots_of_any_filters(filters: list[Filter], sizes: list[int]) -> None:
    check_roots(filters, sizes)


def is_covered(specific: Filter, general: Filter, way: type[Cover]) -> bool:
    """Whether covering finds the pair, in either order of insertion."""
    first, second = way(), way()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest_cover, "RECENT_MAX", 0)
        first.insert([0], [general])
        after = first.insert([1], [specific]).get(1) == 0
        second.insert([0], [specific])
        before = second.insert([1], [general]).get(0) == 1
    equal = implies_filter(general, specific)
    assert equal or after == before
    return after


@given(any_kind, any_kind)
@settings(max_examples=300, deadline=None)
def test_a_covered_filter_implies_its_coverer(specific: Filter, general: Filter) -> None:
    result, holds = is_covered(specific, general, ForestCover), implies_filter(specific, general)
    assert result == holds or (holds and not is_easy(general))
    if result:
        assert counterexample(specific, general) is None


DENSE = items_with(
    {name: value for name, value in zip("xyz", values, strict=True) if value is not None}
    for values in itertools.product([None, "t", *(n / 2 for n in range(-1, 15))], repeat=3)
)


@given(cubes, cubes)
@settings(max_examples=60, deadline=None)
def test_covering_is_the_subset_relation(specific: Filter, general: Filter) -> None:
    """The items have a value in every interval that the constants cut out of the line."""
    holds = all(matches(general, item) for item in DENSE if matches(specific, item))
    assert is_covered(specific, general, ForestCover) == holds
    assert is_covered(specific, general, TwoPassCover) == holds


def at_least(name: str, value: int) -> Filter:
    return Comparison(name, Relation.GREATER_EQUAL, value)


def at_most(name: str, value: int) -> Filter:
    return Comparison(name, Relation.LESS_EQUAL, value)


MAY_OR_LATER = Comparison("t", Relation.GREATER_EQUAL, 5, TimestampPart.MONTH)
IN_2026 = Comparison("t", Relation.EQUAL, 2026, TimestampPart.YEAR)
PAIRS: list[tuple[Filter, Filter]] = [
    (And((Comparison("x", Relation.GREATER, 3), at_most("x", 8))), Between("x", 3, 9)),
    (at_least("x", 1), IsPresent("x")),
    (FALSE, at_least("x", 1)),
    (at_least("x", 1), TRUE),
    (And((at_least("x", 4), at_most("x", 3))), Contains("title", "rock")),
    (StartsWith("title", "rock con"), StartsWith("title", "Rock")),
    (StartsWith("title", "rock con"), Contains("title", "rock")),
    (Or((StartsWith("title", "rock con"),)), StartsWith("title", "rock con")),
    (Or((StartsWith("title", "rock a"), StartsWith("title", "rock b"))), Contains("title", "rock")),
    (Contains("title", "rock concert"), Contains(None, "rock")),
    (Contains("title", "rock 東京都"), Contains(None, "東京")),
    (StartsWith("title", "東京都 "), Contains("title", "東")),
    (Contains("title", "rock concert", phrase=True), Contains("title", "concert rock")),
    (Comparison("title", Relation.EQUAL, "Rock now"), Contains(None, "rock")),
    (Not(Contains(None, "rock")), Not(Contains("title", "rock"))),
    (Comparison("t", Relation.GREATER, 4, TimestampPart.MONTH), MAY_OR_LATER),
    (MAY_OR_LATER, IsPresent("t")),
    (And((IN_2026, Not(Comparison("t", Relation.LESS, 5, TimestampPart.MONTH)))), MAY_OR_LATER),
    (And((Or((at_least("x", 5), at_least("y", 5))), at_most("y", 0))), at_least("x", 4)),
    (Or((at_least("x", 5), at_least("y", 5))), Or((at_least("y", 4), at_least("x", 4)))),
    (
        LinkAtom("l", LinkRelation.REFERENCES, ("https://a.m.mu/x",)),
        LinkAtom(None, LinkRelation.EXTENDS, ("m.mu",)),
    ),
    (Contains("title", "rock"), Not(Comparison("title", Relation.EQUAL, "pop"))),
    (Contains("title", "rock"), Not(In("title", ("", "pop", "folk")))),
    (Not(Contains("title", "rock")), Not(StartsWith("title", "rock concert"))),
    (And((Call("odd"), at_least("x", 1))), Call("odd")),
    (And((Not(Call("odd")), at_least("x", 1))), Not(Call("odd"))),
    (Comparison("x", Relation.EQUAL, 2**53 + 1), Comparison("x", Relation.GREATER, 2.0**53)),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("specific", "general"), PAIRS)
def test_pairs_that_must_be_covered(specific: Filter, general: Filter, way: type[Cover]) -> None:
    assert is_covered(specific, general, way)


@pytest.mark.parametrize("way", WAYS)
def test_pairs_that_must_not_be_covered(way: type[Cover]) -> None:
    assert not is_covered(at_least("x", 3), at_least("x", 4), way)
    assert not is_covered(at_least("x", 3), at_least("y", 3), way)
    assert not is_covered(TRUE, at_least("x", 4), way)
    assert not is_covered(Contains("title", "rock"), Contains("text", "rock"), way)
    assert not is_covered(Contains("title", "東京都"), Contains("title", "都京"), way)
    assert not is_covered(StartsWith("title", "東京"), Contains("title", "京"), way)
    assert not is_covered(StartsWith("title", "rock"), at_least("title", "rock"), way)  # type: ignore[arg-type]


def test_conjunctions_longer_than_a_path_are_covered() -> None:
    long = And(tuple(at_least(f"a{position}", 1) for position in range(200)))
    way = ForestCover()
    assert way.insert([0], [long]) == {}
    assert way.insert([1], [And((long, at_least("x", 1)))]) == {1: 0}
    assert way.insert([2], [at_least("a77", 0)]) == {0: 2}


@pytest.mark.parametrize("order", ORDERS)
@given(st.lists(cubes, max_size=16))
@settings(max_examples=40, deadline=None)
def test_the_order_of_attributes_changes_nothing(order: str, filters: list[Filter]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        small_levels(patch)
        ordered = roots_after(ForestCover(order=ORDERS[order]), filters, [5])
    assert ordered == roots_after(NaiveCover(), filters, [1])


@given(st.lists((literals(all_atoms) | number_atoms).filter(is_easy), min_size=1, max_size=20))
@settings(max_examples=40, deadline=None)
def test_unused_restrictions_are_dropped(atoms: list[Filter]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        small_levels(patch)
        patch.setattr(forest_cover, "RESTRICTIONS_MIN", 4)
        renewed = roots_after(ForestCover(), atoms, [3])
    assert renewed == roots_after(NaiveCover(), atoms, [1])


@given(st.lists(any_kind, max_size=12), sizes)
@settings(max_examples=60, deadline=None)
def test_with_few_checks_no_filter_is_covered_wrongly(
    filters: list[Filter], sizes: list[int]
) -> None:
    """Covered filters imply their coverer; filters not found to be covered are roots."""
    with pytest.MonkeyPatch.context() as patch:
        small_levels(patch)
        patch.setattr(forest_cover, "INEXACT_CHECKS_MAX", 1)
        patch.setattr(forest_index, "INEXACT_CHECKS_MAX", 1)
        way = ForestCover()
        covered = way.insert(range(len(filters)), filters)
        roots_after(ForestCover(), filters, sizes)
    for number, coverer in covered.items():
        assert counterexample(filters[number], filters[coverer]) is None
