"""Labels keep the order of their cuts, however the cuts come."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headgate.cover.cover_labels import OrderLabels


@given(st.lists(st.tuples(st.integers(-50, 50), st.booleans())))
def test_labels_are_ordered_as_their_cuts(cuts: list[tuple[int, bool]]) -> None:
    labels = OrderLabels()
    for cut in cuts:
        labels.label(cut)
    distinct = sorted(set(cuts))
    found = [labels.label(cut) for cut in distinct]
    assert found == sorted(set(found))
    assert len(found) == len(distinct)


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
    found = [labels.label(cut) for cut in sorted(cuts)]
    assert all(before < after for before, after in pairwise(found))


def test_cuts_that_come_to_one_place_move_few_labels() -> None:
    """Each comes just below the last of them all, as thresholds do that rise."""
    labels, moved, count = OrderLabels(), 0, 20_000
    for value in range(count):
        labels.label((-value,))
    labels.label((count + 1,))
    for value in range(count):
        labels.label((value + 0.5,))
        moved += len(labels.moved)
        labels.moved.clear()
    assert 0 < moved < 40 * count
