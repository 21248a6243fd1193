"""Hostile inputs: none crashes, none costs too much, and every byte of each is accounted for."""

from __future__ import annotations

import pytest
from bench.hostile import CPU_S_MAX, figures_of
from bench.hostile_inputs.door import Door
from bench.hostile_inputs.doors import DOORS
from bench.hostile_inputs.inputs import SHARES, input_of
from bench.hostile_inputs.worker import report_on

INPUTS = 150


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_inputs_are_answered_and_accounted_for(door: Door) -> None:
    first = len(door.bombs) * len(SHARES)
    reports = {n: report_on(door, input_of(door, n)) for n in range(first, first + INPUTS)}
    assert {n: each["crash"] for n, each in reports.items() if each["crash"]} == {}
    assert {n: each["wrong"] for n, each in reports.items() if each["wrong"]} == {}
    slow = {
        n: each["cpu_s"] for n, each in reports.items() if float(str(each["cpu_s"])) > CPU_S_MAX
    }
    assert slow == {}


def test_the_same_number_is_the_same_input() -> None:
    door = DOORS["xml"]
    assert [input_of(door, n) for n in range(100, 120)] == [
        input_of(door, n) for n in range(100, 120)
    ]


def test_inputs_are_entered_in_a_process_of_their_own() -> None:
    figures = figures_of(DOORS["statements"], 3, say=lambda _: None)
    assert (figures.inputs, figures.crashes, figures.wrong) == (3, {}, {})
    assert figures.largest > 0
