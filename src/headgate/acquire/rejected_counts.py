"""How much was rejected, by source, for whoever watches a run: each file is read once.

A part that is read again replaces its file, which is then another file. Folders are looked at every
few seconds, however often one asks.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from headgate.acquire.rejected import read_rejected_file, rejected_files

LOOK_S = 2.0
Stamp = tuple[int, int]


class RejectedCounts:
    """Of all queries of a run; `sources` is the folder that has a folder for each."""

    def __init__(self, sources: Path) -> None:
        self._sources = sources
        self._known: dict[Path, tuple[Stamp, Counter[str]]] = {}
        self._counts: Counter[str] = Counter()
        self._look_at = 0.0

    def by_source(self) -> dict[str, int]:
        if time.monotonic() >= self._look_at:
            self._look()
            self._look_at = time.monotonic() + LOOK_S
        return dict(self._counts)

    def _look(self) -> None:
        found: dict[Path, tuple[Stamp, Counter[str]]] = {}
        for path in rejected_files(self._sources.glob("*")):
            try:
                stat = path.stat()
                stamp = stat.st_ino, stat.st_mtime_ns
                known = self._known.get(path)
                found[path] = known if known and known[0] == stamp else (stamp, _counts_of(path))
            except FileNotFoundError:
                continue  # it was replaced or removed meanwhile
        self._known = found
        self._counts = sum((counts for _, counts in found.values()), Counter())


def _counts_of(path: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    for each in read_rejected_file(path):
        counts[each.source] += each.count
    return counts
