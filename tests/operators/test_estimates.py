"""What is believed of a call before, while and after it is measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.operators.declaration import Declaration
from headgate.operators.estimates import FORGET_ITEMS, UNIT_S, Estimates

DECLARED = [
    Declaration("near", "m:near", cost=40.0, selectivity=0.1),
    Declaration("mob", "m:mob", cost=200.0),
    Declaration("plain", "m:plain"),
]
CALL, OTHER = b'["near", ["Bronx"]]', b'["near", ["Queens"]]'


def test_what_is_declared_is_believed_first() -> None:
    estimates = Estimates(DECLARED)
    near, plain = estimates.of_call("near", CALL), estimates.of_operator("plain")
    assert (near.cost_s, near.selectivity, near.items) == (pytest.approx(40 * UNIT_S), 0.1, 0)
    assert (plain.cost_s, plain.selectivity) == (pytest.approx(UNIT_S), 0.5)
    assert near.text() == "40.0 µs, true of 10 %, not measured"


def test_what_is_measured_takes_over() -> None:
    estimates = Estimates(DECLARED)
    estimates.observe("near", CALL, items=10_000, true=9_000, seconds=20.0)
    found = estimates.of_call("near", CALL)
    assert found.selectivity == pytest.approx(0.9, abs=0.01)
    assert found.cost_s == pytest.approx(2e-3, rel=0.02)
    assert found.items == 10_000


def test_a_call_that_was_never_asked_is_like_its_operator() -> None:
    estimates = Estimates(DECLARED)
    estimates.observe("near", CALL, items=10_000, true=9_000, seconds=20.0)
    assert estimates.of_call("near", OTHER).selectivity > 0.85
    assert estimates.of_call("near", OTHER).items == 0


def test_declared_costs_are_worth_what_measured_ones_are() -> None:
    estimates = Estimates(DECLARED)
    estimates.observe("near", CALL, items=10_000, true=10, seconds=4.0)  # 400 µs for 40 units
    assert estimates.of_operator("mob").cost_s == pytest.approx(2e-3, rel=0.01)


def test_the_old_is_forgotten() -> None:
    estimates = Estimates(DECLARED)
    for _ in range(20):
        estimates.observe("near", CALL, items=50_000, true=0, seconds=1.0)
    for _ in range(20):
        estimates.observe("near", CALL, items=50_000, true=50_000, seconds=1.0)
    found = estimates.of_call("near", CALL)
    assert found.selectivity > 0.99
    assert found.items <= FORGET_ITEMS


@given(
    st.lists(
        st.tuples(st.sampled_from([CALL, OTHER]), st.integers(0, 1000), st.floats(0, 1)), max_size=8
    )
)
def test_what_others_observe_counts_the_same(observed: list[tuple[bytes, int, float]]) -> None:
    here, there = Estimates(DECLARED), Estimates(DECLARED)
    for call, items, seconds in observed:
        here.observe("near", call, items=items, true=items // 2, seconds=seconds)
        for operator, told, *counts in here.take_unsent():
            there.add(operator, told.encode(), *counts)
    assert here.take_unsent() == []
    calls = [CALL, OTHER, b"[]"]
    np.testing.assert_allclose(here.counts_of(calls), there.counts_of(calls))
    for name in ("near", "mob"):
        mine, theirs = here.of_operator(name), there.of_operator(name)
        assert mine.cost_s == pytest.approx(theirs.cost_s)
        assert 0 < mine.cost_s < np.inf
        assert mine.selectivity == pytest.approx(theirs.selectivity)
