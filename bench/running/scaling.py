"""One core, then two: the same work in processes that may use one core of the machine, or both.

A task of Spark keeps a thread of the JVM and a Python worker busy, which is more than one core. So
the cores are limited for the whole tree of processes, by CPU affinity, and `local[n]` has as many
slots as there are cores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import Row, Say

ROOT = Path(__file__).parents[2]
TARGET = 1.7
_CALL = """\
import json, sys
from {module} import {name}
print("RATE", {name}(**json.loads(sys.argv[1])))
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
    )


def _rate_on(cores: list[int], rate: Callable[..., float], arguments: dict[str, object]) -> float:
    code = _CALL.format(module=rate.__module__, name=rate.__name__)
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps({**arguments, "cores": len(cores)})],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=partial(os.sched_setaffinity, 0, cores),
        capture_output=True,
        text=True,
        check=False,
    )
    rates = [line for line in done.stdout.splitlines() if line.startswith("RATE ")]
    if not rates:
        raise RuntimeError((done.stderr or done.stdout)[-2_000:])
    return float(rates[-1].split()[1])
