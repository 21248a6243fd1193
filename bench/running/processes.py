"""Processes of a run, found in /proc: the driver, its JVM, and the Python workers below that."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, SIGTERM


def below(pid: int) -> list[int]:
    """All that descend from a process, itself first."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name is in parentheses and may hold anything: what counts stands behind it.
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found, waiting = [], [pid]
    while waiting:
        each = waiting.pop()
        found.append(each)
        waiting += children.get(each, [])
    return found


def is_worker(pid: int) -> bool:
    """The daemon that workers are forked from, or one of them."""
    # The JVM has the name in its settings, but not as what it runs.
    return b"-m\0headgate.pipeline.daemon" in _command(pid)


def is_delivery(pid: int) -> bool:
    """The process in which a run delivers."""
    return b"headgate\0deliver" in _command(pid)


def is_java(pid: int) -> bool:
    return _command(pid).partition(b"\0")[0].endswith(b"/java")


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def resident_mb(pids: list[int]) -> float:
    """Proportional set size: pages that several processes map count once in all."""
    total_kb = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total_kb += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total_kb / 1024


def cpu_s(pid: int) -> float:
    """The CPU time of a process and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def end_run(process: subprocess.Popen[bytes], *, patience_s: float) -> None:
    """Stop a run as its user does, and kill what is left of it after a while."""
    family = below(process.pid)
    process.send_signal(SIGTERM)
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        for pid in family[::-1]:
            end(pid, SIGKILL)
        process.wait()


def end(pid: int, signal: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal)
