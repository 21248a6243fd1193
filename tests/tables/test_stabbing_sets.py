"""Every subscription contains the anchor of its cluster, and there are few clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from headgate.tables.stabbing_sets import CLUSTERS_MIN, StabbingSets, stab

boxes = st.tuples(st.integers(0, 40), st.integers(1, 3)).flatmap(
    lambda shape: arrays.arrays(np.float64, (*shape, 2), elements=st.integers(0, 12).map(float))
)


@given(drawn=boxes)
def test_clusters_share_their_anchor(drawn: np.ndarray) -> None:
    low, high = drawn.min(axis=2), drawn.max(axis=2)
    clusters, anchors = stab(low, high)
    assert ((low <= anchors[clusters]) & (anchors[clusters] <= high)).all()
    assert set(clusters.tolist()) == set(range(len(anchors)))
    if low.shape[1] == 1:
        assert len(anchors) == most_disjoint(low[:, 0], high[:, 0])


def most_disjoint(low: np.ndarray, high: np.ndarray) -> int:
    """How many ranges that do not touch each other there are: no fewer points can stab all."""
    count, end = 0, -np.inf
    for at in np.argsort(high, kind="stable"):
        if low[at] > end:
            count, end = count + 1, high[at]
    return count


@pytest.mark.parametrize("dimensions", [1, 2])
def test_anchors_under_churn(dimensions: int) -> None:
    chance = np.random.default_rng(dimensions)
    sets, known = StabbingSets(dimensions), {}
    for round_ in range(300):
        low = chance.integers(0, 1_000, (1, dimensions)).astype(float)
        high = low + chance.integers(0, 30, (1, dimensions))
        sets.add(np.array([round_]), low, high)
        known[round_] = low[0], high[0]
        if chance.random() < 0.4:
            gone = int(chance.choice(list(known)))
            sets.remove(np.array([gone]))
            del known[gone]
        if sets.is_crowded:
            numbers = np.array(list(known))
            sets.partition(numbers, *map(np.array, zip(*known.values(), strict=True)))
            assert len(sets.anchors) <= CLUSTERS_MIN or not sets.is_crowded
        for own_low, own_high in known.values():
            assert ((own_low <= sets.anchors) & (sets.anchors <= own_high)).all(axis=1).any()
    assert (np.diff(sets.anchors[:, 0]) >= 0).all()
