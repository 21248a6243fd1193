"""Benchmarks can be listed and run, and say what they measured in one form."""

from __future__ import annotations

import json

import pytest
from tests.cli.headgate_command import Run

pytestmark = pytest.mark.integration

QUICK = [
    "catalog",
    "language",
    "match",
    "mbd-routing",
    "mbd-imperfect",
    "operators",
    "operator-calls",
    "window-join",
    "delta-plan",
    "delta-run",
    "delta-relays",
]
COLUMNS = {"figure", "workload", "paper", "baseline", "ours", "target", "met"}


def test_the_benchmarks_are_listed(headgate: Run) -> None:
    code, out, _ = headgate("bench", "--json")
    assert code == 0
    assert {*QUICK, "pipeline"} <= set(json.loads(out))


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_run_says_what_it_measured(headgate: Run, name: str) -> None:
    code, out, _ = headgate("bench", name, "--quick", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["bench"] == name
    assert told["rows"]
    for row in told["rows"]:
        assert set(row) == COLUMNS
        assert row["ours"]
        assert (row["met"] is None) == (row["target"] == "")


def test_an_unknown_benchmark_is_refused(headgate: Run) -> None:
    code, _, err = headgate("bench", "nothing")
    assert code == 2
    assert "catalog" in err
