"""Processes and their children, as /proc shows them."""

from __future__ import annotations

from pathlib import Path


def children_of(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(each) for each in found.split()]


def worker_of(supervisor: int) -> int:
    """The worker is started last, after the first process of its namespace."""
    return children_of(supervisor)[-1]


def is_alive(pid: int) -> bool:
    """A process counts as dead even if its parent has not yet waited for it."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def processes_with(marker: str) -> list[int]:
    """Running processes that have the text in their command line."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in file.read_bytes() and is_alive(int(file.parent.name)):
                found.append(int(file.parent.name))
        except OSError:
            continue
    return found
