"""Hostile inputs: none crashes, none costs too much, and every byte of each is accounted for."""

from __future__ import annotations

import sys

import pytest
from bench.hostile import CPU_S_MAX, _DoorRun, figures_of
from bench.hostile_inputs.doors import DOORS, door_of
from bench.hostile_inputs.inputs import SHARES, input_of, numbers_of
from bench.hostile_inputs.worker import report_on

INPUTS = 150


@pytest.mark.parametrize("name", DOORS)
def test_inputs_are_answered_and_accounted_for(name: str) -> None:
    door = door_of(name)
    first = len(door.bombs) * len(SHARES)
    reports = {n: report_on(door, input_of(door, n)) for n in range(first, first + INPUTS)}
    assert {n: each["crash"] for n, each in reports.items() if each["crash"]} == {}
    assert {n: each["wrong"] for n, each in reports.items() if each["wrong"]} == {}
    slow = {
        n: each["cpu_s"] for n, each in reports.items() if float(str(each["cpu_s"])) > CPU_S_MAX
    }
    assert slow == {}


def test_the_same_number_is_the_same_input() -> None:
    door = door_of("xml")
    assert [input_of(door, n) for n in range(100, 120)] == [
        input_of(door, n) for n in range(100, 120)
    ]


def test_inputs_are_entered_in_a_process_of_their_own() -> None:
    figures = figures_of("statements", 3, quick=False, say=lambda _: None)
    assert (figures.inputs, figures.crashes, figures.wrong) == (3, {}, {})
    assert figures.largest > 0


DIES_OF_THE_SECOND = """
import json, os, sys
for number in range(int(sys.argv[1]) + 1, 4):
    print(json.dumps({"began": number}), flush=True)
    if number == 1:
        os.kill(os.getpid(), 9)
    print(json.dumps({"cpu_s": 0.5, "bytes": 9, "wrong": "", "crash": ""}), flush=True)
"""


def enter_with(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        _DoorRun, "command", lambda _, behind: [sys.executable, "-c", script, str(behind)]
    )


def test_the_next_process_goes_on_behind_the_input_that_one_died_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enter_with(DIES_OF_THE_SECOND, monkeypatch)
    figures = figures_of("xml", 4, quick=False, say=lambda _: None)
    assert figures.inputs == 4
    assert figures.crashes == {1: "the process ended with -9"}


def test_a_process_that_enters_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    enter_with("raise SystemExit(3)", monkeypatch)
    with pytest.raises(RuntimeError, match="no input of 'xml' can be entered"):
        figures_of("xml", 4, quick=False, say=lambda _: None)


def test_a_run_that_the_user_ends_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    enter_with("import os; os.kill(os.getpid(), 2)", monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        figures_of("xml", 4, quick=False, say=lambda _: None)


def test_a_quick_run_begins_with_the_smallest_bombs() -> None:
    door = door_of("opml")
    larger = len(door.bombs) * (len(SHARES) - 1)
    assert numbers_of(door, 60, quick=True) == range(larger, larger + 60)
    assert numbers_of(door, 60, quick=False) == range(60)
