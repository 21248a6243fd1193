"""Labels keep the order of their cuts, in whatever order the cuts are inserted."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.cover.cubes import NEVER, Cube, CubeEncoder, OrderLabels, cube_list
from headgate.cover.describe_filter import describe
from headgate.cover.scan_index import lies_within
from headgate.model.atoms import Between, Comparison, Contains, In, IsPresent, Relation, StartsWith
from headgate.model.filters import FALSE, TRUE, And, Filter, Not, Or


@given(st.lists(st.tuples(st.integers(-50, 50), st.booleans())))
def test_labels_are_ordered_as_their_cuts(cuts: list[tuple[int, bool]]) -> None:
    labels = OrderLabels()
    for cut in cuts:
        labels.label(cut)
    distinct = sorted(set(cuts))
    result = [labels.label(cut) for cut in distinct]
    assert result == sorted(set(result))
    assert len(result) == len(distinct)


def test_labels_are_spread_where_there_is_no_room() -> None:
    labels, low, high = OrderLabels(), Fraction(0), Fraction(1)
    cuts = [(low,), (high,)]
    for turn in range(300):
        middle = (low + high) / 2
        low, high = (low, middle) if turn % 2 else (middle, high)
        cuts.append((middle,))
    written = {cut: labels.label(cut) for cut in cuts}
    assert labels.moved
    written |= labels.moved
    assert all(labels.label(cut) == label for cut, label in written.items())
    result = [labels.label(cut) for cut in sorted(cuts)]
    assert all(before < after for before, after in pairwise(result))


def test_insertions_at_one_place_move_few_labels() -> None:
    """Each new cut is just below the highest one, as rising thresholds are."""
    labels, moved, count = OrderLabels(), 0, 20_000
    for value in range(count):
        labels.label((-value,))
    labels.label((count + 1,))
    for value in range(count):
        labels.label((value + 0.5,))
        moved += len(labels.moved)
        labels.moved.clear()
    assert 0 < moved < 40 * count


# A cube is equivalent to its restrictions, and equal sets of values have one number.


def at_least(value: float) -> Filter:
    return Comparison("x", Relation.GREATER_EQUAL, value)


def at_most(value: float) -> Filter:
    return Comparison("x", Relation.LESS_EQUAL, value)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (And((at_least(3), at_most(9))), Between("x", 3, 9)),
        (Comparison("x", Relation.EQUAL, 3), In("x", (3, 3.0))),
        (Or((at_most(3), Comparison("x", Relation.GREATER, 3))), at_most(float("inf"))),
        (And((at_least(3), at_least(5))), at_least(5)),
        (And((at_least(3), IsPresent("x"))), at_least(3)),
        (Not(And((at_least(3), at_most(2)))), TRUE),
        (And((Contains("t", "rock"), Contains("t", "now"))), Contains("t", "now rock")),
    ],
)
def test_equivalent_filters_have_the_same_cube(left: Filter, right: Filter) -> None:
    cubes = CubeEncoder()
    assert cubes.cube(left) == cubes.cube(right)
    assert cubes.cube(left).is_exact


def test_unsatisfiable_filters_have_no_cube() -> None:
    cubes = CubeEncoder()
    for never in (FALSE, And((at_least(3), at_most(2))), And((Contains("t", "a"), at_never("t")))):
        assert cubes.cube(never) == NEVER
    assert cubes.cube(TRUE) == Cube(())


def at_never(name: str) -> Filter:
    return Comparison(name, Relation.EQUAL, 3)


def test_a_prefix_is_exact_and_a_phrase_is_not() -> None:
    cubes = CubeEncoder()
    assert cubes.cube(StartsWith("t", "rock")).is_exact
    assert not cubes.cube(Contains("t", "rock now", phrase=True)).is_exact
    assert not cubes.cube(Not(Contains("t", "rock"))).is_exact


def test_a_large_disjunction_over_many_places_is_left_out() -> None:
    parts = [
        Or(
            (
                Comparison(f"a{position}", Relation.EQUAL, 1),
                Comparison(f"b{position}", Relation.EQUAL, 1),
            )
        )
        for position in range(40)
    ]
    known = describe(And((*parts, at_least(3))))
    assert known.places is not None
    assert ("value", "x", None) in known.places
    assert not known.is_exact


def test_restrictions_stay_ordered_when_labels_are_spread() -> None:
    cubes, low, high = CubeEncoder(), Fraction(0), Fraction(1)
    numbers = []
    for _ in range(60):
        low = (low + high) / 2
        numbers.append(cubes.cube(at_least(float(low) if low < 1 else 1)).restrictions[0])
    distinct = list(dict.fromkeys(numbers))
    for wide, narrow in pairwise(distinct):
        assert lies_within(narrow, wide, cubes.table)
        assert not lies_within(wide, narrow, cubes.table)


def test_cube_lists_are_selected_and_concatenated() -> None:
    cubes = [Cube((1, 2)), Cube(()), Cube((3,), is_exact=False)]
    whole = cube_list(cubes)
    taken = whole.take(np.array([2, 0]))
    assert taken.flat.tolist() == [3, 1, 2]
    assert taken.exact.tolist() == [False, True]
    both = taken + whole
    assert both.start.tolist() == [0, 1, 3, 5, 5, 6]
    assert both.flat.tolist() == [3, 1, 2, 1, 2, 3]
