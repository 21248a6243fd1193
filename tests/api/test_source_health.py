"""Broken, quiet or fine: a source is judged by its own rhythm."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from headgate.acquire.inbox_tables import FeedRow
from headgate.api.source_health import RunSigns, SourceState, judge
from headgate.match.batch import microseconds
from headgate.pipeline.heartbeat import Heartbeat, RunState
from headgate.store.source_activity import STRETCHES, SourceActivity

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
RUNNING = RunSigns(RunState.RUNNING, NOW, {})
HALF_DAY_S = 43_200


def active(counts: list[int], *, silent: timedelta, width_s: int = HALF_DAY_S) -> SourceActivity:
    """A source `S` with these counts at the end of the stretches."""
    padded = [0] * (STRETCHES - len(counts)) + counts
    start = NOW - timedelta(seconds=width_s * STRETCHES)
    last_us = microseconds(NOW - silent) if any(counts) else -1
    return SourceActivity(
        microseconds(start),
        width_s,
        {"S": 0},
        np.array([sum(counts)]),
        np.array([last_us]),
        np.array([padded]),
    )


def fetched(*, per_day: float = 12.0, broken: bool = False) -> FeedRow:
    return FeedRow(
        name="S",
        url="https://a.example/",
        moved_to=None,
        items=10,
        rate_per_day=per_day,
        window=10,
        fetched_at=NOW,
        tried_at=NOW,
        next_at=NOW,
        failures=3 if broken else 0,
        error="it answers 500" if broken else "",
        broken_since=NOW if broken else None,
    )


@pytest.mark.parametrize(
    ("counts", "silent", "state"),
    [
        ([6] * 28, timedelta(hours=2), SourceState.FINE),
        ([6] * 22 + [0] * 6, timedelta(days=3), SourceState.QUIET),
        # One that is silent every weekend is not quiet on Sunday.
        ([9, 9, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0], timedelta(days=2), "fine"),
        ([1, 2], timedelta(days=5), SourceState.FINE),  # too few for a rhythm
        ([], timedelta(0), SourceState.NEW),
    ],
)
def test_silence_is_compared_with_the_rhythm(
    counts: list[int], silent: timedelta, state: str
) -> None:
    found = judge("S", active(counts, silent=silent), RUNNING, None)
    assert found.state == state
    assert found.problem == ""


def test_a_web_feed_has_its_own_estimate() -> None:
    activity = active([6] * 22 + [0] * 6, silent=timedelta(days=3))
    assert judge("S", activity, RUNNING, fetched(per_day=12)).state is SourceState.QUIET
    rare = judge("S", activity, RUNNING, fetched(per_day=1.5))
    assert (rare.state, rare.per_day) == (SourceState.FINE, 1.5)


def test_events_that_came_at_once_have_no_rhythm() -> None:
    found = judge("S", active([1_000, 0, 0], silent=timedelta(days=1)), RUNNING, None)
    assert (found.state, found.per_day) == (SourceState.FINE, None)


def test_who_was_silent_for_longer_than_anything_is_told_is_quiet() -> None:
    activity = active([1], silent=timedelta(days=40))
    activity.items[0], activity.counts[0] = 50, 0
    assert judge("S", activity, RUNNING, None).state is SourceState.QUIET


def test_what_is_wrong_comes_first() -> None:
    activity = active([6] * 28, silent=timedelta(hours=1))
    broken = judge("S", activity, RUNNING, fetched(broken=True))
    assert (broken.state, broken.problem) == (SourceState.BROKEN, "it answers 500")
    refused = RunSigns(RunState.RUNNING, NOW, {"S": "its topic is gone"})
    assert judge("S", activity, refused, None).problem == "its topic is gone"
    assert judge("S", activity, refused, None).state is SourceState.BROKEN


def test_without_a_run_nobody_hears_anything() -> None:
    beat = Heartbeat((NOW - timedelta(days=3)).timestamp(), 0.0, 1, "here", "1", "out")
    signs = RunSigns.of(beat, NOW)
    assert signs.state is RunState.LOST
    assert signs.as_of == NOW - timedelta(days=3)
    activity = active([6] * 22 + [0] * 6, silent=timedelta(days=3, hours=1))
    assert judge("S", activity, signs, None).state is SourceState.FINE
    assert judge("S", activity, RUNNING, None).state is SourceState.QUIET
