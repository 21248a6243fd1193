"""Perfect mergers match exactly what their parts match, and are found where there are any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cover.small_world import SCHEMA, atoms, conjunctions, numbers, truth, truth_of_any
from tests.cpu_time import within_cpu

from headgate.cover.merge_perfect import merge_perfect
from headgate.model.atoms import (
    Atom,
    Between,
    Call,
    Comparison,
    Constraint,
    Contains,
    In,
    IsPresent,
    Relation,
    StartsWith,
    TimestampPart,
    Variable,
)
from headgate.model.filters import FALSE, TRUE, And, Filter, Not
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Link, Type

ALL = ("i", "f", "w", "t", "b")
TICKETS = Schema(
    (
        Attribute("price", Type.INT),
        Attribute("weight", Type.FLOAT),
        Attribute("to", Type.TEXT),
        Attribute("open", Type.BOOL),
        Attribute("at", Type.TIMESTAMP),
        Attribute("url", Type.LINK),
    )
)


def price(relation: str, value: float) -> Comparison:
    return Comparison("price", Relation(relation), value)


def weight(relation: str, value: float) -> Comparison:
    return Comparison("weight", Relation(relation), value)


def to(place: str) -> Comparison:
    return Comparison("to", Relation.EQUAL, place)


def only_merger(*filters: Filter) -> Filter:
    """The filter of the one merger of all of them."""
    (merger,) = merge_perfect(filters, TICKETS)
    assert merger.parts == tuple(range(len(filters)))
    assert merger.degree == merger.imt == 0
    return merger.filter


@given(st.lists(conjunctions(numbers), max_size=8))
def test_a_merger_of_numbers_is_the_union_of_its_parts(some: list[Filter]) -> None:
    _check_union(some, "i", "f")


@given(st.lists(conjunctions(atoms, 2), max_size=8))
def test_a_merger_is_the_union_of_its_parts(some: list[Filter]) -> None:
    _check_union(some, *ALL)


def _check_union(some: list[Filter], *names: str) -> None:
    mergers = merge_perfect(some, SCHEMA)
    parts = [part for merger in mergers for part in merger.parts]
    assert len(parts) == len(set(parts))
    for merger in mergers:
        assert len(merger.parts) > 1
        expected = truth_of_any([some[part] for part in merger.parts], *names)
        assert truth(merger.filter, *names) == expected


@given(st.lists(conjunctions(numbers), max_size=8))
def test_merging_mergers_again_changes_nothing(some: list[Filter]) -> None:
    mergers = merge_perfect(some, SCHEMA)
    merged = {part for merger in mergers for part in merger.parts}
    left = [each for position, each in enumerate(some) if position not in merged]
    assert merge_perfect([*left, *(merger.filter for merger in mergers)], SCHEMA) == []


@given(st.lists(conjunctions(atoms, 2), max_size=8))
def test_merging_is_deterministic(some: list[Filter]) -> None:
    assert merge_perfect(some, SCHEMA) == merge_perfect(list(some), SCHEMA)


@pytest.mark.parametrize(
    ("parts", "merger"),
    [
        ([price("<", 150), price("=", 150)], price("<=", 150)),  # [MBD, Fig. 5]
        ([price("=", 4), price("=", 5)], Between("price", 4, 5)),
        ([price("=", 4), price("=", 9)], In("price", (4, 9))),
        ([price("=", 4), In("price", (7, 9))], In("price", (4, 7, 9))),
        ([Between("price", 1, 4), Between("price", 5, 9)], Between("price", 1, 9)),
        ([Between("price", 1, 4), Between("price", 3, 9)], Between("price", 1, 9)),
        ([price("<", 3), price(">=", 3)], IsPresent("price")),
        ([price("<", 9), price(">", 3)], IsPresent("price")),
        ([price("<", 3), price(">", 3)], price("!=", 3)),
        ([price("<", 3), price(">", 2)], IsPresent("price")),
        ([weight("<", 3), weight("=", 3)], weight("<=", 3)),
        ([weight("<", 3), weight(">=", 3)], IsPresent("weight")),
        ([weight("=", 4), weight("=", 5)], In("weight", (4, 5))),
        ([to("Paris"), to("Rome")], In("to", ("Paris", "Rome"))),
        (
            [Comparison("open", Relation.EQUAL, True), Comparison("open", Relation.EQUAL, False)],
            IsPresent("open"),
        ),
        (
            [
                Comparison("at", Relation.LESS, 7, TimestampPart.MONTH),
                Comparison("at", Relation.GREATER, 6, TimestampPart.MONTH),
            ],
            IsPresent("at"),
        ),
        (
            [
                Comparison("url", Relation.EQUAL, Link("https://a.org/x")),
                Comparison("url", Relation.EQUAL, Link("https://b.org")),
            ],
            In("url", (Link("https://a.org/x"), Link("https://b.org"))),
        ),
    ],
)
def test_two_atoms_become_one(parts: list[Atom], merger: Atom) -> None:
    assert only_merger(*parts) == merger
    assert only_merger(And((parts[0], Contains("to", "x"))), And((Contains("to", "x"), parts[1])))


@pytest.mark.parametrize(
    "parts",
    [
        [Between("price", 1, 400), Between("price", 402, 900)],
        [Between("weight", 1, 4), Between("weight", 5, 9)],
        [Between("weight", 1, 4), weight("=", 9)],
        [price("=", 4), to("Paris")],
        [Contains("to", "a"), Contains("to", "b")],
        [StartsWith("to", "a"), to("c")],
        [And((price("=", 1), to("a"))), And((price("=", 2), to("b")))],
        [And((price("<", 1), price(">", 1))), price("=", 2)],  # the first is never true
        [FALSE, price("=", 1)],
        [Comparison("unknown", Relation.EQUAL, 1), Comparison("unknown", Relation.EQUAL, 2)],
        [Not(price("<", 3)), price("<", 3)],
    ],
)
def test_filters_without_perfect_merger_are_not_merged(parts: list[Filter]) -> None:
    assert merge_perfect(parts, TICKETS) == []


def test_several_atoms_on_one_attribute_are_one_condition() -> None:
    first = And((weight(">", 3), weight("<", 9), to("Paris")))
    second = And((to("Paris"), Between("weight", 9, 12)))
    assert only_merger(first, second) == And((to("Paris"), weight(">", 3), weight("<=", 12)))


def test_mergers_merge_again() -> None:
    square = [And((price("=", x), weight("=", y))) for x in (1, 9) for y in (2, 5, 8)]
    assert only_merger(*square) == And((In("weight", (2, 5, 8)), In("price", (1, 9))))


def test_equal_filters_are_merged() -> None:
    assert only_merger(And((price("=", 1), to("a"))), And((to("A"), price("=", 1)))) == And(
        (price("=", 1), to("a"))
    )
    assert only_merger(TRUE, TRUE) == TRUE


def test_without_lists_only_neighbours_merge() -> None:
    some = [price("=", value) for value in (1, 2, 5, 9)]
    (merger,) = merge_perfect(some, TICKETS, in_values_max=1)
    assert (merger.filter, merger.parts) == (Between("price", 1, 2), (0, 1))


def test_long_in_lists_are_split() -> None:
    some = [price("=", 2 * value) for value in range(100)]
    mergers = merge_perfect(some, TICKETS, in_values_max=10)
    assert len(mergers) == 10
    assert all(isinstance(each.filter, In) and len(each.filter.values) == 10 for each in mergers)


def test_variables_stay_bound_together() -> None:
    people = Variable("people")
    mob = (Call("mob", (people,)), Constraint(people, Relation.GREATER, 50))
    merged = only_merger(And((*mob, price("<", 3))), And((*mob, price("=", 3))))
    assert isinstance(merged, And)
    assert set(merged.parts) == {*mob, price("<=", 3)}


def test_many_filters_in_one_group_are_merged_in_time() -> None:
    some = [And((to("x"), price("=", 3 * value))) for value in range(20_000)]
    mergers = within_cpu(10, lambda: merge_perfect(some, TICKETS))
    assert sum(len(merger.parts) for merger in mergers) == len(some)
