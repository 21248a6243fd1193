"""Hostile inputs: crashes, CPU, memory and the account of every byte, for each door.

Inputs are bombs, and seeds that were changed by flips, cuts, repetitions, splices, noise and other
encodings (bench/hostile_inputs/). They are entered in child processes. An input is over the limit
if one of its units of work (a document, a part of a file, a statement) takes more than 2
CPU-seconds, or if the process has more than 512 MB meanwhile. A process that dies, or says nothing
for 60 s, counts as a crash of its input; the next process goes on behind it.

One door is entered for each core at a time. Seconds are the CPU time of a door's own process and
bytes its own resident size, so doors do not add to each other's figures.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from bench import Result, Row, Say
from bench.hostile_inputs.doors import CHECKS_BOUNDS, DOORS

CPU_S_MAX = 2.0
BYTES_MAX = 512_000_000
SILENT_S_MAX = 60.0
INPUTS, INPUTS_QUICK = 20_000, 60
CHECKED_FROM = 1_000
"""Runs of more inputs check the indices of kernels, where a door wants it: compiling them takes a
minute, which a quick run does not have."""
STARTING_S_MAX = 600.0
SEED = 16
ROOT = Path(__file__).parents[1]


@dataclass(slots=True)
class DoorFigures:
    """What happened at one door; inputs are named by their number."""

    inputs: int = 0
    crashes: dict[int, str] = field(default_factory=dict)
    slow: dict[int, float] = field(default_factory=dict)
    large: dict[int, int] = field(default_factory=dict)
    wrong: dict[int, str] = field(default_factory=dict)
    slowest_s: float = 0.0
    slowest: int = 0
    largest: int = 0

    def add(self, number: int, report: dict[str, object]) -> None:
        cpu_s, size = float(str(report["cpu_s"])), int(str(report["bytes"]))
        self.inputs += 1
        if report["crash"]:
            self.crashes[number] = str(report["crash"])
        if report["wrong"]:
            self.wrong[number] = str(report["wrong"])
        if cpu_s > CPU_S_MAX:
            self.slow[number] = cpu_s
        if size > BYTES_MAX:
            self.large[number] = size
        if cpu_s > self.slowest_s:
            self.slowest_s, self.slowest = cpu_s, number
        self.largest = max(self.largest, size)


def run(*, quick: bool, say: Say) -> Result:
    count = INPUTS_QUICK if quick else INPUTS

    def row(name: str) -> Row:
        return _row(name, figures_of(name, count, quick=quick, say=say))

    with ThreadPoolExecutor(os.cpu_count()) as doors:
        return Result(list(doors.map(row, DOORS)))


def _row(name: str, figures: DoorFigures) -> Row:
    crashes, slow = len(figures.crashes), len(figures.slow)
    large, wrong = len(figures.large), len(figures.wrong)
    ours = (
        f"{crashes} crashes, {slow} over 2 CPU-s, {large} over 512 MB, {wrong} not accounted for; "
        f"slowest {figures.slowest_s:.2f} s, largest {figures.largest / 1e6:.0f} MB"
    )
    met = not (crashes or slow or large or wrong)
    return Row(name, f"{figures.inputs:,} inputs", ours, "0, 0, 0, 0", met)


def figures_of(name: str, count: int, *, quick: bool, say: Say, seed: int = SEED) -> DoorFigures:
    """Enter so many inputs at the door of this name, in as many processes as it takes."""
    door = _DoorRun(name, count, quick, seed, say)
    figures = DoorFigures()
    died_of: int | None = -1
    while died_of is not None:
        died_of = _one_process(door, died_of, figures)
    return figures


@dataclass(frozen=True, slots=True)
class _DoorRun:
    name: str
    count: int
    quick: bool
    seed: int
    say: Say

    def command(self, behind: int) -> list[str]:
        """The process that enters the inputs behind this number."""
        run = "quick" if self.quick else "full"
        arguments = [self.name, run, str(self.count), str(self.seed), str(behind)]
        return [sys.executable, "-m", "bench.hostile_inputs.worker", *arguments]

    @property
    def checks_bounds(self) -> bool:
        return self.name in CHECKS_BOUNDS and self.count > CHECKED_FROM


def _one_process(door: _DoorRun, behind: int, figures: DoorFigures) -> int | None:
    """Enter the inputs behind this number; the number of the one that the process has died of."""
    command = door.command(behind)
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=_environment(checks_bounds=door.checks_bounds),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    lines, reader = _lines_of(process.stdout)
    number, is_inside = behind, False
    try:
        while True:
            line = lines.get(timeout=SILENT_S_MAX if is_inside else STARTING_S_MAX)
            if line is None:
                break
            report = json.loads(line)
            if "began" in report:
                number, is_inside = int(report["began"]), True
                continue
            figures.add(number, report)
            is_inside = False
            if number % 500 == 0:
                door.say(f"{door.name}: {number:,} of {door.count:,}")
    except queue.Empty:
        process.kill()
    code = process.wait()
    reader.join()
    process.stdout.close()
    if code == -signal.SIGINT:
        raise KeyboardInterrupt  # the user ends the run, not the input
    if not is_inside and code == 0:
        return None
    if not is_inside and number == behind:
        raise RuntimeError(f"no input of '{door.name}' can be entered: {command} ended with {code}")
    figures.inputs += 1
    figures.crashes[number] = f"the process ended with {code}"
    return number


def _environment(*, checks_bounds: bool) -> dict[str, str]:
    """Kernels that check every index are compiled and cached apart from the others."""
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    if checks_bounds:
        cache = Path(tempfile.gettempdir(), f"headgate-bounds-{os.getuid()}")
        cache.mkdir(mode=0o700, exist_ok=True)
        found |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(cache)}
    return found


def _lines_of(stream: IO[bytes]) -> tuple[queue.SimpleQueue[bytes | None], threading.Thread]:
    """The lines of a process as they come, then None; and the thread that reads them."""
    lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def read() -> None:
        for line in stream:
            lines.put(line)
        lines.put(None)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    return lines, reader
