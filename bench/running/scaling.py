"""One core, then two: the same work in processes that may use one core of the machine, or both.

A task of Spark keeps a thread of the JVM and a Python worker busy, which is more than one core. So
the cores are limited for the whole tree of processes, by CPU affinity, and `local[n]` has as many
slots as there are cores.

The cores of a virtual machine may be two threads of one core, or share a cache with others. What
this machine gives at most is measured beside it: two processes that have nothing in common look
numbers up in arrays of 8 MB, one of them alone and then both at once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bench import Row, Say

ROOT = Path(__file__).parents[2]
TARGET = 1.7
_CALL = """\
import json, os, sys
os.sched_setaffinity(0, {cores})
from {module} import {name}
print("RATE", {name}(**json.loads(sys.argv[1])))
"""
_LOOKUPS = """\
import os, sys, time
os.sched_setaffinity(0, [int(sys.argv[1])])
import numpy as np
numbers = np.random.default_rng(1).integers(0, 1_000_000, 1_000_000)
until, rounds = time.perf_counter() + 3.0, 0
while time.perf_counter() < until:
    numbers = numbers[numbers]
    rounds += 1
print(rounds)
"""


def scaling_row(
    figure: str, workload: str, rate: Callable[..., float], *, say: Say, **arguments: object
) -> Row:
    """`rate(cores=…, **arguments)` is called in a process of its own with one core, and with two;
    it returns what it has done per second."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return Row(figure, workload, "not measured: there is one core")
    say(f"{figure}: one core")
    one = _rate_on(cores[:1], rate, arguments)
    say(f"{figure}: two cores")
    two = _rate_on(cores[:2], rate, arguments)
    return Row(
        figure,
        workload,
        f"{one:,.0f} → {two:,.0f}/s, {two / one:.2f} ×",
        f"≥ {TARGET} ×",
        two / one >= TARGET,
        baseline=f"two independent processes: {_machine_gain(cores):.2f} ×",
    )


def _machine_gain(cores: list[int]) -> float:
    def rounds(*used: int) -> float:
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", _LOOKUPS, str(core)],
                stdout=subprocess.PIPE,
                text=True,
            )
            for core in used
        ]
        return sum(float(process.communicate()[0]) for process in processes)

    return rounds(*cores[:2]) / rounds(cores[0])


def _rate_on(cores: list[int], rate: Callable[..., float], arguments: dict[str, object]) -> float:
    code = _CALL.format(module=rate.__module__, name=rate.__name__, cores=cores)
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps({**arguments, "cores": len(cores)})],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    rates = [line for line in done.stdout.splitlines() if line.startswith("RATE ")]
    if not rates:
        raise RuntimeError((done.stderr or done.stdout)[-2_000:])
    return float(rates[-1].split()[1])
