"""When the circuit breaker pauses an operator, and when it is called again."""

from __future__ import annotations

import pytest

from headgate.operators.failures import FAILURES_MAX, PAUSE_MAX_S, PAUSE_MIN_S, STOPS_MAX, Breaker


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_consecutive_failures_open_the_breaker(clock: Clock) -> None:
    breaker = Breaker(clock)
    breaker.failed(FAILURES_MAX - 1)
    assert not breaker.paused
    breaker.failed()
    assert breaker.paused


def test_an_answer_resets_the_count_of_failures(clock: Clock) -> None:
    breaker = Breaker(clock)
    for _ in range(FAILURES_MAX):
        breaker.failed(stopped=True)
        breaker.answered()
    assert not breaker.paused


def test_fewer_stopped_processes_open_the_breaker(clock: Clock) -> None:
    breaker = Breaker(clock)
    for _ in range(STOPS_MAX):
        assert not breaker.paused
        breaker.failed(stopped=True)
    assert breaker.paused


def test_after_a_pause_one_item_is_tried_and_pauses_grow(clock: Clock) -> None:
    breaker = Breaker(clock)
    breaker.failed(FAILURES_MAX)
    pause_s = PAUSE_MIN_S
    for _ in range(10):
        assert breaker.paused
        assert not breaker.probing
        clock.now += pause_s
        assert not breaker.paused
        assert breaker.probing
        breaker.failed()
        pause_s = min(2 * pause_s, PAUSE_MAX_S)
    clock.now += pause_s
    breaker.answered()
    assert not breaker.probing
    breaker.failed()
    assert not breaker.paused
