"""Benchmarks can be listed and run, and say what they measured in one form."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.headgate_command import Run

pytestmark = pytest.mark.integration

QUICK = [
    "catalog",
    "language",
    "match",
    "matcher",
    "mbd-routing",
    "mbd-imperfect",
    "operators",
    "operator-calls",
    "price",
    "text",
    "delta-plan",
    "delta-relays",
]
ON_SPARK = ["delta-run", "spark-match", "window-join"]
"""These have a process of their own: a JVM that is started here would stay, with the folder of this
test as its own."""
COLUMNS = {"figure", "workload", "paper", "baseline", "ours", "target", "met"}


def test_the_benchmarks_are_listed(headgate: Run) -> None:
    code, out, _ = headgate("bench", "--json")
    assert code == 0
    assert {*QUICK, *ON_SPARK, "pipeline", "soak"} <= set(json.loads(out))


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_run_says_what_it_measured(headgate: Run, name: str) -> None:
    code, out, _ = headgate("bench", name, "--quick", "--json")
    assert code == 0
    check(name, json.loads(out))


@pytest.mark.parametrize("name", ON_SPARK)
def test_a_quick_run_on_spark_says_what_it_measured(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headgate", "bench", name, "--quick", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2_000:]
    check(name, json.loads(done.stdout))


def check(name: str, told: dict[str, Any]) -> None:
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
