"""Interval sets are sets: compared with membership, number by number."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model.intervals import EVERYTHING, NOTHING, IntervalSet, above, below, between

sets = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda pair: between(*sorted(pair)))
    | st.builds(below, st.integers(0, 4), included=st.booleans())
    | st.builds(above, st.integers(0, 4), included=st.booleans()),
    max_size=3,
)


def holds(values: IntervalSet, number: float) -> bool:
    return not between(number, number).is_subset(values.complement())


@given(sets, sets)
@settings(max_examples=100)
def test_intervals_are_sets(some: list[IntervalSet], more: list[IntervalSet]) -> None:
    left, right = NOTHING, EVERYTHING
    for each in some:
        left = left.union(each)
    for each in more:
        right = right.intersection(each)
    for number in (n / 2 for n in range(-1, 10)):
        inside = holds(left, number), holds(right, number)
        assert inside == (any(holds(s, number) for s in some), all(holds(s, number) for s in more))
        assert holds(left.intersection(right), number) == all(inside)
        assert holds(left.complement(), number) != inside[0]
    assert left.is_subset(left.union(right))
    assert right.complement().complement() == right
    assert left.intersection(left.complement()) == NOTHING
