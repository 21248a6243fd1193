"""Items come in order, at the stated rate, and the newest one is known at any time."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.demo.demo import START_S

from headgate.demo.feeds import FEEDS, Feed
from headgate.demo.files import FILE_KINDS, FileKind
from headgate.demo.rhythm import TOUR_STOP_S, Rhythm

rhythms = st.builds(
    Rhythm, st.integers(0, 2**40), st.sampled_from([0.1, 1.0, 2.0, 7.3, 100.0, 10_000.0])
)
gaps_s = st.floats(0.5, 10)
numbers = st.integers(0, 10**9)


@given(rhythms, gaps_s, numbers)
def test_items_are_half_a_gap_to_one_and_a_half_gaps_apart(
    rhythm: Rhythm, gap_s: float, number: int
) -> None:
    first, second = (rhythm.published_s("x", gap_s, each) for each in (number, number + 1))
    gap, rounding = gap_s / rhythm.pace, second * 1e-14
    assert gap / 2 - rounding <= second - first <= gap * 3 / 2 + rounding


@given(rhythms, gaps_s, st.floats(0, 4e9))
def test_the_latest_is_published_and_the_next_is_not(
    rhythm: Rhythm, gap_s: float, now_s: float
) -> None:
    latest = rhythm.latest("x", gap_s, now_s)
    assert rhythm.published_s("x", gap_s, latest) <= now_s
    assert rhythm.published_s("x", gap_s, latest + 1) > now_s


@given(rhythms, gaps_s, numbers)
def test_a_time_is_never_later_than_the_moment(rhythm: Rhythm, gap_s: float, number: int) -> None:
    stated = rhythm.published("x", gap_s, number).timestamp()
    assert 0 <= rhythm.published_s("x", gap_s, number) - stated < 1


@pytest.mark.parametrize("source", [*FEEDS, *FILE_KINDS], ids=lambda source: source.name)
def test_every_source_publishes_every_one_to_six_seconds(source: Feed | FileKind) -> None:
    latest = Rhythm().latest(source.name, source.gap_s, START_S)
    times = [
        Rhythm().published_s(source.name, source.gap_s, n) for n in range(latest, latest + 500)
    ]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert min(gaps) >= 1.0
    assert max(gaps) <= 6.0
    # So no two of them have the same time in whole seconds, and If-Modified-Since is exact.
    assert len({int(each) for each in times}) == 500


def test_a_higher_pace_publishes_more() -> None:
    slow, fast = Rhythm(pace=1.0), Rhythm(pace=20.0)
    counts = [
        each.latest("x", 3.0, START_S + 60) - each.latest("x", 3.0, START_S)
        for each in (slow, fast)
    ]
    assert counts == [pytest.approx(20, abs=1), pytest.approx(400, abs=1)]


def test_all_feeds_have_the_same_tour_stops() -> None:
    """Whatever their gaps, they speak of the same city, but for the seconds around a change."""
    middle_s = (START_S // TOUR_STOP_S + 0.5) * TOUR_STOP_S
    rhythm = Rhythm(seed=3)
    all_stops = {
        rhythm.tour_stops(each.gap_s, rhythm.latest(each.name, each.gap_s, middle_s))
        for each in FEEDS
    }
    assert len(all_stops) == 1
    (stops,) = all_stops
    assert stops.tonight != stops.tomorrow


@pytest.mark.parametrize("pace", [0.0, -1.0, math.inf, math.nan])
def test_a_pace_is_above_zero(pace: float) -> None:
    with pytest.raises(ValueError, match="a pace is a number above 0"):
        Rhythm(pace=pace)
