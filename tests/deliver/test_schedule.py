"""The timetable: at most one run between two boundaries, nothing forgotten, any clock."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.deliver.things import NOW_S, delivery

from headgate.deliver.outbox import Outbox
from headgate.deliver.schedule import (
    DeliverySchedule,
    boundary_after_s,
    due_at_s,
    phase_s,
    put_before_s,
)

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


@pytest.fixture
def outbox(tmp_path: Path):
    with Outbox.open(tmp_path / "outbox") as found:
        yield found


def test_what_waits_is_due_until_it_is_settled(outbox: Outbox):
    agenda = DeliverySchedule(outbox)
    outbox.put([delivery(), delivery(subscription=2)], now_s=NOW_S)
    assert agenda.due(NOW_S - 1, limit=9) == []
    assert agenda.due(NOW_S, limit=9) == [1, 2]
    outbox.mark_sent(outbox.pending_numbers(1), now_s=NOW_S)
    agenda.settle(1, now_s=NOW_S)
    agenda.settle(2, now_s=NOW_S, failures=3, not_before_s=NOW_S + 50)
    outbox.put([delivery("b", subscription=2)], now_s=NOW_S + 1)
    assert agenda.due(NOW_S + 49, limit=9) == []
    assert agenda.due(NOW_S + 50, limit=9) == [2]
    entry = agenda.get(2)
    assert entry is not None
    assert (entry.failures, entry.last_run_at_s) == (3, NOW_S)


def test_new_items_do_not_hasten_what_is_planned(outbox: Outbox):
    agenda = DeliverySchedule(outbox)
    outbox.put([delivery("a")], now_s=NOW_S)
    agenda.plan(1, NOW_S + 100, by_timetable=True)
    outbox.put([delivery("b")], now_s=NOW_S + 1)
    assert agenda.due(NOW_S + 99, limit=9) == []
    assert agenda.due(NOW_S + 100, limit=9) == [1]


def test_new_items_do_not_wait_for_the_retry_of_another(outbox: Outbox):
    agenda = DeliverySchedule(outbox)
    outbox.put([delivery("a")], now_s=NOW_S)
    again_s = NOW_S + 100
    outbox.mark_failed(
        outbox.pending_numbers(1), "no", attempts_max=None, now_s=NOW_S, retry_at_s=again_s
    )
    agenda.settle(1, now_s=NOW_S)
    assert agenda.due(NOW_S + 99, limit=9) == []
    outbox.put([delivery("b")], now_s=NOW_S + 1)
    assert agenda.due(NOW_S + 1, limit=9) == [1]
    (message,) = outbox.messages(1, together=True, limit=9, now_s=NOW_S + 1)
    assert [each.delivery.item.id for each in message.parts] == ["b"]
    assert len(outbox.messages(1, together=True, limit=9, now_s=again_s)) == 2


def test_retries_know_no_timetable(outbox: Outbox):
    outbox.put([delivery("a")], now_s=NOW_S)
    assert due_at_s(*outbox.next_times_s(1), 1, None) == (NOW_S, False)
    boundary_s = boundary_after_s(NOW_S, 3600, phase_s(1, 3600))
    assert due_at_s(*outbox.next_times_s(1), 1, 3600) == (boundary_s, True)
    outbox.mark_failed(outbox.pending_numbers(1), "no", attempts_max=None, now_s=NOW_S)
    assert due_at_s(*outbox.next_times_s(1), 1, 3600) == (NOW_S, False)
    assert due_at_s(None, None, 1, 3600) is None


@given(st.floats(0, 4e9), st.floats(0, 4e9), st.integers(1, 10**6), st.integers(0, 1000))
def test_what_is_due_is_what_is_taken(put_s: float, now_s: float, period: int, name: int):
    due = due_at_s(None, put_s, name, period)
    assert due is not None
    assert (due[0] <= now_s) == (put_s < put_before_s(now_s, name, period))


def test_a_clock_that_goes_back_by_years_costs_one_period_at_most(outbox: Outbox):
    agenda, wrong_s = DeliverySchedule(outbox), NOW_S + 5 * 365 * 86_400
    assert not agenda.note_clock(wrong_s)
    outbox.put([delivery("a")], now_s=wrong_s)
    agenda.plan(1, wrong_s + 3600, by_timetable=True)
    assert agenda.note_clock(NOW_S)
    assert agenda.due(NOW_S, limit=9) == [1]
    due = due_at_s(*outbox.next_times_s(1), 1, 3600)
    assert due is not None
    assert NOW_S < due[0] <= NOW_S + 3600


def test_a_clock_that_is_set_right_by_seconds_changes_nothing(outbox: Outbox):
    agenda = DeliverySchedule(outbox)
    agenda.note_clock(NOW_S)
    outbox.put([delivery("a")], now_s=NOW_S)
    agenda.plan(1, NOW_S + 100, by_timetable=True)
    assert not agenda.note_clock(NOW_S - 30)
    assert agenda.due(NOW_S + 99, limit=9) == []


def test_the_agenda_survives_a_restart(tmp_path: Path):
    with Outbox.open(tmp_path / "o") as outbox:
        outbox.put([delivery("a")], now_s=NOW_S)
        DeliverySchedule(outbox).plan(1, NOW_S + 100, by_timetable=True)
    with Outbox.open(tmp_path / "o") as outbox:
        assert DeliverySchedule(outbox).due(NOW_S + 99, limit=9) == []
        assert DeliverySchedule(outbox).due(NOW_S + 100, limit=9) == [1]
