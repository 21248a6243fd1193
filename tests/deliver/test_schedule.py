"""Boundaries of periods: a period apart, spread over subscriptions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.deliver.schedule import boundary_after_s, phase_s

periods = st.integers(1, 10**9)
seconds = st.floats(0, 4e9)


@given(seconds, periods, st.integers(0, 2**60))
def test_the_next_boundary_is_later_and_within_a_period(time_s: float, period: int, name: int):
    phase = phase_s(name, period)
    assert 0 <= phase < period
    found = boundary_after_s(time_s, period, phase)
    assert time_s < found <= time_s + period


@given(seconds, st.integers(1, 10**6), st.integers(0, 1000))
def test_boundaries_are_a_period_apart(time_s: float, period: int, name: int):
    phase = phase_s(name, period)
    first = boundary_after_s(time_s, period, phase)
    second = boundary_after_s(first, period, phase)
    assert second - first == period


def test_phases_spread_the_load():
    tenths = [int(10 * phase_s(name, 1000) / 1000) for name in range(1000)]
    assert all(60 < tenths.count(each) < 140 for each in range(10))
